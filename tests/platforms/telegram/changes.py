"""A counter of changes that can be waited on, so that nothing has to poll or sleep."""

from __future__ import annotations

import asyncio


class Changes:
    """Counts every change of one thing and wakes those who wait for the next; `whole` counts them too."""

    def __init__(self, whole: Changes | None = None) -> None:
        self.revision = 0
        self._whole = whole
        self._waiters: set[asyncio.Future[None]] = set()

    def bump(self) -> None:
        """Tell everybody that something changed."""
        self.revision += 1
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()
        if self._whole is not None:
            self._whole.bump()

    async def after(self, revision: int, timeout_s: float) -> int:
        """The revision once it exceeds `revision`, or as it is when `timeout_s` has passed."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while self.revision <= revision and (left_s := deadline - loop.time()) > 0:
            waiter: asyncio.Future[None] = loop.create_future()
            self._waiters.add(waiter)
            try:
                await asyncio.wait([waiter], timeout=left_s)
            finally:
                self._waiters.discard(waiter)
        return self.revision
