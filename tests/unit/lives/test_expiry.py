"""Sessions start anew by themselves: after they were idle for long, and once a day."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.harness import ANN, BEN, BY_ANN, OTHER_PLACE, World

from signoff.changes.expiring import _daily_after
from signoff.errors import TurnEnded
from signoff.model import ApprovalRequest, Note, Session
from signoff.rows import session_key
from signoff.settings import Profile, SessionSettings

HOUR = 3600.0
LATE = 60.0
"""An idle session starts anew at most so much later."""
Make = Callable[..., World]


def profile(**sessions: Any) -> Profile:
    return Profile(approvers={"fake": (ANN, BEN)}, sessions=SessionSettings(**sessions))


async def open_world(make_world: Make, **sessions: Any) -> World:
    """A world with a chat session `s` that expires as said."""
    world = make_world(profile=profile(**sessions))
    await world.sweeper.resume()
    await world.session()
    return world


async def session(world: World, session_id: str = "s") -> Session:
    found = await world.store.get(Session, session_key("default", session_id))
    assert found is not None
    return found


async def why(world: World) -> list[str | None]:
    """What ended sessions so far."""
    return [event.data.get("why") for event in await world.events("session.cleared")]


async def grant(world: World) -> None:
    row = await world.ask("deploy granted")
    await world.decide(row, "session")
    await run(world, row)


async def run(world: World, row: ApprovalRequest) -> None:
    """Start it and report: nothing of it is left."""
    await world.claim(row)
    await world.broker.result("default", row.request_id, "succeeded", 0)


# --- idle ---------------------------------------------------------------------------------------------


async def test_an_idle_session_starts_anew_and_stays_declared(make_world: Make) -> None:
    world = await open_world(make_world, idle_expires_s=HOUR)
    await grant(world)
    await world.advance(HOUR - 1)
    assert await why(world) == []
    assert len(await world.broker.grants("default")) == 1
    await world.advance(1 + LATE)
    assert await why(world) == ["idle"]
    assert await world.broker.grants("default") == []
    again = await world.ask("deploy granted")
    assert again.outcome is None, "the session goes on, and asks"
    ended = await session(world)
    assert (ended.generation, ended.cause, ended.closed_at) == (1, "session_ended", None)


async def test_once_it_expired_it_does_not_expire_again_before_it_was_used(make_world: Make) -> None:
    world = await open_world(make_world, idle_expires_s=HOUR, daily_reset_at="04:00")
    await world.advance(3 * 86400)
    assert await why(world) == ["idle"]
    await run(world, await world.submit("ls"))
    await world.advance(HOUR + LATE)
    assert await why(world) == ["idle", "idle"]


@pytest.mark.parametrize("use", ["ask", "turn", "declare", "bypass", "child"])
async def test_use_puts_it_off(make_world: Make, use: str) -> None:
    world = await open_world(make_world, idle_expires_s=HOUR)
    await world.session("child", kind="child", parent="s")
    await world.advance(HOUR / 2)
    if use == "ask":
        await run(world, await world.submit("ls"))
    elif use == "turn":
        await world.turn("t")
        await world.sessions.end_turn("default", "t", "turn_ended", None)
    elif use == "declare":
        await world.session()
    elif use == "bypass":
        await world.sessions.bypass("default", "s", BY_ANN, minutes=1)
    else:
        await run(world, await world.submit("ls", session_id="child"))
    await world.advance(HOUR - 1)
    assert await why(world) == []
    await world.advance(1 + LATE)
    assert (await why(world))[0] == "idle"
    assert (await session(world, "child")).cause == "session_ended", "a child ends with its parent's own cause"


async def test_a_session_with_a_waiting_question_is_not_idle(make_world: Make) -> None:
    world = await open_world(make_world, idle_expires_s=HOUR)
    row = await world.ask("deploy x", timeout_s=5 * HOUR)
    await world.advance(5 * HOUR - 1)
    assert (await world.row(row)).outcome is None
    await world.decide(row, "once")
    answered = world.clock.now()
    await world.claim(row)
    await world.advance(2 * HOUR)
    assert await why(world) == [], "it runs"
    await world.broker.result("default", row.request_id, "succeeded", 0)
    done = world.clock.now()
    assert done > answered
    await world.advance(HOUR - 1)
    assert await why(world) == [], "never before the hour is over"
    await world.advance(1 + LATE)
    assert await why(world) == ["idle"], "and at most a minute after"


async def test_an_answer_that_came_in_between_counts(make_world: Make) -> None:
    """What waited and was over before the hour was: the hour begins with its end."""
    world = await open_world(make_world, idle_expires_s=HOUR)
    row = await world.ask("deploy x", timeout_s=HOUR)
    await world.advance(HOUR - 100)
    await world.decide(row, "session")
    await run(world, row)
    await world.advance(HOUR - 1)
    assert await why(world) == []
    assert len(await world.broker.grants("default")) == 1
    await world.advance(1 + LATE)
    assert await why(world) == ["idle"]


async def test_a_childs_question_keeps_its_parent(make_world: Make) -> None:
    world = await open_world(make_world, idle_expires_s=HOUR)
    await world.session("child", kind="child", parent="s")
    await world.session("grandchild", kind="child", parent="child")
    row = await world.ask("deploy x", session_id="grandchild", timeout_s=3 * HOUR)
    await world.advance(2 * HOUR)
    assert (await world.row(row)).outcome is None
    assert await why(world) == []


async def test_an_open_turn_keeps_it(make_world: Make) -> None:
    world = await open_world(make_world, idle_expires_s=HOUR)
    await world.turn("t", lease_s=HOUR)
    for _ in range(5):
        await world.advance(HOUR - 10)
        await world.sessions.heartbeat("default", "t")
    assert await why(world) == []
    await world.advance(HOUR)
    assert await why(world) == [], "the turn lapsed just now"
    await world.advance(HOUR + LATE)
    assert await why(world) == ["idle"]


async def test_people_are_told_of_a_bypass_that_ends_with_it(make_world: Make) -> None:
    world = await open_world(make_world, idle_expires_s=HOUR)
    await world.sessions.bypass("default", "s", BY_ANN, minutes=180, place=OTHER_PLACE)
    await world.advance(HOUR + LATE)
    assert await why(world) == ["idle"]
    assert (await session(world)).bypass_until is None
    assert "Asking again since 10:01" in world.chat.shown()[-1].text
    assert (await world.submit()).outcome is None


async def test_without_the_setting_nothing_expires(make_world: Make) -> None:
    world = await open_world(make_world)
    await grant(world)
    await world.advance(400 * 86400)
    assert await why(world) == []
    assert (await session(world)).ends_at is None
    assert len(await world.broker.grants("default")) == 1


# --- daily --------------------------------------------------------------------------------------------


async def test_the_daily_hour_ends_what_waits_and_runs_and_says_so(make_world: Make) -> None:
    """The clock starts at 09:00."""
    world = await open_world(make_world, daily_reset_at="04:00")
    await world.turn("t", lease_s=HOUR)
    await grant(world)
    await world.advance(18.5 * HOUR)
    await world.turn("night", lease_s=HOUR)
    waits = await world.ask("deploy x", timeout_s=5 * HOUR, turn_id="night")
    unstarted = await world.ask("deploy y", timeout_s=HOUR)
    await world.advance(HOUR / 2 - 1)
    await world.decide(unstarted, "once")
    assert await why(world) == []
    await world.advance(1)
    assert await why(world) == ["daily"]
    ended = await world.row(waits)
    assert (ended.outcome, ended.cause, ended.ended_by) == ("cancelled", "session_ended", None)
    assert "Cancelled" in (await world.card(waits)).text
    execution = (await world.row(unstarted)).execution
    assert (execution.state, execution.cause) == ("not_run", "session_ended")
    assert await world.broker.grants("default") == []
    with pytest.raises(TurnEnded):
        await world.sessions.heartbeat("default", "night")


async def test_a_day_without_use_is_no_reset(make_world: Make) -> None:
    world = await open_world(make_world, daily_reset_at="04:00")
    await world.advance(5 * 86400)
    assert await why(world) == ["daily"]


async def test_the_hour_goes_by_the_time_zone(make_world: Make) -> None:
    """In January Madrid is an hour before UTC."""
    world = await open_world(make_world, daily_reset_at="04:00", time_zone="Europe/Madrid")
    await world.advance(18 * HOUR - 1)
    assert await why(world) == []
    await world.advance(1)
    assert await why(world) == ["daily"]


async def test_an_hour_that_no_gateway_saw_is_made_up_for(make_world: Make) -> None:
    world = await open_world(make_world, daily_reset_at="04:00")
    await grant(world)
    await world.aclose()
    await world.clock.advance(30 * HOUR)
    after = make_world(profile=world.profile)
    await after.sweeper.resume()
    await after.settle()
    assert await why(after) == ["daily"]
    assert await after.broker.grants("default") == []


@given(
    when=st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)).map(lambda when: when.replace(tzinfo=UTC)),
    hour=st.tuples(st.integers(0, 23), st.integers(0, 59)),
    zone=st.sampled_from(["UTC", "Europe/Madrid", "America/New_York", "Australia/Lord_Howe", "Pacific/Kiritimati"]),
)
def test_the_next_daily_hour(when: datetime, hour: tuple[int, int], zone: str) -> None:
    """It comes after, within a day and what a clock change adds, and the one after it comes as surely."""
    settings = SessionSettings(daily_reset_at=f"{hour[0]:02}:{hour[1]:02}", time_zone=zone)
    first = _daily_after(settings, when)
    assert first is not None and when < first <= when + timedelta(hours=26)
    second = _daily_after(settings, first)
    assert second is not None and timedelta(hours=22) < second - first < timedelta(hours=26)


# --- changed settings -----------------------------------------------------------------------------------


async def test_switched_on_later_it_counts_from_the_start(make_world: Make) -> None:
    before = await open_world(make_world)
    await grant(before)
    await before.aclose()
    await before.clock.advance(2 * HOUR)
    after = make_world(profile=profile(idle_expires_s=HOUR))
    await after.sweeper.resume()
    await after.advance(HOUR - 1)
    assert await why(after) == []
    await after.advance(1 + LATE)
    assert await why(after) == ["idle"]
    assert await after.broker.grants("default") == []


async def test_a_restart_with_the_same_settings_does_not_put_it_off(make_world: Make) -> None:
    before = await open_world(make_world, idle_expires_s=HOUR)
    await before.advance(HOUR / 2)
    await before.aclose()
    after = make_world(profile=before.profile)
    await after.sweeper.resume()
    await after.advance(HOUR / 2 + LATE)
    assert await why(after) == ["idle"]


async def test_switched_off_nothing_of_it_is_left(make_world: Make) -> None:
    before = await open_world(make_world, idle_expires_s=HOUR)
    await before.aclose()
    after = make_world(profile=profile())
    await after.sweeper.resume()
    await after.advance(2 * HOUR)
    assert await why(after) == []
    assert (await session(after)).ends_at is None
    assert (await after.store.get(Note, "expiry:default")) == Note(name="expiry:default", value="")


async def test_more_sessions_than_one_commit_takes_are_armed(make_world: Make) -> None:
    before = await open_world(make_world)
    now = before.clock.now()
    await before.put(
        *(Session(profile="default", session_id=f"s{n}", kind="api", created_at=now) for n in range(1100)),
        Session(profile="default", session_id="gone", kind="api", created_at=now, closed_at=now),
    )
    await before.aclose()
    after = make_world(profile=profile(idle_expires_s=HOUR))
    await after.sweeper.resume()
    armed = [await session(after, f"s{n}") for n in range(1100)]
    assert all(each.ends_at == now + timedelta(minutes=1) for each in armed), "looked at as any that is in use"
    assert (await session(after, "gone")).ends_at is None


async def test_a_use_meanwhile_does_not_have_a_question_judged_again(make_world: Make) -> None:
    """Two questions at once: that the one shows the session in use is no news to the other."""
    world = await open_world(make_world, idle_expires_s=HOUR)
    await world.advance(10)
    judged: list[int] = []
    draft = world.broker.drafts.draft

    async def spied(*given: Any) -> Any:
        judged.append(1)
        found = await draft(*given)
        if len(judged) == 1:
            await world.submit("deploy in between")
        return found

    world.broker.drafts.draft = spied  # type: ignore[assignment, method-assign]  # to ask in between
    await world.submit("deploy x")
    assert len(judged) == 2, "once for each question"
