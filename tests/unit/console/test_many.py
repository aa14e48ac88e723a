"""Fifty open pages over a thousand questions: how fast a decision shows, and what they cost."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median

import pytest
from tests.unit.console.test_live import Stream, watching
from tests.unit.console.world import Place

PAGES, QUESTIONS = 50, 1000


def resident_mb() -> float:
    """This process's memory: the gateway's and the readers' together. What the allocator keeps of pages that were read
    and let go is given back first: most of it is the readers', and how much it is differs from run to run."""
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


@pytest.mark.heavy
async def test_a_decision_shows_on_fifty_pages_within_a_second(stored: Place) -> None:
    agent = await stored.agent()
    records = []
    for number in range(QUESTIONS):
        action = {"kind": "command", "command": f"git push --force origin branch-{number}"}
        records.append(await agent.ask(action=action, reason="it was rebased"))
    people = [await stored.person(principal=f"p{number}") for number in range(PAGES)]
    gc.collect()
    before = resident_mb()
    async with AsyncExitStack() as stack:
        streams: list[Stream] = []
        for person in people:
            page = await person.get("/console")
            seq = page.text.partition('data-seq="')[2].partition('"')[0]
            streams.append(await stack.enter_async_context(watching(person, f"kind=cards&after={seq}")))
        spans = []
        for record in records[:10]:
            start = time.perf_counter()
            seen = asyncio.gather(*(_ended(stream, record["request_id"]) for stream in streams))
            told = await people[0].decide(record, "deny")
            assert told["how"] == "done"
            await seen
            spans.append(time.perf_counter() - start)
        gc.collect()
        more = resident_mb() - before
    print(f"slowest {max(spans):.2f} s, {more:.1f} MB more")
    assert median(spans) < 1.0, "a machine that is busy for a moment delays one, not most of them"
    assert more < 60


async def _ended(stream: Stream, request_id: str) -> None:
    while True:
        told = await stream.next("card")
        if told["id"] == request_id and not told["pending"]:
            return
