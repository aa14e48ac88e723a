"""Percentiles, memory, and gaps of the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from math import ceil
from pathlib import Path

SAMPLE_S = 0.001


class NotMeasured(Exception):
    """Why a row stays without a number."""


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile of at least one value."""
    ranked = sorted(values)
    return ranked[max(ceil(len(ranked) * percent / 100) - 1, 0)]


def rss_bytes(pid: int | None = None) -> int:
    """The resident memory of a process; our own for None."""
    pid = pid or os.getpid()
    statm = Path(f"/proc/{pid}/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    told = subprocess.run(["/bin/ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)  # noqa: S603  # a number
    return int(told.stdout) * 1024


class Gaps:
    """How late a coroutine that wants to run each millisecond was at worst."""

    def __init__(self) -> None:
        self.longest_s = 0.0

    async def watch(self) -> None:
        """Sample until cancelled."""
        before = time.perf_counter()
        while True:
            await asyncio.sleep(SAMPLE_S)
            now = time.perf_counter()
            self.longest_s = max(self.longest_s, now - before - SAMPLE_S)
            before = now


@asynccontextmanager
async def watching() -> AsyncIterator[Gaps]:
    """Watch the loop inside the block."""
    gaps = Gaps()
    task = asyncio.create_task(gaps.watch())
    await asyncio.sleep(0)
    try:
        yield gaps
    finally:
        # One sample more, so that a gap at the very end counts.
        await asyncio.sleep(2 * SAMPLE_S)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
