"""Runs the measurements, round by round, each in a fresh process that is gone afterwards."""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from signoff.bench.child import Result
from signoff.bench.rows import Measure, Row, Sizes

ENDS_WITHIN_S = 30.0


class Found(Struct, frozen=True, kw_only=True):
    """A row with the median of its rounds, or why there is none."""

    row: Row
    value: float | None = None
    rounds: tuple[float, ...] = ()
    why: str | None = None


async def measure_all(
    measures: Sequence[Measure], sizes: Sizes, rounds: int, progress: Callable[[str], None]
) -> list[Found]:
    """All rows of these measurements. `progress` is told what is going on."""
    found: list[Found] = []
    for measure in measures:
        results = []
        number = min(rounds, measure.most_rounds)
        for n in range(number):
            progress(f"{measure.name}, round {n + 1} of {number}")
            results.append(await run_round(measure, sizes))
            if results[-1].why is not None:
                break
        found += [_found(row, results) for row in measure.rows]
    return found


async def run_round(measure: Measure, sizes: Sizes) -> Result:
    """One round in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "signoff.bench.child",
        measure.name,
        msgspec.json.encode(sizes).decode(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    talking = asyncio.create_task(process.communicate())
    try:
        async with asyncio.timeout(measure.limit_s):
            out, err = await asyncio.shield(talking)
    except TimeoutError:
        return Result(why=f"not done within {measure.limit_s:g} s")
    finally:
        await _gone(process, talking)
    if process.returncode != 0:
        last = err.decode("utf-8", "replace").strip().splitlines()
        return Result(why=f"ended with code {process.returncode}: {last[-1] if last else 'no message'}")
    return msgspec.json.decode(out, type=Result)


async def _gone(process: asyncio.subprocess.Process, talking: asyncio.Task[tuple[bytes, bytes]]) -> None:
    """End the process, if it still runs: by request, so that it ends what it started itself, then by force."""
    if process.returncode is None:
        process.terminate()
        try:
            await asyncio.wait_for(asyncio.shield(talking), ENDS_WITHIN_S)
        except TimeoutError:
            process.kill()
    await talking


def _found(row: Row, results: Sequence[Result]) -> Found:
    why = next((each.why for each in results if each.why is not None), None)
    values = tuple(each.values[row.key] for each in results if row.key in each.values)
    if why is not None or not values:
        return Found(row=row, why=why or "the measurement gave no value")
    return Found(row=row, value=statistics.median(values), rounds=values)
