"""Children: where they ask and whose they are, what ends them, and what of theirs is nobody else's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from tests.unit.core.harness import ANN, BEN, BY_ANN, GROUP, OTHER_PLACE, PLACE, World

from signoff.errors import ClaimRefused, KindNotAllowed, SessionNotFound, TurnEnded
from signoff.model import ApprovalRequest, Cause, Notifier, SessionKind, replace
from signoff.routing import UNATTENDED
from signoff.rows import session_key
from signoff.sessions import Declaration
from signoff.settings import AgentSettings, ApprovalSettings, Profile

Make = Callable[..., World]


async def family(world: World) -> None:
    """`s` has an open turn `t`, made in it `one` and `two`, and below `one` its own child `deep` in a turn of it."""
    await world.session("one", kind="child", parent="s")
    await world.session("two", kind="child", parent="s")
    await world.turn("inner", "one")
    await world.session("deep", kind="child", parent="one")


def ending(row: ApprovalRequest) -> tuple[str | None, str | None]:
    return row.outcome, row.cause


# --- where a child asks -------------------------------------------------------------------------------


async def test_a_card_names_the_child_and_whose_it_is(world: World) -> None:  # W13
    """Two children of one parent ask the same: two cards in the parent's place, each with its own session."""
    await family(world)
    rows = [await world.ask(session_id=name) for name in ("one", "two", "deep")]
    assert [row.destinations for row in rows] == [(PLACE,)] * 3
    assert [row.leader_id for row in rows] == [None] * 3, "children share no question"
    for row, (child, parent) in zip(rows, [("one", "s"), ("two", "s"), ("deep", "one")], strict=True):
        assert f"child of {parent} · session {child}" in (await world.card(row)).text


async def test_only_the_childs_own_question_is_decided_by_its_button(world: World) -> None:  # W13
    await family(world)
    own, childs = await world.ask(), await world.ask(session_id="one")
    await world.tap(childs, "once")
    assert ((await world.row(own)).outcome, (await world.row(childs)).outcome) == (None, "approved")


async def test_when_its_parent_moves_the_child_asks_there(world: World) -> None:
    await family(world)
    await world.session(destination=GROUP)
    assert (await world.ask(session_id="deep")).destinations == (GROUP,)


async def test_a_client_of_any_session_above_may_answer(make_world: Make) -> None:
    """Attached to the middle of a line, as to its top."""
    world = make_world()
    await world.session("api", kind="api", destination=None)
    await world.session("one", kind="child", parent="api")
    await world.session("deep", kind="child", parent="one")
    assert (await world.submit(session_id="deep")).outcome == "blocked"
    for name in ("api", "one", "deep"):
        await world.sessions.attach("default", name, "app", "ann")
        row = await world.submit(f"deploy {name}", session_id="deep")
        assert row.outcome is None
        await world.sessions.detach("default", name, "app")
        assert ending(await world.row(row)) == ("cancelled", "notifier_gone")


# --- what ends a child --------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", ["turn_ended", "turn_interrupted", "withdrawn", "parent_ended", "requester_gone"])
async def test_with_its_parents_turn_a_child_ends_and_says_so(world: World, cause: Cause) -> None:  # #112026
    await family(world)
    waits = await world.ask(session_id="one")
    deep = await world.ask(session_id="deep")
    approved = await world.ask("deploy approved", session_id="two")
    await world.decide(approved, "once")
    message, token = await world.button(waits, "once")
    await world.sessions.end_turn("default", "t", cause, None)
    for row in (waits, deep):
        assert ending(await world.row(row)) == ("cancelled", "parent_ended")
        told = await world.message(row)
        assert told.startswith("BLOCKED: cancelled (parent_ended)")
        assert "denied" not in told
    with pytest.raises(ClaimRefused) as refused:
        await world.claim(approved)
    assert refused.value.claim_code == "cancelled"
    assert "the agent that started this one ended" in (await world.press(token, message)).text
    late = await world.submit("deploy late", session_id="deep")
    assert ending(late) == ("cancelled", "parent_ended")
    await world.flush()
    assert not await world.copies(late)
    commits = [event for event in await world.events() if event.type in ("turn.ended", "approval.resolved")]
    assert {event.at for event in commits[-3:]} == {world.clock.now()}


@pytest.mark.parametrize(
    ("how", "cause"), [("stop", "stop_requested"), ("clear", "session_ended"), ("reset", "session_ended")]
)
async def test_a_late_child_has_its_parents_own_cause(world: World, how: str, cause: str) -> None:
    """Also where it is asked in a turn of the child's that was open, and one after it was stopped."""
    await family(world)
    waits = await world.ask(session_id="deep")
    if how == "stop":
        await world.sessions.stop("default", "s", BY_ANN)
    else:
        await world.sessions.clear("default", "s", BY_ANN, close=how == "clear")
    assert ending(await world.row(waits)) == ("cancelled", cause)
    for late in (
        await world.submit("deploy late", session_id="deep"),
        await world.submit("deploy late", session_id="one", turn_id="inner"),
        await world.submit("ls", session_id="two"),
    ):
        assert (*ending(late), late.ended_by) == ("cancelled", cause, BY_ANN), "even what needs nobody"
        assert late.decided_by == ()


async def test_a_late_child_is_told_why_no_turn_opens_in_it(world: World) -> None:
    await family(world)
    await world.sessions.stop("default", "s", BY_ANN)
    with pytest.raises(TurnEnded) as ended:
        await world.turn("late", "one")
    assert ended.value.facts["cause"] == "stop_requested"
    with pytest.raises(SessionNotFound):
        await world.sessions.open_turn("default", "one", "late", agent="another")


async def test_a_child_that_was_stopped_goes_on_and_its_parent_never_stopped(world: World) -> None:
    await family(world)
    parents, childs = await world.ask(), await world.ask(session_id="one")
    await world.sessions.stop("default", "one", BY_ANN)
    assert ending(await world.row(childs)) == ("cancelled", "stop_requested")
    assert ending(await world.row(parents)) == (None, None)
    assert ending(await world.submit("deploy again", session_id="one")) == (None, None)
    assert ending(await world.submit("deploy again", session_id="deep")) == ("cancelled", "stop_requested")


async def test_a_child_that_ended_with_its_turn_is_made_again_in_another_one(world: World) -> None:
    """An agent that declares it before each question is still told that it is over."""
    await family(world)
    await world.sessions.stop("default", "s", BY_ANN)
    for name, parent in (("one", "s"), ("two", "s")):
        await world.session(name, kind="child", parent=parent)
        assert ending(await world.submit("deploy late", session_id=name)) == ("cancelled", "stop_requested")
        with pytest.raises(TurnEnded):
            await world.turn(f"late-{name}", name)
    await world.turn("next")
    await world.session("one", kind="child", parent="s")
    assert ending(await world.submit("deploy next", session_id="one")) == (None, None)
    await world.sessions.end_turn("default", "next", "turn_ended", None)
    await world.session("one", kind="child", parent="s")
    assert ending(await world.submit("deploy again", session_id="one")) == ("cancelled", "parent_ended")


async def test_a_child_of_no_agents_turn_is_made_again_at_any_time(world: World) -> None:
    """One that was made in none, or in that of a single question; one that was ended by itself; one that moves."""
    await world.sessions.end_turn("default", "t", "turn_ended", None)
    await world.session("one", kind="child", parent="s")
    await world.turn("one_question")
    await world.session("two", kind="child", parent="s")
    await world.sessions.stop("default", "s", BY_ANN)
    await world.turn("t2")
    await world.session("three", kind="child", parent="s")
    await world.sessions.clear("default", "three", BY_ANN, close=True)
    await world.session("four", kind="child", parent="s")
    await world.advance(1)
    await world.sessions.end_turn("default", "t2", "turn_ended", None)
    await world.session("other")
    for name, parent in (("one", "s"), ("two", "s"), ("three", "s"), ("four", "other")):
        await world.session(name, kind="child", parent=parent)
        assert ending(await world.submit(f"deploy {name}", session_id=name)) == (None, None)


async def test_what_is_declared_again_keeps_when_it_was_stopped(world: World) -> None:
    """A program's child that was made before the stop is over, though its parent moved or began anew since."""
    made_at = world.clock.now()
    await world.advance(1)
    await world.sessions.stop("default", "s", BY_ANN)
    await world.session(destination=GROUP)
    for number, close in enumerate((False, True)):
        declared = Declaration(session_id=f"late{number}", kind="child", parent="s", made_at=made_at)
        await world.sessions.declare("default", declared, None, only_new=True)
        late = await world.submit("deploy late", session_id=f"late{number}")
        cause = "session_ended" if number else "stop_requested"
        assert (*ending(late), late.ended_by) == ("cancelled", cause, BY_ANN)
        await world.sessions.clear("default", "s", BY_ANN, close=close)
        await world.session()
    after = Declaration(
        session_id="after", kind="child", parent="s", made_at=world.clock.now() + timedelta(microseconds=1)
    )
    await world.sessions.declare("default", after, None, only_new=True)
    assert ending(await world.submit("deploy after", session_id="after")) == (None, None)


async def test_the_first_cause_stays(world: World) -> None:
    await family(world)
    await world.sessions.end_turn("default", "t", "turn_ended", None)
    await world.sessions.stop("default", "s", BY_ANN)
    assert ending(await world.submit(session_id="one")) == ("cancelled", "parent_ended")


async def test_while_leader_and_followers_wait_each_ends_with_the_right_cause(world: World) -> None:  # 13.1.9
    """A stop, a new session, a turn's end and a parent's end, each with three that wait on one card."""
    for number, (how, cause) in enumerate(
        [("stop", "stop_requested"), ("new", "session_ended"), ("turn", "turn_ended"), ("parent", "parent_ended")]
    ):
        name, turn = f"p{number}", f"t{number}"
        await world.session(name)
        await world.turn(turn, name)
        asker = name
        if how == "parent":
            asker = f"c{number}"
            await world.session(asker, kind="child", parent=name)
        facts: dict[str, Any] = {"turn_id": turn} if how == "turn" else {}
        rows = [await world.ask(session_id=asker, **facts) for _ in range(3)]
        assert [row.leader_id is None for row in rows] == [True, False, False]
        if how == "stop":
            await world.sessions.stop("default", name, BY_ANN)
        elif how == "new":
            await world.sessions.clear("default", name, BY_ANN, close=False)
        else:
            await world.sessions.end_turn("default", turn, "turn_ended", None)
        ended = [await world.row(row) for row in rows]
        assert [ending(row) for row in ended] == [("cancelled", cause)] * 3
        assert {row.decided_at for row in ended} == {world.clock.now()}, "at once"


async def test_a_closed_child_leaves_no_answer_client_behind(world: World) -> None:
    """One that is named for good goes with the session; one with a connection lapses with it."""
    await family(world)
    await world.sessions.attach("default", "one", "app", "ann")
    await world.sessions.attach("default", "deep", "stream", "ann")
    await world.sessions.dropped("default", "deep", "stream")
    await world.sessions.stop("default", "s", BY_ANN)
    assert await world.store.find(Notifier, "session", session_key("default", "one")) == []
    await world.advance(31)
    assert await world.store.find(Notifier, "session", session_key("default", "deep")) == []


# --- grants -------------------------------------------------------------------------------------------


FAMILY = ("s", "one", "two", "deep")


@pytest.mark.parametrize("choice", ["session", "30m"])
@pytest.mark.parametrize("given", FAMILY)
async def test_a_session_answer_is_for_that_session_alone(world: World, given: str, choice: str) -> None:
    """Not for its parent, nor its children, nor its siblings; and what waits in those goes on waiting."""
    await family(world)
    rows = {name: await world.ask("rm -rf x", session_id=name) for name in FAMILY}
    await world.decide(rows[given], choice)
    waiting = {name for name in FAMILY if (await world.row(rows[name])).outcome is None}
    assert waiting == set(FAMILY) - {given}
    for name in FAMILY:
        later = await world.submit("rm -rf x", session_id=name)
        assert later.outcome == ("approved" if name == given else None)


async def test_an_answer_for_the_profile_is_for_the_whole_family(world: World) -> None:
    await family(world)
    await world.decide(await world.ask("rm -rf x", session_id="deep"), "always")
    assert [(await world.submit("rm -rf x", session_id=name)).outcome for name in FAMILY] == ["approved"] * 4


async def test_a_childs_answers_end_with_it_and_leave_its_parents(world: World) -> None:
    await family(world)
    for name in ("s", "one"):
        await world.decide(await world.ask("rm -rf x", session_id=name), "session")
    await world.sessions.end_turn("default", "t", "turn_ended", None)
    assert [grant.session_id for grant in await world.broker.grants("default")] == ["s"]
    await world.turn("next")
    await world.session("one", kind="child", parent="s")
    assert (await world.ask("rm -rf x", session_id="one")).outcome is None, "declared anew it begins with none"


async def test_a_denial_in_one_child_is_not_held_against_another(world: World) -> None:
    await family(world)
    await world.decide(await world.ask("rm -rf x", session_id="one"), "deny")
    assert (await world.submit("rm -rf x", session_id="one")).outcome == "denied"
    for name in ("s", "two", "deep"):
        assert (await world.submit("rm -rf x", session_id=name)).outcome is None


async def test_a_bypass_is_no_childs(world: World) -> None:
    await family(world)
    await world.sessions.bypass("default", "s", BY_ANN)
    assert (await world.submit(session_id="s")).outcome == "approved"
    assert (await world.submit(session_id="one")).outcome is None


# --- who is there, for every kind and its children ----------------------------------------------------


MODES: dict[SessionKind, str] = {
    "cron": "cron_mode",
    "single_query": "single_query_mode",
    "webhook": "unattended_mode",
    "worker": "unattended_mode",
}


def with_mode(kind: SessionKind, mode: str) -> ApprovalSettings:
    changes: dict[str, Any] = {MODES[kind]: mode}
    return replace(ApprovalSettings(), **changes)


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("mode", ["deny", "approve"])
@pytest.mark.parametrize("kind", sorted(MODES))
async def test_nobody_is_asked_for_an_unattended_session_or_a_child_of_it(  # 13.1.7, 2.3.2, #21899
    make_world: Make, kind: SessionKind, mode: str, depth: int
) -> None:
    """Whatever says that somebody is there: a place in a chat that a job was made from, a place for every card, an
    attached client at each level, a person at the console's door."""
    settings = replace(with_mode(kind, mode), also_to=(OTHER_PLACE,), fallback_destination=GROUP, timeout_s=60)
    world = make_world(profile=Profile(approvers={"fake": (ANN, BEN)}, approvals=settings))
    line = ["s", *(f"c{level}" for level in range(depth))]
    await world.session("s", kind=kind, user_id=ANN)
    await world.sessions.attach("default", "s", "app", "ann")
    for parent, child in pairwise(line):
        await world.session(child, kind="child", parent=parent)
        await world.sessions.attach("default", child, "app", "ann")
    row = await world.ask(session_id=line[-1])
    assert row.outcome == ("blocked" if mode == "deny" else "approved")
    assert (row.decided_by[0].setting or "").startswith(f"approvals.{MODES[kind]}")
    assert world.chat.messages == []
    assert (await world.submit("ls", session_id=line[-1])).outcome == "approved", "what is harmless runs"
    floor = await world.submit("rm -rf /", session_id=line[-1])
    assert floor.outcome == "blocked", "and what is forbidden never does"


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize(("attached", "outcome"), [(True, None), (False, "blocked")])
async def test_an_api_session_waits_while_somebody_is_attached(  # 13.1.7, #21899
    make_world: Make, attached: bool, outcome: str | None, depth: int
) -> None:
    world = make_world()
    line = ["s", *(f"c{level}" for level in range(depth))]
    await world.session("s", kind="api", destination=None)
    for parent, child in pairwise(line):
        await world.session(child, kind="child", parent=parent)
    if attached:
        await world.sessions.attach("default", "s", "app", "ann")
    row = await world.submit(session_id=line[-1])
    assert row.outcome == outcome
    if attached:
        await world.sessions.detach("default", "s", "app")
        await world.sessions.detach("default", "s", "app")  # 3.6.2: again changes nothing
        assert ending(await world.row(row)) == ("cancelled", "notifier_gone")
        assert len(await world.events("approval.resolved")) == 1


@pytest.mark.parametrize("kind", ["chat", "cli"])
async def test_a_child_of_an_attended_session_is_asked_about(world: World, kind: SessionKind) -> None:  # 13.1.7
    await world.session("talk", kind=kind)
    await world.session("child", kind="child", parent="talk")
    assert (await world.ask(session_id="child")).destinations == (PLACE,)


async def test_a_child_cannot_be_attended_by_a_place_of_its_own(make_world: Make) -> None:
    """It names one, as a job's child that was handed its parent's chat might: its parent's kind counts."""
    world = make_world()
    await world.session("job", kind="cron")
    place = Declaration(session_id="child", kind="child", parent="job", destination=PLACE)
    await world.sessions.declare("default", place, None)
    row = await world.ask(session_id="child")
    assert (row.outcome, world.chat.messages) == ("blocked", [])


async def test_another_agents_session_is_no_parent(world: World) -> None:
    with pytest.raises(SessionNotFound):
        await world.sessions.declare("default", Declaration(session_id="c", kind="child", parent="s"), "bot")


# --- who may declare what -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(UNATTENDED))
@pytest.mark.parametrize("mode", ["deny", "approve"])
@pytest.mark.parametrize("kinds", [(), ("api", "chat"), ("cron", "webhook", "worker", "single_query")])
async def test_an_unattended_kind_whose_mode_is_deny_may_always_be_declared(
    make_world: Make, kind: SessionKind, mode: str, kinds: tuple[SessionKind, ...]
) -> None:
    """It takes rights away. Where its mode lets more run, the agent's registration must name the kind."""
    settings = with_mode(kind, mode)
    world = make_world(profile=Profile(approvals=settings, agents={"bot": AgentSettings(kinds=kinds)}))
    declaration = Declaration(session_id="job", kind=kind)
    if mode == "deny" or kind in kinds:
        assert (await world.sessions.declare("default", declaration, "bot")).kind == kind
        return
    with pytest.raises(KindNotAllowed) as refused:
        await world.sessions.declare("default", declaration, "bot")
    assert (refused.value.code, refused.value.param) == ("kind_not_allowed", "kind")
