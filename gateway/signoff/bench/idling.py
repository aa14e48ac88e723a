"""What pending questions cost while nothing happens to them, and what a tap costs among a great many."""

from __future__ import annotations

import asyncio
import gc
import random
import time

from signoff.bench.figures import percentile, rss_bytes, watching
from signoff.bench.rig import once_token, opened, pending, requested, sessions
from signoff.bench.rows import Sizes
from signoff.gateway import Gateway
from signoff.model import Card, Destination
from signoff.record import Approval

SESSIONS = 1000


async def memory(sizes: Sizes) -> dict[str, float]:
    """`pending_kb`: growth of the resident memory of this fresh process, by 1,000 bytes, a request."""
    async with opened() as (gateway, adapter):
        names = await sessions(gateway, SESSIONS)
        gc.collect()
        before = rss_bytes()
        tasks = await pending(gateway, adapter, names, sizes.memory, requested)
        gc.collect()
        grown = rss_bytes() - before
        await _let_go(gateway, tasks)
    return {"pending_kb": grown / sizes.memory / 1000}


async def idle(sizes: Sizes) -> dict[str, float]:
    """`idle_cpu_percent`: of one core."""
    async with opened() as (gateway, adapter):
        tasks = await pending(gateway, adapter, await sessions(gateway, SESSIONS), sizes.idle, requested)
        begun, cpu = time.perf_counter(), time.process_time()
        await asyncio.sleep(sizes.idle_s)
        cpu, spent = time.process_time() - cpu, time.perf_counter() - begun
        await _let_go(gateway, tasks)
    return {"idle_cpu_percent": cpu / spent * 100}


async def many(sizes: Sizes) -> dict[str, float]:
    """`many_*`: taps one after the other on cards spread over all that wait."""
    cards: list[tuple[str, Destination, str]] = []
    step = max(sizes.many // sizes.many_taps, 1)
    async with opened() as (gateway, adapter):

        def kept(message_id: str, place: Destination, card: Card) -> None:
            if adapter.posts % step == 0:
                cards.append((message_id, place, once_token(card)))

        adapter.on_post = kept
        names = await sessions(gateway, SESSIONS)
        async with watching() as loading:
            tasks = await pending(gateway, adapter, names, sizes.many, requested)
        rss = rss_bytes()
        random.Random(1).shuffle(cards)  # noqa: S311  # the same order each time
        times = []
        async with watching() as gaps:
            for message_id, place, token in cards:
                begun = time.perf_counter()
                await adapter.tap(message_id, place, token)
                times.append((time.perf_counter() - begun) * 1000)
        await _let_go(gateway, tasks)
    return {
        "many_tap_p50_ms": percentile(times, 50),
        "many_tap_p99_ms": percentile(times, 99),
        "many_rss_mb": rss / 1e6,
        "many_gap_ms": gaps.longest_s * 1000,
        "many_load_gap_ms": loading.longest_s * 1000,
    }


async def _let_go(gateway: Gateway, tasks: list[asyncio.Task[Approval]]) -> None:
    """End the waits as a stopping gateway does; as many withdrawals would take longer than the measurement."""
    gateway.broker.waiters.close()
    await asyncio.gather(*tasks, return_exceptions=True)
