"""The typed `yolo`: nothing is asked for a while, what stays asked or forbidden all the same, and every way it ends."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from tests.unit.commands.world import ANA, BEN, EVE, OTHER, PROFILE, ROOM, THREAD, World, opened

from signoff.authorize import Refused, person_may
from signoff.broker import Ask
from signoff.changes import asking
from signoff.changes.asking import StaleFacts
from signoff.digest import digest_of
from signoff.errors import InvalidInput, NotPermitted
from signoff.model import Actor, ApprovalRequest, Command, FileWrite, Person, Session, replace
from signoff.rows import session_key
from signoff.sessions import Declaration
from signoff.settings import ApprovalSettings, GrantSettings, Profile
from signoff.sweeper import Sweeper

ON = "Nothing is asked in this session until 09:30 UTC (Ana). Blocks stay."
OFF = "Asking again (Ana)."
BY = Actor(type="person", principal="Ana", name="Ana", key_id="k1", via="api")


async def stored(world: World, name: str = "s1") -> Session:
    session = await world.store.get(Session, session_key("default", name))
    assert session is not None
    return session


async def asks(world: World, session: str = "s1") -> bool:
    """Whether a question in that session waits for a person."""
    return (await world.submit(session=session)).outcome is None


async def swept(world: World) -> None:
    """What time does by itself, once, and what it posts."""
    await Sweeper(world.store, world.clock, world.broker.waiters).sweep()
    await world.idle()


def said(world: World, place: str = str(ROOM)) -> list[str]:
    """What stands in a place beside cards."""
    here = [each.text for each in world.adapter.messages if str(each.destination) == place]
    return [text for text in here if "Expires" not in text]


# --- on ---------------------------------------------------------------------------------------------


async def test_it_lets_later_questions_pass_and_decides_none_that_waits(world: World) -> None:
    waiting = await world.ask("deploy all")
    await world.submit("deploy all")
    assert await world.type("/yolo") == f"{ON} 2 questions still wait."
    row = await world.submit()
    assert (row.outcome, row.choice, row.rung) == ("approved", "once", "bypass")
    assert row.decided_by == (Actor(type="policy", rule="bypass", setting="bypass until 2026-01-05 09:30 UTC by Ana"),)
    assert row.why == ("Nothing is asked in this session (bypass until 2026-01-05 09:30 UTC by Ana).",)
    assert await world.outcomes(waiting) == [None]
    (event,) = await world.events("session.bypass_started")
    assert (event.session_id, event.data) == ("s1", {"until": "2026-01-05T09:30:00+00:00", "by": "Ana"})
    why = await world.type(f"/why {row.short_id}")
    assert "Approvals were bypassed in this session." in why
    assert "by Ana" in why


async def test_what_it_let_pass_runs_once_and_says_why(world: World) -> None:
    await world.type("/yolo")
    row = await world.submit()
    claimed = await world.broker.claim("default", row.request_id, row.digest, "c1")
    assert claimed.may_run
    verbs = await world.broker.check("default", row.action, session_id="s1")
    assert (verbs.verdict.verdict, verbs.verdict.rung) == ("allow", "bypass")
    assert verbs.verdict.setting == "bypass until 2026-01-05 09:30 UTC by Ana"


@pytest.mark.parametrize(
    ("typed", "minutes"),
    [
        ("/yolo 5", 5),
        ("/yolo 1", 1),
        pytest.param("!YOLO 1440", 1440, marks=pytest.mark.heavy),
        ("/yolo 2h", 120),
        ("/yolo 45m", 45),
    ],
)
async def test_how_long(world: World, typed: str, minutes: int) -> None:
    await world.type(typed)
    assert (await stored(world)).bypass_until == world.clock.now() + timedelta(minutes=minutes)
    await world.clock.advance(minutes * 60 - 1)
    assert not await asks(world)
    await world.clock.advance(1)
    assert await asks(world)


@pytest.mark.parametrize("word", ["0", "1441", "25h", "-5", "soon", "1.5", "³", "05", "99999999"])
async def test_what_is_no_time_changes_nothing(world: World, word: str) -> None:
    assert await world.type(f"/yolo {word}") == (
        f"“{word}” is no time to choose; nothing changed. Choose 1 to 1440 minutes, such as 30, or off."
    )
    assert "“now”" in await world.type("/yolo 5 now")
    assert (await stored(world)).bypass_until is None
    assert await asks(world)


async def test_again_sets_the_time_anew(world: World) -> None:
    await world.type("/yolo 60")
    text = await world.type("/yolo 5", by=BEN)
    assert text == "Nothing is asked in this session until 09:05 UTC (Ben). Blocks stay."
    assert (await stored(world)).bypass_until == world.clock.now() + timedelta(minutes=5)


# --- what stays -------------------------------------------------------------------------------------


async def test_floors_deny_rules_and_protected_files_stay(tmp_path: Path) -> None:
    profile = replace(PROFILE, approvals=ApprovalSettings(deny=("deploy prod*",)))
    async with opened("memory://?replay=2", profile) as world:
        await world.type("/yolo")
        assert (await world.submit("deploy staging")).outcome == "approved"
        assert (await world.submit("rm -rf /")).outcome == "blocked"
        assert (await world.submit("deploy prod now")).outcome == "blocked"
        action = FileWrite(path="/work/AGENTS.md", diff="+be bold\n")
        protected = (await world.broker.submit("default", Ask(action=action, session_id="s1"))).row
        assert (protected.outcome, protected.rung) == (None, "protected")


async def test_it_reaches_neither_other_sessions_nor_children(world: World) -> None:
    await world.session("s2", OTHER)
    await world.session("child", None, parent="s1")
    await world.type("/yolo")
    assert [await asks(world, name) for name in ("s1", "s2", "child")] == [False, True, True]


async def test_a_child_s_own_reaches_neither_its_parent_nor_its_siblings(world: World) -> None:
    for name in ("one", "two"):
        await world.session(name, None, parent="s1")
    row = await world.ask(session="one")
    assert await world.type("/yolo", reply_to=await world.card(row)) == f"{ON} 1 question still waits."
    assert [await asks(world, name) for name in ("s1", "one", "two")] == [True, False, True]


# --- which session ----------------------------------------------------------------------------------


async def test_with_several_sessions_it_lists_them_and_does_nothing(world: World) -> None:
    await world.session("s2")
    first, second = await world.ask(), await world.ask(session="s2")
    head = "2 sessions work here; nothing changed. Reply to a card of the one you mean:"
    assert await world.type("/yolo") == f"{head}\ns1 · deploy-bot\ns2 · deploy-bot"
    assert (await stored(world)).bypass_until is None
    assert await world.type("/yolo", reply_to=await world.card(second)) == f"{ON} 1 question still waits."
    assert [await asks(world, name) for name in ("s1", "s2")] == [True, False]
    assert (await world.type("/yolo off")).endswith("s2 · deploy-bot · nothing is asked until 09:30 UTC")
    assert await world.outcomes(first, second) == [None, None]
    assert await world.type("/yolo off", reply_to=await world.card(second)) == OFF


async def test_where_no_session_works(world: World) -> None:
    await world.session("inside", THREAD)
    assert await world.type("/yolo", where=OTHER) == "No session works here. Nothing changed."
    assert await world.type("/yolo 10", where=THREAD) == (
        "Nothing is asked in this session until 09:10 UTC (Ana). Blocks stay."
    )
    assert (await stored(world)).bypass_until is None


# --- who --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("typed", ["/yolo", "/yolo off", "/yolo nonsense"])
async def test_strangers_and_the_session_s_own_user_may_not(world: World, typed: str) -> None:
    await world.session("s1", user_id=EVE)
    await world.sessions.bypass("default", "s1", BY)
    await world.idle()
    before = await stored(world)
    text = await world.type(typed, by=EVE)
    assert text == "You may not do this here; nothing changed. Your id is 9."
    assert await stored(world) == before
    (event,) = await world.events("tap.refused")
    assert (event.data["operation"], event.data["why"]) == ("yolo", "not_listed")


async def test_a_guest_and_an_empty_list_may_not() -> None:
    guest = Person(platform="fake", user_id=ANA, guest=True)
    assert person_may(PROFILE, guest, "yolo", None, "command") == Refused("guest")
    async with opened("memory://", Profile()) as nobody:
        assert "No approver is set up" in await nobody.type("/yolo")
        assert await asks(nobody)


async def test_forwarded_messages_switch_nothing_off(world: World) -> None:
    text = await world.type("/yolo", unattributable=True)
    assert text == "Forwarded, edited or anonymous messages decide nothing. Please send it yourself."
    assert await asks(world)


async def test_talk_is_no_command(world: World) -> None:
    await world.silence("yolo everybody", addressed=True)
    await world.silence("yolo")
    assert await asks(world)


# --- where it may not be ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["command", "code", "tool"])
async def test_single_runs_only_leave_no_room_for_it(kind: str) -> None:
    profile = replace(PROFILE, grants=GrantSettings(**{kind: ("once", "deny")}))
    async with opened("memory://", profile) as world:
        refused = "Asking may not be switched off here (policy). Nothing changed."
        assert await world.type("/yolo") == refused
        with pytest.raises(NotPermitted):
            await world.sessions.bypass("default", "s1", BY)
        # Settings that have come to forbid it count at once.
        until = world.clock.now() + timedelta(hours=1)
        session = await stored(world)
        await world.store.transact(lambda tx: tx.put(replace(session, bypass_until=until)))
        assert await asks(world)


async def test_an_unattended_session_is_the_operator_s(world: World) -> None:
    declared = await world.sessions.declare("default", Declaration(session_id="nightly", kind="cron"), None)
    assert declared.kind == "cron"
    with pytest.raises(NotPermitted, match="policy"):
        await world.sessions.bypass("default", "nightly", BY)


async def test_a_session_that_turns_into_a_job_loses_it(world: World) -> None:
    await world.type("/yolo")
    await world.sessions.declare("default", Declaration(session_id="s1", kind="cron"), None)
    assert (await world.submit()).outcome == "blocked"


async def test_where_nothing_is_asked_anyhow() -> None:
    async with opened("memory://", replace(PROFILE, approvals=ApprovalSettings(mode="off"))) as world:
        assert await world.type("/yolo") == ('Nothing is asked here anyhow (approvals.mode is "off"). Nothing changed.')
        assert (await stored(world)).bypass_until is None


@pytest.mark.parametrize("minutes", [0.0, 0.5, 1441.0, float("nan"), float("inf"), -5.0])
async def test_the_bounds_hold_for_programs_too(world: World, minutes: float) -> None:
    with pytest.raises(InvalidInput, match="1 to 1440"):
        await world.sessions.bypass("default", "s1", BY, minutes=minutes)


# --- every way it ends ------------------------------------------------------------------------------


async def test_off_asks_again_at_once(world: World) -> None:
    await world.type("/yolo")
    assert await world.type("/yolo off", by=BEN) == "Asking again (Ben)."
    assert await asks(world)
    assert await world.type("/yolo off") == "Nothing is bypassed here; questions are asked. Nothing changed."
    (event,) = await world.events("session.bypass_ended")
    assert event.data == {"why": "person", "by": "Ben"}


async def test_it_ends_by_itself_and_says_so_once(world: World) -> None:
    await world.type("/yolo 10")
    await world.clock.advance(599)
    await swept(world)
    assert "Asking again" not in "".join(said(world))
    await world.clock.advance(1)
    assert await asks(world), "not a moment longer, whether or not somebody has looked"
    for _ in range(2):
        await swept(world)
    assert said(world).count("Asking again since 09:10 UTC.") == 1
    assert (await stored(world)).bypass_until is None
    (event,) = await world.events("session.bypass_ended")
    assert event.data == {"why": "expired", "by": ""}


async def test_it_ends_over_a_restart_at_the_time_that_was_told(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/signoff.db"
    async with opened(url) as world:
        await world.type("/yolo")
        assert not await asks(world)
    async with opened(url) as again:
        assert not await asks(again), "it outlives the process"
        await again.clock.advance(3600)
        sweeper = Sweeper(again.store, again.clock, again.broker.waiters)
        await sweeper.resume()
        assert await asks(again), "no outage makes it longer"
        await sweeper.sweep()
        await again.idle()
        assert said(again) == ["Asking again since 09:30 UTC."]
    async with opened(url) as third:
        await third.clock.advance(7200)
        await swept(third)
        assert said(third) == []


async def test_stop_ends_it_and_says_so(world: World) -> None:
    await world.type("/yolo")
    text = await world.type("/stop", by=BEN)
    assert text.splitlines()[-1] == "Asking again (Ben)."
    assert await asks(world)
    assert [each.data["why"] for each in await world.events("session.bypass_ended")] == ["stop_requested"]
    assert "Asking again" not in await world.type("/stop")


@pytest.mark.parametrize("typed", ["/new", "/reset"])
async def test_a_new_session_begins_with_asking(world: World, typed: str) -> None:
    await world.type("/yolo")
    assert await world.type(typed) == "Session ended. Nothing waited. Dropped: 0 grants, bypass off."
    assert await asks(world)
    assert [each.data["why"] for each in await world.events("session.bypass_ended")] == ["session_ended"]


async def test_a_child_that_is_declared_anew_has_none(world: World) -> None:
    await world.session("child", None, parent="s1")
    await world.sessions.bypass("default", "child", BY)
    await world.sessions.stop("default", "s1", BY)
    await world.session("child", None, parent="s1")
    assert (await stored(world, "child")).bypass_until is None
    assert await asks(world, "child")


async def test_a_session_that_is_closed_and_declared_anew_has_none(world: World) -> None:
    await world.type("/yolo")
    await world.sessions.clear("default", "s1", BY, close=True)
    await world.session("s1")
    assert await asks(world)


async def test_declaring_it_again_keeps_it(world: World) -> None:
    await world.type("/yolo")
    before = await stored(world)
    assert await world.session("s1") == before


# --- told elsewhere, told twice ---------------------------------------------------------------------


async def test_the_session_s_place_is_told_what_was_done_elsewhere(world: World) -> None:
    await world.session("child", None, parent="s1")
    await world.sessions.bypass("default", "child", BY, minutes=5)
    await world.idle()
    told = "Nothing is asked in this session until 09:05 UTC (Ana). Blocks stay."
    assert said(world) == [told]
    await world.sessions.end_bypass("default", "child", BY)
    await world.sessions.end_bypass("default", "child", BY)
    await world.idle()
    assert said(world) == [told, OFF]


async def test_typed_elsewhere_both_places_hear_of_the_end(world: World) -> None:
    row = await world.ask()
    await world.change_copies(row, destination=OTHER)
    await world.type("/yolo", where=OTHER, reply_to=await world.card(row))
    await world.idle()
    assert f"{ON} 1 question still waits." in said(world)
    await world.clock.advance(1800)
    await swept(world)
    for place in (ROOM, OTHER):
        assert said(world, str(place)).count("Asking again since 09:30 UTC.") == 1


async def test_delivered_again_it_changes_nothing(world: World) -> None:
    await world.type("/yolo")
    before = await stored(world)
    await world.clock.advance(60)
    assert await world.again() == ON
    assert await stored(world) == before
    assert len(await world.events("session.bypass_started")) == 1
    late = world.last
    await world.type("/yolo off", by=BEN)
    assert late is not None
    world.last = late
    assert await world.again() == "This was done before, and questions are asked again since. Nothing changed."
    assert await asks(world)


# --- races ------------------------------------------------------------------------------------------


async def _draft(world: World) -> tuple[ApprovalRequest, Session]:
    """A question that was judged, and is not inserted yet."""
    action = Command(command="deploy build")
    profile = world.broker.profile("default")
    ask = Ask(action=action, session_id="s1")
    return await world.broker.drafts.draft(profile, ask, digest_of(action, None))


@pytest.mark.parametrize("end", ["stop", "off", "new", "expiry"])
async def test_what_was_judged_before_the_end_does_not_pass_after_it(world: World, end: str) -> None:
    await world.type("/yolo")
    draft, judged = await _draft(world)
    assert draft.outcome == "approved"
    if end == "stop":
        await world.sessions.stop("default", "s1", BY)
    elif end == "off":
        await world.sessions.end_bypass("default", "s1", BY)
    elif end == "new":
        await world.sessions.clear("default", "s1", BY, close=False)
    else:
        await world.clock.advance(1800)
    try:
        asked = await world.store.transact(partial(asking.ask, draft=draft, judged=judged, claim_within_s=300.0))
    except StaleFacts:
        return
    assert (end in ("stop", "new"), asked.row.outcome) == (True, "cancelled")


async def test_a_race_with_stop_leaves_one_truth(world: World) -> None:
    for _ in range(10):
        on = world.sessions.bypass("default", "s1", BY)
        await asyncio.gather(on, world.sessions.stop("default", "s1", BY), world.submit())
        kinds = [e.type for e in await world.store.events("default", 0, limit=10_000)]
        ours = [k for k in kinds if k in ("session.bypass_started", "session.bypass_ended")]
        is_on = bool(ours) and ours[-1] == "session.bypass_started"
        assert (await stored(world)).bypass_until is not None if is_on else not (await stored(world)).bypass_until
        assert await asks(world) is not is_on
        await world.sessions.end_bypass("default", "s1", BY)
