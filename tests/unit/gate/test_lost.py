"""Runs whose end nobody knows: claimants that live, die or are stopped, and what a person then says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.unit.core.harness import BY_ANN
from tests.unit.gate.kept import BY_BEN, KEPT_PLACE, KeptWorld, approved, lost

from signoff.changes import moving, sending, staging
from signoff.errors import ActionRefused
from signoff.model import ApprovalRequest, Destination
from signoff.ports import Tx
from signoff.staged import state_of
from signoff.testing.clock import settle

DAY_S = 86400.0
WHO = "executor mailer: executor_stopped"


async def test_a_claimant_that_lives_keeps_its_claim(world: KeptWorld) -> None:
    row = await approved(world)
    world.hold = asyncio.Event()
    running = asyncio.ensure_future(world.staged.replay("default", row.request_id))
    async with asyncio.timeout(60):
        while not world.ran:  # noqa: ASYNC110  # as above
            await asyncio.sleep(0)
    for _ in range(4):
        await asleep_again(world)
        await world.clock.advance(staging.LEASE_S / 2)
        await world.sweeper.sweep()
        await renewed(world, row)
    assert state_of(await world.row(row)) == "running"
    world.hold.set()
    assert state_of(await running) == "succeeded"


async def asleep_again(world: KeptWorld) -> None:
    """Return once the renewal waits for its next time: a clock moved before that would not wake it."""
    async with asyncio.timeout(60):
        while world.clock.sleeping == 0:  # noqa: ASYNC110  # the clock tells nobody
            await asyncio.sleep(0)


async def renewed(world: KeptWorld, row: ApprovalRequest) -> None:
    """Return once the claim holds for more than half of its length."""
    async with asyncio.timeout(60):
        while True:
            found = await world.row(row)
            assert found.claim_by is not None
            if (found.claim_by - world.clock.now()).total_seconds() > staging.LEASE_S / 2:
                return
            await asyncio.sleep(0)


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines of the log about runs whose end nobody knows."""
    return [line for line in caplog.messages if line.startswith("action.unknown")]


async def test_a_dead_claimant_leaves_unknown_and_never_a_second_run(
    world: KeptWorld, caplog: pytest.LogCaptureFixture
) -> None:  # 1.4.9
    row = await lost(world)
    assert logged(caplog) == [f"action.unknown: {row.short_id} ({row.request_id}) of profile default, {WHO}"]
    assert row.execution.cause == "executor_stopped"
    assert row.outcome == "approved"
    await world.advance(7 * DAY_S)
    world.start()
    await world.advance(60)
    assert state_of(await world.row(row)) == "unknown"
    assert world.ran == []


async def test_a_late_result_of_a_lapsed_claim_is_taken(world: KeptWorld) -> None:
    row = await lost(world)

    def change(tx: object) -> ApprovalRequest:
        return staging.settle(tx, "default", row.request_id, "dead", staging.Ran(state="succeeded"))  # type: ignore[arg-type]  # a transaction

    assert state_of(await world.store.transact(change)) == "succeeded"


async def test_somebody_says_that_it_did_run(world: KeptWorld) -> None:
    row = await lost(world)
    done = await world.staged.did_run("default", row.short_id, BY_BEN)
    assert (state_of(done), done.execution.ended_by) == ("succeeded", BY_BEN)
    with pytest.raises(ActionRefused) as error:
        await world.staged.run_again("default", row.short_id, BY_BEN)
    assert error.value.code == "already_run"
    assert world.ran == []


async def test_somebody_has_it_run_again(world: KeptWorld) -> None:
    kept = await world.keep()
    await world.flush()
    await world.staged.approve("default", kept.request_id, BY_ANN)
    await world.store.transact(lambda tx: staging.start(tx, "default", kept.request_id, "dead"))
    await world.advance(staging.LEASE_S + 1)
    world.start()
    again = await world.staged.run_again("default", kept.request_id, BY_BEN)
    assert (again.stages, again.decided_by, again.outcome) == (kept.stages, (BY_BEN,), "approved")
    done = await world.until_ended(again)
    assert state_of(done) == "succeeded"
    assert [call.id for call in world.ran] == [again.request_id]
    old = await world.row(kept)
    assert (state_of(old), old.superseded_by) == ("unknown", again.request_id)
    await world.flush()
    assert (await world.copy(again)).request_id == again.request_id
    with pytest.raises(ActionRefused, match=f"once more, as {again.short_id}") as error:
        await world.staged.run_again("default", kept.request_id, BY_ANN)
    assert error.value.code == "already_run"
    assert (old.again_as, again.again_of) == (again.short_id, kept.short_id)
    assert (await world.staged.find("default", kept.stages or "")).request_id == again.request_id
    assert (await world.staged.find("default", kept.request_id)).request_id == kept.request_id


@pytest.mark.parametrize("state", ["waits", "approved", "denied", "succeeded"])
async def test_only_what_is_unknown_is_run_again(world: KeptWorld, state: str) -> None:
    row = await world.keep()
    if state in ("approved", "succeeded"):
        await world.staged.approve("default", row.request_id, BY_ANN)
    if state == "succeeded":
        await world.staged.replay("default", row.request_id)
    if state == "denied":
        await world.staged.reject("default", row.request_id, BY_ANN)
    for deed in (world.staged.run_again, world.staged.did_run):
        with pytest.raises(ActionRefused):
            await deed("default", row.request_id, BY_ANN)
    assert state_of(await world.row(row)) == state


async def test_a_gateway_that_stops_in_the_middle_leaves_unknown(
    world: KeptWorld, caplog: pytest.LogCaptureFixture
) -> None:
    row = await approved(world)
    world.hold = asyncio.Event()
    running = asyncio.ensure_future(world.staged.replay("default", row.request_id))
    async with asyncio.timeout(60):
        while not world.ran:  # noqa: ASYNC110  # as above
            await asyncio.sleep(0)
    await world.executing.aclose(0.0)
    found = await world.row(row)
    assert (state_of(found), found.execution.cause) == ("unknown", "executor_stopped")
    assert logged(caplog) == [f"action.unknown: {row.short_id} ({row.request_id}) of profile default, {WHO}"]
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_what_runs_may_end_while_the_gateway_stops(world: KeptWorld) -> None:
    row = await approved(world)
    world.hold = asyncio.Event()
    running = asyncio.ensure_future(world.staged.replay("default", row.request_id))
    async with asyncio.timeout(60):
        while not world.ran:  # noqa: ASYNC110  # as above
            await asyncio.sleep(0)
    stopping = asyncio.create_task(world.executing.aclose(60.0))
    await settle()
    assert not stopping.done()
    world.hold.set()
    await stopping
    assert state_of(await running) == "succeeded"


async def test_a_caller_that_goes_away_does_not_stop_the_run(world: KeptWorld) -> None:
    row = await approved(world)
    world.hold = asyncio.Event()
    caller = asyncio.ensure_future(world.staged.replay("default", row.request_id))
    async with asyncio.timeout(60):
        while not world.ran:  # noqa: ASYNC110  # as above
            await asyncio.sleep(0)
    caller.cancel()
    world.hold.set()
    assert state_of(await world.until_ended(row)) == "succeeded"


NEW = Destination("fake", "-100100")
FALLBACK = Destination("fake", "700")


def moves(tx: Tx) -> None:
    moving.move_chat(tx, "default", "fake", KEPT_PLACE.chat_id, NEW.chat_id, told=True)


def asking(world: KeptWorld) -> list[Destination]:
    """Where a card stands that asks what became of a run."""
    return [message.destination for message in world.chat.shown() if message.card.rows]


async def started(world: KeptWorld) -> ApprovalRequest:
    """A kept action that was approved on its card, and whose claimant will say no more."""
    kept = await world.keep()
    await world.flush()
    await world.staged.approve("default", kept.request_id, BY_ANN)
    await world.store.transact(lambda tx: staging.start(tx, "default", kept.request_id, "dead"))
    await world.flush()
    return kept


@pytest.mark.parametrize("when", ["running", "unknown"])
async def test_a_chat_that_moves_goes_on_asking(world: KeptWorld, when: str) -> None:
    row = await started(world)
    if when == "running":
        await world.store.transact(moves)
    await world.advance(staging.LEASE_S + 1)
    if when == "unknown":
        await world.store.transact(moves)
    await world.advance(10)
    assert state_of(await world.row(row)) == "unknown"
    states = {copy.destination: copy.state for copy in await world.copies(row) if copy.kind == "card"}
    assert (states, asking(world)[-1]) == ({KEPT_PLACE: "failed", NEW: "sent"}, NEW)


@pytest.mark.parametrize("when", ["running", "unknown"])
async def test_where_its_place_is_lost_the_fallback_is_asked(make: Callable[..., KeptWorld], when: str) -> None:
    world = make(fallbacks={"default": FALLBACK})
    await world.session()
    await world.job()
    row = await started(world)
    if when == "running":
        await world.dispatcher.left("default", KEPT_PLACE, "the bot was removed")
    await world.advance(staging.LEASE_S + 1)
    if when == "unknown":
        await world.dispatcher.left("default", KEPT_PLACE, "the bot was removed")
    await world.advance(10)
    assert state_of(await world.row(row)) == "unknown"
    assert asking(world)[-1] == FALLBACK


async def test_a_card_that_somebody_deleted_asks_anew(world: KeptWorld) -> None:
    row = await started(world)
    await world.advance(staging.LEASE_S + 1)
    copy = await world.copy(row)
    await world.store.transact(lambda tx: sending.gone(tx, copy.copy_id, "message not found"))
    await world.flush()
    assert len({message.message_id for message in world.chat.shown() if message.card.rows}) == 2
