"""Everybody who waits at the door: long polls, streams and the tasks they leave behind. All end at once on closing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from signoff.errors import StoreError
from signoff.model import ApprovalRequest

log = logging.getLogger("signoff.server")


class Hall:
    """Held waits and background tasks of one server."""

    def __init__(self) -> None:
        self._polls: set[asyncio.Future[ApprovalRequest]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.closing = False

    @property
    def polls(self) -> int:
        """How many long polls are open."""
        return len(self._polls)

    async def poll(self, future: asyncio.Future[ApprovalRequest], timeout_s: float) -> ApprovalRequest | None:
        """The row that `future` brings, or None after `timeout_s` seconds or when the server closes."""
        if self.closing:
            return None
        self._polls.add(future)
        try:
            await asyncio.wait((future,), timeout=timeout_s)
        finally:
            self._polls.discard(future)
        return future.result() if future.done() and not future.cancelled() else None

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run what must be done even though its caller has gone."""
        task = asyncio.get_running_loop().create_task(_logged(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Answer every long poll with what there is now."""
        self.closing = True
        for future in tuple(self._polls):
            future.cancel()

    async def drained(self) -> None:
        """Return once nothing that was spawned still runs."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except StoreError as error:
        log.error("server.leftover_failed: %s", error)
