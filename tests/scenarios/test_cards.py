"""Cards of many requests, what a card shows, and where cards stand."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.scenarios.gateways import soon
from tests.scenarios.stage import staged
from tests.scenarios.transport import Transport

MANY, FEWER = 300, 100


async def test_approve_all_decides_exactly_what_was_listed(chat: Transport, tmp_path: Path, thorough: bool) -> None:
    """What came while it was being answered was not listed. On a page only so many are listed at once."""
    place, many = await chat.group(), min(MANY if thorough else FEWER, chat.at_once)
    async with staged(chat, tmp_path, "--fast", "--hold", f"before {chat.answering_all}") as stage:
        session = await stage.session("many", place)
        asked = [stage.work(f"deploy ./part-{number:03}", session) for number in range(many)]
        cards = await chat.until(place, lambda seen: len(seen) == many, timeout_s=40)
        await stage.delivered(many)
        stage.gateway.arm()
        said = await chat.type("ana", place, "/approve all")
        await soon(stage.gateway.stands)
        late = stage.work("deploy ./late", session)
        await chat.card(place, "./late")
        await stage.delivered(many + 1)
        stage.gateway.disarm()
        summary = await chat.summary(said, "approve all", 20)
        assert f"{many} of {many + chat.counts_later_ones} approved once" in summary.text
        async with asyncio.timeout(20):
            records = await asyncio.gather(*asked)
        assert {(r.outcome, r.choice) for r in records} == {("approved", "once")}
        assert len(set(stage.ran)) == len(stage.ran) == many
        assert not late.done()
        assert len(await stage.pending()) == 1
        # Thousands of edits would take hours, so the summary speaks for the cards, whose buttons still tell the truth.
        assert "already approved" in await chat.tapped("ana", cards[7], "Deny")
        assert f"Already approved by {chat.called('ana')}" in await chat.tapped("bo", cards[8], "Deny")
        shown = [m for m in await chat.seen(place) if m.by_bot and ("deploy" in m.text or "approve all" in m.text)]
        # The cards, the late one, and the summary where that is a message to everybody.
        assert len(shown) == many + (1 if chat.draws_rows else 2)


async def test_a_few_are_denied_together_and_each_card_says_so(chat: Transport, tmp_path: Path) -> None:
    place = await chat.group()
    async with staged(chat, tmp_path, "--fast") as stage:
        session = await stage.session("few", place)
        asked = [stage.work(f"deploy ./part-{number}", session) for number in range(3)]
        cards = [await chat.card(place, f"./part-{number}") for number in range(3)]
        said = await chat.type("bo", place, "/deny all not today")
        await chat.reply(said, "3 of 3 denied")
        for task, card in zip(asked, cards, strict=True):
            record = await task
            assert (record.outcome, record.reason) == ("denied", "not today" if chat.denies_all_with_a_reason else None)
            await chat.becomes(card, f"Denied by {chat.called('bo')}")


def long_command(length: int) -> str:
    """Everything that could break a message, a mention in it, and the danger at the very end."""
    tail = "'; rm -rf /srv/data"
    junk = "<b>&amp; `x` ```y``` @eve @everyone #tag /stop \u202eevil\u202c 🔥 https://evil.example "
    return "echo '" + (junk * length)[: length - len(tail) - 6] + tail


async def test_a_long_command_hides_nothing_and_pings_nobody(chat: Transport, tmp_path: Path) -> None:
    place = await chat.group()
    command = long_command(20_000)
    async with staged(chat, tmp_path) as stage:
        session = await stage.session("long", place)
        asked = stage.work(command, session)
        card = await chat.card(place, "rm -rf /srv/data")
        assert f"characters hidden here; whole text {chat.rest_is}" in card.text
        assert "echo '<b>&amp; `x`" in card.text
        assert "\u202e" not in card.text
        whole = await chat.whole(card)
        assert "rm -rf /srv/data" in whole.text
        assert not any(message.clickable for message in await chat.seen(place))
        plain = command.replace("\u202e", "").replace("\u202c", "")
        shown = whole.text.replace("⟨U+202E⟩", "").replace("⟨U+202C⟩", "").replace("\u202e", "").replace("\u202c", "")
        assert plain in shown
        await chat.tapped("ana", whole.card, "Approve once")
        record = await asked
        assert record.action["command"] == command
        assert stage.ran == [command]
        await chat.becomes(card, f"Approved once by {chat.called('ana')}")


async def test_every_kind_of_place_and_one_that_gets_another_id(chat: Transport, tmp_path: Path) -> None:
    """A group that the platform moves while its cards stand open, a person's id in place of a direct chat's, or pages
    that go on under another name."""
    moving, other = await chat.moving(), await chat.group()
    first, second = await chat.topics(2)
    direct = chat.direct("ana")
    async with staged(chat, tmp_path) as stage:
        for number, place in enumerate((first, second, direct)):
            session = await stage.session(f"place-{number}", place)
            asked = stage.work(f"deploy ./{number}", session)
            card = await chat.card(place, f"./{number}")
            await chat.tapped("ana", card, "Approve once")
            assert (await asked).may_run
        assert all("./1" not in message.text for message in await chat.seen(first))
        assert all("./0" not in message.text for message in await chat.seen(second))
        assert len([m for m in await chat.seen(direct) if m.by_bot]) == 1

        session = await stage.session("moving", moving)
        asked_here = [stage.work(f"deploy ./moving-{number}", session) for number in range(2)]
        elsewhere = stage.work("deploy ./stays", await stage.session("staying", other))
        stale = await chat.card(other, "./stays")
        if chat.groups_move:
            stale = [await chat.card(moving, f"./moving-{number}") for number in range(2)][1]
        token = await chat.token(stale, "Approve once")
        moved = await chat.move(moving)
        cards = [await chat.card(moved, f"./moving-{number}") for number in range(2)]
        assert "Approved" in await chat.tapped("ana", cards[0], "Approve once")
        assert (await asked_here[0]).may_run
        assert "nothing was decided" in (await chat.answer(await chat.forge("ana", cards[1], token))).lower()
        await chat.tapped("ana", cards[1], "Deny")
        assert (await asked_here[1]).outcome == "denied"
        await asyncio.gather(*(chat.becomes(card, f"by {chat.called('ana')}") for card in cards))
        if not chat.draws_rows:
            more = stage.work("deploy ./more", session)
            await chat.card(moved, "./more")
            await chat.type("ana", moved, "/stop")
            assert (await more).cause == "stop_requested", "the session is found where its chat is now"
        await chat.tapped("bo", await chat.card(other, "./stays"), "Deny")
        assert (await elsewhere).outcome == "denied"
