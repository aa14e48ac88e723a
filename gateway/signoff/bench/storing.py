"""The store alone: one small change after the other, each durable before the next."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path

from signoff.bench.figures import percentile
from signoff.bench.rows import Sizes
from signoff.clock import SystemClock
from signoff.model import Note
from signoff.ports import Tx
from signoff.stores.open import open_store


async def commits(sizes: Sizes) -> dict[str, float]:
    """`commit_p50_ms`, `commit_p99_ms`."""
    times = []
    with tempfile.TemporaryDirectory(prefix="signoff-bench-") as folder:
        store = open_store(f"sqlite:///{Path(folder) / 'bench.sqlite3'}", SystemClock())
        try:
            for number in range(sizes.commits):
                begun = time.perf_counter()
                await store.transact(partial(_note, number=number))
                times.append((time.perf_counter() - begun) * 1000)
        finally:
            await store.aclose()
    return {"commit_p50_ms": percentile(times, 50), "commit_p99_ms": percentile(times, 99)}


def _note(tx: Tx, *, number: int) -> None:
    tx.put(Note(name="bench", value=str(number)))
