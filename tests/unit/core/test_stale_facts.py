"""What lets an action pass or somebody answer counts only while it stands: a bypass, a grant, a notifier, a turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from tests.unit.core.harness import BY_ANN, PLACE, World

from signoff.broker import MAX_JUDGED
from signoff.changes import asking
from signoff.digest import digest_of
from signoff.drafting import Ask
from signoff.errors import Busy
from signoff.model import Action, Code, Command, Elicitation, FileWrite, Rule, Tool
from signoff.ports import Tx
from signoff.sessions import Declaration
from signoff.settings import AgentSettings, Profile

PUSH = Command(command="git push --force origin main")
EACH: tuple[Action, ...] = (
    PUSH,
    Code(language="python", code="print(open(name).read())"),
    Tool(name="send_email", arguments={}),
    FileWrite(path="src/main.py"),
    Rule(tool="fetch", rule_key="net.egress", reason="another host"),
    Elicitation(server="jira", message="Which?"),
)
of_each_kind = pytest.mark.parametrize("action", EACH, ids=lambda action: action.__struct_config__.tag)


async def judged(
    world: World, session_id: str, action: Action = PUSH, turn_id: str | None = None
) -> Callable[[], Awaitable[asking.Asked]]:
    """An action that was judged and is still to be inserted: by then what it was judged by may be over."""
    ask = Ask(action=action, session_id=session_id, turn_id=turn_id)
    draft, session = await world.broker.drafts.draft(world.profile, ask, digest_of(action, None))
    return partial(world.store.transact, partial(asking.ask, draft=draft, judged=session, claim_within_s=300.0))


def chat_of(name: str) -> Declaration:
    """A chat session of that name."""
    return Declaration(session_id=name, kind="chat", destination=PLACE)


async def by_the_clock(world: World) -> None:
    await world.clock.advance(600)  # nothing has noticed it yet


async def by_a_person(world: World) -> None:
    await world.sessions.end_bypass("default", "s", BY_ANN)


async def with_a_stop(world: World) -> None:
    await world.sessions.stop("default", "s", BY_ANN)


async def with_a_clear(world: World) -> None:
    await world.sessions.clear("default", "s", BY_ANN, close=False)


bypass_ends = pytest.mark.parametrize("end", [by_the_clock, by_a_person, with_a_stop, with_a_clear])


@of_each_kind
@bypass_ends
async def test_a_bypass_that_ended_lets_nothing_pass(
    world: World, action: Action, end: Callable[[World], Awaitable[None]]
) -> None:
    await world.sessions.bypass("default", "s", BY_ANN, minutes=10)
    before = await world.ask(action)
    assert (before.outcome, before.rung) == ("approved", "bypass")
    await end(world)
    after = await world.ask(action)
    assert (after.outcome, after.rung) == (None, "person")
    assert len(await world.cards(after)) == 1


@bypass_ends
async def test_nor_does_one_that_ended_between_judging_and_asking(
    world: World, end: Callable[[World], Awaitable[None]]
) -> None:
    await world.sessions.bypass("default", "s", BY_ANN, minutes=10)
    insert = await judged(world, "s")
    await end(world)
    if end in (by_the_clock, by_a_person):
        with pytest.raises(asking.StaleFacts):
            await insert()
    else:
        row = (await insert()).row
        assert (row.outcome, row.choice, row.decided_by) == ("cancelled", None, ())


async def test_a_revoked_grant_covers_nothing(world: World) -> None:
    row = await world.ask(PUSH)
    await world.decide(row, "session")
    (grant,) = await world.broker.grants("default")
    insert = await judged(world, "s")
    assert (await world.submit(PUSH)).outcome == "approved"
    await world.broker.revoke("default", grant.grant_id, BY_ANN)
    assert (await insert()).row.outcome is None, "also not what was judged before"
    assert (await world.ask(PUSH)).outcome is None


async def test_a_notifier_that_dropped_can_answer_no_more(world: World) -> None:
    await world.session("api", kind="api", destination=None)
    await world.sessions.attach("default", "api", "app", "ann")
    waiting = await world.submit(PUSH, "api")
    await world.sessions.dropped("default", "api", "app")
    assert waiting.outcome is None
    await world.clock.advance(29)
    insert = await judged(world, "api")
    assert (await world.submit(Command(command="git push --force origin dev"), "api")).outcome is None
    await world.clock.advance(2)
    late = await world.submit(Command(command="git push --force origin late"), "api")
    assert (late.outcome, late.rung) == ("blocked", "nobody")
    await world.settle()
    after = await world.row(waiting)
    assert (after.outcome, after.cause, after.decided_by) == ("cancelled", "notifier_gone", ())
    with pytest.raises(asking.StaleFacts):
        await insert()


@of_each_kind
async def test_of_an_ended_turn_nothing_is_asked(world: World, action: Action) -> None:
    insert = await judged(world, "s", action, turn_id="t")
    await world.sessions.end_turn("default", "t", "turn_ended", None)
    for row in ((await insert()).row, await world.ask(action, turn_id="t")):
        assert (row.outcome, row.cause, row.decided_by) == ("cancelled", "turn_ended", ())
        assert (await world.message(row)).startswith("BLOCKED: cancelled (turn_ended).")
    assert world.chat.shown() == []


@of_each_kind
async def test_a_bypass_saves_nothing_of_an_ended_turn(world: World, action: Action) -> None:
    await world.sessions.bypass("default", "s", BY_ANN, minutes=10)
    await world.sessions.end_turn("default", "t", "turn_ended", None)
    row = await world.ask(action, turn_id="t")
    assert (row.outcome, row.cause, row.choice, row.decided_by) == ("cancelled", "turn_ended", None, ())


async def test_nor_do_a_grant_and_what_is_forbidden_speak_there(world: World) -> None:
    await world.decide(await world.ask(PUSH), "session")
    await world.sessions.end_turn("default", "t", "turn_ended", None)
    for command in (PUSH, Command(command="ls"), Command(command="rm -rf /")):
        row = await world.ask(command, turn_id="t")
        assert (row.outcome, row.cause, row.choice, row.decided_by) == ("cancelled", "turn_ended", None, ())
        assert row.grant_id is None


async def test_a_grant_is_asked_before_an_earlier_denial(world: World) -> None:
    """And what was denied is denied again once the grant is gone, within its time."""
    await world.decide(await world.ask(PUSH), "deny")
    other = await world.ask("git push -f origin main")
    await world.decide(other, "session")
    checked = await world.broker.check("default", PUSH, session_id="s")
    assert (checked.verdict.verdict, checked.verdict.rung, checked.denied) == ("allow", "grants", None)
    order = [each.rung for each in checked.explanation.rungs if each.rung in ("grants", "denied", "person")]
    assert order == ["grants", "denied", "person"]
    assert [each.reached for each in checked.explanation.rungs[-3:]] == ["decided", "not reached", "not reached"]
    covered = await world.submit(PUSH)
    assert (covered.outcome, covered.decided_by[0].type) == ("approved", "grant")
    (grant,) = await world.broker.grants("default")
    await world.broker.revoke("default", grant.grant_id, BY_ANN)
    checked = await world.broker.check("default", PUSH, session_id="s")
    assert [each.reached for each in checked.explanation.rungs[-3:]] == ["passed on", "decided", "not reached"]
    assert (await world.submit(PUSH)).outcome == "denied"


# --- an isolated agent -----------------------------------------------------------------------------------


@of_each_kind
async def test_isolation_speaks_for_commands_and_code_alone(make_world: Callable[..., World], action: Action) -> None:
    agents = {"x": AgentSettings(isolation="container"), "y": AgentSettings()}
    world = make_world(profile=Profile(approvers={"fake": ("1",)}, agents=agents, own_paths=("/srv/signoff",)))
    for agent in agents:
        await world.sessions.declare("default", chat_of(agent), agent)
    isolated, plain = await world.ask(action, "x", agent="x"), await world.ask(action, "y", agent="y")
    assert (plain.outcome, plain.rung) == (None, "person")
    if isinstance(action, Command | Code):
        assert (isolated.outcome, isolated.rung) == ("approved", "isolated")
    else:
        assert (isolated.outcome, isolated.rung) == (None, "person")
        assert len(await world.cards(isolated)) == 1
    own = await world.ask(FileWrite(path="/srv/signoff/allowlist.toml"), "x", agent="x")
    assert (own.outcome, own.rung) == ("blocked", "floor")
    told = await world.ask(FileWrite(path="AGENTS.md"), "x", agent="x")
    assert (told.outcome, told.rung) == (None, "protected")


class Restless:
    """A store whose session changes each time before anything is stored, so often."""

    def __init__(self, world: World, times: int) -> None:
        self.world = world
        self.store = world.store
        self.left = times

    async def transact(self, change: Callable[[Tx], Any]) -> Any:
        if self.left > 0:
            self.left -= 1
            if self.left % 2:
                await self.world.sessions.end_bypass("default", "s", BY_ANN)
            else:
                await self.world.sessions.bypass("default", "s", BY_ANN, minutes=10)
        return await self.store.transact(change)


@pytest.mark.parametrize(("times", "asked"), [(MAX_JUDGED - 1, True), (MAX_JUDGED * 3 + 1, False)])
async def test_a_session_that_never_rests_is_told_so(
    world: World, monkeypatch: pytest.MonkeyPatch, times: int, asked: bool
) -> None:
    restless = Restless(world, times)
    monkeypatch.setattr(world.broker, "_store", restless)
    if asked:
        assert (await world.submit(PUSH)).short_id
        assert restless.left == 0
    else:
        with pytest.raises(Busy, match="kept changing"):
            await world.submit(PUSH)
        assert restless.left == times - MAX_JUDGED
        assert await world.rows() == []
