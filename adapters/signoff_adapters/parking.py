"""What comes in is tried a few times. What fails each time, or is in hand for long, is parked: an operator is told, and
what is behind it goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from typing import Any

from signoff.ports import Clock, Inbox

from .tasks import Jobs, within

TRIES = 3
"""What has failed so often is parked."""
_log = logging.getLogger(__name__)


class Parking:
    """For one run of an adapter. When something is tried again, and who is told of it, is the adapter's to say."""

    def __init__(self, platform: str, inbox: Inbox, clock: Clock, jobs: Jobs, stuck_after_s: float) -> None:
        """`jobs` keeps what nobody waits for any more; what is in hand for `stuck_after_s` goes on there."""
        self._platform = platform
        self._inbox = inbox
        self._clock = clock
        self._jobs = jobs
        self._stuck_after_s = stuck_after_s
        self._waited = Jobs(failed=None)

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        """The tries that are under way."""
        return iter(self._waited)

    async def attempt(self, what: str, work: Coroutine[Any, Any, None]) -> BaseException | None:
        """The error in which this try ended; None once it is done, or was parked since it is in hand for so long."""
        job = self._waited.spawn(work)
        if await within(self._clock, job, self._stuck_after_s):
            return job.exception()
        self._jobs.keep(job)
        await self.stuck(what)
        return None

    async def stuck(self, what: str) -> None:
        """Park it: it is in hand for too long, and goes on beside what is behind it."""
        await self._park(f"{what} is in hand for {self._stuck_after_s:g} s")

    async def failed(self, what: str, error: BaseException) -> None:
        """Park it: the last try ended in this error."""
        await self._park(f"{what} failed {TRIES} times: {type(error).__name__}: {error}")

    async def _park(self, detail: str) -> None:
        _log.error("%s update parked: %s", self._platform, detail)
        alarm = self._jobs.spawn(self._inbox.alarm("update_parked", detail))
        await asyncio.wait({alarm})
