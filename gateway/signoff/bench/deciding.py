"""How long it takes until those who wait know: one decision, approve all, stop."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial

from signoff.bench.figures import percentile, watching
from signoff.bench.rig import (
    PLATFORM,
    WINDOW_S,
    BenchAdapter,
    awaited,
    command,
    opened,
    pending,
    requested,
    sessions,
)
from signoff.bench.rows import Sizes
from signoff.blocking import BlockingGateway
from signoff.model import Actor, Destination

ANN = Actor(type="person", platform=PLATFORM, user_id="1", name="Ann", via="button")


async def wake(sizes: Sizes) -> dict[str, float]:
    """`wake_p50_ms`, `wake_p99_ms`: from the call that decides to the waiter's own next line.

    One after the other, each once the card of the one before had its final edit.
    """
    async with opened() as (gateway, adapter):
        waiting = await pending(gateway, adapter, await sessions(gateway, 64), sizes.waiting, awaited)
        times = []
        for number, task in enumerate(waiting):
            begun = time.perf_counter()
            await gateway.decide(f"r{number}", "once", ANN)
            times.append((await task - begun) * 1000)
            await adapter.until(partial(_edited, adapter, number + 1))
    return {"wake_p50_ms": percentile(times, 50), "wake_p99_ms": percentile(times, 99)}


def _edited(adapter: BenchAdapter, number: int) -> bool:
    return adapter.finals >= number


async def approve_all(sizes: Sizes) -> dict[str, float]:
    """`approve_all_ms`: from the typed command to the last waiter's return, in one chat; and the loop's gap."""
    async with opened() as (gateway, adapter):
        [name] = await sessions(gateway, 1)
        waiting = await pending(gateway, adapter, [name], sizes.place, awaited)
        async with watching() as gaps:
            begun = time.perf_counter()
            await adapter.say(Destination(PLATFORM, name), "/approve all")
            spent = max(await asyncio.gather(*waiting)) - begun
        if await gateway.pending():
            raise RuntimeError("approve all left something")
    return {"approve_all_ms": spent * 1000, "approve_all_gap_ms": gaps.longest_s * 1000}


async def stop(sizes: Sizes) -> dict[str, float]:
    """`stop_ms`: from the call to the last waiter's return."""
    async with opened() as (gateway, adapter):
        [name] = await sessions(gateway, 1)
        asking = await pending(gateway, adapter, [name], sizes.session, requested)
        begun = time.perf_counter()
        await gateway.stop(name, ANN)
        await asyncio.gather(*asking)
        spent = time.perf_counter() - begun
        if await gateway.pending():
            raise RuntimeError("stop left something")
    return {"stop_ms": spent * 1000}


async def stop_threads(sizes: Sizes) -> dict[str, float]:
    """`stop_threads_ms`: from the call to the next line of the last thread that was blocked in `BlockingGateway`."""
    async with opened() as (gateway, adapter):
        [name] = await sessions(gateway, 1)
        door, freed = BlockingGateway(gateway), list[float]()

        def work(number: int) -> None:
            door.request(command(number), session_id=name, timeout_s=WINDOW_S)
            freed.append(time.perf_counter())

        threads = [threading.Thread(target=work, args=(number,)) for number in range(sizes.threads)]
        for thread in threads:
            thread.start()
        await adapter.until(lambda: adapter.posts >= sizes.threads)
        await gateway.dispatcher.idle()
        begun = time.perf_counter()
        await gateway.stop(name, ANN)
        for thread in threads:
            await asyncio.to_thread(thread.join)
    if len(freed) < sizes.threads:
        raise RuntimeError("stop left a thread blocked")
    return {"stop_threads_ms": (max(freed) - begun) * 1000}
