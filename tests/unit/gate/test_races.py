"""Many processes on one store, and claimants that are killed: an action is run at most once, whatever happens."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from tests.forked import Forked, fork_module
from tests.unit.core.harness import BY_ANN
from tests.unit.gate.kept import KeptWorld
from tests.unit.gate.racer import STEPS, Order, profile_with
from tests.unit.gate.receiver import Receiver, receiver

from signoff.changes.staging import LEASE_S
from signoff.model import Tool, replace
from signoff.settings import ApprovalSettings, ExecutorSettings, ToolGateSettings
from signoff.staged import state_of
from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock

__all__ = ["receiver"]

ROOT = Path(__file__).resolve().parents[3]
WITHIN_S = 300.0
FUNCTION = ExecutorSettings(tools=("write",))
"""Run by a function of the racing process itself."""
Ran = Callable[[Path], list[str]]


@asynccontextmanager
async def kept_in(url: str, start: datetime | None = None) -> AsyncIterator[KeptWorld]:
    """A gateway's core on that store, without an executor that runs by itself."""
    clock = FakeClock(start or datetime.now(UTC))
    store = open_store(url, clock)
    gate = ToolGateSettings(require_approval=("write",), default_mode="deferred")
    profile = replace(profile_with(FUNCTION), approvals=ApprovalSettings(tool_gate=gate))
    world = KeptWorld(store, clock, profile=profile)
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


def written(lines: Path) -> list[str]:
    """The ids of the actions of which a line was written."""
    return [line.split()[0] for line in lines.read_text().splitlines()]


async def race(
    tmp_path: Path,
    processes: int,
    actions: int,
    executor: ExecutorSettings = FUNCTION,
    ran: Ran = written,
    *,
    shuffled: bool = True,
) -> None:
    """Let processes race for actions, and count what was run: the ids in the file `lines`, as `ran` reads them."""
    url = f"sqlite://{tmp_path}/signoff.db"
    ids = await approved(url, actions)
    lines = tmp_path / "lines"
    order = Order(url=url, ids=ids, lines=str(lines), executor=executor, shuffled=shuffled)
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
    assert sorted(ran(lines)) == sorted(ids), "each once"
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


def read(lines: Path) -> list[str]:
    """The ids of the calls that a program wrote down."""
    return [json.loads(line)["id"] for line in lines.read_text().splitlines()]


@pytest.mark.heavy
async def test_16_processes_race_for_200_runs_of_a_program(tmp_path: Path) -> None:  # 1.4.9, 1.4.10
    """The program appends the call that it reads to a file, in one write."""
    command = ("sh", "-c", """printf '%s\\n' "$(cat)" >> "$0" """, str(tmp_path / "lines"))
    await race(tmp_path, 16, 200, ExecutorSettings(tools=("write",), command=command), read)


@pytest.mark.heavy
async def test_4_processes_race_for_40_calls_of_an_address(tmp_path: Path, receiver: Receiver) -> None:  # 1.4.9, 1.4.10
    """Each call is posted once, under its own id and with a signature that is right."""

    def received(_: Path) -> list[str]:
        assert all(receiver.is_signed(*call) for call in receiver.calls)
        return [headers["Idempotency-Key"] for headers, _ in receiver.calls]

    receiver.hold_s = 0.05  # with all in one order, each run is met by the other three
    settings = receiver.settings(tools=("write",), timeout_s=60.0)
    await race(tmp_path, 4, 40, settings, received, shuffled=False)


@pytest.mark.parametrize(
    ("step", "count", "ends"),
    list(zip(STEPS, (0, 0, 1, 1), ("succeeded", "unknown", "unknown", "unknown"), strict=True)),
)
async def test_a_claimant_that_is_killed(tmp_path: Path, step: str, count: int, ends: str) -> None:  # 1.4.9
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
    assert len(written(lines)) == count
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
    assert len(written(lines)) == count
