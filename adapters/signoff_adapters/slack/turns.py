"""What is said in one chat, one after the other in the chat's own order.

Slack spreads messages over all sockets (or requests), so a later one may come in first by a few milliseconds. Each
therefore waits a moment for one that was said before it.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

GATHER_S = 0.025
"""Over loopback sockets messages overtook each other by under 2 ms."""


class _Turn:
    def __init__(self) -> None:
        self.ripe = False
        self.begins: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Turns:
    """The turns of all chats."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[tuple[int, int, _Turn]]] = {}
        self._busy: set[str] = set()
        self._number = count()

    @asynccontextmanager
    async def of(self, chat: str, order: int) -> AsyncIterator[None]:
        """Hold the chat's turn, once everything of a lower `order` that has come is through."""
        turn = _Turn()
        heapq.heappush(self._waiting.setdefault(chat, []), (order, next(self._number), turn))
        try:
            await asyncio.sleep(GATHER_S)
            turn.ripe = True
            self._pass_on(chat)
            await turn.begins
        except asyncio.CancelledError:
            turn.begins.cancel()
            if not turn.begins.cancelled():
                self._busy.discard(chat)  # it was this one's turn already
            self._pass_on(chat)
            raise
        try:
            yield
        finally:
            self._busy.discard(chat)
            self._pass_on(chat)

    def _pass_on(self, chat: str) -> None:
        """Give the turn to the first, unless somebody has it or the first still waits for an earlier one."""
        waiting = self._waiting.get(chat, [])
        while waiting and waiting[0][2].begins.cancelled():
            heapq.heappop(waiting)
        if not waiting:
            self._waiting.pop(chat, None)
        elif chat not in self._busy and waiting[0][2].ripe:
            self._busy.add(chat)
            heapq.heappop(waiting)[2].begins.set_result(None)
