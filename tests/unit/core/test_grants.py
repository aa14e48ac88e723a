"""What an answer wider than once leaves behind: how far it reaches, and how it ends."""

from __future__ import annotations

import pytest
from tests.unit.core.harness import BY_ANN, PLACE, World

from signoff.answers import lost_answer
from signoff.broker import same_person
from signoff.changes.grants import time_box
from signoff.changes.places import undoable
from signoff.endings import user_summary
from signoff.errors import ChoiceNotOffered, GrantNotFound
from signoff.model import Actor, ApprovalRequest, Command, replace
from signoff.ports import Tx
from signoff.record import record_of


async def given(world: World, choice: str, action: str | Command = "deploy x", session_id: str = "s") -> str:
    """Answer a question with this choice; the grant's id."""
    row = await world.ask(action, session_id)
    assert await world.decide(row, choice) == "won"
    grant_id = (await world.row(row)).grant_id
    assert grant_id is not None
    return grant_id


async def covered(world: World, action: str | Command = "deploy x", session_id: str = "s", **facts: object) -> bool:
    """Whether it is approved without a person."""
    row = await world.submit(action, session_id, **facts)
    if row.outcome is None:
        await world.cancel(row)
        return False
    assert (row.outcome, row.decided_by[0].type) == ("approved", "grant")
    return True


@pytest.mark.parametrize("choice", ["session", "30m"])
async def test_without_a_rule_it_covers_exactly_what_was_shown(world: World, choice: str) -> None:
    await given(world, choice, Command(command="deploy x", cwd="/a"))
    assert await covered(world, Command(command="deploy x", cwd="/a"))
    for other in (
        Command(command="deploy x", cwd="/b"),
        Command(command="deploy x"),
        Command(command="deploy  x", cwd="/a"),
        Command(command="deploy x; deploy y", cwd="/a"),
        Command(command="deploy x", cwd="/a", env={"A": "1"}),
        Command(command="deploy x", cwd="/a", shell="zsh"),  # noqa: S604  # nothing runs
    ):
        assert not await covered(world, other)
    assert not await covered(world, Command(command="deploy x", cwd="/a"), host="another")


@pytest.mark.parametrize(("choice", "elsewhere"), [("session", False), ("30m", False), ("always", True)])
async def test_it_covers_its_scope(world: World, choice: str, elsewhere: bool) -> None:
    await world.session("s2")
    await given(world, choice)
    assert await covered(world)
    assert await covered(world, session_id="s2") == elsewhere


async def test_once_leaves_nothing(world: World) -> None:
    row = await world.ask()
    await world.decide(row, "once")
    assert await world.broker.grants("default") == []
    assert not await covered(world)


async def test_a_covered_action_names_its_grant(world: World) -> None:
    grant_id = await given(world, "session")
    row = await world.submit("deploy x")
    assert (row.decided_by[0].grant_id, row.grant_id, row.choice) == (grant_id, grant_id, "once")
    assert await world.message(row) == "Approved by a standing grant. Run it now."
    assert (await world.claim(row)).may_run
    await world.flush()
    assert not await world.copies(row)


async def test_a_time_box_ends(world: World) -> None:
    await given(world, "2h")
    await world.clock.advance(7199)
    assert await covered(world)
    assert len(await world.broker.grants("default")) == 1
    await world.clock.advance(1)
    assert not await covered(world)
    assert await world.broker.grants("default") == []


@pytest.mark.parametrize(
    ("word", "minutes"), [("1m", 1), ("30m", 30), ("24h", 1440), ("1440m", 1440), ("1h", 60), ("90m", 90)]
)
def test_time_boxes(word: str, minutes: int) -> None:
    found = time_box(word)
    assert found is not None
    assert found.total_seconds() == minutes * 60


@pytest.mark.parametrize("word", ["0m", "25h", "1441m", "30", "m", "30s", "-1m", "030m", "1.5h", "30m\n", "３０m", ""])
async def test_no_time_boxes(world: World, word: str) -> None:
    assert time_box(word) is None
    row = await world.ask()
    with pytest.raises(ChoiceNotOffered):
        await world.decide(row, word)
    assert (await world.row(row)).outcome is None


async def test_critical_is_never_covered(world: World) -> None:
    row = await world.critical("deploy x")
    for choice in ("session", "always", "30m"):
        with pytest.raises(ChoiceNotOffered):
            await world.decide(row, choice)
    await world.cancel(row)
    await given(world, "always")
    graver = await world.submit("deploy y")
    await world.put(replace(graver, severity="critical"))
    assert await covered(world)
    assert (await world.row(graver)).outcome is None


async def test_revoking_acts_at_once(world: World) -> None:
    grant_id = await given(world, "always")
    assert await covered(world)
    revoked = await world.broker.revoke("default", grant_id.lower(), BY_ANN)
    assert revoked.revoked_by == BY_ANN
    assert not await covered(world)
    with pytest.raises(GrantNotFound):
        await world.broker.revoke("default", grant_id, BY_ANN)
    assert [e.type for e in await world.events() if e.type.startswith("grant.")] == ["grant.created", "grant.revoked"]


@pytest.mark.parametrize(("choice", "elsewhere"), [("session", None), ("30m", None), ("always", "approved")])
async def test_a_new_grant_settles_what_waits_in_its_scope(world: World, choice: str, elsewhere: str | None) -> None:
    """Same action, asked apart because the offered answers differ."""
    await world.session("s2")
    asked = await world.ask()
    narrow = await world.ask(choices=("once", "session"))
    follower = await world.submit(choices=("once", "session"))
    critical = await world.submit(choices=("once",))
    await world.put(replace(critical, severity="critical"))
    unlike = await world.ask("deploy other")
    apart = await world.ask(session_id="s2")
    await world.decide(asked, choice)
    outcomes = [(await world.row(row)).outcome for row in (narrow, follower, critical, unlike, apart)]
    assert outcomes == ["approved", "approved", None, None, elsewhere]
    settled = await world.row(narrow)
    assert settled.decided_by[0].grant_id == settled.grant_id == (await world.row(asked)).grant_id
    await world.flush()
    assert "Approved by grant" in (await world.card(narrow)).text


async def test_what_is_past_its_deadline_is_not_settled(world: World) -> None:
    late = await world.ask(choices=("once",), timeout_s=10)
    asked = await world.ask(timeout_s=100)
    await world.clock.advance(10)
    await world.decide(asked, "session")
    assert (await world.row(late)).outcome == "timeout"


async def test_undo_revokes_it(world: World) -> None:
    row = await world.ask()
    await world.decide(row, "session")
    await world.broker.undo("default", row.request_id, BY_ANN)
    assert await world.broker.grants("default") == []
    assert not await covered(world)


async def test_undoing_a_covered_run_keeps_the_grant(world: World) -> None:
    await given(world, "session")
    row = await world.submit()
    row = await world.submit("deploy x")
    await world.broker.undo("default", row.request_id, BY_ANN, any_person=True)
    assert len(await world.broker.grants("default")) == 1


async def test_a_grant_given_on_a_follower_settles_its_leader(world: World) -> None:
    leader, follower = await world.submit(), await world.submit()
    await world.flush()
    assert await world.decide(follower, "session") == "won"
    assert [(await world.row(row)).outcome for row in (leader, follower)] == ["approved", "approved"]
    await world.flush()
    assert "Approved by grant" in (await world.card(leader)).text


ORIGINS = [
    ("session", "this session: this exact command"),
    ("always", "always: this exact command"),
    ("30m", "until 09:30 UTC: this exact command"),
]
GIVERS = [
    (BY_ANN, "“Ann” [fake 1]"),
    (replace(BY_ANN, principal="ana"), "ana"),
    (Actor(type="person", platform="local", user_id="1000", via="cli"), "the operator (uid 1000)"),
    (Actor(type="person", key_id="k7", via="api"), "key k7"),
]


@pytest.mark.parametrize(("choice", "origin"), ORIGINS)
async def test_what_a_grant_answered_tells_who_gave_it_and_how_wide(world: World, choice: str, origin: str) -> None:
    """The scope and label are the grant's, not those of the action that it covers."""
    grant_id = await given(world, choice)
    row = await world.submit("deploy x")
    await world.put(replace(row, label="any deploy"))
    record = record_of(await world.row(row), world.clock.now())
    assert record["user_summary"] == f"Approved by grant {grant_id} (“Ann” [fake 1], {origin})."


@pytest.mark.parametrize(("by", "name"), GIVERS, ids=["account", "principal", "operator", "key"])
async def test_a_card_that_a_grant_answered_names_who_gave_it(world: World, by: Actor, name: str) -> None:
    await world.session("s2")
    waiting = await world.ask("deploy x", "s2")
    first = await world.ask("deploy x")
    await world.decide(first, "always", by)
    await world.flush()
    grant_id = (await world.row(first)).grant_id
    card = await world.card(waiting)
    assert card.text.startswith(f"✅ Approved by grant {grant_id} ({name}, always: this exact command) · ")
    told = lost_answer(await world.row(waiting), None, world.clock.now(), platform_title=str.title, prefix="/")
    assert told == f"Already approved by grant {grant_id} ({name}). Your tap changed nothing."


async def test_what_a_grant_answered_is_nobodys_to_undo_without_its_id(world: World) -> None:
    """`/undo` takes back what a person approved, not what a standing approval let through later."""
    await given(world, "session")
    await world.session()
    row = await world.submit("deploy x")
    assert row.outcome == "approved"

    def mine(tx: Tx) -> ApprovalRequest | None:
        return undoable(tx, "default", PLACE, lambda by: same_person(by, BY_ANN))

    found = await world.store.transact(mine)
    assert found is None or found.request_id != row.request_id


async def test_a_row_of_before_names_the_grant_and_its_giver(world: World) -> None:
    grant_id = await given(world, "session")
    row = await world.submit("deploy x")
    old = replace(row, covered=None)
    assert user_summary(old, world.clock.now()) == f"Approved by grant {grant_id} (“Ann” [fake 1])."


async def uses(world: World) -> dict[str, int]:
    """How often each live grant answered, by what it was given for; and that the last time is kept with it."""
    live = await world.broker.grants("default")
    assert all((grant.used_at is None) == (grant.uses == 0) for grant in live)
    return {grant.shown: grant.uses for grant in live}


async def test_what_it_answered_is_counted(world: World) -> None:
    await given(world, "session", "deploy one")
    assert await uses(world) == {"deploy one": 0}, "the question that it was given for is the person's own"
    for _ in range(3):
        assert await covered(world, "deploy one")
    assert not await covered(world, "deploy two")
    assert await uses(world) == {"deploy one": 3}
    await world.advance(60)
    assert await covered(world, "deploy one")
    (grant,) = await world.broker.grants("default")
    assert (grant.uses, grant.used_at) == (4, world.clock.now())


async def test_a_question_that_a_new_grant_answers_counts_too(world: World) -> None:
    await world.session("s2")
    other = await world.ask("deploy x", "s2")
    await given(world, "always")
    assert (await world.row(other)).outcome == "approved"
    assert await uses(world) == {"deploy x": 1}


async def test_what_asks_nothing_counts_nothing(world: World) -> None:
    await given(world, "always")
    await world.turn()
    await world.sessions.end_turn("default", "t", "turn_ended", None)
    assert (await world.submit("deploy x", turn_id="t")).outcome == "cancelled"
    await world.broker.check("default", Command(command="deploy x"), session_id="s")
    assert await uses(world) == {"deploy x": 0}
