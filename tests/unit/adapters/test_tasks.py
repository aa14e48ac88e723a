"""Jobs, waiting within a time, and the end of a run."""

from __future__ import annotations

import asyncio
import gc
from datetime import timedelta

import pytest

from signoff.errors import StoreUnavailable
from signoff.testing.clock import FakeClock, settle
from signoff_adapters.tasks import Jobs, drain, logged, sleep, within


async def fail() -> None:
    raise ValueError("no")


async def test_a_job_is_kept_until_it_is_done() -> None:
    jobs, go = Jobs(failed=None), asyncio.Event()
    task = jobs.spawn(go.wait())
    assert list(jobs) == [task]
    go.set()
    assert await task is True
    await settle()
    assert list(jobs) == []


async def test_the_error_of_a_job_is_told_once_to_who_asked_for_it_and_never_reported_as_lost() -> None:
    lost: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: lost.append(context))
    told: list[str] = []
    Jobs(failed=None).spawn(fail())
    Jobs(failed=lambda error: told.append(str(error))).spawn(fail())
    await settle()
    gc.collect()
    assert (told, lost) == (["no"], [])


async def test_an_error_that_nobody_waits_for_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def away() -> None:
        raise StoreUnavailable("the store is away")

    jobs = Jobs(failed=logged("discord"))
    jobs.spawn(away())
    jobs.spawn(fail())
    await settle()
    assert [record.getMessage() for record in caplog.records] == [
        "discord: StoreUnavailable: the store is away",
        "discord: ValueError: no",
    ]
    # A stack trace stands only below what no part of Signoff has raised on purpose.
    assert [record.exc_info is not None for record in caplog.records] == [False, True]


async def test_a_cancelled_job_is_no_error() -> None:
    told: list[BaseException] = []
    jobs = Jobs(failed=told.append)
    jobs.spawn(asyncio.Event().wait()).cancel()
    await settle()
    assert (list(jobs), told) == ([], [])


async def test_within_leaves_a_slow_task_alone() -> None:
    clock, go = FakeClock(), asyncio.Event()
    task = asyncio.create_task(go.wait())
    waiting = asyncio.create_task(within(clock, task, 2))
    await settle()
    await clock.advance(1)
    assert not waiting.done()
    await clock.advance(1)
    assert await waiting is False
    assert not task.done()
    go.set()
    assert await within(clock, task, 2) is True
    assert clock.sleeping == 0


async def test_sleep_takes_the_clocks_seconds() -> None:
    clock = FakeClock()
    until = clock.now() + timedelta(seconds=3)
    sleeping = asyncio.create_task(sleep(clock, 3))
    await settle()
    await clock.advance(2)
    assert not sleeping.done()
    await clock.advance(1)
    await sleeping
    assert clock.now() == until


async def test_drain_waits_for_what_a_task_begins_at_its_end() -> None:
    jobs, done = Jobs(failed=None), list[str]()

    async def second() -> None:
        await asyncio.sleep(0)
        done.append("second")

    async def first() -> None:
        await asyncio.sleep(0)
        jobs.spawn(second())

    jobs.spawn(first())
    await drain(lambda: {task for task in jobs if not task.done()}, 5.0)
    assert done == ["second"]


@pytest.mark.parametrize("limit_s", [0.0, 0.01])
async def test_drain_leaves_nothing_running(limit_s: float) -> None:
    jobs = Jobs(failed=None)
    task = jobs.spawn(asyncio.Event().wait())
    await drain(lambda: {task for task in jobs if not task.done()}, limit_s)
    assert task.cancelled()
