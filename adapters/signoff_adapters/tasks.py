"""Tasks that are kept, waited for within a time, and left behind by nobody."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from datetime import timedelta
from typing import Any, TypeVar

from signoff.errors import SignoffError
from signoff.ports import Clock

_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


class Jobs:
    """Work beside the handling. A task is kept until it is done; the loop alone would not keep it alive."""

    def __init__(self, failed: Callable[[BaseException], None] | None) -> None:
        """`failed` is told of each job's error. None is for jobs that somebody waits for, who has the error; of one
        that nobody waits for it would be lost without a word."""
        self._failed = failed
        self._tasks: set[asyncio.Task[Any]] = set()

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        """The jobs that are not done."""
        return iter(tuple(self._tasks))

    def spawn(self, work: Coroutine[Any, Any, _Result]) -> asyncio.Task[_Result]:
        """Begin `work`."""
        return self.keep(asyncio.create_task(work))

    def keep(self, task: asyncio.Task[_Result]) -> asyncio.Task[_Result]:
        """Take a task over that was begun elsewhere."""
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        """Take a failed job's error, which would be reported as lost otherwise."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and self._failed is not None:
            self._failed(error)


def logged(platform: str) -> Callable[[BaseException], None]:
    """Writes the error of a job that nobody waits for to the log."""

    def tell(error: BaseException) -> None:
        known = isinstance(error, SignoffError)
        _log.error("%s: %s: %s", platform, type(error).__name__, error, exc_info=None if known else error)

    return tell


async def drain(running: Callable[[], set[asyncio.Task[Any]]], limit_s: float) -> None:
    """Wait for what is in hand, and what that begins, at most `limit_s` of the loop's time; then leave nothing running.

    `running` gives the tasks that are not done.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit_s
    while (tasks := running()) and (left_s := deadline - loop.time()) > 0:
        await asyncio.wait(tasks, timeout=left_s)
    if tasks and limit_s > 0:
        _log.warning("cut off at the stop: %d pieces of work that were in hand for more than %g s", len(tasks), limit_s)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def within(clock: Clock, task: asyncio.Future[Any], seconds: float) -> bool:
    """Whether `task` is done before `seconds` of the clock have passed; it goes on either way."""
    alarm = asyncio.ensure_future(sleep(clock, seconds))
    try:
        await asyncio.wait({task, alarm}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        alarm.cancel()
        await asyncio.gather(alarm, return_exceptions=True)
    return task.done()


async def sleep(clock: Clock, seconds: float) -> None:
    """Return after so many seconds of the clock."""
    await clock.sleep_until(clock.now() + timedelta(seconds=seconds))
