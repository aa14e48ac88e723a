"""Words such as `yes` where the profile lets them decide: alone, in a direct chat, about its only question."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.commands.world import ANA, EVE, PROFILE, ROOM, THREAD, World, opened

from signoff.broker import Ask
from signoff.inbox import ProfileInbox
from signoff.model import Elicitation, Message, Person, replace
from signoff.settings import ApprovalSettings, Profile
from signoff.taps import Taps

HINT = "decides nothing here. Tap a button, or reply /approve or /deny to the card."
WILLING: Profile = replace(PROFILE, approvals=ApprovalSettings(loose_words=True))


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened("memory://?replay=2", WILLING) as world:
        yield world


@pytest.mark.parametrize(
    ("text", "outcome"),
    [("yes", "approved"), (" OK! ", "approved"), ("👍🏽", "approved"), ("no", "denied"), ("don’t", "denied")],
)
async def test_a_word_alone_answers_the_only_question(world: World, text: str, outcome: str) -> None:
    row = await world.ask()
    told = await world.type(text, direct=True)
    assert told.startswith(f"{row.short_id} "), told
    after = await world.row(row)
    assert (after.outcome, after.choice) == (outcome, "once" if outcome == "approved" else "deny")
    [by] = after.decided_by
    assert (by.user_id, by.via) == (ANA, "command")
    assert await world.broker.grants("default") == []


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("yes, but check first", {"direct": True}),
        ("ok thanks", {"direct": True}),
        ("@signoff yes", {"direct": True}),
        ("yes?", {"direct": True}),
        ("continue", {"direct": True}),
        ("cancel", {"direct": True}),
        ("yes", {"direct": False}),
        ("yes", {"direct": False, "addressed": True}),
        ("yes", {"direct": True, "reply_to": "another message"}),
    ],
)
async def test_anything_else_decides_nothing(world: World, text: str, facts: dict[str, Any]) -> None:
    row = await world.ask()
    assert (await world.type(text, **facts)).endswith(HINT)
    assert await world.outcomes(row) == [None]


async def test_nor_does_one_of_several(world: World) -> None:
    rows = [await world.ask(), await world.ask()]
    assert (await world.type("yes", direct=True)).endswith(HINT)
    assert await world.outcomes(*rows) == [None, None]
    await world.type(f"/deny {rows[0].short_id}")
    assert (await world.type("yes", direct=True)).startswith(rows[1].short_id)


@pytest.mark.parametrize("where", [ROOM, THREAD])
async def test_a_thread_of_the_chat_counts_too(world: World, where: Any) -> None:
    await world.session("s2", THREAD)
    rows = [await world.ask(), await world.ask(session="s2")]
    assert (await world.type("yes", direct=True, where=where)).endswith(HINT)
    assert await world.outcomes(*rows) == [None, None]


async def test_a_forwarded_word_never_counts(world: World) -> None:
    row = await world.ask()
    await world.silence("yes", direct=True, unattributable=True)
    assert await world.outcomes(row) == [None]


async def test_a_word_that_came_before_the_card_is_not_about_it(world: World) -> None:
    await world.adapter.say("hello", where=ROOM, by=ANA)
    assert world.last is not None
    early = replace(world.last, text="yes", direct=True)
    row = await world.ask()
    await world.commands.handle("default", early, world.adapter.info)
    assert await world.outcomes(row) == [None]


async def test_a_word_delivered_again_reaches_no_later_question(world: World) -> None:
    first = await world.ask()
    await world.type("yes", direct=True)
    later = await world.ask()
    assert world.last is not None
    await world.commands.handle("default", world.last, world.adapter.info)
    assert await world.outcomes(first, later) == ["approved", None]


async def test_a_word_that_was_about_neither_of_two_is_not_about_the_one_left(world: World) -> None:
    """The process stopped before the platform was told that the word was taken, which now delivers it again."""
    rows = [await world.ask(), await world.ask()]
    taps = Taps(world.broker, world.dispatcher, world.store, world.clock, world.signer, world.maker)
    parts: dict[str, Any] = {
        "store": world.store,
        "taps": taps,
        "commands": world.commands,
        "dispatcher": world.dispatcher,
    }
    inbox = ProfileInbox("default", world.adapter.info, **parts)
    word = Message(
        destination=ROOM,
        message_id="5000",
        order=5000,
        person=Person(platform="fake", user_id=ANA),
        text="yes",
        direct=True,
    )
    await inbox.message(word)
    await world.type(f"/deny {rows[0].short_id}")
    await inbox.message(word)
    assert await world.outcomes(*rows) == ["denied", None]
    await inbox.message(replace(word, message_id="5001", order=5001))
    assert await world.outcomes(*rows) == ["denied", "approved"]


async def test_a_critical_question_is_denied_and_never_approved(world: World) -> None:
    row = await world.ask(severity="critical")
    assert (await world.type("yes", direct=True)).endswith(HINT)
    assert await world.outcomes(row) == [None]
    await world.type("no", direct=True)
    assert await world.outcomes(row) == ["denied"]


async def test_what_a_yes_starts_at_once_is_not_started(world: World) -> None:
    """A kept action runs when it is approved, and whoever accepts a page opens it."""
    kept = await world.ask()
    await world.change(kept, stages="req_1")
    assert (await world.type("yes", direct=True)).endswith(HINT)
    await world.type("no", direct=True)
    login = Elicitation(server="jira", message="Log in", url="https://jira.example/login")
    page = (await world.broker.submit("default", Ask(action=login, session_id="s1"))).row
    await world.shown(page)
    assert (await world.type("yes", direct=True)).endswith(HINT)
    assert await world.outcomes(kept, page) == ["denied", None]


async def test_who_may_not_decide_does_not(world: World) -> None:
    row = await world.ask()
    assert "You may not do this here" in await world.type("yes", direct=True, by=EVE)
    assert await world.outcomes(row) == [None]


async def test_a_reply_to_its_card_is_about_it(world: World) -> None:
    row = await world.ask()
    await world.type("yes", direct=True, reply_to=await world.card(row))
    assert await world.outcomes(row) == ["approved"]


async def test_it_is_off_unless_the_profile_says_so() -> None:
    async with opened("memory://") as world:
        row = await world.ask()
        assert (await world.type("yes", direct=True)).endswith(HINT)
        assert await world.outcomes(row) == [None]
