"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
import time
from pathlib import Path

from msgspec import Struct

from signoff.bench.figures import percentile

BLOCK_BYTES = 4096


class Machine(Struct, frozen=True, kw_only=True):
    """The machine, and the disk's own commit time: an append of 4 kB made durable, without a database."""

    cpu: str
    cores: int
    system: str
    python: str
    sqlite: str
    load: float | None
    """Average load of the minute before; whatever else ran is in the numbers."""
    append_p50_ms: float
    append_p99_ms: float


def this_machine(appends: int) -> Machine:
    """Look around, and append `appends` times where temporary files are."""
    times = _append_times(appends)
    return Machine(
        cpu=_cpu(),
        cores=os.cpu_count() or 1,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        sqlite=sqlite3.sqlite_version,
        load=round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        append_p50_ms=round(percentile(times, 50) * 1000, 3),
        append_p99_ms=round(percentile(times, 99) * 1000, 3),
    )


def _append_times(count: int) -> list[float]:
    block = os.urandom(BLOCK_BYTES)
    times = []
    with tempfile.NamedTemporaryFile(prefix="signoff-bench-") as file:
        for _ in range(count):
            begun = time.perf_counter()
            os.write(file.fileno(), block)
            os.fsync(file.fileno())
            times.append(time.perf_counter() - begun)
    return times


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
