"""The log while the store is away: one line when it goes, one a minute, and one when it is back."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from signoff.errors import SaveUnknown, StoreUnavailable

EVERY_S = 60.0
OVER = {"store_is_back": True}
"""Given as `extra` with the line that says so."""
TOLD = {"told_meanwhile": True}
"""Given as `extra` with a line that is written during an outage too: what it says follows from the outage alone."""
_DRIVER = "psycopg"


class Outages(logging.Filter):
    """Keeps the lines about the store's failures few: a store that is away fails every loop and every call at once.

    A filter of a handler, since the loggers are many. A line is about it if one of its values, or the error that it
    tells of, is a `StoreUnavailable`. What may have been saved is always told. `now_s` counts seconds.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now_s = now_s
        self._silent_until = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is written."""
        if record.name.startswith(_DRIVER) and record.levelno < logging.ERROR:
            return False  # what it warns of reaches us as an error
        if getattr(record, "store_is_back", False):
            self._silent_until = float("-inf")
            return True
        if getattr(record, "told_meanwhile", False) or not _about_the_store(record):
            return True
        now_s = self._now_s()
        if now_s < self._silent_until:
            return False
        self._silent_until = now_s + EVERY_S
        return True


def _about_the_store(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    values = record.args if isinstance(record.args, tuple) else ()
    return any(isinstance(value, StoreUnavailable) and not isinstance(value, SaveUnknown) for value in (error, *values))
