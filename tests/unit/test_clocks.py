"""The clock of the system and the one that stands still."""

from __future__ import annotations

import asyncio
from datetime import timedelta

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
