"""Heavy work gets turns, and everybody else runs in between."""

from __future__ import annotations

import asyncio

from signoff.pacing import Pace


async def test_what_comes_at_once_is_spread_over_steps() -> None:
    pace, order = Pace(at_once=3), list[str]()

    async def work(number: int) -> None:
        await pace.turn()
        order.append(str(number))

    async def other() -> None:
        for _ in range(6):
            order.append("-")
            await asyncio.sleep(0)

    await asyncio.gather(*(work(n) for n in range(8)), other())
    done = "".join(order)
    assert [char for char in done if char != "-"] == [str(n) for n in range(8)], "first come, first served"
    assert all(len(stretch) <= 3 for stretch in done.split("-")), done


async def test_a_cancelled_caller_costs_no_turn() -> None:
    pace = Pace(at_once=1)
    await pace.turn()
    waiting = [asyncio.create_task(pace.turn()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    async with asyncio.timeout(60):
        await asyncio.gather(*waiting[1:])


async def test_a_rested_pace_gives_turns_at_once() -> None:
    pace = Pace(at_once=2)
    await asyncio.gather(*(pace.turn() for _ in range(5)))
    for _ in range(5):
        await asyncio.sleep(0)
    done = asyncio.create_task(pace.turn())
    await asyncio.sleep(0)
    assert done.done()
