"""What a person denied is not asked again at once: how long that holds, what ends it, and what is told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.unit.core.harness import ANN, BEN, BY_ANN, OTHER_PLACE, World, choices_of

from signoff.endings import user_summary
from signoff.errors import RequestNotFound
from signoff.ids import one_question_session
from signoff.model import ApprovalRequest
from signoff.rows import answered_key

PUSH = "git push --force origin main"


async def denied(world: World, action: str = PUSH, reason: str | None = None, **facts: Any) -> ApprovalRequest:
    """A question that Ann denied."""
    row = await world.ask(action, **facts)
    await world.decide(row, "deny", reason=reason)
    await world.flush()
    return await world.row(row)


async def test_what_was_denied_a_moment_ago_is_told_in_seconds(world: World) -> None:
    await denied(world)
    await world.clock.advance(0.016)
    said = await world.message(await world.ask(PUSH))
    assert said.startswith("BLOCKED: denied. A person denied this same action 1 second ago, so it was not asked again.")


async def test_in_its_turn_the_same_is_born_denied(world: World) -> None:
    first = await denied(world, reason="wrong target", turn_id="t")
    cards = len(world.chat.shown())
    await world.clock.advance(120)
    row = await world.ask(PUSH, turn_id="t")
    assert (row.outcome, row.choice, row.repeat_of, row.leader_id) == ("denied", "deny", first.request_id, None)
    assert (row.decided_by, row.reason) == (first.decided_by, "wrong target")
    assert len(world.chat.shown()) == cards, "no card"
    assert (await world.message(row)).startswith(
        "BLOCKED: denied. A person denied this same action 2 minutes ago, so it was not asked again."
    )
    told = user_summary(row, world.clock.now())
    assert told == f"Denied by “Ann” [fake 1] at 09:00 UTC ({first.short_id}), not asked again, not run."
    await world.clock.advance(3600)
    assert user_summary(row, world.clock.now()) == told, "whenever it is read"
    kinds = [event.type for event in await world.events() if event.request_id == row.request_id]
    assert kinds == ["approval.requested", "approval.resolved"]


async def test_a_denial_holds_for_its_whole_turn_and_for_no_other(world: World) -> None:
    await world.turn("t2")
    await denied(world, turn_id="t")
    await world.clock.advance(1000)
    assert (await world.submit(PUSH, turn_id="t")).outcome == "denied"
    assert (await world.submit(PUSH, turn_id="t2")).outcome is None


async def test_without_a_turn_it_holds_for_ten_minutes(world: World) -> None:
    await denied(world)
    await world.clock.advance(599)
    assert (await world.submit(PUSH)).repeat_of is not None
    await world.clock.advance(2)
    assert (await world.submit(PUSH)).outcome is None, "repetitions do not lengthen it"


async def test_a_turn_of_one_question_is_no_turn_of_the_agents(world: World) -> None:
    for name in ("one_1", "one_2", "one_3"):
        await world.turn(name)
    await denied(world, turn_id="one_1")
    assert (await world.submit(PUSH, turn_id="one_2")).outcome == "denied"
    await world.clock.advance(601)
    assert (await world.submit(PUSH, turn_id="one_3")).outcome is None


async def test_of_sessions_for_one_question_only_denials_are_kept_at_hand(world: World) -> None:
    """What is approved again and again would all be read at each question."""

    async def answer(choice: str) -> ApprovalRequest:
        own = one_question_session("ana")
        await world.session(own)
        row = await world.ask(PUSH, own)
        await world.decide(row, choice)
        return await world.row(row)

    approved = [await answer("once") for _ in range(4)]
    assert not any(row.offer_box for row in approved)
    no = await answer("deny")
    at_hand = await world.store.find(ApprovalRequest, "answered", answered_key(no))
    assert [row.request_id for row in at_hand] == [no.request_id]
    await world.session(again := one_question_session("ana"))
    assert (await world.submit(PUSH, again)).repeat_of == no.request_id


async def test_only_exactly_the_same_in_the_same_session(world: World) -> None:
    await world.session("s2", destination=OTHER_PLACE)
    await denied(world)
    assert (await world.submit(PUSH, "s2")).outcome is None
    assert (await world.submit("git push --force origin dev")).outcome is None
    assert (await world.submit(PUSH, host="another")).outcome is None


async def test_only_a_persons_no_counts(world: World) -> None:
    row = await world.ask(PUSH, timeout_s=30)
    await world.advance(31)
    assert (await world.row(row)).outcome == "timeout"
    again = await world.ask(PUSH)
    assert again.outcome is None
    await world.cancel(again)
    assert (await world.ask(PUSH)).outcome is None


async def test_followers_that_were_denied_are_remembered_too(world: World) -> None:
    first, second = await world.ask(PUSH), await world.submit(PUSH, turn_id="t")
    assert second.leader_id == first.request_id
    await world.decide(first, "deny")
    assert (await world.submit(PUSH, turn_id="t")).repeat_of == second.request_id


async def test_a_covering_grant_ends_it(world: World) -> None:
    await denied(world)
    other = await world.ask("git push -f origin main")
    await world.decide(other, "session")
    assert (await world.submit(PUSH)).outcome == "approved"


async def test_letting_it_ask_again_decides_nothing(world: World) -> None:
    first = await denied(world, turn_id="t")
    repeat = await world.submit(PUSH, turn_id="t")
    lifted = await world.broker.let_ask("default", repeat.request_id, BY_ANN)
    assert lifted is not None and lifted.request_id == first.request_id
    assert (lifted.outcome, lifted.lifted_by) == ("denied", BY_ANN)
    assert [e.request_id for e in await world.events("approval.lifted")] == [first.request_id]
    fresh = await world.ask(PUSH, turn_id="t")
    assert fresh.outcome is None
    assert len(await world.cards(fresh)) == 1
    await world.decide(fresh, "deny")
    assert (await world.submit(PUSH, turn_id="t")).repeat_of == fresh.request_id


async def test_what_nobody_denied_cannot_be_lifted(world: World) -> None:
    row = await world.ask(PUSH)
    assert await world.broker.let_ask("default", row.request_id, BY_ANN) is None
    await world.decide(row, "once")
    assert await world.broker.let_ask("default", row.request_id, BY_ANN) is None
    with pytest.raises(RequestNotFound):
        await world.broker.let_ask("default", "nothing", BY_ANN)


async def test_the_denied_card_tells_of_it_and_has_a_button(world: World) -> None:
    first = await denied(world, reason="wrong target")
    assert not (await world.card(first)).card.rows
    await world.clock.advance(60)
    await world.ask(PUSH)
    card = await world.card(first)
    assert "The agent asked for it again at 09:01 UTC" in card.text
    assert choices_of(card) == ["ask_again"]
    versions = len(card.cards)
    await world.ask(PUSH)
    assert len((await world.card(first)).cards) == versions, "it is edited once, however often it is asked"
    assert "You may not decide" in (await world.tap(first, "ask_again", "99")).text
    assert (await world.submit(PUSH)).outcome == "denied"
    told = await world.tap(first, "ask_again", BEN)
    assert told.text == "Nothing is approved. The next time it is asked, a new card comes."
    await world.flush()
    card = await world.card(first)
    assert "“Ben” [fake 2] lets it ask again." in card.text
    assert not card.card.rows
    assert (await world.ask(PUSH)).outcome is None


async def test_something_alike_is_asked_with_a_word_about_it(world: World) -> None:
    first = await denied(world)
    await world.clock.advance(120)
    row = await world.ask("git push -f origin main")
    assert row.denied_like == first.request_id
    told = f"“Ann” [fake 1] denied a similar one at 09:00 UTC ({first.short_id})"
    card = await world.card(row)
    assert told in card.text
    assert "Asked again" not in card.text, "this one never was asked"
    assert (await world.ask("rm -rf build")).denied_like is None
    await world.clock.advance(timedelta(minutes=11).total_seconds())
    assert (await world.ask("git push -f origin dev")).denied_like is None


async def test_the_same_in_another_turn_is_asked_again_with_a_word_about_it(world: World) -> None:
    await world.turn("t2")
    first = await denied(world, turn_id="t")
    await world.clock.advance(120)
    row = await world.ask(PUSH, turn_id="t2")
    told = f"Asked again: “Ann” [fake 1] denied the same at 09:00 UTC ({first.short_id})"
    assert told in (await world.card(row)).text


async def test_the_same_sentence_without_a_rule_is_not_the_same_program(world: World) -> None:
    first = await denied(world, "deploy one")
    assert (await world.ask("deploy two")).denied_like == first.request_id
    assert (await world.ask("drop two")).denied_like is None


async def test_the_request_id_finds_the_repetition(world: World) -> None:
    await denied(world)
    row = await world.submit(PUSH, request_id="again")
    assert (await world.submit(PUSH, request_id="again")).request_id == row.request_id
    assert (await world.row("again")).outcome == "denied"


async def test_a_late_approval_of_somebody_else_lifts_nothing(world: World) -> None:
    """A press on a card that was just denied is too late; it is no wish to be asked again."""
    row = await world.ask(PUSH)
    message, token = await world.button(row, "once")
    await world.tap(row, "deny", ANN)
    assert (await world.press(token, message, BEN)).lost
    assert (await world.submit(PUSH)).outcome == "denied"
