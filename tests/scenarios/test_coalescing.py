"""Identical requests share a card: what becomes of those that wait when the one that owns it ends.

Each row of the table has a story of its own: once, once for all, denied, session, always, a time box, timeout, a place
that refuses, withdrawn alone, withdrawn with others of its turn, session stopped, session cleared.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from signoff.client import ApprovalRecord
from tests.scenarios.gateways import soon
from tests.scenarios.stage import WINDOW_S, Stage, staged
from tests.scenarios.transport import Seen, Transport

HALF_AN_HOUR = timedelta(minutes=30)


class Three:
    """Three identical requests on one card."""

    def __init__(self, stage: Stage, name: str, card: Seen, asked: list[asyncio.Task[ApprovalRecord]]) -> None:
        self.stage, self.name, self.card, self.asked = stage, name, card, asked

    async def next_card(self, before: Seen) -> Seen:
        """The card that follows `before`."""

        def later(seen: list[Seen]) -> list[Seen]:
            position = next(at for at, each in enumerate(seen) if each.message_id == before.message_id)
            return [each for each in seen[position + 1 :] if self.stage.chat.is_open(each)]

        return later(await self.stage.chat.until(before.place, lambda seen: bool(later(seen))))[0]

    async def records(self) -> list[ApprovalRecord]:
        """How they ended, in the order they were asked."""
        async with asyncio.timeout(60):
            return list(await asyncio.gather(*self.asked))

    async def outcomes(self) -> list[str | None]:
        """Their outcomes."""
        return [record.outcome for record in await self.records()]


async def three(stage: Stage, name: str, first_timeout_s: float = 60.0) -> Three:
    """Ask three times the same; the card counts the two that wait."""
    place = await stage.chat.group()
    session = await stage.session(name, place)
    command = f"deploy ./{name}"
    asked = [stage.work(command, session, timeout_s=first_timeout_s)]
    card = await stage.chat.card(place, command)
    for count in (2, 3):
        asked.append(stage.work(command, session))
        await stage.chat.card(place, f"{count} identical requests wait")
    return Three(stage, name, await stage.chat.again(card), asked)


async def once(stage: Stage) -> None:
    """One run each time: the next asks with a new card that says so."""
    trio = await three(stage, "once")
    chat, card = stage.chat, trio.card
    assert "The other 2 ask again" in await chat.tapped("ana", card, "Approve 1 of 3")
    assert (await trio.asked[0]).outcome == "approved"
    await chat.becomes(card, "1 of 3")
    card = await trio.next_card(card)
    assert "Next of 3" in card.text
    assert "Denied for all 2" in await chat.tapped("bo", card, "Deny all 2")
    assert await trio.outcomes() == ["approved", "denied", "denied"]


async def once_all(stage: Stage) -> None:
    trio = await three(stage, "each")
    told = await stage.chat.tapped("ana", trio.card, "Once for all 3")
    assert told == "Approved once for all 3. The agents are told."
    records = await trio.records()
    assert [(r.outcome, r.choice, r.may_run) for r in records] == [("approved", "once_all", True)] * 3
    await stage.chat.becomes(trio.card, f"Approved once for all 3 by {stage.chat.called('ana')}")
    assert len([m for m in await stage.chat.seen(trio.card.place) if "./each" in m.text]) == 1


async def deny(stage: Stage) -> None:
    trio = await three(stage, "none")
    await stage.chat.tapped("ana", trio.card, "Deny, because…")
    panel = await stage.chat.panel("ana", trio.card, stage.chat.reason_panel)
    await stage.chat.tapped("ana", panel, "Wrong target")
    records = await trio.records()
    assert [(r.outcome, r.reason) for r in records] == [("denied", "wrong target")] * 3


async def for_the_session(stage: Stage) -> None:
    trio = await three(stage, "session")
    assert "Approved for this session" in await stage.chat.widened("ana", trio.card, "This session")
    records = await trio.records()
    assert {(r.outcome, r.choice) for r in records} == {("approved", "session")}
    again = await stage.work("deploy ./session", "session")
    assert again.outcome == "approved"
    assert again.decided_by[0].type == "grant"


async def taken_over(stage: Stage) -> None:
    """The leader's turn ends: the oldest that waits takes the card over, and no old button decides."""
    chat, place = stage.chat, await stage.chat.group()
    session = await stage.session("over", place)
    async with stage.agent.turn(session) as turn:
        first = stage.ask("deploy ./over", session, turn_id=turn.turn_id)
        await stage.chat.card(place, "./over")
        second = stage.work("deploy ./over", session)
        card = await stage.chat.card(place, "2 identical requests wait")
        old = await stage.chat.token(card, "Approve 1 of 2")
    assert (await first).cause == "turn_ended"
    over = await taken(chat, place)
    assert (over.message_id == card.message_id) is chat.hands_cards_over
    told = await chat.answer(await chat.forge("ana", card, old))
    assert chat.replaced in told
    assert not second.done()
    await chat.tapped("ana", over, "Approve once")
    assert (await second).outcome == "approved"
    assert len(await chat.seen(place)) == (1 if chat.hands_cards_over else 2)


async def taken(chat: Transport, place: str) -> Seen:
    """The card of the only one that is left, as soon as it stands."""

    def open_ones(seen: list[Seen]) -> list[Seen]:
        return [each for each in seen if "Approve once" in each.buttons]

    (card,) = open_ones(await chat.until(place, lambda seen: bool(open_ones(seen))))
    return card


async def runs_out(stage: Stage) -> None:
    """The leader's window passes: the next keeps its own deadline and asks with a new card."""
    trio = await three(stage, "late", first_timeout_s=WINDOW_S)
    await stage.runs_out(trio.card)
    assert (await trio.asked[0]).outcome == "timeout"
    await stage.chat.becomes(trio.card, "Timeout")
    await stage.chat.tapped("ana", await trio.next_card(trio.card), "Once for all 2")
    assert await trio.outcomes() == ["timeout", "approved", "approved"]


async def always(stage: Stage) -> None:
    """All run, and so does the same command of any session from now on."""
    trio = await three(stage, "always")
    chat = stage.chat
    await chat.tapped("ana", trio.card, "More…")
    panel = await chat.panel("ana", trio.card, "any session of profile")
    wide = next(label for label in panel.buttons if label.startswith("Always"))
    assert "Approved always" in await chat.tapped("ana", panel, wide)
    records = await trio.records()
    assert [(r.outcome, r.choice, r.may_run) for r in records] == [("approved", "always", True)] * 3
    await chat.becomes(trio.card, f"Approved by {chat.named('ana')}, always")
    elsewhere = await stage.session("always-elsewhere", await chat.group())
    again = await stage.work("deploy ./always", elsewhere)
    assert (again.outcome, again.decided_by[0].type) == ("approved", "grant")


async def time_box(stage: Stage) -> None:
    """All run; the grant that it leaves ends by itself."""
    trio = await three(stage, "box")
    chat = stage.chat
    said = await chat.type("bo", trio.card.place, "/approve 30m", reply_to=trio.card)
    await chat.reply(said, "Approved until")
    records = await trio.records()
    assert [(r.outcome, r.choice, r.may_run) for r in records] == [("approved", "30m", True)] * 3
    await chat.becomes(trio.card, f"Approved by {chat.named('bo')} until")
    again = await stage.work("deploy ./box", "box")
    assert (again.outcome, again.decided_by[0].type) == ("approved", "grant")
    grant = next(each for each in await stage.admin.grants() if each.session_id == "box")
    assert grant.created_at is not None
    assert grant.expires_at == grant.created_at + HALF_AN_HOUR


async def of_the_same_turn(stage: Stage) -> None:
    """A turn ends that asked twice: both end with it, and the one of another turn takes the card over."""
    chat = stage.chat
    place = await chat.group()
    session = await stage.session("turns", place)
    async with stage.agent.turn(session) as turn:
        alike = [stage.ask("deploy ./turns", session, turn_id=turn.turn_id)]
        await chat.card(place, "./turns")
        alike.append(stage.ask("deploy ./turns", session, turn_id=turn.turn_id))
        await chat.card(place, "2 identical requests wait")
        other = stage.work("deploy ./turns", session)
        await chat.card(place, "3 identical requests wait")
    ended = await asyncio.gather(*alike)
    assert [(r.outcome, r.cause) for r in ended] == [("cancelled", "turn_ended")] * 2
    assert not other.done()
    card = await taken(chat, place)
    assert "identical" not in card.text
    await chat.tapped("ana", card, "Approve once")
    assert (await other).may_run
    await chat.becomes(card, f"Approved once by {chat.called('ana')}")
    assert len(await chat.seen(place)) == (1 if chat.hands_cards_over else 2)


async def stopped(stage: Stage) -> None:
    """All end with the session, nobody is promoted, and nobody is told of a denial."""
    trio = await three(stage, "stopped")
    chat = stage.chat
    said = await chat.type("bo", trio.card.place, "/stop")
    assert chat.runs_named((await chat.reply(said, chat.stopped("stopped"))).text) == 3
    await all_cancelled(trio, "stop_requested", f"{chat.named('bo')} stopped the session")


async def cleared(stage: Stage) -> None:
    """The agent's session is over: the same, with its own cause."""
    trio = await three(stage, "cleared")
    await stage.agent.clear("cleared")
    await all_cancelled(trio, "session_ended", "the session ended before an answer")


async def all_cancelled(trio: Three, cause: str, shown: str) -> None:
    records = await trio.records()
    assert [(r.outcome, r.cause, r.may_run) for r in records] == [("cancelled", cause, False)] * 3
    assert all(r.message.startswith("BLOCKED: cancelled") and "denied" not in r.message for r in records), records
    await trio.stage.chat.becomes(trio.card, shown)
    asked = [each for each in await trio.stage.chat.seen(trio.card.place) if f"./{trio.name}" in each.text]
    assert len(asked) == 1, "nobody asks again"


BY_A_PERSON = (once, once_all, deny, for_the_session, always, time_box)
BY_THEMSELVES = (runs_out, taken_over, of_the_same_turn, stopped, cleared)


@pytest.mark.parametrize("rows", [BY_A_PERSON, BY_THEMSELVES], ids=["decided", "ended"])
async def test_identical_requests_share_a_card(
    chat: Transport, tmp_path: Path, rows: tuple[Callable[[Stage], Awaitable[None]], ...]
) -> None:
    async with staged(chat, tmp_path, "--fast", "--leaps") as stage:
        await asyncio.gather(*(row(stage) for row in rows if row is not runs_out))
        if runs_out in rows:
            await runs_out(stage)  # alone: where the clock leaps, whatever is being answered is late
        steps = Counter((e.approval or {})["request_id"] for e in await stage.events("approval.execution"))
        assert set(steps.values()) == {2}, "each run was started once and reported once"
        assert len(steps) == len(stage.ran)
        assert await stage.pending() == []


# An open console that is closed counts for half a minute more.
@pytest.mark.heavy_on("console")
@pytest.mark.timeout(180)
async def test_a_place_that_refuses_the_card_is_told_to_all_that_share_it(chat: Transport, tmp_path: Path) -> None:
    """The card is held back until three wait for it, so that the two behind it never try to send one of their own.

    Where the pages themselves are the way, all who could decide close theirs."""
    gone = chat.refusal
    async with staged(chat, tmp_path, "--hold", "before post") as stage:
        way = await chat.way()
        session = await stage.session("refused", way.place, kind=way.kind)
        stage.gateway.arm()
        asked = [stage.work("deploy ./refused", session) for _ in range(3)]

        async def three_wait() -> bool:
            return len(await stage.pending()) == 3 and stage.gateway.arrivals() == (0 if chat.draws_rows else 1)

        await soon(three_wait)
        await chat.block(way)
        stage.gateway.disarm()
        async with asyncio.timeout(10 + gone.at_most.total_seconds()):
            records = await asyncio.gather(*asked)
        assert [(r.outcome, r.cause, r.may_run) for r in records] == [(gone.outcome, gone.cause, False)] * 3
        assert sorted(r.leader_id or "" for r in records) == ["", *[_leader(records).request_id] * 2]
        assert all(r.message.startswith(f"BLOCKED: {gone.outcome}") for r in records)
        assert len({r.user_summary for r in records}) == 1
        assert gone.told in records[0].user_summary
        assert await stage.metric() == {(gone.outcome, gone.cause or "none"): 3}
        assert await stage.events("approval.promoted") == []
        assert chat.draws_rows or await chat.seen(way.seen_in) == []


def _leader(records: list[ApprovalRecord]) -> ApprovalRecord:
    return next(record for record in records if record.leader_id is None)
