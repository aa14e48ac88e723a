"""The sweeper over rows that no change can be made of: the others are swept all the same."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
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
from signoff.sweeper import SKIP_FOR, Sweeper
from signoff.testing.clock import settle


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
