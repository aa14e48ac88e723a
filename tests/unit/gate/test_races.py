"""Many processes on one store, and claimants that are killed: an action is run at most once, whatever happens."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from tests.forked import Forked, fork_module
from tests.unit.core.harness import BY_ANN
from tests.unit.gate.kept import KeptWorld
from tests.unit.gate.racer import PROFILE, STEPS, Order

from signoff.changes.staging import LEASE_S
from signoff.model import Tool, replace
from signoff.settings import ApprovalSettings, ToolGateSettings
from signoff.staged import state_of
from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock

ROOT = Path(__file__).resolve().parents[3]
WITHIN_S = 300.0


@asynccontextmanager
async def kept_in(url: str, start: datetime | None = None) -> AsyncIterator[KeptWorld]:
    """A gateway's core on that store, without an executor that runs by itself."""
    clock = FakeClock(start or datetime.now(UTC))
    store = open_store(url, clock)
    gate = ToolGateSettings(require_approval=("write",), default_mode="deferred")
    world = KeptWorld(store, clock, profile=replace(PROFILE, approvals=ApprovalSettings(tool_gate=gate)))
    try:
        yield world
    finally:
        await world.aclose()
        await store.aclose()


async def approved(url: str, count: int) -> list[str]:
    """Keep so many actions and approve them; their ids."""
    async with kept_in(url) as world:
        await world.job()
        ids = []
        for number in range(count):
            kept = await world.keep(Tool(name="write", arguments={"n": number}))
            await world.staged.approve("default", kept.request_id, BY_ANN)
            ids.append(kept.request_id)
        return ids


async def racer(order: Order) -> Forked:
    """A process that has read its order and is ready."""
    process = await fork_module(
        "tests.unit.gate.racer", cwd=ROOT, env=os.environ, stdin=asyncio.subprocess.PIPE, stderr=None
    )
    assert process.stdout is not None
    process.give(msgspec.json.encode(order) + b"\n")
    assert await process.stdout.readline() == b"ready\n"
    return process


async def race(tmp_path: Path, processes: int, actions: int) -> None:
    """Let processes race for actions, and count what was run."""
    url = f"sqlite://{tmp_path}/signoff.db"
    ids = await approved(url, actions)
    lines = tmp_path / "lines"
    order = Order(url=url, ids=ids, lines=str(lines))
    racers = await asyncio.gather(*(racer(order) for _ in range(processes)))
    try:
        async with asyncio.timeout(WITHIN_S):
            answers = await asyncio.gather(*(each.communicate(b"go\n") for each in racers))
    finally:
        for each in racers:
            if each.returncode is None:
                each.kill()
                await each.wait()
    assert [each.returncode for each in racers] == [0] * processes
    told: Counter[str] = Counter()
    for out, _ in answers:
        told.update(json.loads(out))
    written = [line.split()[0] for line in lines.read_text().splitlines()]
    assert len(written) == actions
    assert sorted(written) == sorted(ids)
    assert told["succeeded"] == actions
    assert set(told) <= {"succeeded", "running", "already_run"}
    assert sum(told.values()) == processes * actions
    async with kept_in(url) as world:
        rows = await world.staged.actions("default", limit=1000)
        assert {state_of(row) for row in rows} == {"succeeded"}


async def test_four_processes_race_for_20_actions(tmp_path: Path) -> None:  # 1.4.9, 1.4.10, #56811 1.4.9
    await race(tmp_path, 4, 20)


@pytest.mark.heavy
async def test_16_processes_race_for_200_actions(tmp_path: Path) -> None:  # 1.4.9, 1.4.10
    await race(tmp_path, 16, 200)


@pytest.mark.parametrize(
    ("step", "written", "ends"),
    list(zip(STEPS, (0, 0, 1, 1), ("succeeded", "unknown", "unknown", "unknown"), strict=True)),
)
async def test_a_claimant_that_is_killed(tmp_path: Path, step: str, written: int, ends: str) -> None:  # 1.4.9
    url = f"sqlite://{tmp_path}/signoff.db"
    (action,) = await approved(url, 1)
    lines, reached = tmp_path / "lines", tmp_path / "reached"
    lines.touch()
    order = Order(url=url, ids=[action], lines=str(lines), pause=step, reached=str(reached))
    process = await racer(order)
    process.give(b"go\n")
    try:
        async with asyncio.timeout(60):
            while not reached.exists():  # noqa: ASYNC110  # another process tells nobody of its files
                await asyncio.sleep(0.01)
    finally:
        process.kill()
        await process.wait()
    assert len(lines.read_text().splitlines()) == written
    # Whoever comes next finds the claim standing, then lapsed; an action that was not claimed is run now.
    async with kept_in(url, datetime.now(UTC) + timedelta(seconds=1)) as world:
        world.start()
        await world.advance(LEASE_S + 1)
        async with asyncio.timeout(60):
            while state_of(await world.row(action)) in ("approved", "running"):  # noqa: ASYNC110  # in a thread
                await asyncio.sleep(0.01)
        await world.advance(300)
        assert state_of(await world.row(action)) == ends
        assert len(world.ran) == (1 if ends == "succeeded" else 0)
    assert len(lines.read_text().splitlines()) == written
