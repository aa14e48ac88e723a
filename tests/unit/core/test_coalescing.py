"""One card for identical questions: what becomes of those that wait when the one with the card ends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.unit.core.harness import ANN, BEN, World, choices_of, tokens_of

from signoff.errors import ChoiceNotOffered, SendRefused
from signoff.model import Actor, ApprovalRequest, Command, replace


async def three(world: World) -> list[ApprovalRequest]:
    """A leader and two followers, with one card."""
    rows = [await world.submit() for _ in range(3)]
    await world.flush()
    return [await world.row(row) for row in rows]


async def now(world: World, *rows: ApprovalRequest) -> list[str]:
    """How they stand: `pending` or the outcome."""
    return [(await world.row(row)).outcome or "pending" for row in rows]


async def test_identical_questions_share_one_card(world: World) -> None:
    leader, one, two = await three(world)
    assert leader.waiters == 2
    assert (one.leader_id, one.follow_no) == (leader.request_id, 1)
    assert (two.leader_id, two.follow_no) == (leader.request_id, 2)
    card = await world.card(leader)
    assert "3 identical requests wait." in card.text
    assert [b.label for b in card.card.rows[0]] == ["Approve 1 of 3", "Deny all 3"]
    assert not await world.copies(one)
    assert not await world.copies(two)


@pytest.mark.parametrize("choice", ["session", "always", "30m"])
async def test_a_grant_approves_all_alike(world: World, choice: str) -> None:
    rows = await three(world)
    assert await world.decide(rows[0], choice) == "won"
    found = [await world.row(row) for row in rows]
    assert [row.outcome for row in found] == ["approved"] * 3
    assert {row.choice for row in found} == {choice}
    assert {row.grant_id for row in found} == {found[0].grant_id}
    assert found[0].grant_id
    assert found[0].runs == 3


async def test_once_for_all(world: World) -> None:
    rows = await three(world)
    told = await world.tap(rows[0], "once_all")
    assert told.text == "Approved once for all 3. The agents are told."
    assert await now(world, *rows) == ["approved"] * 3
    await world.flush()
    card = await world.card(rows[0])
    assert "Approved once for all 3 by “Ann” [fake 1]" in card.text
    assert await world.events("grant.created") == []
    for row in rows:
        assert (await world.claim(row, f"c-{row.request_id}")).may_run


async def test_once_runs_one_and_the_next_asks_with_a_new_card(world: World) -> None:
    leader, one, two = await three(world)
    first = await world.card(leader)
    told = await world.tap(leader, "once")
    assert told.text == "Approved once. The agent is told. The other 2 ask again."
    assert await now(world, leader, one, two) == ["approved", "pending", "pending"]
    await world.flush()
    assert "(1 of 3)" in (await world.card(leader)).text
    next_card = await world.card(one)
    assert next_card.message_id != first.message_id
    assert "Next of 3: “Ann” [fake 1] approved the first at 09:00 UTC." in next_card.text
    assert "2 identical requests wait." in next_card.text
    fresh = await world.row(one)
    assert (fresh.leader_id, fresh.waiters, fresh.next_of) == (None, 1, leader.request_id)
    assert (await world.row(two)).leader_id == one.request_id
    (promoted,) = await world.events("approval.promoted")
    assert promoted.request_id == one.request_id


async def test_denied_with_the_reason(world: World) -> None:
    rows = await three(world)
    await world.tap(rows[0], "because")
    await world.flush()
    told = await world.tap(rows[0], "wrong_target")
    assert told.text == "Denied for all 3. The agents read: “wrong target”."
    found = [await world.row(row) for row in rows]
    assert {row.outcome for row in found} == {"denied"}
    assert {row.reason for row in found} == {"wrong target"}
    assert {row.decided_by[0].user_id for row in found} == {ANN}
    await world.flush()
    assert "for all 3" in (await world.card(rows[0])).text


async def test_timeout_leaves_each_its_own_deadline(world: World) -> None:
    leader = await world.ask(timeout_s=10)
    brief = await world.submit(timeout_s=9)
    longer = await world.submit(timeout_s=100)
    longest = await world.submit(timeout_s=200)
    await world.advance(9)
    assert await now(world, leader, brief, longer) == ["pending", "timeout", "pending"]
    assert (await world.row(leader)).waiters == 2
    await world.advance(1)
    assert await now(world, leader, longer, longest) == ["timeout", "pending", "pending"]
    assert "Timeout" in (await world.card(leader)).text
    fresh = await world.row(longer)
    assert (fresh.leader_id, fresh.waiters) == (None, 1)
    assert (await world.card(longer)).card.rows
    assert "Next of" not in (await world.card(longer)).text
    await world.advance(90)
    assert await now(world, longer, longest) == ["timeout", "pending"]
    assert (await world.row(longer)).decided_at == fresh.expires_at
    await world.advance(100)
    assert await now(world, longest) == ["timeout"]


async def test_followers_windows_start_with_the_first_sent_copy(world: World) -> None:
    leader = await world.submit(timeout_s=100)
    follower = await world.submit(timeout_s=50)
    await world.clock.advance(20)
    assert (await world.row(follower)).expires_at is None
    await world.flush()
    assert ((await world.row(leader)).expires_at or leader.created_at) - leader.created_at == timedelta(seconds=120)
    assert ((await world.row(follower)).expires_at or leader.created_at) - leader.created_at == timedelta(seconds=70)
    late = await world.submit(timeout_s=50)
    assert (late.expires_at or late.created_at) - late.created_at == timedelta(seconds=50)


async def test_undeliverable_alike(world: World) -> None:
    world.chat.fail(SendRefused("bot was removed"))
    rows = await three(world)
    assert await now(world, *rows) == ["notify_failed"] * 3
    assert {(await world.row(row)).delivery_error for row in rows} == {"bot was removed"}


async def test_withdrawn_alone_the_oldest_takes_the_card_over(world: World) -> None:
    leader, one, two = await three(world)
    before = await world.card(leader)
    await world.tap(leader, "more")
    await world.flush()
    panel = world.chat.shown()[-1]
    assert panel.reply_to == before.message_id
    await world.cancel(leader)
    assert await now(world, leader, one, two) == ["cancelled", "pending", "pending"]
    # The older buttons mean the withdrawn question: they decide nothing, also before the card was edited.
    for old, card in ((tokens_of(before)[0], before), (tokens_of(panel)[0], panel)):
        told = await world.press(old, card)
        assert told.text.startswith("This card was replaced; nothing was decided.")
    assert await now(world, one, two) == ["pending", "pending"]
    await world.flush()
    card = await world.card(one)
    assert card.message_id == before.message_id
    assert f"{one.short_id} · " in card.text
    assert "2 identical requests wait." in card.text
    assert panel.message_id not in [m.message_id for m in world.chat.shown()], "the panel went with its question"
    assert (await world.press(tokens_of(before)[0], card)).text.startswith("This card was replaced")
    assert (await world.tap(one, "once_all")).text == "Approved once for all 2. The agents are told."
    assert await now(world, leader, one, two) == ["cancelled", "approved", "approved"]


async def test_take_over_while_the_send_is_under_way(world: World) -> None:
    leader, one = await world.submit(), await world.submit()
    world.chat.stall()
    await world.dispatcher.start_due()
    await world.cancel(leader)
    world.chat.go_on()
    await world.flush()
    card = await world.card(one)
    assert f"{one.short_id} · " in card.text
    assert len(card.cards) == 2, "posted as the leader's, then edited"
    old = card.cards[0].rows[0][0].token
    assert (await world.press(old, card)).text.startswith("This card was replaced")
    assert await now(world, one) == ["pending"]
    assert (await world.tap(one, "once")).text.startswith("Approved once.")


async def test_followers_of_the_same_ended_turn_are_cancelled_alike(world: World) -> None:
    await world.turn("u")
    leader = await world.ask(turn_id="t")
    same = await world.submit(turn_id="t")
    other = await world.submit(turn_id="u")
    await world.sessions.end_turn("default", "t", "turn_ended", None)
    assert await now(world, leader, same, other) == ["cancelled", "cancelled", "pending"]
    assert {(await world.row(row)).cause for row in (leader, same)} == {"turn_ended"}
    fresh = await world.row(other)
    assert (fresh.leader_id, fresh.waiters) == (None, 0)
    await world.flush()
    assert f"{other.short_id} · " in (await world.card(other)).text


async def test_a_stopped_session_cancels_each_with_the_cause(world: World) -> None:
    rows = await three(world)
    await world.sessions.stop("default", "s", None)
    found = [await world.row(row) for row in rows]
    assert {(row.outcome, row.cause) for row in found} == {("cancelled", "stop_requested")}


async def test_followers_joining_and_leaving_kill_no_button(world: World) -> None:
    leader, one = await world.submit(), await world.submit()
    await world.flush()
    early = await world.card(leader)
    tokens = dict(zip(choices_of(early), tokens_of(early), strict=True))
    two, three_ = await world.submit(), await world.submit()
    await world.cancel(one)
    await world.flush()
    assert "3 identical requests wait." in (await world.card(leader)).text
    told = await world.press(tokens["once"], early)
    assert told.text == "Approved once. The agent is told. The other 2 ask again."
    assert await now(world, leader, one, two, three_) == ["approved", "cancelled", "pending", "pending"]


async def test_once_for_all_means_those_that_the_tapped_card_counted(world: World) -> None:
    leader, one, two = await three(world)
    early = await world.card(leader)
    token = dict(zip(choices_of(early), tokens_of(early), strict=True))["once_all"]
    later = [await world.submit() for _ in range(3)]
    await world.cancel(one)
    await world.flush()
    told = await world.press(token, early)
    # The card counted one and two; one had gone. The three that came later were never counted, so none of them went.
    assert told.text == "Approved once for 2. The agents are told. 1 had already ended."
    assert await now(world, leader, one, two) == ["approved", "cancelled", "approved"]
    assert await now(world, *later) == ["pending"] * 3
    await world.flush()
    assert "Approved once for all 2" in (await world.card(leader)).text
    assert (await world.row(later[0])).waiters == 2
    assert "3 identical requests wait." in (await world.card(later[0])).text


async def test_once_for_all_of_an_older_count_when_nobody_left(world: World) -> None:
    leader, one = await world.submit(), await world.submit()
    await world.flush()
    early = await world.card(leader)
    token = dict(zip(choices_of(early), tokens_of(early), strict=True))["once_all"]
    await world.submit()
    assert (await world.press(token, early)).text == "Approved once for all 2. The agents are told."
    assert await now(world, leader, one) == ["approved", "approved"]


async def test_a_follower_decided_alone_by_its_id(world: World) -> None:
    leader, one, two = await three(world)
    assert await world.decide(two, "once") == "won"
    assert await now(world, leader, one, two) == ["pending", "pending", "approved"]
    assert (await world.row(leader)).waiters == 1
    assert await world.decide(one, "deny", reason="no") == "won"
    assert await now(world, leader, one, two) == ["pending", "denied", "approved"]
    await world.flush()
    card = await world.card(leader)
    assert "identical" not in card.text
    assert [b.label for b in card.card.rows[0]] == ["Approve once", "Deny"]


async def test_a_follower_whose_deadline_passed_is_not_decided_with_its_leader(world: World) -> None:
    leader = await world.ask(timeout_s=100)
    brief = await world.submit(timeout_s=5)
    longer = await world.submit(timeout_s=50)
    await world.clock.advance(5)
    told = await world.broker.decide("default", leader.request_id, "once_all", Actor(type="person", platform="fake"))
    assert told.row.runs == 2
    assert await now(world, leader, brief, longer) == ["approved", "timeout", "approved"]


async def test_a_dead_follower_is_not_promoted_or_handed_the_card(world: World) -> None:
    leader = await world.ask(timeout_s=100)
    brief = await world.submit(timeout_s=5)
    longer = await world.submit(timeout_s=50)
    await world.clock.advance(5)
    await world.cancel(leader)
    assert await now(world, leader, brief, longer) == ["cancelled", "timeout", "pending"]
    assert (await world.row(longer)).leader_id is None


async def test_the_key_tells_questions_apart(world: World) -> None:
    await world.session("s2")
    rows = [
        await world.submit(Command(command="deploy x", cwd="/a")),
        await world.submit(Command(command="deploy x", cwd="/b")),
        await world.submit(Command(command="deploy y", cwd="/a")),
        await world.submit(Command(command="deploy x", cwd="/a"), "s2"),
        await world.submit(Command(command="deploy x", cwd="/a"), choices=("once",)),
        await world.submit(Command(command="deploy x", cwd="/a"), host="elsewhere"),
    ]
    assert {row.leader_id for row in rows} == {None}
    await world.flush()
    assert len(world.chat.shown()) == 6


async def test_an_ended_question_is_asked_again(world: World) -> None:
    first = await world.ask()
    await world.tap(first, "once", BEN)
    again = await world.ask()
    assert again.outcome is None
    assert again.leader_id is None


async def test_critical_is_never_approved_for_all(make_world: Callable[..., World]) -> None:
    world = make_world()
    await world.session()
    leader, follower = await world.submit(), await world.submit()
    leader = await world.row(leader)
    await world.put(replace(leader, severity="critical"))
    for choice in ("once_all", "session", "always", "30m"):
        with pytest.raises(ChoiceNotOffered):
            await world.decide(leader, choice)
    assert await now(world, leader, follower) == ["pending", "pending"]
