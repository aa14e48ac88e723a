"""A digest when the chat refuses, stalls, forgets and limits, and when the gateway is killed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.core.bursts import (
    NO_KEY,
    burst,
    copied,
    delivered,
    digest_of,
    listed,
    message_of,
    outcomes,
    standing,
    token,
    waiting,
    world_of,
)
from tests.unit.core.harness import GROUP, OTHER_PLACE, World, choices_of, tokens_of

from signoff import dispatcher as dispatching
from signoff.changes import moving
from signoff.errors import AdapterUnavailable, ChatMoved, MessageGone, RateLimited, SendAmbiguous, SendRefused
from signoff.model import Destination


@pytest.fixture
async def world(make_world: Callable[..., World]) -> World:
    """A group that takes twenty messages a minute."""
    world = world_of(make_world)
    await world.session(destination=GROUP)
    return world


# --- when the chat refuses, stalls, forgets and limits -------------------------------------------


async def test_what_ends_before_the_send_is_not_listed(world: World) -> None:
    found = await waiting(world)
    for row in found[:-3]:
        await world.cancel(row)
    await world.advance(10)
    message = await message_of(world, found[-1])
    assert message.text.startswith("3 wait: 3 medium")
    assert not any(row.short_id in message.text for row in found[:-3])


async def test_a_digest_of_one_is_a_card(world: World) -> None:
    found = await waiting(world)
    for row in found[:-1]:
        await world.cancel(row)
    await world.advance(10)
    assert (await world.copy(found[-1])).digest is None
    assert "once" in choices_of(await world.card(found[-1]))


async def test_a_change_during_the_send_is_shown_after_it(world: World) -> None:
    found = await waiting(world)
    world.chat.stall()
    await world.clock.advance(4)
    await world.dispatcher.start_due()
    await world.decide(found[0], "deny")
    world.chat.go_on()
    await world.advance(12)
    assert "1 denied by" in (await message_of(world, found[0])).text


async def test_refused_is_notify_failed_for_all(world: World) -> None:
    found = await waiting(world)
    world.chat.fail(SendRefused("bot was removed"), times=2)  # with its file and without
    await world.advance(10)
    for row in found:
        after = await world.row(row)
        assert (after.outcome, after.delivery_error) == ("notify_failed", "bot was removed")


async def test_the_fallback_takes_them(make_world: Callable[..., World]) -> None:
    world = world_of(make_world, fallbacks={"default": OTHER_PLACE})
    await world.session(destination=GROUP)
    found = await waiting(world)
    world.chat.fail(SendRefused("bot was removed"), times=2)
    await world.advance(60)
    for row in found:
        assert (await world.row(row)).delivered_to == (OTHER_PLACE,)
    assert len(world.chat.shown(OTHER_PLACE)) < len(found)


async def test_unreachable_is_tried_again_and_given_up_after_15_s(world: World) -> None:
    found = await waiting(world)
    world.chat.fail(AdapterUnavailable("connection refused"), times=2)
    await world.advance(12)
    assert await delivered(world, found)
    await world.decide(found[0], "once")
    await world.session("more", destination=GROUP)
    more = await burst(world, 40, "more")
    await world.flush()
    unsent = await listed(world, more)
    world.chat.fail(AdapterUnavailable("connection refused"), times=1000)
    await world.advance(60)
    assert await outcomes(world, unsent) == {"notify_failed"}
    assert await outcomes(world, found[1:]) == {None}


async def test_a_rate_limit_is_waited_out(world: World) -> None:
    found = await waiting(world)
    world.chat.fail(RateLimited(retry_after_s=25))
    await world.advance(20)
    assert not (await world.row(found[0])).delivered_to
    assert await outcomes(world, found) == {None}
    await world.advance(25)
    assert await delivered(world, found)


async def test_a_lost_answer_counts_as_sent_and_is_repeated_once(world: World) -> None:
    found = await waiting(world)
    world.chat.lose_answer()
    await world.advance(5)
    orphan = world.chat.shown()[-1]
    assert await delivered(world, found)
    assert {copy.state for row in found for copy in await world.copies(row)} == {"ambiguous"}
    await world.decide(found[0], "deny")
    await world.advance(40)
    assert len(await world.copies(found[0])) == 1, "what ended is not repeated"
    again = [copy for copy in await world.copies(found[1]) if copy.again]
    assert len(again) == 1
    assert again[0].state == "sent"
    texts = [message.text for message in world.chat.shown()]
    assert any("Sent again; the first copy may have been lost." in text and " wait: " in text for text in texts)
    await world.advance(60)
    assert len(await world.copies(found[1])) == 2
    # A tap on the orphan counts, and teaches us where it stands.
    told = await world.press(token(orphan, "Deny all"), orphan)
    assert told.text.startswith(f"Denied {len(found) - 1}.")
    await world.advance(15)
    assert all(not tokens_of(message) for message in world.chat.shown() if " denied by " in message.text)
    assert not tokens_of(next(each for each in world.chat.shown() if each.message_id == orphan.message_id))


async def test_a_doubtful_digest_is_repeated_on_every_platform(make_world: Callable[..., World]) -> None:
    world = world_of(make_world, info=NO_KEY)
    await world.session(destination=GROUP)
    found = await waiting(world)
    world.chat.lose_answer()
    await world.advance(60)
    assert await copied(world, found) == {2}
    assert await outcomes(world, found) == {None}


async def test_a_timeout_of_the_platform_is_doubtful(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    found = await waiting(world)
    monkeypatch.setattr(dispatching, "UPLOAD_TIMEOUT_S", 0.01)
    world.chat.stall()
    await world.advance(5)
    assert (await digest_of(world, found[0])).state == "ambiguous"
    assert await outcomes(world, found) == {None}


async def test_a_tap_before_the_send_returns_is_honoured(world: World) -> None:
    found = await waiting(world)
    world.chat.stall()
    await world.clock.advance(4)
    await world.dispatcher.start_due()
    digest = await digest_of(world, found[0])
    deny = world.signer.token(digest.copy_id, digest.faces[-1].revision, "all_deny", "fake", GROUP.chat_id)
    coming = str(1 + max(int(message.message_id) for message in world.chat.messages) + 2)
    told = await world.chat.press(deny, message_id=coming, destination=GROUP)  # the press and the file take a number
    assert told.text == f"Denied {len(found)}. The agents are told."
    world.chat.go_on()
    await world.advance(15)
    after = await message_of(world, found[0])
    assert not tokens_of(after)
    assert after.text.startswith(f"⛔ {len(found)} denied by")


async def test_a_deleted_digest_is_posted_anew(world: World) -> None:
    found, message = await standing(world)
    world.chat.remove(message.message_id)
    await world.decide(found[0], "deny")
    await world.advance(60)
    for row in found[1:]:
        live = [copy for copy in await world.copies(row) if copy.state == "sent"]
        assert len(live) == 1
        assert live[0].digest != (await world.copies(row))[0].digest or live[0].digest is None
    assert await outcomes(world, found[1:]) == {None}


async def test_an_edit_refused_leaves_it_answerable(world: World) -> None:
    found, message = await standing(world)
    world.chat.fail(SendRefused("not modified"), call="update")
    await world.decide(found[0], "deny")
    await world.advance(15)
    assert (await digest_of(world, found[0])).state == "sent"
    told = await world.press(token(message, "Deny all"), message)
    assert told.text.startswith(f"Denied {len(found) - 1}.")


async def test_a_gone_message_at_the_end_is_the_end(world: World) -> None:
    found, message = await standing(world)
    world.chat.fail(MessageGone(), call="update")
    await world.press(token(message, "Deny all"), message)
    await world.advance(60)
    assert (await digest_of(world, found[0])).state == "failed"
    assert await copied(world, found) == {1}


@pytest.mark.parametrize("sent", [False, True])
async def test_a_chat_that_moved(world: World, sent: bool) -> None:
    new = Destination("fake", "-900")
    found = (await standing(world))[0] if sent else await waiting(world)
    if sent:
        await world.store.transact(lambda tx: moving.move_chat(tx, "default", "fake", GROUP.chat_id, new.chat_id))
    else:
        world.chat.fail(ChatMoved(new_chat_id=new.chat_id))
    await world.advance(90)
    for row in found:
        assert new in (await world.row(row)).delivered_to
        assert [copy.destination for copy in await world.copies(row) if copy.state == "sent"] == [new]


# --- restarts ------------------------------------------------------------------------------------


async def restarted(world: World, make_world: Callable[..., World]) -> World:
    """The gateway after a crash, connected to the same platform."""
    await world.dispatcher.crash()
    await world.aclose()
    return world_of(make_world, chat=world.chat)


async def test_killed_before_the_digest_is_sent(world: World, make_world: Callable[..., World]) -> None:
    found = await waiting(world)
    after = await restarted(world, make_world)
    await after.advance(60)
    assert await delivered(after, found)
    message = await message_of(after, found[0])
    assert (await after.press(token(message, "Deny all"), message)).text.startswith(f"Denied {len(found)}.")


async def test_killed_while_the_digest_is_sent(world: World, make_world: Callable[..., World]) -> None:
    found = await waiting(world)
    world.chat.stall()
    await world.clock.advance(4)
    after = await restarted(world, make_world)
    after.chat.go_on()
    await after.advance(19)
    assert (await digest_of(after, found[0])).state == "sending"
    await after.advance(2)
    assert await delivered(after, found)
    await after.advance(60)
    for row in found:
        assert [copy.state for copy in await after.copies(row) if copy.again] == ["sent"]


async def test_killed_while_it_is_edited(world: World, make_world: Callable[..., World]) -> None:
    found, message = await standing(world)
    world.chat.stall("update")
    await world.press(token(message, "Deny all"), message)
    after = await restarted(world, make_world)
    after.chat.go_on("update")
    await after.advance(30)
    assert not tokens_of(await message_of(after, found[0]))


async def test_a_panel_outlives_a_restart(world: World, make_world: Callable[..., World]) -> None:
    found, message = await standing(world)
    await world.press(token(message, "Approve "), message)
    await world.flush()
    panel = world.chat.shown()[-1]
    after = await restarted(world, make_world)
    assert (await after.press(token(panel, "Yes"), panel)).text == f"Approved {len(found)} once. The agents are told."
    await after.advance(15)
    assert await outcomes(after, found) == {"approved"}
    assert panel.message_id not in [each.message_id for each in after.chat.shown()]


async def test_doubt_about_an_edit_is_tried_again(world: World) -> None:
    found, message = await standing(world)
    world.chat.fail(SendAmbiguous(), call="update")
    await world.press(token(message, "Deny all"), message)
    await world.advance(30)
    assert not tokens_of(await message_of(world, found[0]))
