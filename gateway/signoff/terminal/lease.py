"""How a session knows that its questions are put on a terminal: said anew while it is so, and never again after it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import timedelta

from signoff.errors import SignoffError
from signoff.model import Cause
from signoff.ports import Clock
from signoff.timing import wait_until

LEASE_S = 30.0
"""A prompt whose process was killed counts as there for so long: as long as an answer client whose connection broke."""
RENEW_S = 10.0
"""How often a living one says so: two may be missed."""


class Lease:
    """One terminal's attachment to a session. `attach` and `detach` say to the gateway that it is there, or is not."""

    def __init__(
        self, clock: Clock, attach: Callable[[], Awaitable[object]], detach: Callable[[Cause], Awaitable[object]]
    ) -> None:
        self._clock, self._attach, self._detach = clock, attach, detach
        self._over = asyncio.Event()
        self._renewing: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """It is there from now on. Raises what `attach` raises."""
        await self._attach()
        self._renewing = asyncio.create_task(self._renew())

    async def end(self, cause: Cause) -> None:
        """It is not there any more, for that cause. Idempotent. Raises what `detach` raises."""
        self._over.set()
        try:
            if self._renewing is not None:
                await asyncio.wait({self._renewing})  # one that is under way would come after the end
            await self._detach(cause)
        finally:
            if self._renewing is not None:
                self._renewing.cancel()

    async def _renew(self) -> None:
        """A session that ended takes no more prompts, and a gateway that is away may come back."""
        while True:
            await wait_until(self._clock, self._clock.now() + timedelta(seconds=RENEW_S), self._over)
            if self._over.is_set():
                return
            with contextlib.suppress(SignoffError):
                await self._attach()
