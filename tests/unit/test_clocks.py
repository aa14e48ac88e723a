"""The clock of the system and the one that stands still."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from signoff.clock import SystemClock
from signoff.testing.clock import START, FakeClock


async def test_a_fake_clock_wakes_sleepers_in_order_and_at_their_time() -> None:
    clock = FakeClock()
    woken: list[tuple[str, float]] = []

    async def sleep(name: str, seconds: float) -> None:
        await clock.sleep_until(START + timedelta(seconds=seconds))
        woken.append((name, (clock.now() - START).total_seconds()))
        if name == "twice":
            await sleep("again", seconds + 1)

    tasks = [asyncio.ensure_future(sleep(*pair)) for pair in (("late", 9), ("twice", 2), ("early", 1), ("tie", 1))]
    gone = asyncio.ensure_future(sleep("gone", 1))
    await clock.advance(0.5)
    assert (woken, clock.sleeping) == ([], 5)
    gone.cancel()
    await clock.advance(4.5)
    assert woken == [("early", 1), ("tie", 1), ("twice", 2), ("again", 3)]
    assert clock.now() == START + timedelta(seconds=5)
    await clock.advance(4)
    await asyncio.gather(*tasks)
    assert woken[-1] == ("late", 9)
    await clock.sleep_until(START)
    with pytest.raises(ValueError, match="back"):
        await clock.advance(-1)


async def test_the_system_clock_sleeps_until_the_instant() -> None:
    clock = SystemClock()
    when = clock.now() + timedelta(milliseconds=20)
    await clock.sleep_until(when)
    assert when <= clock.now() < when + timedelta(seconds=5)
    assert clock.now().utcoffset() == timedelta(0)
    await clock.sleep_until(when)


class Machine:
    """What the system's clock reads, in nanoseconds; tests set both."""

    def __init__(self) -> None:
        self.wall_ns, self.passed_ns = 1_800_000_000 * SECOND, 7 * SECOND
        self.clock = SystemClock(lambda: self.wall_ns, lambda: self.passed_ns)

    def runs(self, seconds: int) -> None:
        self.wall_ns += seconds * SECOND
        self.passed_ns += seconds * SECOND

    def went(self, since: datetime) -> float:
        return (self.clock.now() - since).total_seconds()


SECOND = 1_000_000_000


def test_a_clock_that_is_set_back_goes_on_slower_until_it_is_right() -> None:
    machine = Machine()
    began = machine.clock.now()
    machine.wall_ns -= 600 * SECOND
    assert machine.went(began) == 0, "it never goes back"
    machine.runs(100)
    assert machine.went(began) == 90
    assert (machine.clock.wall() - began).total_seconds() == -500, "signatures go by the clock that others see"
    machine.runs(5900)
    assert machine.clock.now() == machine.clock.wall()
    machine.runs(10)
    assert machine.clock.now() == machine.clock.wall()


def test_a_clock_that_is_set_on_is_followed_and_time_did_not_pass() -> None:
    machine = Machine()
    began, passed_s = machine.clock.now(), machine.clock.passed()
    machine.wall_ns += 600 * SECOND
    machine.runs(1)
    assert (machine.went(began), machine.clock.passed() - passed_s) == (601, 1)


async def test_a_fake_clock_that_leaps_wakes_sleepers_and_no_time_passes() -> None:
    clock = FakeClock()
    sleeper = asyncio.ensure_future(clock.sleep_until(START + timedelta(seconds=9)))
    await clock.advance(4)
    await clock.leap(60)
    assert sleeper.done()
    assert (clock.now(), clock.wall(), clock.passed()) == (START + timedelta(seconds=64), clock.now(), 4)
