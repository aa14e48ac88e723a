"""A Telegram Bot API server on loopback, with the real one's limits, errors and faults.

In a test's own loop::

    async with TelegramServer() as server:
        telegram = server.platform
        await telegram.add_bot("123456:TEST", "ops_signoff_bot")

In a process of its own: `telegram_process()`, or `python -m tests.platforms.telegram --port 0 --control` and
`TelegramPlatform.connect(url)`. Both give a `TelegramPlatform`.
"""

from .clock import ServerClock
from .limits import RateLimits
from .model import (
    Answer,
    FaultKind,
    LimitReport,
    LogEntry,
    PressState,
    SeenButton,
    SeenDocument,
    SeenMessage,
    Violation,
    WhereAt,
)
from .platform import TelegramPlatform
from .process import telegram_process
from .server import TelegramServer

__all__ = [
    "Answer",
    "FaultKind",
    "LimitReport",
    "LogEntry",
    "PressState",
    "RateLimits",
    "SeenButton",
    "SeenDocument",
    "SeenMessage",
    "ServerClock",
    "TelegramPlatform",
    "TelegramServer",
    "Violation",
    "WhereAt",
    "telegram_process",
]
