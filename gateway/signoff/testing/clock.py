"""A clock that moves only when a test says so."""

from __future__ import annotations

import asyncio
import heapq
from datetime import UTC, datetime, timedelta
from itertools import count

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""When a fake clock starts unless told otherwise: a Monday morning."""

_SETTLE_TURNS = 50
"""Turns of the loop that `settle` yields: a woken task may wake another, which wakes another."""


async def settle(turns: int = _SETTLE_TURNS) -> None:
    """Let everything that is ready on the loop run, and what that makes ready. Does not wait for threads."""
    for _ in range(turns):
        await asyncio.sleep(0)


class FakeClock:
    """A `Clock` for tests. `advance` moves it and wakes sleepers in the order of their times."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._leapt = timedelta(0)
        self._start = start
        self._sleepers: list[tuple[datetime, int, asyncio.Future[None]]] = []
        self._order = count()

    def now(self) -> datetime:
        """The instant it stands at."""
        return self._now

    def wall(self) -> datetime:
        """The same instant."""
        return self._now

    def passed(self) -> float:
        """Seconds by which it was advanced."""
        return (self._now - self._start - self._leapt).total_seconds()

    def slept(self, seconds: float) -> None:
        """Be ahead by `seconds` at once, as after a sleep of the machine. Who was to wake meanwhile still has the rest
        of its time to wait, until the next `advance`."""
        self._leapt += timedelta(seconds=seconds)
        self._now += timedelta(seconds=seconds)

    async def leap(self, seconds: float) -> None:
        """As `slept`, or as a clock that was set; who was to wake meanwhile wakes now."""
        self.slept(seconds)
        await self.advance(0)

    async def sleep_until(self, when: datetime) -> None:
        """Return once the clock was moved to `when` or beyond."""
        if self._now >= when:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (when, next(self._order), woken))
        await woken

    @property
    def sleeping(self) -> int:
        """How many sleepers wait."""
        return sum(not woken.done() for _, _, woken in self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Move on by `seconds` (not negative); each sleeper wakes at its own instant, and the loop settles between."""
        if seconds < 0:
            raise ValueError("a clock does not go back")
        target = self._now + timedelta(seconds=seconds)
        await settle()
        while self._sleepers and self._sleepers[0][0] <= target:
            when, _, woken = heapq.heappop(self._sleepers)
            if woken.done():
                continue
            self._now = max(self._now, when)
            woken.set_result(None)
            await settle()
        self._now = target
        await settle()
