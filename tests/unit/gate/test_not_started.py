"""An approved action that no gateway starts: it waits as long as it could wait for its answer, and then it lapses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.core.harness import BY_ANN
from tests.unit.gate.kept import BY_BEN, KeptWorld, lost

from signoff.changes import having, staging, sweeping
from signoff.errors import ActionRefused
from signoff.executing import AT_ONCE
from signoff.model import ApprovalRequest, Note
from signoff.ports import Tx
from signoff.rows import request_key
from signoff.staged import Absent, kept_action, state_of
from signoff.testing.clock import settle

WINDOW_S = 72 * 3600.0
AGAIN = "It must be asked again."


@pytest.fixture
async def away(make: Callable[..., KeptWorld]) -> KeptWorld:
    """A gateway that does not have the executor; the only one."""
    world = make(runs=False)
    await world.session()
    await world.job()
    return world  # not started: it has nothing to run, and would be woken every few seconds of three days


async def approved(world: KeptWorld) -> ApprovalRequest:
    """A kept action with its card, approved."""
    kept = await world.keep()
    await world.flush()
    await world.staged.approve("default", kept.request_id, BY_ANN)
    await world.flush()
    return await world.row(kept)


async def test_it_lapses_and_everybody_is_told(away: KeptWorld) -> None:
    row = await approved(away)
    await away.advance(WINDOW_S - 1)
    assert state_of(await away.row(row)) == "approved"
    await away.advance(2)
    row = await away.row(row)
    assert (row.outcome, row.execution.state, row.execution.cause) == ("approved", "lapsed", "not_started_in_time")
    card = (await away.card(row)).text
    assert f"⌛ Lapsed: no gateway with executor mailer started it within 3 days. Not run. {AGAIN}" in card
    told = await away.message(row)
    assert told.startswith("BLOCKED: lapsed. It was approved, but executor mailer did not start it within 3 days.")
    events = await away.events("approval.execution")
    assert [(event.data["state"], event.data["cause"]) for event in events] == [("lapsed", "not_started_in_time")]
    for deed in (away.staged.replay("default", row.short_id), away.staged.run_again("default", row.short_id, BY_BEN)):
        with pytest.raises(ActionRefused, match="No gateway started it in time") as error:
            await deed
        assert error.value.code == "lapsed"


async def test_a_late_tap_is_told_that_it_lapsed(away: KeptWorld) -> None:
    kept = await away.keep()
    await away.flush()
    message, token = await away.button(kept, "once")
    await away.press(token, message)
    await away.advance(WINDOW_S + 1)
    told = await away.press(token, message, "2")
    assert told.text == f"It was approved, but executor mailer did not start it within 3 days. {AGAIN}"


async def test_an_executor_that_comes_in_time_runs_it(make: Callable[..., KeptWorld], away: KeptWorld) -> None:
    row = await approved(away)
    await away.advance(WINDOW_S - 60)
    later = make()
    later.start()
    assert state_of(await later.until_ended(row)) == "succeeded"
    await away.advance(120)
    assert state_of(await away.row(row)) == "succeeded"


async def test_it_is_not_started_after_its_time_though_nothing_has_swept_it(world: KeptWorld) -> None:
    kept = await world.keep()
    await world.staged.approve("default", kept.request_id, BY_ANN)
    await world.clock.advance(WINDOW_S)
    with pytest.raises(ActionRefused) as error:
        await world.staged.replay("default", kept.request_id)
    assert error.value.code == "lapsed"
    assert (await world.row(kept)).execution.state == "lapsed"
    assert world.ran == []


async def test_a_run_again_lapses_too(make: Callable[..., KeptWorld], world: KeptWorld) -> None:
    row = await lost(world)
    again = await world.staged.run_again("default", row.short_id, BY_BEN)
    await world.advance(WINDOW_S + 1)
    assert (await world.row(again)).execution.state == "lapsed"


async def test_the_time_without_a_gateway_does_not_count(world: KeptWorld) -> None:
    row = await approved(world)
    key, day = request_key("default", row.request_id), timedelta(days=1)
    await world.store.transact(lambda tx: sweeping.shift(tx, {ApprovalRequest: [key]}, day))
    moved = await world.row(row)
    assert row.claim_by is not None
    assert moved.claim_by == row.claim_by + day
    await world.store.transact(lambda tx: staging.start(tx, "default", row.request_id, "run"))
    held = await world.row(row)
    await world.store.transact(lambda tx: sweeping.shift(tx, {ApprovalRequest: [key]}, day))
    assert (await world.row(row)).claim_by == held.claim_by, "a claim lives as long as its claimant"


async def test_a_defect_holds_up_no_other_action(
    make: Callable[..., KeptWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as have a place at a time cannot be started, and one more that was approved after them can."""
    world, start = make(), staging.start
    await world.session()
    await world.job()
    bad = {(await approved(world)).request_id for _ in range(AT_ONCE)}
    good = await approved(world)

    def starting(tx: Tx, *, request_id: str, **facts: Any) -> ApprovalRequest:
        if request_id in bad:
            raise TypeError("a defect")
        return start(tx, request_id=request_id, **facts)

    monkeypatch.setattr(staging, "start", starting)
    world.start()
    async with asyncio.timeout(60):
        while len(world.defects) < AT_ONCE:
            await settle(1)
        world.executing.wake()  # the next look, which would come by itself
        while (await world.row(good)).execution.state != "succeeded":
            await settle(1)
    assert len(world.defects) == AT_ONCE, "they are left alone meanwhile"
    assert [call.id for call in world.ran] == [good.request_id]


# --- whether any gateway has the executor ----------------------------------------------------------


async def missing(world: KeptWorld, row: ApprovalRequest) -> bool:
    """Whether the kept action is told to wait for an executor that no gateway has."""
    kept = kept_action(await world.row(row), world.clock.now(), exact=False, had=await world.staged.had("default"))
    return kept.executor_missing


async def told(world: KeptWorld) -> None:
    """Return once a gateway has said which executors it has."""
    async with asyncio.timeout(60):
        while not (await world.staged.had("default")).get("mailer"):
            await settle(1)


async def test_that_no_gateway_has_it_is_known_once_the_last_one_is_gone(
    make: Callable[..., KeptWorld], away: KeptWorld
) -> None:
    has = make()
    has.start()
    await told(has)
    row = await approved(away)
    has.executing.wake()
    assert state_of(await has.until_ended(row)) == "succeeded"
    assert not await missing(away, row)
    assert await away.staged.absent("default") == []
    await has.aclose()
    row = await approved(away)
    assert not await missing(away, row), "it was there a moment ago"
    await away.advance(having.HOLDS_FOR.total_seconds() + 1)
    assert await missing(away, row)
    assert await away.staged.absent("default") == [Absent(executor="mailer", waiting=1)]
    make().start()
    assert state_of(await away.until_ended(row)) == "succeeded"
    await told(away)
    assert not await missing(away, row)


async def test_a_gateway_goes_on_telling_of_its_executors(world: KeptWorld) -> None:
    world.start()
    await told(world)
    for _ in range(5):
        before = await world.store.get(Note, having.note_name("default"))
        await world.clock.advance(having.TELL_EVERY.total_seconds())
        world.executing.wake()
        async with asyncio.timeout(60):
            while await world.store.get(Note, having.note_name("default")) == before:
                await settle(1)
    assert (await world.staged.had("default"))["mailer"]


async def test_nothing_is_said_of_an_executor_that_no_gateway_ever_told_of(away: KeptWorld) -> None:
    row = await approved(away)
    await away.advance(having.HOLDS_FOR.total_seconds() + 1)
    assert not await missing(away, row)
