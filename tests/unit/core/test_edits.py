"""Edits that fail, messages that are gone, chats that move: every copy still ends true."""

from __future__ import annotations

import pytest
from tests.unit.core.harness import PLACE, World, tokens_of
from tests.unit.core.test_delivery import DOWN, REFUSED, outcome

from signoff.changes import moving
from signoff.errors import ChatMoved, RateLimited, SendAmbiguous, SendRefused
from signoff.model import Destination, replace


@pytest.mark.parametrize("error", [DOWN, SendAmbiguous(), RateLimited(retry_after_s=3)])
async def test_an_edit_that_failed_for_now_is_made_later(world: World, error: Exception) -> None:
    row = await world.ask()
    world.chat.fail(error, call="update")  # type: ignore[arg-type]  # all are of the adapter's family
    await world.tap(row, "deny")
    await world.advance(10)
    card = await world.card(row)
    assert "Denied by" in card.text
    assert not tokens_of(card)


async def test_a_refused_edit_of_a_pending_card_does_not_end_the_question(world: World) -> None:
    row = await world.ask()
    world.chat.fail(SendRefused("cannot edit"), call="update")
    await world.submit()
    await world.flush()
    assert await outcome(world, row) is None
    await world.tap(row, "deny")
    await world.flush()
    assert "for all 2" in (await world.card(row)).text


async def test_a_deleted_card_is_posted_anew_while_it_waits(world: World) -> None:
    row = await world.ask()
    world.chat.remove((await world.card(row)).message_id)
    await world.submit()
    await world.flush()
    assert await outcome(world, row) is None
    assert "2 identical requests wait." in (await world.card(row)).text
    assert (await world.tap(row, "once_all")).text.startswith("Approved once for all 2.")


async def test_a_deleted_card_in_a_chat_that_is_gone(world: World) -> None:
    row = await world.ask()
    world.chat.remove((await world.card(row)).message_id)
    world.chat.fail(REFUSED)
    follower = await world.submit()
    await world.flush()
    assert (await outcome(world, row), await outcome(world, follower)) == ("notify_failed", "notify_failed")


async def test_a_deleted_final_card_stays_deleted(world: World) -> None:
    row = await world.ask()
    world.chat.remove((await world.card(row)).message_id)
    await world.decide(row, "deny")
    await world.advance(60)
    assert world.chat.shown() == []
    assert (await world.copy(row)).state == "failed"


@pytest.mark.parametrize("how", ["send", "told"])
async def test_a_chat_that_moved(world: World, how: str) -> None:
    open_row = await world.ask("deploy open")
    old = await world.card(open_row)
    new = Destination("fake", "-100100")
    if how == "send":
        world.chat.fail(ChatMoved(new_chat_id="-100100"))
        second = await world.ask("deploy second")
        assert (await world.row(second)).delivered_to == (new,)
    else:
        await world.store.transact(lambda tx: moving.move_chat(tx, "default", "fake", PLACE.chat_id, new.chat_id))
        await world.flush()
    card = (await world.cards(open_row))[-1]
    assert card.destination == new
    assert len([m for m in world.chat.messages if open_row.short_id in m.text]) == 2, "posted anew, once"
    told = await world.press(tokens_of(old)[0], card)
    assert told.text == "This button is not known here. Nothing was decided."
    await world.tap(open_row, "once")
    assert await outcome(world, open_row) == "approved"


async def test_a_place_that_is_not_served_here(world: World) -> None:
    row = await world.submit()
    await world.put(replace(await world.copy(row), destination=Destination("gone", "1")))
    await world.flush()
    after = await world.row(row)
    assert (after.outcome, after.delivery_error) == ("notify_failed", "gone is not served here")
