"""People who may not decide: few answers a minute are posted for them in a chat, so that they keep no card waiting."""

from __future__ import annotations

import pytest
from tests.unit.commands.world import ANA, EVE, OTHER, PROFILE, ROOM, THREAD, World

from signoff.inbox import ProfileInbox
from signoff.model import Copy, Destination, Message, Person, replace
from signoff.rows import message_key
from signoff.settings import Profile
from signoff.strangers import ANSWERS, CHATS, Strangers
from signoff.taps import Taps
from signoff.testing.clock import FakeClock


def message(place: Destination = ROOM, by: str = EVE) -> Message:
    return Message(destination=place, message_id="1", order=1, person=Person(platform="fake", user_id=by), text="/help")


async def answered(
    world: World, text: str, count: int, *, by: str = EVE, where: Destination = ROOM, **facts: str
) -> int:
    """How many of so many equal messages are answered."""
    before = len(world.adapter.messages)
    for _ in range(count):
        await world.adapter.say(text, where=where, by=by, addressed=True, **facts)  # type: ignore[arg-type]  # a reply_to
    await world.idle()
    return len(world.adapter.messages) - before


@pytest.mark.parametrize("text", ["/help", "/aprove", "/approve K4XW9", "/approve 00000 x", "/pending", "/stop"])
async def test_a_stranger_is_answered_three_times_a_minute(world: World, text: str) -> None:
    assert await answered(world, text, 12) == ANSWERS


async def test_approvers_are_always_answered(world: World) -> None:
    assert await answered(world, "/help", 5) == ANSWERS
    assert await answered(world, "/pending", 6, by=ANA) == 6


async def test_one_own_user_s_stop_is_obeyed_without_an_answer(world: World) -> None:
    await world.session("hers", user_id=EVE)
    hers = await world.ask(session="hers")
    assert await answered(world, "/help", 5) == ANSWERS
    assert await answered(world, "/stop", 1) == 0
    assert await world.outcomes(hers) == ["cancelled"]


async def test_a_silenced_stranger_uses_up_no_hint(world: World) -> None:
    await world.ask()
    assert await answered(world, "/help", 5) == ANSWERS
    assert await answered(world, "ok", 1) == 0
    assert "decides nothing" in await world.type("ok")


async def test_refusals_are_recorded_though_not_answered(world: World) -> None:
    assert await answered(world, "/help", 5) == ANSWERS
    assert await answered(world, "/approve K4XW9", 2) == 0
    (event,) = await world.events("tap.refused")
    assert event.data["user_id"] == EVE


async def test_replies_to_somebody_else_s_prompt_are_answered_three_times(world: World) -> None:
    row = await world.ask()
    (card,) = await world.copies(row)
    prompt = replace(
        card, copy_id="prompt", kind="prompt", message_id="4711", owner_id=ANA, parent_copy=card.copy_id, state="sent"
    )
    await world.store.transact(lambda tx: tx.put(prompt))
    assert await world.store.find(Copy, "message", message_key("default", ROOM, "4711"))
    taps = Taps(world.broker, world.dispatcher, world.store, world.clock, world.signer, world.maker)
    inbox = ProfileInbox(
        "default",
        world.adapter.info,
        store=world.store,
        taps=taps,
        commands=world.commands,
        dispatcher=world.dispatcher,
    )
    before = len(world.adapter.messages)
    for number in range(10):
        await inbox.message(replace(message(), message_id=str(7000 + number), text="hi", reply_to="4711"))
    await world.idle()
    assert len(world.adapter.messages) - before == ANSWERS


def strangers(clock: FakeClock, profile: Profile = PROFILE) -> Strangers:
    return Strangers(clock, lambda _: profile)


async def test_a_minute_later_there_is_room_again() -> None:
    clock = FakeClock()
    gate = strangers(clock)
    assert [gate.may_be_answered("default", message()) for _ in range(5)] == [True, True, True, False, False]
    await clock.advance(59)
    assert gate.silenced("default", message())
    await clock.advance(1)
    assert not gate.silenced("default", message())
    assert gate.may_be_answered("default", message())


def test_threads_share_their_chat_s_answers_and_other_chats_do_not() -> None:
    gate = strangers(FakeClock())
    assert all(gate.may_be_answered("default", message()) for _ in range(ANSWERS))
    assert not gate.may_be_answered("default", message(THREAD))
    assert gate.may_be_answered("default", message(OTHER))
    assert gate.may_be_answered("ops", message())
    assert not gate.silenced("default", message(by=ANA))


def test_it_forgets_the_chat_that_was_answered_longest_ago() -> None:
    gate = strangers(FakeClock())
    assert all(gate.may_be_answered("default", message()) for _ in range(ANSWERS))
    for number in range(CHATS):
        assert gate.may_be_answered("default", message(Destination("fake", f"c{number}")))
    assert gate.may_be_answered("default", message())
