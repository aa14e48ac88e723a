"""A place that goes away while cards stand there: its questions reach the fallback, or end as not delivered."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.core.bursts import standing as digest_standing
from tests.unit.core.bursts import world_of
from tests.unit.core.harness import GROUP, OTHER_PLACE, PLACE, World
from tests.unit.core.test_delivery import outcome

from signoff.commands import Commands
from signoff.errors import SendRefused
from signoff.inbox import ProfileInbox
from signoff.model import Destination, Notifier

KICKED = SendRefused("the bot was removed from the chat", reason="bot_removed")
THREAD = Destination("fake", PLACE.chat_id, "7")


async def standing(make_world: Callable[..., World], *, place: Destination = PLACE, fallback: bool = True) -> World:
    world = make_world(fallbacks={"default": OTHER_PLACE} if fallback else None)
    await world.session(destination=place)
    return world


@pytest.mark.parametrize("reason", ["bot_removed", "chat_not_found", "chat_closed", "blocked", "deactivated"])
async def test_a_refused_edit_gives_up_all_that_stands_there(make_world: Callable[..., World], reason: str) -> None:
    world = await standing(make_world)
    await world.session("in_thread", destination=THREAD)
    row, other = await world.ask(), await world.ask("deploy other", "in_thread")
    world.chat.fail(SendRefused("it is gone", reason=reason), call="update")
    await world.submit()
    await world.flush()
    for each in (row, other):
        assert await outcome(world, each) is None
        assert (await world.cards(each))[-1].destination == OTHER_PLACE
    await world.tap(row, "once_all")
    await world.tap(other, "deny")
    assert (await outcome(world, row), await outcome(world, other)) == ("approved", "denied")


async def test_a_button_that_can_still_be_pressed_there_counts(make_world: Callable[..., World]) -> None:
    world = await standing(make_world)
    row = await world.ask()
    message, token = await world.button(row, "once")
    await world.dispatcher.left("default", PLACE, "the bot was removed")
    await world.flush()
    assert (await world.press(token, message)).text.startswith("Approved once")


async def test_a_refused_card_gives_up_what_stands_there(make_world: Callable[..., World]) -> None:
    world = await standing(make_world)
    row = await world.ask()
    world.chat.fail(KICKED)
    second = await world.ask("deploy second")
    for each in (row, second):
        assert (await world.cards(each))[-1].destination == OTHER_PLACE


async def test_a_platform_that_tells_is_believed_at_once(make_world: Callable[..., World]) -> None:
    world = await standing(make_world)
    row = await world.ask()
    commands = Commands(world.broker, world.sessions, world.dispatcher, world.store, world.clock, lambda _: "Fake")
    inbox = ProfileInbox(
        "default",
        world.chat.info,
        store=world.store,
        taps=world.taps,
        commands=commands,
        dispatcher=world.dispatcher,
    )
    await inbox.left(PLACE, "the bot was removed from the chat")
    await world.flush()
    assert (await world.cards(row))[-1].destination == OTHER_PLACE
    assert (await world.row(row)).delivery_error == "the bot was removed from the chat"


async def test_a_thread_that_is_gone_leaves_its_chat_alone(make_world: Callable[..., World]) -> None:
    world = await standing(make_world)
    await world.session("in_thread", destination=THREAD)
    row, gone = await world.ask(), await world.ask("deploy other", "in_thread")
    world.chat.fail(SendRefused("it is gone", reason="thread_not_found"))
    await world.ask("deploy more", "in_thread")
    assert (await world.card(row)).destination == PLACE
    assert (await world.cards(gone))[-1].destination == OTHER_PLACE


async def test_other_refusals_leave_the_cards_where_they_stand(make_world: Callable[..., World]) -> None:
    world = await standing(make_world)
    row = await world.ask()
    world.chat.fail(SendRefused("no rights", reason="no_rights"), call="update")
    world.chat.fail(SendRefused("too long", reason="too_long"))
    await world.submit()
    await world.ask("deploy second")
    assert (await world.card(row)).destination == PLACE


async def test_without_a_fallback_the_question_ends_and_says_why(make_world: Callable[..., World]) -> None:
    world = await standing(make_world, fallback=False)
    row = await world.ask()
    world.chat.fail(KICKED, call="update")
    follower = await world.submit()
    await world.flush()
    for each in (row, follower):
        done = await world.row(each)
        assert (done.outcome, done.cause) == ("cancelled", "destination_removed")
    assert (await world.row(row)).delivery_error == KICKED.message
    assert "the chat it was asked in is gone" in await world.message(row)


async def test_a_fallback_that_goes_too_is_the_end(make_world: Callable[..., World]) -> None:
    world = await standing(make_world)
    row = await world.ask()
    for place in (PLACE, OTHER_PLACE):
        assert await outcome(world, row) is None
        await world.dispatcher.left("default", place, "the chat was deleted")
        await world.flush()
    assert (await world.row(row)).cause == "destination_removed"


async def test_who_can_answer_without_a_card_is_waited_for(make_world: Callable[..., World]) -> None:
    world = await standing(make_world, fallback=False)
    row = await world.ask()
    now = world.clock.now()
    await world.put(Notifier(profile="default", session_id="s", name="terminal", attached_at=now))
    await world.dispatcher.left("default", PLACE, "the bot was removed")
    assert await outcome(world, row) is None


async def test_a_doubtful_card_is_not_posted_again_there(make_world: Callable[..., World]) -> None:
    world = await standing(make_world)
    world.chat.lose_answer()
    row = await world.ask()
    await world.dispatcher.left("default", PLACE, "the bot was removed")
    await world.advance(60)
    assert world.chat.calls.count(("post", PLACE)) <= 2, "the card, and the word that it is asked elsewhere"
    assert (await world.cards(row))[-1].destination == OTHER_PLACE


async def test_a_digest_there_is_given_up_with_all_it_lists(make_world: Callable[..., World]) -> None:
    world = world_of(make_world, fallbacks={"default": OTHER_PLACE})
    await world.session(destination=GROUP)
    rows, _ = await digest_standing(world)
    await world.dispatcher.left("default", GROUP, "the bot was removed")
    await world.advance(60)
    for row in rows:
        assert await outcome(world, row) is None
        assert OTHER_PLACE in (await world.row(row)).delivered_to


UNSEEN = SendRefused("the bot may not see the channel", reason="no_access")


@pytest.mark.parametrize("place", [PLACE, THREAD], ids=["chat", "thread"])
async def test_a_place_that_we_may_not_look_into_is_not_gone(
    make_world: Callable[..., World], place: Destination
) -> None:
    """Platforms deliver presses there all the same, so a question that stands there can be answered."""
    world = await standing(make_world, place=place, fallback=False)
    row = await world.ask()
    message, token = await world.button(row, "once")
    world.chat.fail(UNSEEN, call="update")
    await world.submit()
    await world.flush()
    world.chat.fail(UNSEEN)
    refused = await world.ask("deploy second")
    assert (await outcome(world, row), await outcome(world, refused)) == (None, "notify_failed")
    assert (await world.press(token, message)).text.startswith("Approved once")


async def test_what_stands_where_we_may_not_look_is_asked_at_the_fallback_too(
    make_world: Callable[..., World],
) -> None:
    world = await standing(make_world)
    row = await world.ask()
    message, token = await world.button(row, "once")
    world.chat.fail(UNSEEN)
    second = await world.ask("deploy second")
    for each in (row, second):
        assert (await world.cards(each))[-1].destination == OTHER_PLACE
    assert (await world.press(token, message)).text.startswith("Approved once")


async def test_a_fallback_that_we_may_not_look_into_ends_no_question(make_world: Callable[..., World]) -> None:
    world = await standing(make_world)
    row = await world.ask()
    for _ in range(2):
        world.chat.fail(UNSEEN, call="update")
        await world.submit()
        await world.flush()
    assert await outcome(world, row) is None
    await world.tap(row, "deny")
    assert await outcome(world, row) == "denied"
