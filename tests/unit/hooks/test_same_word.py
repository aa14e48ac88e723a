"""For each ending, card, agent's message, record, event, stream, hook and metric say the same word (13.1.10)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.core.harness import BY_ANN, World
from tests.unit.core.test_endings import EVERY, WORDS, name_of, title
from tests.unit.hooks.test_pairing import Ear, post

from signoff.changes.common import emit
from signoff.endings import ending
from signoff.errors import SendRefused
from signoff.hooks import PostApprovalResponse
from signoff.model import CAUSES, OUTCOMES, Actor, ApprovalRequest, Cause, Change, Event, Execution, replace
from signoff.ports import Store, Tx
from signoff.record import record_of
from signoff.server.frames import Telling
from signoff.stores.memory import MemoryStore
from signoff.telemetry import Telemetry
from signoff.testing.clock import FakeClock
from signoff.testing.rows import PLACE, make_request

AT_ITS_END = [row for row in EVERY if row.execution == Execution()]
"""Every way in which a question ends; what becomes of an approved run later is another fact."""
BY_PERSON = ("stop_requested", "session_ended", "undone")


def counted(telemetry: Telemetry, outcome: str | None, cause: str | None) -> float:
    labels = {"outcome": outcome or "", "cause": cause or "none"}
    return telemetry.registry.get_sample_value("signoff_approvals_total", labels) or 0.0


def test_the_ways_to_end_are_all_there() -> None:
    assert {row.outcome for row in AT_ITS_END} == OUTCOMES
    assert {row.cause for row in AT_ITS_END if row.outcome == "cancelled"} == CAUSES


@pytest.mark.parametrize("row", AT_ITS_END, ids=name_of)
async def test_an_ending_has_one_word_everywhere(row: ApprovalRequest) -> None:  # 9.3 9.5 13.1.10
    clock = FakeClock()
    store, telemetry = MemoryStore(clock), Telemetry()
    store.subscribe(telemetry.heard)
    changes: list[Change] = []
    store.subscribe(changes.extend)
    ear = Ear(store)

    def change(tx: Tx) -> None:
        tx.put(row)
        emit(tx, "approval.resolved", row, outcome=row.outcome, cause=row.cause, choice=row.choice)

    await store.transact(change)
    [told] = post(await ear.whole(store))
    await ear.hooks.aclose()
    [event] = [each.event for each in changes]
    frame = Telling(event, row, clock).frame(exact=False)
    streamed = json.loads(frame.decode().partition("data: ")[2])["approval"]
    record = record_of(row, clock.now())
    said = ending(row, event.at, title=title)
    word = (row.outcome, row.cause)
    assert (event.data["outcome"], event.data["cause"]) == word
    assert (streamed["outcome"], streamed["cause"]) == word
    assert (record["outcome"], record["cause"]) == word
    assert (told.outcome, told.cause) == word
    assert counted(telemetry, *word) == 1
    assert said.labels == (row.outcome, row.cause or "")
    assert WORDS[row.outcome or ""] in "".join(span.text for span in said.status[0].spans)
    assert (told.message, told.user_summary) == (said.message, said.summary)
    assert told.choice == record["choice"]
    assert [actor.type for actor in told.decided_by] == [each["type"] for each in record["decided_by"]]


# --- lived, not made up ------------------------------------------------------------------------------


async def approved(world: World, row: ApprovalRequest) -> None:
    await world.decide(row, "once")


async def denied(world: World, row: ApprovalRequest) -> None:
    await world.decide(row, "deny", reason="wrong branch")


async def expired(world: World, row: ApprovalRequest) -> None:
    await world.advance(60)


async def stopped(world: World, row: ApprovalRequest) -> None:
    await world.sessions.stop("default", "s", BY_ANN)


async def cleared(world: World, row: ApprovalRequest) -> None:
    await world.sessions.clear("default", "s", BY_ANN, close=False)


async def turn_over(world: World, row: ApprovalRequest) -> None:
    await world.sessions.end_turn("default", "t", "turn_ended", None)


def withdrawn(cause: Cause) -> Callable[[World, ApprovalRequest], Any]:
    async def act(world: World, row: ApprovalRequest) -> None:
        await world.cancel(row, cause, Actor(type="agent", name="bot"))

    return act


WAYS: dict[str, tuple[Callable[[World, ApprovalRequest], Any], str, str | None]] = {
    "approved": (approved, "approved", None),
    "denied": (denied, "denied", None),
    "timeout": (expired, "timeout", None),
    "stopped": (stopped, "cancelled", "stop_requested"),
    "cleared": (cleared, "cancelled", "session_ended"),
    "turn": (turn_over, "cancelled", "turn_ended"),
    "withdrawn": (withdrawn("withdrawn"), "cancelled", "withdrawn"),
    "interrupted": (withdrawn("turn_interrupted"), "cancelled", "turn_interrupted"),
}


@pytest.mark.parametrize("way", [*WAYS, "notify_failed", "blocked"])
async def test_a_lived_ending_has_one_word_everywhere(world: World, store: Store, way: str) -> None:
    telemetry, ear = Telemetry(), Ear(store)
    unfollow = await telemetry.follow(store, ["default"])
    if way == "notify_failed":
        world.chat.fail(SendRefused("no"))
    row = await world.ask("rm -rf /" if way == "blocked" else "deploy x", timeout_s=50, turn_id="t")
    outcome, cause = way, None
    if way in WAYS:
        act, outcome, cause = WAYS[way]
        await act(world, row)
    await world.flush()
    row = await world.row(row)
    [told] = post(await ear.whole(store))
    [event] = await world.events("approval.resolved")
    record = record_of(row, world.clock.now())
    assert (row.outcome, row.cause) == (outcome, cause)
    assert (record["outcome"], record["cause"]) == (outcome, cause)
    assert (event.data["outcome"], event.data["cause"]) == (outcome, cause)
    assert (told.outcome, told.cause, told.message) == (outcome, cause, record["message"])
    assert counted(telemetry, outcome, cause) == 1
    assert record["message"].startswith("Approved" if outcome == "approved" else f"BLOCKED: {outcome}")
    for card in await world.cards(row):
        assert WORDS[outcome] in card.text.splitlines()[0]
    unfollow()
    await ear.hooks.aclose()


# --- what a payload never holds ----------------------------------------------------------------------

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


async def test_no_secret_is_told(store: Store) -> None:
    row = make_request(
        action=replace(make_request().action, command=f"curl -H 'Authorization: Bearer {SECRET}' x"),
        agent_reason=f"the token is {SECRET}",
        description=f"sends {SECRET}",
        reason=f"do not use {SECRET}",
        outcome="denied",
        choice="deny",
        decided_by=(BY_ANN,),
        destinations=(PLACE,),
    )
    ear = Ear(store)

    def change(tx: Tx) -> None:
        tx.put(row)
        emit(tx, "approval.requested", row)
        emit(tx, "approval.resolved", row)

    await store.transact(change)
    heard = await ear.whole(store)
    assert len(heard) == 2
    assert SECRET not in str(heard)
    await ear.hooks.aclose()


async def test_an_older_event_without_a_cause_is_told_too(store: Store) -> None:
    ear = Ear(store)
    await store.transact(
        lambda tx: tx.emit(Event(profile="default", type="session.stopped", at=tx.now, session_id="gone"))
    )
    [end] = await ear.whole(store)
    assert (end.how, end.cause, end.ended_by, end.kind) == ("session_stopped", None, None, None)
    await ear.hooks.aclose()


assert PostApprovalResponse.__struct_config__.frozen
