"""How long it takes until those who wait know: one decision, approve all, stop."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from signoff.bench.figures import percentile, watching
from signoff.bench.rig import PLATFORM, BenchAdapter, awaited, opened, pending, requested, sessions
from signoff.bench.rows import Sizes
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
