"""Turns, sessions, children and answer clients end, and what ends with them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.harness import BY_ANN, OTHER_PLACE, PLACE, World

from signoff.broker import Ask
from signoff.changes import asking
from signoff.changes.asking import Asked
from signoff.errors import IdempotencyConflict, InvalidInput, SendRefused, SessionNotFound, TurnEnded, TurnNotFound
from signoff.model import Actor, ApprovalRequest, Cause, Command, Session
from signoff.ports import Tx
from signoff.rows import session_key
from signoff.sessions import Declaration

AGENT = Actor(type="agent", name="bot", key_id="k", via="api")


async def ended(world: World, row: ApprovalRequest) -> tuple[str | None, str | None, Actor | None]:
    """How a question ended."""
    row = await world.row(row)
    return row.outcome, row.cause, row.ended_by


# --- stop and clear -----------------------------------------------------------------------------------


async def test_stop_ends_everything_of_the_session_and_nothing_else(world: World) -> None:
    await world.session("other")
    pending = await world.ask("deploy 1", turn_id="t")
    loose = await world.ask("deploy 2")
    unstarted = await world.ask("deploy 3")
    running = await world.ask("deploy 4")
    in_turn = await world.ask("deploy 5", turn_id="t")
    done = await world.ask("deploy 6")
    elsewhere = await world.ask("deploy 1", "other")
    for row in (unstarted, running, in_turn):
        await world.decide(row, "once")
    await world.decide(done, "deny")
    await world.claim(running)
    await world.claim(in_turn)
    stopped = await world.sessions.stop("default", "s", BY_ANN)
    for row in (pending, loose):
        assert await ended(world, row) == ("cancelled", "stop_requested", BY_ANN)
    assert (await world.row(unstarted)).execution.state == "not_run"
    assert (await world.row(running)).execution.state == "claimed"
    assert (await world.row(in_turn)).execution.state == "unknown"
    assert await ended(world, done) == ("denied", None, None)
    assert await ended(world, elsewhere) == (None, None, None)
    assert {r.request_id for r in stopped.cancelled} == {pending.request_id, loose.request_id}
    assert [r.request_id for r in stopped.voided] == [unstarted.request_id]
    assert {r.request_id for r in stopped.running} == {running.request_id, in_turn.request_id}
    assert (stopped.sessions, stopped.turns) == (("s",), ("t",))
    await world.flush()
    assert "⏹ Cancelled · " in (await world.card(pending)).text
    assert "“Ann” [fake 1] stopped the session" in (await world.card(pending)).text
    told = await world.press((await world.card(pending)).cards[0].rows[0][0].token, await world.card(pending))
    assert told.text == "Stopped by “Ann” [fake 1] at 09:00 UTC, not run. Your tap changed nothing."


async def test_stop_again_changes_nothing(world: World) -> None:
    row = await world.ask()
    await world.sessions.stop("default", "s", BY_ANN)
    before = await world.row(row)
    again = await world.sessions.stop("default", "s", None)
    assert (again.cancelled, again.voided, again.running, again.turns) == ((), (), (), ())
    assert await world.row(row) == before
    assert len(await world.events("approval.resolved")) == 1


async def test_a_stopped_session_goes_on_with_new_work(world: World) -> None:
    await world.sessions.stop("default", "s", BY_ANN)
    await world.turn("t2")
    row = await world.ask(turn_id="t2")
    assert row.outcome is None


@pytest.mark.parametrize("how", ["stop", "clear", "close"])
async def test_a_question_judged_before_the_end_is_born_cancelled_without_a_card(world: World, how: str) -> None:
    draft, judged = await _draft(world)
    if how == "stop":
        await world.sessions.stop("default", "s", BY_ANN)
    else:
        await world.sessions.clear("default", "s", BY_ANN, close=how == "close")
    row = (await world.store.transact(lambda tx: asking.ask(tx, draft, judged, 300))).row
    cause = "stop_requested" if how == "stop" else "session_ended"
    assert (row.outcome, row.cause) == ("cancelled", cause)
    await world.flush()
    assert world.chat.messages == []
    assert [e.type for e in await world.events() if e.request_id] == ["approval.requested", "approval.resolved"]
    assert (await world.message(row)).startswith(f"BLOCKED: cancelled ({cause}).")


async def _draft(world: World) -> tuple[ApprovalRequest, Session]:
    """A question as it is just before it is inserted."""
    found: list[Any] = []
    real = asking.ask

    def spy(tx: Tx, draft: ApprovalRequest, judged: Session, *facts: object, **more: object) -> Asked:
        found.append((draft, judged))
        raise SessionNotFound

    asking.ask = spy
    try:
        with pytest.raises(SessionNotFound):
            await world.submit()
    finally:
        asking.ask = real
    draft, judged = found[0]
    return draft, judged


async def test_a_question_judged_for_another_place_is_judged_again(world: World) -> None:
    draft, judged = await _draft(world)
    await world.session(destination=OTHER_PLACE)
    with pytest.raises(asking.StaleFacts):
        await world.store.transact(lambda tx: asking.ask(tx, draft, judged, 300))
    row = await world.ask()
    assert row.destinations == (OTHER_PLACE,)


@pytest.mark.parametrize("how", ["stop", "clear"])
async def test_grants_of_the_session_survive_a_stop_and_not_a_clear(world: World, how: str) -> None:
    first, second, third = await world.ask("deploy 1"), await world.ask("deploy 2"), await world.ask("deploy 3")
    await world.decide(first, "session")
    await world.decide(second, "always")
    await world.decide(third, "1m")
    await world.clock.advance(60)  # which counts no more, though nobody has dropped it
    if how == "stop":
        stopped = await world.sessions.stop("default", "s", BY_ANN)
    else:
        stopped = await world.sessions.clear("default", "s", BY_ANN, close=False)
    assert stopped.grants == 1
    scopes = {grant.scope for grant in await world.broker.grants("default")}
    assert scopes == ({"session", "always"} if how == "stop" else {"always"})
    assert (await world.submit("deploy 1")).outcome == ("approved" if how == "stop" else None)
    assert (await world.submit("deploy 2")).outcome == "approved", "always is not the session's"


async def test_a_closed_session_is_forgotten(world: World) -> None:
    row = await world.ask()
    await world.sessions.clear("default", "s", AGENT, close=True)
    assert await ended(world, row) == ("cancelled", "session_ended", AGENT)
    with pytest.raises(SessionNotFound):
        await world.submit()
    with pytest.raises(SessionNotFound):
        await world.sessions.stop("default", "s", None)
    await world.session()
    assert (await world.ask()).outcome is None


# --- turns ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", ["turn_ended", "turn_interrupted", "parent_ended", "withdrawn"])
async def test_a_turns_end_withdraws_what_it_asks(world: World, cause: Cause) -> None:
    await world.turn("u")
    mine, loose = await world.ask("deploy 1", turn_id="t"), await world.ask("deploy 2")
    others = await world.ask("deploy 3", turn_id="u")
    turn = await world.sessions.end_turn("default", "t", cause, AGENT)
    assert (turn.cause, turn.ended_by) == (cause, AGENT)
    assert await ended(world, mine) == ("cancelled", cause, AGENT)
    assert await ended(world, loose) == await ended(world, others) == (None, None, None)
    again = await world.sessions.end_turn("default", "t", "turn_ended", None)
    assert again == turn, "ending it again changes nothing"
    assert len(await world.events("turn.ended")) == 1
    late = await world.submit("deploy 4", turn_id="t")
    assert (late.outcome, late.cause, late.ended_by) == ("cancelled", cause, AGENT)
    await world.flush()
    assert not await world.copies(late)
    with pytest.raises(TurnEnded) as caught:
        await world.sessions.heartbeat("default", "t")
    assert caught.value.facts["cause"] == cause


async def test_a_turn_never_opened(world: World) -> None:
    with pytest.raises(TurnNotFound):
        await world.submit(turn_id="never")
    await world.session("other")
    with pytest.raises(TurnNotFound):
        await world.submit(session_id="other", turn_id="t")


async def test_a_lease_lapses(world: World) -> None:
    await world.turn("short", lease_s=30)
    row = await world.ask(turn_id="short")
    await world.advance(29)
    await world.sessions.heartbeat("default", "short")
    await world.advance(29)
    assert (await world.row(row)).outcome is None
    await world.advance(1)
    assert await ended(world, row) == ("cancelled", "requester_gone", None)
    assert "the agent went silent" in (await world.card(row)).text


# --- children ---------------------------------------------------------------------------------------


async def test_a_child_asks_in_its_parents_place_and_says_whose_it_is(world: World) -> None:
    await world.session("child", kind="child", parent="s")
    row = await world.ask(session_id="child")
    assert row.destinations == ((await world.sessions.get("default", "s")).destination,)
    assert "the agent, child of s · session child" in (await world.card(row)).text


async def test_a_child_ends_with_the_turn_it_was_made_in(world: World) -> None:
    await world.session("child", kind="child", parent="s")
    await world.turn("u")
    await world.session("later", kind="child", parent="s")
    await world.session("grandchild", kind="child", parent="child")
    row, deep, kept = [await world.ask(session_id=name) for name in ("child", "grandchild", "later")]
    await world.sessions.end_turn("default", "t", "turn_ended", None)
    assert await ended(world, row) == ("cancelled", "parent_ended", None)
    assert await ended(world, deep) == ("cancelled", "parent_ended", None)
    assert await ended(world, kept) == (None, None, None)
    late = await world.submit(session_id="child")
    assert (late.outcome, late.cause) == ("cancelled", "parent_ended")
    assert not await world.copies(late)


async def test_declaring_a_child_again_does_not_move_it_to_another_turn(world: World) -> None:
    await world.session("child", kind="child", parent="s")
    await world.turn("u")
    await world.session("child", kind="child", parent="s")
    row = await world.ask(session_id="child")
    await world.sessions.end_turn("default", "u", "turn_ended", None)
    assert (await world.row(row)).outcome is None
    await world.sessions.end_turn("default", "t", "turn_ended", None)
    assert await ended(world, row) == ("cancelled", "parent_ended", None)


@pytest.mark.parametrize("how", ["stop", "clear"])
async def test_a_stopped_parent_ends_its_children_with_its_own_cause_in_the_same_commit(world: World, how: str) -> None:
    await world.session("child", kind="child", parent="s")
    await world.turn("inner", "child")
    row = await world.ask(session_id="child", turn_id="inner")
    if how == "stop":
        stopped = await world.sessions.stop("default", "s", BY_ANN)
    else:
        stopped = await world.sessions.clear("default", "s", BY_ANN, close=False)
    cause = "stop_requested" if how == "stop" else "session_ended"
    assert await ended(world, row) == ("cancelled", cause, BY_ANN)
    assert set(stopped.sessions) == {"s", "child"}
    assert set(stopped.turns) == {"t", "inner"}
    late = await world.submit(session_id="child")
    assert (late.outcome, late.cause) == ("cancelled", cause)


# --- answer clients -----------------------------------------------------------------------------------


async def attended(world: World, **facts: Any) -> ApprovalRequest:
    """A question that only an answer client can put before a person."""
    await world.session("api", kind="api", destination=None)
    await world.sessions.attach("default", "api", "app", "ann")
    return await world.submit(session_id="api", **facts)


async def test_no_listener_no_question(world: World) -> None:
    await world.session("api", kind="api", destination=None)
    row = await world.submit(session_id="api")
    assert row.outcome == "blocked"
    assert (row.decided_by[0].setting or "").startswith("approvals.unattended_mode")


async def test_the_last_answer_client_takes_its_questions_along(world: World) -> None:
    row = await attended(world)
    follower = await world.submit(session_id="api")
    await world.sessions.attach("default", "api", "tablet", "ann")
    await world.sessions.detach("default", "api", "app")
    assert (await world.row(row)).outcome is None
    await world.sessions.detach("default", "api", "tablet")
    for each in (row, follower):
        assert await ended(world, each) == ("cancelled", "notifier_gone", None)
    await world.sessions.detach("default", "api", "tablet")
    assert len(await world.events("approval.resolved")) == 2


async def test_a_dropped_client_counts_as_attached_for_30_s(world: World) -> None:
    row = await attended(world)
    await world.sessions.dropped("default", "api", "app")
    await world.advance(29)
    second = await world.submit("deploy 2", session_id="api")
    assert ((await world.row(row)).outcome, second.outcome) == (None, None)
    await world.sessions.attach("default", "api", "app", "ann")
    await world.advance(100)
    assert (await world.row(row)).outcome is None
    await world.sessions.dropped("default", "api", "app")
    await world.advance(30)
    assert await ended(world, row) == ("cancelled", "notifier_gone", None)
    assert (await world.submit("deploy 3", session_id="api")).outcome == "blocked"


async def test_two_clients_that_lapse_together_leave_nobody(world: World) -> None:
    row = await attended(world)
    await world.sessions.attach("default", "api", "tablet", "ann")
    for name in ("app", "tablet"):
        await world.sessions.dropped("default", "api", name)
    await world.advance(30)
    assert await ended(world, row) == ("cancelled", "notifier_gone", None)


async def test_a_card_keeps_the_question_open_without_the_client(world: World) -> None:
    await world.sessions.attach("default", "s", "app", "ann")
    row = await world.ask()
    await world.sessions.detach("default", "s", "app")
    assert (await world.row(row)).outcome is None


async def test_a_dead_card_does_not(world: World) -> None:
    await world.sessions.attach("default", "s", "app", "ann")
    world.chat.fail(SendRefused("bot was removed"))
    row = await world.ask()
    assert (await world.row(row)).outcome is None, "the client can still answer"
    await world.sessions.detach("default", "s", "app")
    assert await ended(world, row) == ("cancelled", "notifier_gone", None)


async def test_a_childs_question_goes_with_its_parents_client(world: World) -> None:
    await world.session("api", kind="api", destination=None)
    await world.sessions.attach("default", "api", "app", "ann")
    await world.session("child", kind="child", parent="api")
    row = await world.submit(session_id="child")
    assert row.outcome is None
    await world.sessions.detach("default", "api", "app")
    assert await ended(world, row) == ("cancelled", "notifier_gone", None)


async def test_a_client_that_goes_between_the_judging_and_the_insert(world: World) -> None:
    """The question is judged again, and then nobody can be asked."""
    await attended(world)
    store, real = world.store, world.store.transact
    left = [1]

    async def transact(change: Any, *, bulk: bool = False) -> Any:
        if left:
            left.clear()
            await world.sessions.detach("default", "api", "app")
        return await real(change, bulk=bulk)

    store.transact = transact  # type: ignore[method-assign]  # the only seam between the two
    row = await world.submit("deploy z", session_id="api")
    store.transact = real  # type: ignore[method-assign]  # as it was
    assert row.outcome == "blocked"


async def test_the_same_session_of_another_agent(world: World) -> None:
    with pytest.raises(SessionNotFound):
        await world.broker.submit("default", Ask(action=Command(command="deploy x"), session_id="s", agent="somebody"))
    assert (await world.store.get(Session, session_key("default", "s"))) is not None


async def test_an_agent_cannot_declare_itself_into_another_session(world: World) -> None:
    """Neither another agent's nor one of the operator's own process, open or closed."""
    mine = Declaration(session_id="theirs", kind="chat", destination=PLACE)
    await world.sessions.declare("default", mine, "first")
    for session_id in ("theirs", "s"):
        with pytest.raises(SessionNotFound):
            await world.sessions.declare("default", Declaration(session_id=session_id), "second")
    await world.sessions.clear("default", "theirs", None, close=True)
    with pytest.raises(SessionNotFound):
        await world.sessions.declare("default", mine, "second")
    assert (await world.sessions.declare("default", mine, "first")).agent == "first"
    assert (await world.sessions.declare("default", mine, None)).agent == "first", "the operator takes nothing away"


@pytest.mark.parametrize("wrong", ["", "a b", "a\n", "x" * 65, "é"])
async def test_ids_that_are_none(world: World, wrong: str) -> None:
    with pytest.raises(InvalidInput):
        await world.submit(request_id=wrong)
    with pytest.raises(InvalidInput):
        await world.submit(turn_id=wrong)
    row = await world.ask()
    await world.decide(row, "once")
    with pytest.raises(InvalidInput):
        await world.claim(row, wrong)


async def test_the_same_request_id(world: World) -> None:
    first = await world.broker.submit("default", Ask(action=Command(command="deploy"), session_id="s", request_id="r"))
    again = await world.broker.submit("default", Ask(action=Command(command="deploy"), session_id="s", request_id="r"))
    assert (first.repeated, again.repeated, again.row.request_id) == (False, True, "r")
    await world.session("s2")
    for command, session_id in (("deploy 2", "s"), ("deploy 1", "s2")):
        other = Ask(action=Command(command=command), session_id=session_id, request_id="r")
        with pytest.raises(IdempotencyConflict):
            await world.broker.submit("default", other)
    await world.flush()
    assert len(world.chat.messages) == 1
