"""Discord: cards as plain messages with buttons, over the gateway or by HTTP interactions."""

from __future__ import annotations

from .adapter import DiscordAdapter
from .config import DiscordConfig

__all__ = ["DiscordAdapter", "DiscordConfig"]
