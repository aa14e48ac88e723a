"""Telegram: cards as messages with inline buttons, over the Bot API, by long polling or webhook."""

from __future__ import annotations

from .adapter import TelegramAdapter
from .config import TelegramConfig

__all__ = ["TelegramAdapter", "TelegramConfig"]
