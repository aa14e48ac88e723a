"""The clock of a gateway in a process of its own, which a story moves on.

What is to run out is given a long time, so that a machine that stands still cannot be faster than the story; once
everything was seen, the clock leaps, so that nobody waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime, timedelta
from pathlib import Path

from signoff.clock import SystemClock

FILE = "ahead"
"""How many seconds the gateway's clock is ahead, beside its configuration. SIGUSR1 has it read."""
READ = f"{FILE}.read"
"""What of it the gateway goes by."""
_LONGEST_NAP_S = 15.0


class LeapingClock(SystemClock):
    """The system's clock and what the file says."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._file, self._told = folder / FILE, folder / READ
        self._ahead = timedelta(0)
        self._moved = asyncio.Event()
        self.read()

    def read(self) -> None:
        """Go by what the file says now, and wake the sleepers."""
        if self._file.exists():
            text = self._file.read_text()
            self._ahead = timedelta(seconds=float(text))
            self._told.write_text(text)
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def now(self) -> datetime:
        """The present instant, aware UTC."""
        return super().now() + self._ahead

    def passed(self) -> float:
        """What a story waits for has passed: nobody slept through it."""
        return super().passed() + self._ahead.total_seconds()

    async def sleep_until(self, when: datetime) -> None:
        """Return once `now() >= when`."""
        while (left_s := (when - self.now()).total_seconds()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, _LONGEST_NAP_S)):
                    await self._moved.wait()
