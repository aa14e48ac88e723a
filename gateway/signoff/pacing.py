"""Heavy work in small steps: whatever comes at once, the event loop gets to everybody else in between."""

from __future__ import annotations

import asyncio
from collections import deque

AT_ONCE = 16
"""Turns in one step of the loop. Judging a request or drawing a card takes 0.2 to 0.4 ms, so a step stays near 5 ms."""


class Pace:
    """Hands out turns, first come first served. For work that runs on the loop without awaiting anything."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._left = at_once
        self._queue: deque[asyncio.Future[None]] = deque()
        self._counting = False

    async def turn(self) -> None:
        """Return when this caller may do one piece of work in the present step of the loop."""
        loop = asyncio.get_running_loop()
        if not self._counting:
            self._counting = True
            loop.call_soon(self._next_step, loop)
        if self._left > 0 and not self._queue:
            self._left -= 1
            return
        mine: asyncio.Future[None] = loop.create_future()
        self._queue.append(mine)
        await mine

    def _next_step(self, loop: asyncio.AbstractEventLoop) -> None:
        self._left = self._at_once
        while self._queue and self._left > 0:
            waiting = self._queue.popleft()
            if not waiting.done():  # its caller was cancelled
                waiting.set_result(None)
                self._left -= 1
        self._counting = self._left < self._at_once
        if self._counting:
            loop.call_soon(self._next_step, loop)
