"""A platform that refuses, vanishes, loses answers, sends nonsense or slows us down."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from signoff.client import ApprovalRecord
from tests.scenarios.gateways import soon
from tests.scenarios.stage import Stage, staged
from tests.scenarios.transport import Transport

AGAIN_WITHIN_S = 25.0
"""A send without an answer is given up after 10 s, and repeated 10 s later."""
LEEWAY = timedelta(seconds=3)
"""What a busy machine may add: the sweep that ends the question has to be run, and to commit."""


async def test_a_place_that_refuses_is_told_to_the_agent_at_once(chat: Transport, tmp_path: Path) -> None:
    """Or there is no way to a person at all: nobody has a page open, or only somebody who may not decide."""
    place, gone = await chat.group(), chat.unasked
    async with staged(chat, tmp_path) as stage:
        ways = {"refused": await chat.nowhere("refused"), "kicked": await chat.nowhere("kicked")}
        asked = {}
        for name, way in ways.items():
            session = await stage.session(name, way.place, kind=way.kind)
            asked[name] = stage.work(f"deploy ./{name}", session)
        fine = stage.work("deploy ./fine", await stage.session("fine", place))
        for task in asked.values():
            async with asyncio.timeout(60):
                record = await task
            assert record.outcome == gone.outcome
            assert record.message.startswith(f"BLOCKED: {gone.outcome}")
            assert gone.told in record.user_summary
            assert not record.may_run
        await chat.tapped("ana", await chat.card(place, "./fine"), "Approve once")
        assert (await fine).may_run
        assert (await stage.metric())[gone.outcome, "none"] == 2


async def times(stage: Stage, record: ApprovalRecord) -> tuple[datetime, datetime]:
    """When the event log says that a question was asked and that it ended, which the record says as well."""
    found = {
        event.type: event.at
        for event in await stage.events()
        if event.approval and event.approval["request_id"] == record.request_id
    }
    asked, ended = found["approval.requested"], found["approval.resolved"]
    assert asked is not None
    assert ended is not None
    assert (asked, ended) == (record.created_at, record.decided_at)
    return asked, ended


@pytest.mark.heavy
@pytest.mark.timeout(120)
async def test_a_platform_that_vanishes_fails_in_15_s_and_comes_back(chat: Transport, tmp_path: Path) -> None:
    """Measured by the store's own clock, from the question to its end. The first attempt is no earlier than the
    question, so an end within 15 s of the question is one within 15 s of the attempt; nor may it come before the 15 s
    have passed in which the platform could have come back. An open console that is gone counts for longer, since the
    person may only be loading it again."""
    place, gone = await chat.group(), chat.silence
    async with staged(chat, tmp_path) as stage:
        way = await chat.way()
        before = stage.work("deploy ./before", await stage.session("staying", place))
        session = await stage.session("gone", way.place, kind=way.kind)
        card = await chat.card(place, "./before")
        await chat.down()
        record = await stage.work("deploy ./during", session)
        assert (record.outcome, record.cause) == (gone.outcome, gone.cause)
        asked, ended = await times(stage, record)
        assert gone.at_least <= ended - asked <= gone.at_most + LEEWAY
        assert record.message.startswith(f"BLOCKED: {gone.outcome}")
        assert gone.told in record.user_summary
        assert not before.done()
        await chat.up()
        after = stage.work("deploy ./after", session)
        tap = await chat.tap("ana", await chat.card(way.seen_in, "./after", 30), "Approve once")
        assert "approved" in (await chat.insist(tap, 30)).lower()
        assert (await after).may_run
        assert "denied" in (await chat.insist(await chat.tap("bo", card, "Deny"), 30)).lower()
        assert (await before).outcome == "denied"


async def test_a_card_whose_sending_was_not_answered_can_be_pressed(chat: Transport, tmp_path: Path) -> None:
    place = await chat.group()
    async with staged(chat, tmp_path) as stage:
        session = await stage.session("lost", place)
        await chat.trouble("answer_lost", place)
        asked = stage.work("deploy ./lost", session)
        card = await chat.card(place, "./lost")
        assert await chat.tapped("ana", card, "Approve once") == "Approved once. The agent is told."
        assert (await asked).may_run
        await chat.becomes(card, "Succeeded: exit code 0")
        assert len([m for m in await chat.seen(place) if "./lost" in m.text]) == 1


@pytest.mark.heavy
@pytest.mark.timeout(120)
async def test_a_doubtful_card_is_sent_once_more_and_both_mean_the_same(chat: Transport, tmp_path: Path) -> None:
    """Where the platform recognises a repeated send, it is repeated at once and both are the same message."""
    lost, silent = await chat.group(), await chat.group()
    async with staged(chat, tmp_path) as stage:
        await chat.trouble("answer_lost", lost)
        await chat.trouble("never_answered", silent)
        first = stage.work("deploy ./lost", await stage.session("lost", lost))
        second = stage.work("deploy ./silent", await stage.session("silent", silent))
        orphan = again = await chat.card(lost, "./lost")
        if not chat.knows_repeats:
            again = await chat.card(lost, "./lost", AGAIN_WITHIN_S, which=1)
        await stage.delivered(2, AGAIN_WITHIN_S)
        assert ("Sent again" in again.text) is not chat.knows_repeats
        assert "Denied" in await chat.tapped("bo", orphan, "Deny")
        assert (await first).outcome == "denied"
        denied = f"Denied by {chat.called('bo')}"
        await asyncio.gather(chat.becomes(orphan, denied), chat.becomes(again, denied))
        only = await chat.card(silent, "./silent", AGAIN_WITHIN_S)
        assert ("Sent again" in only.text) is not chat.knows_repeats
        await chat.tapped("ana", only, "Approve once")
        assert (await second).may_run
        assert len([m for m in await chat.seen(lost) if "./lost" in m.text]) == (1 if chat.knows_repeats else 2)
        assert len([m for m in await chat.seen(silent) if "./silent" in m.text]) == 1


async def test_a_limit_delays_one_chat_and_fails_nothing(chat: Transport, tmp_path: Path) -> None:
    limited, other = await chat.group(), await chat.group()
    async with staged(chat, tmp_path) as stage:
        await chat.trouble("limited", limited)
        slow = stage.work("deploy ./slow", await stage.session("limited", limited))
        quick = stage.work("deploy ./quick", await stage.session("other", other))
        await chat.tapped("ana", await chat.card(other, "./quick"), "Approve once")
        assert (await quick).may_run
        assert await chat.seen(limited) == []
        assert not slow.done()
        await chat.tapped("ana", await chat.card(limited, "./slow"), "Approve once")
        assert (await slow).may_run


async def test_one_poisonous_update_holds_nothing_up(chat: Transport, tmp_path: Path) -> None:
    place, other = await chat.group(), await chat.group()
    async with staged(chat, tmp_path, "--poison", "boom") as stage:
        here = stage.work("deploy ./here", await stage.session("here", place))
        there = stage.work("deploy ./there", await stage.session("there", other))
        card, far = await chat.card(place, "./here"), await chat.card(other, "./there")
        await chat.odd_updates()
        await chat.poison(card, "boom")
        assert "Approved once" in await chat.tapped("ana", far, "Approve once")
        assert (await there).may_run
        assert "Approved once" in await chat.answer(await chat.tap("ana", card, "Approve once"), 20)
        assert (await here).may_run
        await chat.settled()

        async def alarmed() -> bool:
            return bool(await stage.events(chat.alarm)) if chat.alarm else stage.gateway.logged("console.defect")

        await soon(alarmed)
