"""Waiting on the server's own time, so that a test may move it instead of waiting."""

from __future__ import annotations

import asyncio

from tests.platforms.telegram.clock import ServerClock

STEP_S = 0.5
STEP_FOREIGN_S = 0.02
"""A clock that somebody else moves is looked at again and again."""


class Timeline:
    """The server's clock and those who wait for it."""

    def __init__(self, clock: ServerClock, *, foreign: bool) -> None:
        self.clock = clock
        self._step_s = STEP_FOREIGN_S if foreign else STEP_S
        self._skipped_s = 0.0
        self._turns: set[asyncio.Future[None]] = set()

    def now(self) -> float:
        """Seconds since 1970 (UTC) on the server's clock."""
        return self.clock.now()

    def wall(self) -> float:
        """The same without what tests have skipped: what goes into signatures that others check by their own clock."""
        return self.clock.now() - self._skipped_s

    def advance(self, seconds_s: float) -> None:
        """Skip this time, and wake those whose time has come."""
        self.clock.advance(seconds_s)
        self._skipped_s += seconds_s
        self.turn()

    def turn(self) -> None:
        """Let everybody who waits look again."""
        for turn in self._turns:
            if not turn.done():
                turn.set_result(None)
        self._turns.clear()

    async def before(self, done: asyncio.Future[None], deadline: float) -> bool:
        """Whether `done` came before the clock reached `deadline` (seconds since 1970); returns once either has."""
        loop = asyncio.get_running_loop()
        while not done.done() and (left_s := deadline - self.now()) > 0:
            turn: asyncio.Future[None] = loop.create_future()
            self._turns.add(turn)
            try:
                await asyncio.wait([done, turn], timeout=min(left_s, self._step_s), return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._turns.discard(turn)
        return done.done()

    async def until(self, moment: float) -> None:
        """Return once the clock reads `moment` (seconds since 1970)."""
        await self.before(asyncio.get_running_loop().create_future(), moment)
