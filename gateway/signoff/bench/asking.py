"""Full approvals in this process: asked, posted, tapped, claimed, and the card's final edit done."""

from __future__ import annotations

import asyncio
import time

from signoff.bench.figures import watching
from signoff.bench.rig import BenchAdapter, once_token, opened, sessions
from signoff.bench.rows import Sizes
from signoff.gateway import Gateway
from signoff.model import Card, Command, Destination


async def in_process(sizes: Sizes) -> dict[str, float]:
    """`in_process_per_s`, `in_process_cpu_us`."""
    async with opened() as (gateway, adapter):
        await _approvals(gateway, adapter, sizes.at_once, sizes.at_once)  # caches and plans are warm afterwards
        begun, cpu = time.perf_counter(), time.process_time()
        done = await _approvals(gateway, adapter, sizes.at_once, sizes.approvals)
        spent, cpu = time.perf_counter() - begun, time.process_time() - cpu
    return {"in_process_per_s": done / spent, "in_process_cpu_us": cpu / done * 1e6}


async def in_process_gap(sizes: Sizes) -> dict[str, float]:
    """`in_process_gap_ms`: apart from the throughput, since watching costs a little."""
    async with opened() as (gateway, adapter):
        await _approvals(gateway, adapter, sizes.at_once, sizes.at_once)
        async with watching() as gaps:
            await _approvals(gateway, adapter, sizes.at_once, sizes.approvals)
    return {"in_process_gap_ms": gaps.longest_s * 1000}


async def _approvals(gateway: Gateway, adapter: BenchAdapter, at_once: int, number: int) -> int:
    """Each of `at_once` agents asks again as soon as it may run; the number of approvals."""
    names = await sessions(gateway, at_once)
    taps: set[asyncio.Task[None]] = set()

    def tapped(message_id: str, place: Destination, card: Card) -> None:
        task = asyncio.create_task(adapter.tap(message_id, place, once_token(card)))
        taps.add(task)
        task.add_done_callback(taps.discard)

    async def agent(name: str) -> None:
        for n in range(each):
            action = Command(command=f"rm -rf build-{name}-{n}", cwd="/srv/app")
            record = await gateway.request(action, session_id=name, reason="the old build blocks the deploy")
            if not record.may_run:
                raise RuntimeError(f"not approved: {record.outcome}")

    each = max(number // at_once, 1)
    goal = adapter.finals + each * at_once
    adapter.on_post = tapped
    await asyncio.gather(*(agent(name) for name in names))
    await adapter.until(lambda: adapter.finals >= goal)
    return each * at_once
