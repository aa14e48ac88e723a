"""Cards that several requests share, cards of many requests, and where cards stand."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from signoff.client import ApprovalRecord
from tests.scenarios.gateways import soon
from tests.scenarios.stage import Stage, staged
from tests.scenarios.transport import Seen, Transport

MANY = 300
WHOLE = "rm -rf ./everything/with/a/long/name"


class Three:
    """Three identical requests on one card."""

    def __init__(self, stage: Stage, name: str, card: Seen, asked: list[asyncio.Task[ApprovalRecord]]) -> None:
        self.stage, self.name, self.card, self.asked = stage, name, card, asked

    async def next_card(self, before: Seen) -> Seen:
        """The card that follows `before`."""

        def later(each: Seen) -> bool:
            return bool(each.buttons) and int(each.message_id) > int(before.message_id)

        found = await self.stage.chat.until(before.place, lambda seen: any(map(later, seen)))
        return next(filter(later, found))

    async def records(self) -> list[ApprovalRecord]:
        """How they ended, in the order they were asked."""
        async with asyncio.timeout(10):
            return list(await asyncio.gather(*self.asked))

    async def outcomes(self) -> list[str | None]:
        """Their outcomes."""
        return [record.outcome for record in await self.records()]


async def three(stage: Stage, name: str, first_timeout_s: float = 60.0) -> Three:
    """Ask three times the same; the card counts the two that wait."""
    place = await stage.chat.group()
    session = await stage.session(name, place)
    command = f"rm -rf ./{name}"
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
    await stage.chat.becomes(trio.card, "Approved once for all 3 by “Ana”")
    assert len([m for m in await stage.chat.seen(trio.card.place) if "./each" in m.text]) == 1


async def deny(stage: Stage) -> None:
    trio = await three(stage, "none")
    await stage.chat.tapped("ana", trio.card, "Deny, because…")
    panel = await stage.chat.reply(trio.card, "the agent reads")
    await stage.chat.tapped("ana", panel, "Wrong target")
    records = await trio.records()
    assert [(r.outcome, r.reason) for r in records] == [("denied", "wrong target")] * 3


async def for_the_session(stage: Stage) -> None:
    trio = await three(stage, "session")
    assert "Approved for this session" in await stage.chat.tapped("ana", trio.card, trio.card.buttons[3])
    records = await trio.records()
    assert {(r.outcome, r.choice) for r in records} == {("approved", "session")}
    again = await stage.work("rm -rf ./session", "session")
    assert again.outcome == "approved"
    assert again.decided_by[0].type == "grant"


async def taken_over(stage: Stage) -> None:
    """The leader's turn ends: the oldest that waits takes the card over, and no old button decides."""
    place = await stage.chat.group()
    session = await stage.session("over", place)
    async with stage.agent.turn(session) as turn:
        first = stage.ask("rm -rf ./over", session, turn_id=turn.turn_id)
        await stage.chat.card(place, "./over")
        second = stage.work("rm -rf ./over", session)
        card = await stage.chat.card(place, "2 identical requests wait")
        old = await stage.chat.token(card, "Approve 1 of 2")
    assert (await first).cause == "turn_ended"
    await stage.chat.until(place, lambda seen: "Approve once" in seen[0].buttons)
    told = await stage.chat.answer(await stage.chat.forge("ana", card, old))
    assert "nothing was decided" in told
    assert not second.done()
    await stage.chat.tapped("ana", await stage.chat.again(card), "Approve once")
    assert (await second).outcome == "approved"
    assert len(await stage.chat.seen(place)) == 1


async def runs_out(stage: Stage) -> None:
    """The leader's window passes: the next keeps its own deadline and asks with a new card."""
    trio = await three(stage, "late", first_timeout_s=3)
    assert (await trio.asked[0]).outcome == "timeout"
    await stage.chat.becomes(trio.card, "Timeout")
    await stage.chat.tapped("ana", await trio.next_card(trio.card), "Once for all 2")
    assert await trio.outcomes() == ["timeout", "approved", "approved"]


@pytest.mark.heavy_on("telegram-webhook")
async def test_identical_requests_share_a_card(chat: Transport, tmp_path: Path) -> None:
    rows: list[Callable[[Stage], Awaitable[None]]] = [once, once_all, deny, for_the_session, taken_over, runs_out]
    async with staged(chat, tmp_path, "--fast") as stage:
        await asyncio.gather(*(row(stage) for row in rows))
        steps = Counter((e.approval or {})["request_id"] for e in await stage.events("approval.execution"))
        assert set(steps.values()) == {2}, "each run was started once and reported once"
        assert len(steps) == len(stage.ran)


@pytest.mark.heavy_on("telegram-webhook")
async def test_approve_all_decides_exactly_what_was_listed(chat: Transport, tmp_path: Path) -> None:
    place = await chat.group()
    async with staged(chat, tmp_path, "--fast", "--hold", "before answering_all.answer_all") as stage:
        session = await stage.session("many", place)
        asked = [stage.work(f"rm -rf ./part-{number:03}", session) for number in range(MANY)]
        cards = await chat.until(place, lambda seen: len(seen) == MANY, timeout_s=40)
        await stage.delivered(MANY)
        stage.gateway.arm()
        await chat.type("ana", place, "/approve all")
        await soon(stage.gateway.stands)
        late = stage.work("rm -rf ./late", session)
        await chat.card(place, "./late")
        await stage.delivered(MANY + 1)
        stage.gateway.disarm()
        summary = await chat.reads(place, "approve all", timeout_s=20)
        assert f"{MANY} of {MANY + 1} approved once" in summary.text
        async with asyncio.timeout(20):
            records = await asyncio.gather(*asked)
        assert {(r.outcome, r.choice) for r in records} == {("approved", "once")}
        assert len(set(stage.ran)) == len(stage.ran) == MANY
        assert not late.done()
        assert len(await stage.pending()) == 1
        # Thousands of edits would take hours, so the summary speaks for the cards, whose buttons still tell the truth.
        assert "already approved" in await chat.tapped("ana", cards[7], "Deny")
        assert "Already approved by “Ana”" in await chat.tapped("bo", cards[8], "Deny")
        assert len([m for m in await chat.seen(place) if m.by_bot and m.file is None]) == MANY + 2


@pytest.mark.heavy_on("telegram-webhook")
async def test_a_few_are_denied_together_and_each_card_says_so(chat: Transport, tmp_path: Path) -> None:
    place = await chat.group()
    async with staged(chat, tmp_path, "--fast") as stage:
        session = await stage.session("few", place)
        asked = [stage.work(f"rm -rf ./part-{number}", session) for number in range(3)]
        cards = [await chat.card(place, f"./part-{number}") for number in range(3)]
        said = await chat.type("bo", place, "/deny all not today")
        await chat.reply(said, "3 of 3 denied")
        for task, card in zip(asked, cards, strict=True):
            record = await task
            assert (record.outcome, record.reason) == ("denied", "not today")
            await chat.becomes(card, "Denied by “Bo”")


def long_command(length: int) -> str:
    """Everything that could break a message, a mention in it, and the danger at the very end."""
    tail = "'; rm -rf /srv/data"
    junk = "<b>&amp; `x` ```y``` @eve @everyone #tag /stop \u202eevil\u202c 🔥 https://evil.example "
    return "echo '" + (junk * length)[: length - len(tail) - 6] + tail


@pytest.mark.heavy_on("telegram-webhook")
async def test_a_long_command_hides_nothing_and_pings_nobody(chat: Transport, tmp_path: Path) -> None:
    place = await chat.group()
    command = long_command(20_000)
    async with staged(chat, tmp_path) as stage:
        session = await stage.session("long", place)
        asked = stage.work(command, session)
        card = await chat.card(place, "rm -rf /srv/data")
        assert "characters hidden here; whole text in" in card.text
        assert "echo '<b>&amp; `x`" in card.text
        assert "\u202e" not in card.text
        files = [message for message in await chat.seen(place) if message.file is not None]
        assert len(files) == 1
        whole = (files[0].file or b"").decode()
        assert "rm -rf /srv/data" in whole
        assert [message.clickable for message in await chat.seen(place)] == [(), ()]
        plain = command.replace("\u202e", "").replace("\u202c", "")
        shown = whole.replace("⟨U+202E⟩", "").replace("⟨U+202C⟩", "").replace("\u202e", "").replace("\u202c", "")
        assert plain in shown
        await chat.tapped("ana", card, "Approve once")
        record = await asked
        assert record.action["command"] == command
        assert stage.ran == [command]
        await chat.becomes(card, "Approved once by “Ana”")


async def test_every_kind_of_place_and_a_group_that_moves(chat: Transport, tmp_path: Path) -> None:
    group, other = await chat.group(), await chat.group()
    first, second = await chat.topics(2)
    direct = chat.direct("ana")
    async with staged(chat, tmp_path) as stage:
        for number, place in enumerate((first, second, direct)):
            session = await stage.session(f"place-{number}", place)
            asked = stage.work(f"rm -rf ./{number}", session)
            card = await chat.card(place, f"./{number}")
            await chat.tapped("ana", card, "Approve once")
            assert (await asked).may_run
        assert all("./1" not in message.text for message in await chat.seen(first))
        assert all("./0" not in message.text for message in await chat.seen(second))
        assert len([m for m in await chat.seen(direct) if m.by_bot]) == 1

        session = await stage.session("moving", group)
        asked_here = [stage.work(f"rm -rf ./moving-{number}", session) for number in range(2)]
        old = [await chat.card(group, f"./moving-{number}") for number in range(2)]
        elsewhere = stage.work("rm -rf ./stays", await stage.session("staying", other))
        await chat.card(other, "./stays")
        moved = await chat.move(group)
        cards = [await chat.card(moved, f"./moving-{number}") for number in range(2)]
        assert "Approved" in await chat.tapped("ana", cards[0], "Approve once")
        assert (await asked_here[0]).may_run
        told = await chat.answer(await chat.forge("bo", cards[1], await chat.token(old[1], "Approve once")))
        assert "Nothing was decided" in told
        await chat.tapped("bo", cards[1], "Deny")
        assert (await asked_here[1]).outcome == "denied"
        await asyncio.gather(*(chat.becomes(card, "by “") for card in cards))
        await chat.tapped("bo", await chat.card(other, "./stays"), "Deny")
        assert (await elsewhere).outcome == "denied"
