"""What a card shows: a long action with its file, and what the clock alone changes on it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from tests.unit.core.harness import GROUP, PLACE, World, choices_of, tokens_of

from signoff import turntaking
from signoff.cards import text_card
from signoff.errors import MessageGone, SendRefused
from signoff.model import ApprovalRequest
from signoff.ports import AdapterInfo

LONG = "rm -rf " + " ".join(f"folder-{i}" for i in range(1000))


async def outcome(world: World, row: ApprovalRequest) -> str | None:
    return (await world.row(row)).outcome


# --- a long action ----------------------------------------------------------------------------------------


async def test_a_clipped_action_brings_its_file(world: World) -> None:
    row = await world.ask(LONG)
    card = await world.card(row)
    assert card.card.attachment is not None
    assert card.card.attachment.content.decode() == LONG
    assert "characters hidden here; whole text in" in card.text
    assert "once" in choices_of(card)


async def test_a_file_counts_as_a_message_of_its_own(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turntaking, "LEAST", 1000)  # cards alone, without a digest
    info = AdapterInfo(platform="fake", title="Fake", per_second=30, per_chat_s=1.0, group_per_minute=20)
    world = make_world(info=info)
    await world.session(destination=GROUP)
    for number in range(25):
        await world.submit(f"{LONG} {number}", timeout_s=3600)
    times: list[datetime] = []
    for _ in range(200):
        times += [world.clock.now()] * (len(world.chat.messages) - len(times))
        await world.advance(1)
    assert len(times) == 25
    for first, last in zip(times, times[10:], strict=False):
        assert last - first >= timedelta(seconds=59), "twenty messages a minute: ten cards with their files"


async def test_without_the_file_it_can_only_be_denied(world: World) -> None:
    world.chat.fail(SendRefused("no files here"))
    row = await world.ask(LONG)
    card = await world.card(row)
    assert choices_of(card) == ["deny", "because"]
    assert "The whole text could not be attached, so it cannot be approved here." in card.text
    copy = await world.copy(row)
    token = world.signer.token(copy.copy_id, 0, "once", "fake", PLACE.chat_id)
    told = await world.press(token, card)
    assert told.text == "This button is not known here. Nothing was decided."
    assert await outcome(world, row) is None
    await world.submit(LONG)
    await world.flush()
    assert choices_of(await world.card(row)) == ["deny", "because"], "an edit brings no way to approve"
    await world.tap(row, "deny")
    assert await outcome(world, row) == "denied"


async def test_a_doubtful_card_without_the_file_gets_no_way_to_approve_later(world: World) -> None:
    world.chat.fail(SendRefused("no files here"))
    world.chat.lose_answer()
    row = await world.ask(LONG)
    (orphan,) = world.chat.messages
    await world.press(tokens_of(orphan)[1], orphan)
    await world.submit(LONG)
    await world.flush()
    (card,) = [m for m in world.chat.shown() if m.message_id == orphan.message_id]
    assert choices_of(card) == ["deny", "because"]
    assert row.outcome is None


# --- what the clock shows -----------------------------------------------------------------------------------


async def test_undo_appears_after_2_s_and_goes_with_the_claim(world: World) -> None:
    row = await world.ask()
    await world.tap(row, "once")
    await world.advance(1.9)
    assert choices_of(await world.card(row)) == []
    await world.advance(0.1)
    assert choices_of(await world.card(row)) == ["undo"]
    assert "Waiting for the agent to start it; lapses 09:05 UTC." in (await world.card(row)).text
    await world.claim(row)
    await world.flush()
    assert choices_of(await world.card(row)) == []


async def test_undo_appears_also_when_the_edit_before_it_was_slow(world: World) -> None:
    row = await world.ask()
    world.chat.stall("update")
    await world.tap(row, "once")
    await world.dispatcher.start_due()
    await world.clock.advance(3)
    world.chat.go_on("update")
    await world.flush()
    assert choices_of(await world.card(row)) == ["undo"]


async def test_running_is_shown_after_5_s(world: World) -> None:
    row = await world.ask()
    await world.tap(row, "once")
    await world.claim(row)
    await world.flush()
    assert "Approved once by" in (await world.card(row)).text
    await world.advance(4.9)
    assert "Running" not in (await world.card(row)).text
    await world.advance(0.1)
    assert "Running since 09:00 UTC on its host." in (await world.card(row)).text
    assert len((await world.card(row)).cards) == 3
    await world.broker.result("default", row.request_id, "succeeded", 0)
    await world.flush()
    assert "Succeeded: exit code 0 after 5 s." in (await world.card(row)).text
    assert (await world.copy(row)).state == "final"


async def test_a_short_run_is_never_shown_as_running(world: World) -> None:
    row = await world.ask()
    await world.tap(row, "once")
    await world.flush()
    await world.claim(row)
    await world.advance(2)
    await world.broker.result("default", row.request_id, "succeeded", 0)
    await world.advance(60)
    card = await world.card(row)
    assert ["Running" in str(form) for form in card.cards] == [False, False, False], "asked, approved, succeeded"
    assert "Succeeded" in card.text


async def test_a_note_says_what_it_says(world: World) -> None:
    await world.dispatcher.say("default", PLACE, text_card(["Two", "lines"]), reply_to="77")
    await world.flush()
    (message,) = world.chat.messages
    assert (message.text, message.reply_to) == ("Two\nlines", "77")


async def test_message_gone_while_deleting_a_panel_is_no_harm(world: World) -> None:
    row = await world.ask()
    await world.tap(row, "more")
    await world.flush()
    world.chat.fail(MessageGone(), call="delete")
    await world.tap(row, "deny")
    await world.flush()
    assert await outcome(world, row) == "denied"
