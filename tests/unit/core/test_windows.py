"""How long a question waits: when its window starts, how long it is, and what happens at its last instant."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.unit.core.harness import ANN, BEN, BY_ANN, PLACE, World, tokens_of

from signoff.errors import AdapterUnavailable, InvalidInput, RateLimited
from signoff.model import ApprovalRequest, Copy
from signoff.settings import YEAR_S, ApprovalSettings, Profile

PEOPLE: dict[str, tuple[str, ...]] = {"fake": ("1", "2")}


def lasts(row: ApprovalRequest) -> float:
    """Seconds from the asking to the deadline."""
    assert row.expires_at is not None
    return (row.expires_at - row.created_at).total_seconds()


async def test_the_window_starts_with_the_first_sent_copy(world: World) -> None:
    row = await world.submit(timeout_s=300)
    assert row.expires_at is None
    await world.clock.advance(20)
    await world.flush()
    assert lasts(await world.row(row)) == 320
    await world.advance(299)
    assert (await world.row(row)).outcome is None
    await world.advance(1)
    assert (await world.row(row)).outcome == "timeout"
    assert "Timeout" in (await world.card(row)).text


async def test_the_window_starts_60_s_after_creation_at_the_latest(world: World) -> None:
    world.chat.fail(RateLimited(retry_after_s=1000))
    row = await world.ask(timeout_s=300)
    await world.advance(59)
    assert (await world.row(row)).expires_at is None
    await world.advance(1)
    assert lasts(await world.row(row)) == 360
    await world.advance(300)
    assert (await world.row(row)).outcome == "notify_failed"  # nobody saw it, so nobody left it unanswered


async def test_where_nothing_is_to_be_sent_it_starts_at_creation(world: World) -> None:
    await world.session("api", kind="api", destination=None)
    await world.sessions.attach("default", "api", "app", "ann")
    row = await world.submit(session_id="api", timeout_s=300)
    assert lasts(row) == 300
    follower = await world.submit(session_id="api", timeout_s=100)
    assert lasts(follower) == 100


async def test_no_deadline_where_it_is_allowed(make_world: Callable[..., World]) -> None:
    profile = Profile(approvers=PEOPLE, approvals=ApprovalSettings(allow_no_deadline=True))
    world = make_world(profile=profile)
    await world.session()
    row = await world.ask(timeout_s=None)
    assert row.warnings == ()
    assert "No deadline: it waits until somebody answers." in (await world.card(row)).text
    await world.advance(3 * 86400)
    assert (await world.row(row)).outcome is None
    assert (await world.row(row)).expires_at is None


async def test_no_deadline_where_it_is_not_allowed_is_the_cap_with_a_warning(world: World) -> None:
    row = await world.ask(timeout_s=None)
    assert lasts(row) == 86400
    assert "approvals.allow_no_deadline" in row.warnings[0]


async def test_the_default(make_world: Callable[..., World]) -> None:
    world = make_world(profile=Profile(approvers=PEOPLE, approvals=ApprovalSettings(timeout_s=77)))
    await world.session()
    row = await world.ask()
    assert lasts(row) == 77
    assert row.warnings == ()


@pytest.mark.parametrize("timeout_s", [86401, 1e300, math.inf])
async def test_a_longer_window_is_cut_with_a_warning(world: World, timeout_s: float) -> None:
    row = await world.ask(timeout_s=timeout_s)
    assert lasts(row) == 86400
    assert "approvals.max_timeout_s" in row.warnings[0]


@pytest.mark.parametrize("timeout_s", [0, -1, -math.inf, math.nan, -0.0])
async def test_no_window_at_all_is_refused(world: World, timeout_s: float) -> None:
    with pytest.raises(InvalidInput) as caught:
        await world.submit(timeout_s=timeout_s)
    assert caught.value.param == "timeout_s"
    assert await world.rows() == []


async def test_a_year_is_the_longest_whatever_the_setting(make_world: Callable[..., World]) -> None:
    world = make_world(profile=Profile(approvers=PEOPLE, approvals=ApprovalSettings(max_timeout_s=1e12)))
    await world.session()
    row = await world.ask(timeout_s=1e11)
    assert lasts(row) == YEAR_S
    assert row.warnings


@pytest.mark.timeout(300)
@pytest.mark.parametrize("batches", [20, pytest.param(100, marks=pytest.mark.heavy)])
async def test_ten_thousand_taps_exactly_at_the_deadline(make_world: Callable[..., World], batches: int) -> None:
    """Record and the agent's text say the same each time, whether the sweeper or the tap comes first; every tenth tap
    comes an instant early and still counts. 2,000 of them in the quick run."""
    world = make_world()
    await world.session()
    await world.session("early", destination=None, kind="api")
    await world.sessions.attach("default", "early", "app", "ann")
    for batch in range(batches):
        rows = [
            await world.submit(f"deploy {batch}-{i}", "early", timeout_s=10 + (0.001 if i % 10 == 0 else 0))
            for i in range(100)
        ]
        await world.clock.advance(10)
        if batch % 2:
            await world.sweeper.sweep()
        for i, row in enumerate(rows):
            how = await world.decide(row, "once" if i % 4 else "deny", BY_ANN)
            after = await world.row(row)
            if i % 10:
                assert (how, after.outcome, after.decided_by) == ("lost", "timeout", ())
                assert (await world.message(row)).startswith("BLOCKED: timeout. Nobody answered")
            else:
                assert how == "won"
                assert after.outcome == ("approved" if i % 4 else "denied")
                assert (await world.message(row)).startswith("BLOCKED: denied. A person" if not i % 4 else "Approved")
        await world.sweeper.sweep()


@pytest.mark.parametrize("choice", ["once", "deny", "session", "more", "because"])
@pytest.mark.parametrize("first", ["tap", "sweep"])
async def test_a_tap_exactly_at_the_deadline_is_late(world: World, choice: str, first: str) -> None:
    row = await world.ask(timeout_s=100)
    message, token = await world.button(row, choice if choice != "session" else "once")
    await world.clock.advance(100)
    if first == "sweep":
        await world.sweeper.sweep()
    told = await world.press(token, message)
    assert told.text.startswith("Timeout: it expired at 09:01 UTC and nobody had answered. Your tap came 0 s late.")
    await world.flush()
    assert (await world.row(row)).outcome == "timeout"
    assert (await world.row(row)).decided_by == ()
    card = await world.card(row)
    assert card.text.startswith("⌛ Timeout · ")
    assert not tokens_of(card)
    assert (await world.message(row)).startswith("BLOCKED: timeout.")
    (resolved,) = await world.events("approval.resolved")
    assert resolved.data["outcome"] == "timeout"
    assert not await world.events("grant.created")


async def test_a_late_tap_does_not_stretch_the_window(world: World) -> None:
    row = await world.ask(timeout_s=100)
    await world.tap(row, "more")
    await world.flush()
    message, token = await world.button(row, "wait")
    await world.clock.advance(119)
    assert (await world.row(row)).expires_at == row.created_at + timedelta(seconds=120)
    await world.clock.advance(1)
    assert (await world.press(token, message)).text.startswith("Timeout: ")
    assert (await world.row(row)).outcome == "timeout"


async def test_a_panel_stretches_a_short_window_once(world: World) -> None:
    row = await world.ask(timeout_s=100)
    await world.clock.advance(50)
    await world.tap(row, "more")
    assert lasts(await world.row(row)) == 170
    await world.clock.advance(50)
    await world.tap(row, "because")
    assert lasts(await world.row(row)) == 170
    other = await world.ask("deploy other", timeout_s=1000)
    await world.tap(other, "more")
    assert (await world.row(other)).expires_at == other.expires_at, "there was time enough"


async def test_waiting_longer(make_world: Callable[..., World]) -> None:
    world = make_world(profile=Profile(approvers=PEOPLE, approvals=ApprovalSettings(max_timeout_s=1500)))
    await world.session()
    row = await world.ask(timeout_s=300)
    await world.tap(row, "more")
    await world.flush()
    assert (await world.tap(row, "wait")).text == "It now waits until 09:20 UTC."
    assert lasts(await world.row(row)) == 1200
    assert (await world.tap(row, "wait")).text == "It now waits until 09:25 UTC."
    assert (await world.tap(row, "wait")).text == "It may not wait longer than 09:25 UTC (policy)."
    await world.flush()
    shown = [span.at for block in (await world.card(row)).card.blocks for span in block.spans if span.at]
    assert set(shown) == {(await world.row(row)).expires_at}, "the card says until when"


async def test_an_unreachable_place_does_not_hold_up_the_window(world: World) -> None:
    row = await world.submit(timeout_s=300)
    world.chat.fail(AdapterUnavailable("connection refused"), times=2)
    await world.flush()
    await world.advance(5)
    fresh = await world.row(row)
    assert fresh.delivered_to
    assert lasts(fresh) == 303, "tried at 0, 1 and 3 s"
    assert [c.state for c in await world.store.find(Copy, "request", f"default\x1f{row.request_id}")] == ["sent"]


async def test_ten_thousand_presses_around_the_deadline_on_real_cards(make_world: Callable[..., World]) -> None:
    """100 cards, 100 presses each by two people and a sweep among them, an instant before, at or after the deadline:
    card, record and the agent's text say the same word each time."""
    world = make_world()
    words = {"approved": "✅ Approved once", "denied": "⛔ Denied", "timeout": "⌛ Timeout"}
    seen = set()
    await world.session("s", destination=PLACE)
    for number in range(100):
        row = await world.ask(f"deploy target-{number}", timeout_s=60)
        message, once = await world.button(row, "once")
        _, deny = await world.button(row, "deny")
        await world.clock.advance(60 + (number % 3 - 1) * 0.001)
        for press in range(100):
            if press == number % 100:
                await world.sweeper.sweep()
            token = once if (press + number) % 2 else deny
            await world.press(token, message, ANN if press % 3 else BEN)
        await world.flush()
        after = await world.row(row)
        assert after.outcome in words
        seen.add((number % 3, after.outcome))
        assert (await world.card(row)).text.startswith(words[after.outcome])
        told = await world.message(row)
        assert told.startswith("Approved" if after.outcome == "approved" else f"BLOCKED: {after.outcome}.")
        assert len([e for e in await world.events("approval.resolved") if e.request_id == row.request_id]) == 1
        await world.broker.cancel("default", row.request_id, "withdrawn", None)
        await world.clock.advance(30)
    assert {outcome for when, outcome in seen if when == 0} == {"approved", "denied"}
    assert {outcome for when, outcome in seen if when > 0} == {"timeout"}
