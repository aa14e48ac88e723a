"""The server's time: real by default, and movable so that minutes of a limit pass in no time."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime


class ServerClock:
    """Unix time plus a shift that tests move; it can stand still."""

    def __init__(self, source: Callable[[], float] = time.time) -> None:
        """`source` gives seconds since 1970 (UTC)."""
        self._source = source
        self._shift_s = 0.0
        self._frozen_at: float | None = None

    def now(self) -> float:
        """Seconds since 1970 (UTC)."""
        base = self._source() if self._frozen_at is None else self._frozen_at
        return base + self._shift_s

    def today(self) -> datetime:
        """The same moment as an aware time."""
        return moment(self.now())

    def freeze(self, frozen: bool) -> None:
        """Stand still (True) or run on from where it stands (False)."""
        if frozen:
            self._frozen_at = self._source() if self._frozen_at is None else self._frozen_at
        elif self._frozen_at is not None:
            self._shift_s -= self._source() - self._frozen_at
            self._frozen_at = None

    def advance(self, seconds_s: float) -> None:
        """Move forward by `seconds_s`; ValueError for a step back, since limits reckon with rising time."""
        if seconds_s < 0:
            raise ValueError("the clock only moves forward")
        self._shift_s += seconds_s


def moment(unix_s: float) -> datetime:
    """An aware UTC time from seconds since 1970."""
    return datetime.fromtimestamp(unix_s, UTC)
