"""From the outbox to the chat when the chat refuses, stalls, forgets and limits; and that every copy ends true."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from tests.unit.core.harness import GROUP, OTHER_PLACE, PLACE, World, choices_of, tokens_of

from signoff import dispatcher as dispatching
from signoff import turntaking
from signoff.cards import text_card
from signoff.errors import AdapterUnavailable, RateLimited, SendAmbiguous, SendRefused
from signoff.model import ApprovalRequest, Destination
from signoff.ports import AdapterInfo
from signoff.settings import ApprovalSettings, Profile
from signoff.testing.clock import settle

REFUSED = SendRefused("bot was removed")
DOWN = AdapterUnavailable("connection refused")


async def outcome(world: World, row: ApprovalRequest) -> str | None:
    return (await world.row(row)).outcome


def seconds(row: ApprovalRequest, at: datetime | None) -> float:
    """When it was, counted from the asking."""
    assert at is not None
    return (at - row.created_at).total_seconds()


# --- refused and unreachable ----------------------------------------------------------------------------


async def test_refused_is_notify_failed_at_once(world: World) -> None:  # #19803 4.1.5
    world.chat.fail(REFUSED)
    row = await world.ask()
    assert (row.outcome, row.delivery_error, row.decided_by) == ("notify_failed", "bot was removed", ())
    assert row.decided_at == row.created_at
    assert (await world.message(row)).startswith("BLOCKED: notify_failed. The question could not be delivered")
    await world.advance(600)
    assert world.chat.calls == [("post", PLACE)]


async def test_one_place_that_takes_it_is_enough(make_world: Callable[..., World]) -> None:
    world = make_world(profile=_also())
    await world.session()
    world.chat.fail(REFUSED)
    row = await world.ask()
    assert row.outcome is None
    assert len(row.delivered_to) == 2
    await world.tap(row, "once")
    assert await outcome(world, row) == "approved"


async def test_unreachable_is_tried_again_and_given_up_15_s_after_the_first_attempt(world: World) -> None:
    world.chat.fail(DOWN, times=100)
    row = await world.submit()
    await world.clock.advance(5)
    await world.advance(14.9)
    assert await outcome(world, row) is None
    await world.advance(0.1)
    after = await world.row(row)
    assert after.outcome == "notify_failed"
    assert seconds(row, after.decided_at) == 20, "15 s after the first attempt"
    assert after.delivery_error == "connection refused"
    tried = len(world.chat.calls)
    assert tried >= 4
    await world.advance(600)
    assert len(world.chat.calls) == tried, "an ended question is not sent"


async def test_reachable_again_in_time(world: World) -> None:
    world.chat.fail(DOWN, times=3)
    row = await world.ask()
    await world.advance(10)
    assert (await world.row(row)).delivered_to == (PLACE,)
    await world.advance(20)
    assert await outcome(world, row) is None


async def test_an_attempt_under_way_at_15_s_is_waited_for_and_then_no_other(world: World) -> None:
    world.chat.fail(DOWN, times=4)
    row = await world.ask()
    await world.advance(14)
    world.chat.fail(DOWN, times=100)
    world.chat.stall()
    await world.clock.advance(1)
    await world.dispatcher.start_due()
    await world.sweeper.sweep()
    assert await outcome(world, row) is None
    world.chat.go_on()
    await world.flush()
    assert await outcome(world, row) == "notify_failed"


async def test_the_attached_client_can_still_answer(world: World) -> None:
    await world.sessions.attach("default", "s", "app", "ann")
    world.chat.fail(DOWN, times=100)
    row = await world.ask()
    await world.advance(20)
    assert await outcome(world, row) is None
    await world.sessions.detach("default", "s", "app")
    await world.advance(60)
    assert await outcome(world, row) == "notify_failed"


def _also() -> Profile:
    return Profile(approvers={"fake": ("1", "2")}, approvals=ApprovalSettings(also_to=(OTHER_PLACE, GROUP, PLACE)))


async def test_every_copy_is_closed(make_world: Callable[..., World]) -> None:
    world = make_world(profile=_also())
    await world.session()
    row = await world.ask()
    assert row.destinations == (PLACE, OTHER_PLACE, GROUP), "each place once"
    assert set(row.delivered_to) == set(row.destinations)
    cards = await world.cards(row)
    assert len(cards) == 3
    tapped, _ = await world.button(row, "deny")
    await world.tap(row, "deny")
    await world.flush()
    for card in await world.cards(row):
        assert not tokens_of(card)
        assert "Denied by “Ann” [fake 1]" in card.text
    here = [card for card in await world.cards(row) if "on Fake" not in card.text]
    assert [card.message_id for card in here] == [tapped.message_id], "only the others say where"
    told = await world.press(cards[0].card.rows[0][0].token, cards[0], "2")
    assert told.text == "Already denied by “Ann” [fake 1] at 09:00 UTC. Your tap changed nothing."
    assert {copy.state for copy in await world.copies(row)} == {"final"}


# --- doubtful -------------------------------------------------------------------------------------------


async def test_a_lost_answer_counts_as_sent_and_is_posted_once_more(world: World) -> None:
    world.chat.lose_answer()
    row = await world.ask(timeout_s=300)
    assert (row.outcome, row.delivered_to) == (None, (PLACE,))
    assert seconds(row, row.expires_at) == 300
    orphan = world.chat.messages[0]
    await world.advance(9.9)
    assert len(world.chat.messages) == 1
    await world.advance(0.1)
    again = world.chat.messages[1]
    assert "Sent again; the first copy may have been lost." in again.text
    await world.advance(60)
    assert len(world.chat.messages) == 2, "once"
    # The first tap on the orphan teaches its id and counts like any other; both are closed.
    told = await world.press(orphan.card.rows[0][0].token, orphan)
    assert told.text == "Approved once. The agent is told."
    await world.flush()
    assert [message.card.rows for message in world.chat.messages] == [(), ()]
    assert all("Approved once by" in message.text for message in world.chat.messages)


async def test_the_second_copy_decides_as_well(world: World) -> None:
    world.chat.lose_answer()
    row = await world.ask()
    await world.advance(10)
    orphan, again = world.chat.messages
    await world.press(again.card.rows[0][1].token, again)
    assert await outcome(world, row) == "denied"
    await world.flush()
    assert tokens_of(world.chat.messages[0]), "nobody knows its id"
    told = await world.press(orphan.card.rows[0][0].token, orphan, "2")
    assert told.text.startswith("Already denied by")
    await world.flush()
    assert not tokens_of(world.chat.messages[0]), "the tap told us where it stands"


async def test_a_tap_that_decides_nothing_corrects_the_orphan_too(world: World) -> None:
    world.chat.lose_answer()
    row = await world.ask()
    await world.submit()
    await world.flush()
    orphan = world.chat.messages[0]
    assert "identical" not in orphan.text
    await world.press(dict(zip(choices_of(orphan), tokens_of(orphan), strict=True))["more"], orphan)
    await world.flush()
    assert "2 identical requests wait." in (await world.card(row)).text
    assert (await world.copy(row)).state == "sent"


async def test_a_tapped_orphan_is_not_posted_again(world: World) -> None:
    world.chat.lose_answer()
    row = await world.ask()
    orphan = world.chat.messages[0]
    await world.press(dict(zip(choices_of(orphan), tokens_of(orphan), strict=True))["more"], orphan)
    await world.advance(60)
    assert [m.message_id for m in await world.cards(row)] == [orphan.message_id]


async def test_a_doubtful_send_of_an_ended_question_is_never_sent_again(world: World) -> None:
    world.chat.lose_answer()
    row = await world.ask()
    await world.cancel(row)
    await world.advance(600)
    assert len(world.chat.messages) == 1


async def test_a_platform_with_idempotency_gets_no_second_copy(make_world: Callable[..., World]) -> None:
    info = AdapterInfo(platform="fake", title="Fake", per_second=1e6, per_chat_s=0, resend_ambiguous=False)
    world = make_world(info=info)
    await world.session()
    world.chat.lose_answer()
    row = await world.ask()
    assert (await world.copy(row)).state == "ambiguous"
    await world.advance(100)
    assert len(world.chat.messages) == 1
    assert (await world.copy(row)).state == "sent"


async def test_a_doubtful_send_that_never_stood_is_shown_after_all(make_world: Callable[..., World]) -> None:
    world = make_world(
        info=AdapterInfo(platform="fake", title="Fake", per_second=1e6, per_chat_s=0, resend_ambiguous=False)
    )
    await world.session()
    world.chat.fail(SendAmbiguous())
    row = await world.ask()
    assert world.chat.messages == []
    await world.advance(11)
    assert len(world.chat.messages) == 1
    await world.tap(row, "once")
    assert await outcome(world, row) == "approved"


async def test_who_joins_before_the_repeat_leaves_one_card_that_decides(make_world: Callable[..., World]) -> None:
    world = make_world(
        info=AdapterInfo(platform="fake", title="Fake", per_second=1e6, per_chat_s=0, resend_ambiguous=False)
    )
    await world.session()
    world.chat.lose_answer()
    row = await world.ask("deploy deploy")
    await world.submit("deploy deploy")
    await world.advance(12)
    assert len(world.chat.messages) == 1
    assert "2 identical requests wait." in world.chat.messages[0].text
    await world.tap(row, "once_all")
    assert await outcome(world, row) == "approved"


async def test_a_defect_in_a_send_is_no_card_that_was_shown(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*args: object, **words: object) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr(world.chat, "post", broken)
    row = await world.ask()
    assert (row.outcome, row.delivered_to) == ("notify_failed", ())


async def test_a_platform_that_takes_it_and_never_answers(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatching, "SEND_TIMEOUT_S", 0.01)
    world.chat.stall()
    row = await world.ask()
    assert (await world.copy(row)).state == "ambiguous"
    assert row.outcome is None
    assert world.sent["post", "timeout"] == 1


async def test_a_crash_while_sending_leaves_a_doubtful_copy(make_world: Callable[..., World]) -> None:
    world = make_world()
    await world.session()
    row = await world.submit()
    world.chat.stall()
    await world.dispatcher.start_due()
    await world.aclose()
    after = make_world()
    await after.advance(19)
    assert (await after.copy(row)).state == "sending"
    await after.advance(1)
    assert (await after.copy(row)).state == "ambiguous"
    assert (await after.row(row)).delivered_to == (PLACE,)
    await after.advance(10)
    assert "Sent again" in after.chat.messages[0].text
    await after.tap(row, "deny")
    assert (await after.row(row)).outcome == "denied"


@pytest.mark.parametrize(("down_s", "repeated"), [(0.0, True), (80.0, True), (100.0, False)])
async def test_a_crash_while_sending_is_repeated_where_the_platform_would_recognise_it(
    make_world: Callable[..., World], down_s: float, repeated: bool
) -> None:
    """The same copy goes out once more, unmarked, for as long as its key is surely remembered."""
    info = AdapterInfo(platform="fake", title="Fake", per_second=1e6, per_chat_s=0, resend_ambiguous=False)
    world = make_world(info=info)
    await world.session()
    row = await world.submit()
    world.chat.stall()
    await world.dispatcher.start_due()
    before = await world.copy(row)
    await world.aclose()
    await world.clock.advance(down_s)
    after = make_world(info=info)
    await after.advance(20)
    copy = await after.copy(row)
    assert (copy.copy_id, copy.state) == (before.copy_id, "sent" if repeated else "ambiguous")
    assert ["Sent again" in message.text for message in after.chat.messages] == [False] * repeated
    await after.advance(60)
    assert len(after.chat.messages) == repeated


async def test_a_stop_waits_for_what_a_budget_allows_soon(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(info=AdapterInfo(platform="fake", title="Fake", per_second=1))
    await world.session()
    first, second = await world.ask(), await world.ask("deploy ./second")
    assert [(await world.copy(row)).limited for row in (first, second)] == [False, True]
    await world.dispatcher.idle()
    await world.dispatcher.idle(ahead_s=0.5)
    rounds: list[int] = []
    due = world.store.due

    async def counted(*arguments: Any, **options: Any) -> Any:
        rounds.append(1)
        return await due(*arguments, **options)

    monkeypatch.setattr(world.store, "due", counted)
    ending = asyncio.create_task(world.dispatcher.idle(ahead_s=1.5))
    async with asyncio.timeout(60):
        while len(rounds) < 3 and not ending.done():  # noqa: ASYNC110  # it looks twice, and goes on
            await asyncio.sleep(0.001)
    assert not ending.done()
    await world.advance(1.5)
    await ending
    assert len(world.chat.messages) == 2


async def test_a_stop_sends_nothing_while_it_answers_its_last_presses(world: World) -> None:
    running = asyncio.create_task(world.dispatcher.run())
    with world.dispatcher.held():
        await world.submit()
        await settle()
        assert world.chat.calls == []
    await world.dispatcher.idle()
    assert world.chat.calls == [("post", PLACE)]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_repeated_send_that_a_crash_breaks_off_too_is_left_in_doubt(make_world: Callable[..., World]) -> None:
    info = AdapterInfo(platform="fake", title="Fake", per_second=1e6, per_chat_s=0, resend_ambiguous=False)
    world = make_world(info=info)
    await world.session()
    row = await world.submit()
    for _ in range(2):
        world.chat.stall()
        await world.dispatcher.start_due()
        await world.aclose()
        world = make_world(info=info)
        await world.clock.advance(20)
    await world.advance(1)
    assert (await world.copy(row)).state == "ambiguous"
    assert world.chat.messages == []


async def test_a_tap_before_the_send_returns_is_honoured(world: World) -> None:
    row = await world.submit()
    world.chat.stall()
    await world.dispatcher.start_due()
    copy = await world.copy(row)
    token = world.signer.token(copy.copy_id, 0, "once", "fake", PLACE.chat_id)
    told = await world.chat.press(token, message_id="2", destination=PLACE)  # the press takes a number of its own
    assert told.text == "Approved once. The agent is told."
    world.chat.go_on()
    await world.flush()
    card = await world.card(row)
    assert (card.message_id, card.card.rows) == ("2", ())
    assert "Approved once by" in card.text


async def test_an_end_while_the_send_is_under_way_is_shown_at_once(world: World) -> None:
    row = await world.submit()
    world.chat.stall()
    await world.dispatcher.start_due()
    await world.decide(row, "once")
    await world.claim(row)
    world.chat.go_on()
    await world.flush()
    card = await world.card(row)
    assert not tokens_of(card), "no live button stays while it runs"
    assert "Approved once by" in card.text
    assert "Running" not in card.text


async def test_an_ended_question_is_not_sent_at_all(world: World) -> None:
    row = await world.submit()
    await world.cancel(row)
    await world.flush()
    assert world.chat.calls == []
    assert (await world.copy(row)).state == "final"


# --- limits ---------------------------------------------------------------------------------------------


async def test_a_limit_is_queued_and_not_failed_and_holds_up_no_other_chat(world: World) -> None:
    await world.session("other", destination=OTHER_PLACE)
    world.chat.fail(RateLimited(retry_after_s=40))
    row = await world.ask()
    assert (await world.copy(row)).state == "queued"
    second = await world.ask("deploy 2")
    elsewhere = await world.ask("deploy 3", "other")
    assert elsewhere.delivered_to == (OTHER_PLACE,)
    assert (await world.row(second)).delivered_to == ()
    await world.advance(39)
    assert (await outcome(world, row), await outcome(world, second)) == (None, None)
    assert len(world.chat.messages) == 1
    await world.advance(2)
    assert (await world.row(row)).delivered_to == (await world.row(second)).delivered_to == (PLACE,)


async def test_the_wait_for_a_limit_is_not_held_against_the_place(world: World) -> None:
    world.chat.fail(DOWN)
    world.chat.fail(RateLimited(retry_after_s=100))
    row = await world.ask()
    await world.advance(60)
    world.chat.fail(DOWN)
    await world.advance(50)
    assert (await world.row(row)).delivered_to == (PLACE,)


TIGHT = AdapterInfo(platform="fake", title="Fake", per_second=30, per_chat_s=1.0, group_per_minute=20)


@pytest.mark.parametrize("place", [GROUP, PLACE])
async def test_budgets_are_never_exceeded(
    make_world: Callable[..., World], place: Destination, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turntaking, "LEAST", 1000)  # cards alone, without a digest
    world = make_world(info=TIGHT)
    await world.session(destination=place)
    times: list[datetime] = []
    post = world.chat.post

    async def timed(*args: object, **facts: object) -> object:
        times.append(world.clock.now())
        return await post(*args, **facts)  # type: ignore[arg-type]  # passed on as it came

    world.chat.post = timed  # type: ignore[method-assign,assignment]  # to note when
    for number in range(100):
        await world.submit(f"deploy {number}", timeout_s=3600)
    await world.advance(700 if place == GROUP else 120)
    assert len(times) == 100
    for count, span in ((20, 60),) if place == GROUP else ((3, 3), (30, 1)):
        for first, last in zip(times, times[count:], strict=False):
            assert last - first >= timedelta(seconds=span)
    gaps = [b - a for a, b in pairwise(times)]
    assert max(gaps) < timedelta(seconds=61)


async def test_an_answer_goes_before_a_hundred_cards(make_world: Callable[..., World]) -> None:
    world = make_world(info=TIGHT)
    await world.session(destination=GROUP)
    for number in range(100):
        await world.submit(f"deploy {number}")
    await world.advance(20)
    await world.dispatcher.say("default", GROUP, text_card(["Hello."]))
    await world.advance(3)
    assert "Hello." in [message.text for message in world.chat.messages]


async def test_edits_merge(world: World) -> None:
    row = await world.ask()
    for _ in range(5):
        await world.submit()
    await world.decide(row, "deny")
    await world.flush()
    assert [call for call, _ in world.chat.calls] == ["post", "update"]
    assert "for all 6" in (await world.card(row)).text


async def test_two_edits_of_one_message_are_never_under_way_at_once(world: World) -> None:
    """The platform may apply them in either order, and the older would stand for ever."""
    row = await world.ask()
    await world.submit()
    world.chat.stall("update")
    await world.dispatcher.start_due()
    await world.decide(row, "deny")
    await world.dispatcher.start_due()
    assert [call for call, _ in world.chat.calls] == ["post", "update"]
    world.chat.go_on("update")
    await world.flush()
    assert [call for call, _ in world.chat.calls] == ["post", "update", "update"]
    assert "Denied by" in (await world.card(row)).text
