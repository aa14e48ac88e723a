"""A chat that got another id: its sessions are found where they are now."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.unit.core.harness import OTHER_PLACE, PLACE, World

from signoff.changes import moving
from signoff.errors import ChatMoved, SendRefused
from signoff.model import Card, Destination, Posted, replace
from signoff.ports import Tx

NEW = Destination("fake", "-100100")
THREAD = Destination("fake", PLACE.chat_id, "7")


def move(tx: Tx, *, told: bool) -> None:
    moving.move_chat(tx, "default", "fake", PLACE.chat_id, NEW.chat_id, told=told)


async def found(world: World, place: Destination) -> list[str]:
    """The sessions that a `stop` there would end."""
    return [session.session_id for session in await world.sessions.at_place("default", place)]


async def test_a_platform_that_tells_moves_every_session_of_the_chat(world: World) -> None:
    await world.ask()
    await world.session("in_thread", destination=THREAD)
    await world.session("elsewhere", destination=OTHER_PLACE)
    await world.session("closed")
    await world.sessions.clear("default", "closed", None, close=True)
    await world.store.transact(partial(move, told=True))
    assert (await found(world, PLACE), await found(world, THREAD)) == ([], [])
    assert await found(world, NEW) == ["s"]
    assert await found(world, Destination("fake", NEW.chat_id, "7")) == ["in_thread"]
    assert await found(world, OTHER_PLACE) == ["elsewhere"]


@pytest.mark.parametrize("place", [PLACE, THREAD])
async def test_a_send_that_learns_the_new_id_moves_the_sessions_of_its_place(world: World, place: Destination) -> None:
    await world.session("asks", destination=place)
    world.chat.fail(ChatMoved(new_chat_id=NEW.chat_id))
    await world.ask(session_id="asks")
    there = Destination("fake", NEW.chat_id, place.thread_id)
    assert "asks" in await found(world, there)
    assert await found(world, place) == []


@pytest.mark.parametrize("told", [True, False], ids=["told", "learned"])
@pytest.mark.parametrize("place", [PLACE, THREAD], ids=["chat", "thread"])
async def test_a_session_declared_under_the_old_id_is_where_the_chat_is_now(
    world: World, place: Destination, told: bool
) -> None:
    """An agent has the id from its own settings, and nobody tells it of another."""
    await world.session("asks", destination=place)
    if told:
        await world.store.transact(partial(move, told=True))
    else:
        world.chat.fail(ChatMoved(new_chat_id=NEW.chat_id))
        await world.ask(session_id="asks")
    there = Destination("fake", NEW.chat_id, place.thread_id)
    for session in ("asks", "later"):
        declared = await world.session(session, destination=place)
        assert declared.destination == there
        row = await world.ask("deploy more", session)
        assert [copy.destination for copy in await world.cards(row)] == [there]
        assert session in await found(world, there)
    assert (await world.session("asks", destination=OTHER_PLACE)).destination == OTHER_PLACE


async def test_another_profile_and_platform_keep_their_ids(world: World) -> None:
    await world.store.transact(partial(move, told=True))
    for profile, platform in (("other", "fake"), ("default", "else")):
        place = Destination(platform, PLACE.chat_id)
        assert await world.store.transact(partial(moving.place_now, profile=profile, place=place)) == place


async def test_leaving_the_old_chat_after_it_moved_ends_no_question(world: World) -> None:
    """Telegram says that the bot left the old group too, once the supergroup that came of it is deleted."""
    row = await world.ask()
    await world.store.transact(partial(move, told=True))
    await world.flush()
    await world.dispatcher.left("default", PLACE, "the bot was removed from the chat")
    await world.flush()
    done = await world.row(row)
    assert (done.outcome, done.destinations) == (None, (NEW,))
    await world.tap(row, "once")
    assert (await world.row(row)).outcome == "approved"


async def test_leaving_the_old_chat_before_the_anew_card_is_sent_ends_no_question(world: World) -> None:
    row = await world.ask()
    await world.store.transact(partial(move, told=True))
    await world.dispatcher.left("default", PLACE, "the bot was removed from the chat")
    await world.flush()
    await world.tap(row, "once")
    assert (await world.row(row)).outcome == "approved"


@pytest.mark.parametrize("how", ["undo", "running"])
async def test_a_card_that_tells_of_a_run_goes_on_in_the_new_chat(world: World, how: str) -> None:
    row = await world.ask()
    await world.decide(row, "once")
    if how == "running":
        await world.claim(row)
    await world.flush()
    await world.store.transact(partial(move, told=True))
    await world.advance(10)
    cards = {copy.destination: copy for copy in await world.copies(row)}
    assert {place: card.state for place, card in cards.items()} == {PLACE: "failed", NEW: "sent"}
    if how == "running":
        await world.broker.result("default", row.request_id, "failed", 3)
    await world.advance(400)
    shown = [message for message in world.chat.shown() if message.destination == NEW]
    assert [message.message_id for message in shown] == [cards[NEW].message_id]
    assert ("exit code 3" if how == "running" else "Lapsed") in str(shown[0].card)


async def test_runs_of_which_nothing_was_heard_are_not_told_anew(world: World) -> None:
    """There may be hundreds of them in a chat, from weeks."""
    row = await world.ask(turn_id="t")
    await world.decide(row, "once")
    await world.claim(row)
    await world.sessions.end_turn("default", "t", "turn_ended", None)
    await world.settle()
    assert (await world.row(row)).execution.state == "unknown"
    await world.store.transact(partial(move, told=True))
    await world.settle()
    assert [copy.state for copy in await world.copies(row)] == ["failed"]


@pytest.mark.parametrize("reason", ["chat_not_found", "bot_removed", "no_access"])
async def test_another_bot_finds_the_direct_chat_of_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    """The direct chat that was learned was the former bot's, with the same person."""
    person, former, own = (Destination("fake", chat_id) for chat_id in ("42", "900", "901"))
    await world.store.transact(
        partial(moving.move_chat, profile="default", platform="fake", old_chat="42", new_chat="900")
    )
    post = world.chat.post

    async def posted(destination: Destination, card: Card, **given: Any) -> Posted:
        if destination == person:
            raise ChatMoved(new_chat_id=own.chat_id)
        if destination == former:
            raise SendRefused("not there", reason=reason)
        return await post(destination, card, **given)

    monkeypatch.setattr(world.chat, "post", posted)
    await world.session("first", destination=person)
    await world.ask("deploy a", "first")
    await world.session("next", destination=person)
    row = await world.ask("deploy b", "next")
    assert [message.destination for message in await world.cards(row)] == [own]
    assert await found(world, own) == ["next"]


async def test_a_thread_that_is_gone_leaves_the_chat_where_it_is(world: World) -> None:
    await world.store.transact(partial(move, told=True))
    await world.dispatcher.left("default", replace(NEW, thread_id="7"), "the thread was deleted")
    assert await world.store.transact(partial(moving.place_now, profile="default", place=PLACE)) == NEW
    await world.dispatcher.left("default", NEW, "the bot was removed")
    assert await world.store.transact(partial(moving.place_now, profile="default", place=PLACE)) == PLACE
