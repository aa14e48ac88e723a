"""The sweeper over rows that no change can be made of: the others are swept all the same."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.core.harness import World

from signoff.changes import ending
from signoff.changes.ending import expire
from signoff.errors import StoreUnavailable
from signoff.model import ApprovalRequest, Turn
from signoff.ports import Tx
from signoff.pulse import Pulse
from signoff.rows import turn_key
from signoff.sweeper import HEARTBEAT, OTHERS_S, SKIP_FOR, Sweeper
from signoff.testing.clock import settle
from signoff.waiters import Waiters


class BadRow:
    """Ends like a row that no change can be made of, for one request."""

    def __init__(self, bad: str) -> None:
        self.bad = bad

    def __call__(self, tx: Tx, row: ApprovalRequest) -> ApprovalRequest:
        if row.request_id == self.bad:
            raise RecursionError("too deep\n" * 1000)
        return expire(tx, row)


async def test_a_bad_row_does_not_stop_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    defects: list[int] = []
    sweeper = Sweeper(world.store, world.clock, world.broker.waiters, on_defect=lambda: defects.append(1))
    rows = [await world.ask(f"deploy {n}", timeout_s=30) for n in range(4)]
    await world.turn("lease", lease_s=30)
    monkeypatch.setattr(ending, "expire", BadRow(rows[1].request_id))
    await world.clock.advance(31)
    with caplog.at_level(logging.ERROR):
        await sweeper.sweep()
    assert [(await world.row(row)).outcome for row in rows] == ["timeout", None, "timeout", "timeout"]
    turn = await world.store.get(Turn, turn_key("default", "lease"))
    assert turn is not None and turn.ended_at is not None
    assert len(defects) == 1
    (line,) = [r for r in caplog.records if r.name == "signoff.sweeper"]
    assert "RecursionError" in line.getMessage() and len(line.getMessage()) < 400 and line.exc_info is None

    await sweeper.sweep()
    assert len(defects) == 1, "it is left alone for a while"
    monkeypatch.undo()
    await world.clock.advance(SKIP_FOR.total_seconds())
    await sweeper.sweep()
    assert (await world.row(rows[1])).outcome == "timeout"


async def test_a_skipped_row_keeps_no_loop_busy(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    row = await world.ask(timeout_s=30)
    monkeypatch.setattr(ending, "expire", BadRow(row.request_id))
    await world.clock.advance(31)
    rounds = 0
    sweep = world.sweeper.sweep

    async def counted() -> bool:
        nonlocal rounds
        rounds += 1
        return await sweep()

    monkeypatch.setattr(world.sweeper, "sweep", counted)
    task = asyncio.create_task(world.sweeper.run())
    try:
        await world.clock.advance(10)
        assert rounds >= 5, "it goes on looking"
        before = rounds
        await settle(2000)
        assert rounds == before, "and rests meanwhile"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_wait_at_one_gateway_keeps_its_turn_from_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process knows its own waits alone, and whichever sweeps first ends what nobody waits for."""
    monkeypatch.setattr(world.store, "shared", True, raising=False)
    other = Sweeper(world.store, world.clock, Waiters(world.store, world.clock))
    key = turn_key("default", "long")

    async def lives() -> bool:
        turn = await world.store.get(Turn, key)
        return turn is not None and turn.ended_at is None

    await world.turn("long", lease_s=30)
    world.broker.waiters.begin(key)
    for pause_s in (31.0, 31.0, 200.0):  # the last one as when no gateway could reach the store
        await world.clock.advance(pause_s)
        await other.sweep()
        assert await lives(), pause_s
        await world.sweeper.sweep()
        await other.sweep()
        assert await lives(), pause_s
    world.broker.waiters.end(key)
    for pause_s in (31.0, OTHERS_S - 1):
        await world.clock.advance(pause_s)
        await other.sweep()
        await world.sweeper.sweep()
        assert await lives(), "the agent may be waiting at a third one"
    await world.clock.advance(1)
    await other.sweep()
    assert not await lives()


async def test_two_gateways_that_start_at_once_move_the_deadlines_on_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.sweeper.resume()
    row = await world.ask(timeout_s=300)
    await world.clock.advance(120)
    get, read, both = world.store.get, 0, asyncio.Event()

    async def together(kind: Any, key: str) -> Any:
        nonlocal read
        found = await get(kind, key)
        if key == HEARTBEAT and not both.is_set():
            read += 1
            both.set() if read == 2 else await both.wait()
        return found

    monkeypatch.setattr(world.store, "get", together)
    other = Sweeper(world.store, world.clock, Waiters(world.store, world.clock))
    moved = await asyncio.gather(world.sweeper.resume(), other.resume())
    assert sorted(by.total_seconds() for by in moved) == [0, 120]
    assert row.expires_at is not None
    assert (await world.row(row)).expires_at == row.expires_at + timedelta(seconds=120)


async def test_a_store_that_fails_is_told(make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world()
    told: list[Exception] = []
    sweeper = Sweeper(world.store, world.clock, world.broker.waiters, on_failure=told.append)

    async def down(*args: Any, **facts: Any) -> list[Any]:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(world.store, "due", down)
    task = asyncio.create_task(sweeper.run())
    try:
        await world.clock.advance(3)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert told


async def test_a_loop_that_keeps_failing_is_in_trouble(world: World) -> None:
    pulse = Pulse(world.clock)
    for _ in range(31):
        pulse.failed("sweeper", ValueError("no"))
        assert not pulse.troubles()
        await world.clock.advance(1)
    pulse.failed("sweeper", ValueError("no"))
    assert "ValueError: no" in pulse.troubles()["sweeper"]
    await world.clock.advance(21)
    assert not pulse.troubles(), "it has been well since"
    pulse.failed("sweeper", ValueError("again"))
    assert not pulse.troubles()
