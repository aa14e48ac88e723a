"""Lines of parents: how long they may be, that they end, and what an old store may hold."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from tests.unit.core.harness import PLACE, World

from signoff.broker import Ask
from signoff.errors import InvalidInput, SessionNotFound
from signoff.model import Command, Session, SessionKind
from signoff.routing import MAX_PARENTS
from signoff.rows import session_key
from signoff.sessions import Declaration
from signoff.settings import AgentSettings, ApprovalSettings, Profile

APPROVE = ApprovalSettings(unattended_mode="approve", fallback_destination=PLACE)
NO_PLACE = ApprovalSettings(unattended_mode="approve")


async def line(world: World, length: int, name: str = "c") -> list[str]:
    """Children below `s`, each of the one before."""
    names = ["s", *(f"{name}{n}" for n in range(length))]
    for parent, child in pairwise(names):
        await world.session(child, kind="child", parent=parent)
    return names


async def put_line(world: World, length: int, top: str | None) -> None:
    """As an older gateway would have stored it, without a bound."""
    now = world.clock.now()
    await world.put(
        *(
            Session(
                profile="default",
                session_id=f"c{n}",
                kind="child",
                parent=f"c{n - 1}" if n else top,
                created_at=now,
            )
            for n in range(length)
        )
    )


def refused_parent(error: pytest.ExceptionInfo[InvalidInput]) -> bool:
    return error.value.param == "parent"


async def test_a_line_of_parents_has_a_longest_length(world: World) -> None:
    names = await line(world, MAX_PARENTS)
    assert (await world.ask(session_id=names[-1])).destinations, "the deepest still finds its place"
    with pytest.raises(InvalidInput) as error:
        await world.session("deeper", kind="child", parent=names[-1])
    assert refused_parent(error)


async def test_moving_a_family_does_not_make_it_too_deep(world: World) -> None:
    deep = await line(world, MAX_PARENTS - 1)
    await world.session("top", kind="child", parent="s")
    await world.session("below", kind="child", parent="top")
    with pytest.raises(InvalidInput) as error:
        await world.session("top", kind="child", parent=deep[-1])
    assert refused_parent(error)
    await world.session("top", kind="child", parent=deep[-2])


@pytest.mark.parametrize("parent", ["c2", "c1", "c0"])
async def test_no_session_descends_from_itself(world: World, parent: str) -> None:
    await line(world, 3)
    with pytest.raises(InvalidInput) as error:
        await world.session("c0", kind="child", parent=parent)
    assert refused_parent(error)


async def test_a_closed_parent_takes_no_children(world: World) -> None:
    await world.session("gone")
    await world.sessions.clear("default", "gone", None, close=True)
    with pytest.raises(InvalidInput) as error:
        await world.session("orphan", kind="child", parent="gone")
    assert refused_parent(error)
    with pytest.raises(SessionNotFound):
        await world.session("orphan", kind="child", parent="never")


@pytest.mark.parametrize("close", [True, False])
async def test_a_deep_line_in_a_store_still_ends(world: World, close: bool) -> None:
    length = 3000
    await put_line(world, length, "s")
    if close:
        ended = await world.sessions.clear("default", "s", None, close=True)
    else:
        ended = await world.sessions.stop("default", "s", None)
    assert ended.sessions == ("s", *(f"c{n}" for n in range(length)))
    last = await world.store.get(Session, session_key("default", f"c{length - 1}"))
    assert last is not None and last.closed_at is not None


async def test_a_line_that_bites_its_own_tail_ends_once(world: World) -> None:
    await put_line(world, 3, "c2")
    ended = await world.sessions.stop("default", "c0", None)
    assert ended.sessions == ("c0", "c1", "c2")
    c0 = await world.store.get(Session, session_key("default", "c0"))
    assert c0 is not None and c0.closed_at is None and c0.generation == 1


@pytest.mark.parametrize("top", ["c19", "nowhere", "s"])
async def test_without_an_outermost_parent_nobody_approves(make_world: Callable[..., World], top: str) -> None:
    world = make_world(profile=Profile(approvers={"fake": ("1",)}, approvals=APPROVE))
    await world.session()
    await put_line(world, 20, top)
    row = await world.submit(session_id="c19")
    assert row.outcome == "blocked"
    assert (row.decided_by[0].setting or "").startswith("approvals.unattended_mode")
    assert "no session above it" in row.why[0]


# --- approvals with nobody there -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("kinds", "outcome"),
    [
        (("api", "chat"), "blocked"),
        (("api", "chat", "cli"), "blocked"),
        (("api", "chat", "webhook"), "approved"),
        (("api", "chat", "worker"), "approved"),
        (("api", "chat", "cron"), "approved"),
    ],
)
@pytest.mark.parametrize("kind", ["api", "chat", "child"])
async def test_leaving_out_the_place_gets_no_approval(
    make_world: Callable[..., World], kinds: tuple[SessionKind, ...], kind: SessionKind, outcome: str
) -> None:
    agents = {"bot": AgentSettings(kinds=kinds)}
    world = make_world(profile=Profile(approvers={"fake": ("1",)}, approvals=NO_PLACE, agents=agents))
    top: SessionKind = "api" if kind == "child" else kind
    await world.sessions.declare("default", Declaration(session_id="a", kind=top), "bot")
    if kind == "child":
        await world.sessions.declare("default", Declaration(session_id="b", kind="child", parent="a"), "bot")
    ask = Ask(action=Command(command="deploy all"), session_id="b" if kind == "child" else "a", agent="bot")
    row = (await world.broker.submit("default", ask)).row
    assert row.outcome == outcome
    if outcome == "blocked":
        setting = row.decided_by[0].setting or ""
        assert setting.startswith('approvals.unattended_mode = "approve"')
        assert "agents.bot.kinds" in setting


async def test_the_operators_own_session_is_approved(make_world: Callable[..., World]) -> None:
    world = make_world(profile=Profile(approvers={"fake": ("1",)}, approvals=NO_PLACE))
    await world.session("own", kind="api", destination=None)
    assert (await world.submit("deploy all", session_id="own")).outcome == "approved"
