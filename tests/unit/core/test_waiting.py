"""A question that waits costs a row and a coroutine, never a thread."""

from __future__ import annotations

import asyncio
import threading

from tests.unit.core.harness import World


async def test_two_hundred_that_wait_take_no_thread(world: World) -> None:
    before = set(threading.enumerate())
    rows = [await world.submit(f"deploy build-{number}") for number in range(200)]
    waits = [asyncio.create_task(world.broker.wait("default", row.request_id, None)) for row in rows]
    await world.flush()
    assert set(threading.enumerate()) == before
    assert not any(wait.done() for wait in waits)
    await world.sessions.stop("default", "s", None)
    assert {row.cause for row in await asyncio.gather(*waits)} == {"stop_requested"}
