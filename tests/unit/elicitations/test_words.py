"""Whoever answers a tool server's question, or comes too late for it, reads that it was accepted or declined."""

from __future__ import annotations

import pytest
from tests.unit.core.harness import ANN, BEN, PLACE, World
from tests.unit.elicitations.test_cases import PLAIN
from tests.unit.staged_cards.world import typed

from signoff.changes.digests import Listed
from signoff.digest_cards import _statuses
from signoff.hooks.payloads import PostApprovalResponse, payload_of
from signoff.last_ended import LastEnded
from signoff.model import ApprovalRequest

UNTRUE = ("pprove", "enied", "ot run")


def said(text: str) -> str:
    """The text, which must not speak of an action."""
    assert not [word for word in UNTRUE if word in text], text
    return text


@pytest.mark.parametrize(("choice", "word"), [("once", "accepted"), ("deny", "declined")])
async def test_a_tap_and_those_that_come_after_it(world: World, choice: str, word: str) -> None:
    row = await world.ask(PLAIN)
    message, token = await world.button(row, choice)
    assert said((await world.press(token, message)).text) == f"{word.capitalize()}. The agent is told."
    late = said((await world.press(token, message, BEN)).text)
    assert late == f"Already {word} by “Ann” [fake 1] at 09:00 UTC. Your tap changed nothing."
    own = said((await world.press(token, message, ANN)).text)
    assert own == f"You already {word} this at 09:00 UTC."


async def test_one_of_several(world: World) -> None:
    first = await world.ask(PLAIN)
    await world.ask(PLAIN)
    told = said((await world.tap(first, "once")).text)
    assert told == "Accepted. The agent is told. The other one asks again."


async def test_all_of_several_are_declined(world: World) -> None:
    first = await world.ask(PLAIN)
    await world.ask(PLAIN)
    await world.flush()
    assert said((await world.tap(first, "deny")).text) == "Declined for all 2. The agents are told."


async def test_a_reason(world: World) -> None:
    row = await world.ask(PLAIN)
    await world.tap(row, "because")
    await world.flush()
    assert said((await world.tap(row, "wrong_target")).text) == "Declined. The agent reads: “wrong target”."


async def test_typed(world: World) -> None:
    row = await world.ask(PLAIN)
    assert said(await typed(world, f"/accept {row.short_id}")) == f"{row.short_id} accepted. The agent is told."
    late = said(await typed(world, f"/decline {row.short_id}", by=BEN))
    assert "Already accepted by “Ann” [fake 1] at 09:00 UTC." in late
    row = await world.ask(PLAIN)
    assert said(await typed(world, f"/decline {row.short_id}")) == f"{row.short_id} declined. The agent is told."
    row = await world.ask(PLAIN)
    told = said(await typed(world, f"/decline {row.short_id} not that board"))
    assert told == f"{row.short_id} declined. The agent reads: “not that board”."


async def test_what_ended_last_in_a_place(world: World) -> None:
    ended = LastEnded(world.store, world.clock)
    for choice, word in (("accept", "accepted"), ("decline", "declined")):
        await world.decide(await world.ask(PLAIN), choice)
        last = ended.at("default", PLACE)
        assert last is not None
        assert last.word == word
    ended.close()


async def test_all_by_one_command(world: World) -> None:
    row = await world.ask(PLAIN)
    assert f"Accepted {row.short_id}" in await typed(world, "/approve all")
    row = await world.ask(PLAIN)
    assert f"Declined {row.short_id}" in await typed(world, "/deny all")


async def test_too_late_for_one_that_nobody_answered(world: World) -> None:
    row = await world.ask(PLAIN)
    message, token = await world.button(row, "once")
    await world.advance(310)
    told = said((await world.press(token, message)).text)
    assert told.startswith("Timeout: it expired at 09:05 UTC and nobody had answered. Your answer came 10 s late.")
    assert told.endswith("Nothing was answered.")
    said((await world.card(row)).text)
    row = await world.ask(PLAIN, turn_id="t")
    message, token = await world.button(row, "once")
    await world.cancel(row, "withdrawn")
    await world.flush()
    told = said((await world.press(token, message)).text)
    assert told == ("Cancelled: the agent took the question back. Nothing was answered. Your tap changed nothing.")
    said((await world.card(row)).text)


async def test_a_line_of_a_digest(world: World) -> None:
    rows: list[ApprovalRequest] = []
    for choice in ("accept", "decline"):
        row = await world.ask(PLAIN)
        await world.decide(row, choice)
        rows.append(await world.row(row))
    ended = [Listed(copy=await world.copy(row), row=row) for row in rows]
    lines = ["".join(span.text for span in block.spans) for block in _statuses(ended, [], world.clock.now(), 1000)]
    assert [said(line) for line in lines] == [
        "✅ 1 accepted by “Ann” [fake 1] · 09:00 UTC",
        "⛔ 1 declined by “Ann” [fake 1] · 09:00 UTC",
    ]


async def test_a_webhook_says_which_it_was(world: World) -> None:
    for choice in ("accept", "decline"):
        await world.decide(await world.ask(PLAIN), choice)
    await world.cancel(await world.ask(PLAIN))
    found = []
    for event in await world.events("approval.resolved"):
        payload = payload_of(event, await world.row(event.request_id or ""), None)
        assert isinstance(payload, PostApprovalResponse)
        found.append(payload.elicitation)
    assert found == ["accept", "decline", "cancel"]
