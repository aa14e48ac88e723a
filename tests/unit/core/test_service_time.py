"""Deadlines run in the time in which a gateway is up: an outage is made up for, up to an hour."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import pytest
from tests.unit.core.harness import BY_ANN, World, tokens_of

from signoff.changes import sweeping
from signoff.clock import SystemClock
from signoff.model import ApprovalRequest, Destination, Note, Notifier, Turn, replace
from signoff.rows import request_key, session_key
from signoff.stores.memory import MemoryStore
from signoff.sweeper import HEARTBEAT
from signoff.testing.clock import FakeClock
from signoff.testing.fake_adapter import FakeAdapter


async def down(world: World, make: Callable[..., World], seconds: float, beat_age_s: float = 0) -> World:
    """The gateway dies `beat_age_s` after its last heartbeat and is back after `seconds`."""
    await world.sweeper.resume()
    await world.clock.advance(beat_age_s)
    await world.aclose()
    await world.clock.advance(seconds)
    after = make(chat=world.chat)
    await after.sweeper.resume()
    return after


async def test_a_restart_moves_deadlines_on(world: World, make_world: Callable[..., World]) -> None:
    row = await world.ask(timeout_s=300)
    unclaimed = await world.ask("deploy y")
    await world.decide(unclaimed, "once")
    unsent = await world.submit("deploy unsent")
    await world.turn("leased", lease_s=60)
    await world.sessions.attach("default", "s", "app", "ann")
    await world.sessions.dropped("default", "s", "app")
    before = [await world.row(each) for each in (row, unsent, unclaimed)]
    turn = await world.sessions.open_turn("default", "s", "leased")
    after = await down(world, make_world, 600)
    by = timedelta(seconds=600)
    found = [await after.row(each) for each in (row, unsent, unclaimed)]
    assert found[0].expires_at == _plus(before[0].expires_at, by)
    assert found[1].window_by == _plus(before[1].window_by, by)
    assert found[2].claim_by == _plus(before[2].claim_by, by)
    assert (await after.sessions.open_turn("default", "s", "leased")).lease_until == turn.lease_until + by
    (notifier,) = await after.store.find(Notifier, "session", session_key("default", "s"))
    assert notifier.gone_at == row.created_at + timedelta(seconds=630)
    await after.settle()
    assert (await after.row(row)).outcome is None
    assert (await after.claim(unclaimed)).may_run
    shown = {span.at for block in (await after.card(row)).card.blocks for span in block.spans if span.at}
    assert shown == {found[0].expires_at}, "the card shows the new deadline"


def _plus(when: datetime | None, by: timedelta) -> datetime:
    assert when is not None
    return when + by


async def test_a_tap_made_meanwhile_counts(world: World, make_world: Callable[..., World]) -> None:
    row = await world.ask(timeout_s=300)
    message, token = await world.button(row, "once")
    after = await down(world, make_world, 1800)
    assert (await after.press(token, message)).text == "Approved once. The agent is told."


async def test_the_last_seconds_before_a_crash_are_not_lost(world: World, make_world: Callable[..., World]) -> None:
    """Where it died between two heartbeats nobody knows, so no window is cut by what it still lived."""
    row = await world.ask(timeout_s=6)
    message, token = await world.button(row, "once")
    after = await down(world, make_world, 600, beat_age_s=4.9)
    assert (await after.press(token, message)).text == "Approved once. The agent is told."


async def test_an_hour_at_most(world: World, make_world: Callable[..., World]) -> None:
    row = await world.ask(timeout_s=300)
    other = await world.ask("deploy y", timeout_s=86400)
    message, token = await world.button(row, "once")
    after = await down(world, make_world, 7200)
    assert (await after.press(token, message)).text.startswith("Timeout: ")
    assert (await after.row(other)).expires_at == _plus(other.expires_at, timedelta(hours=1))


async def test_another_gateway_that_is_up_keeps_the_time(world: World, make_world: Callable[..., World]) -> None:
    row = await world.ask(timeout_s=300)
    await world.sweeper.resume()
    await world.clock.advance(4)
    assert await make_world().sweeper.resume() == timedelta(0)
    assert (await world.row(row)).expires_at == row.expires_at


async def test_a_short_restart_of_a_gateway_that_is_alone_moves_them_too(
    world: World, make_world: Callable[..., World]
) -> None:
    """A short lease would lapse although its agent is there, waiting for the gateway."""
    await world.sweeper.resume()
    await world.turn("leased", lease_s=4)
    row = await world.ask(turn_id="leased", timeout_s=4)
    await world.aclose()
    await world.clock.advance(4.9)
    after = make_world(chat=world.chat, alone=True)
    assert await after.sweeper.resume() == timedelta(seconds=4.9)
    await after.settle()
    assert (await after.row(row)).outcome is None
    assert (await after.row(row)).expires_at == _plus(row.expires_at, timedelta(seconds=4.9))


async def test_a_first_start_moves_nothing(make_world: Callable[..., World]) -> None:
    assert await make_world().sweeper.resume() == timedelta(0)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_lapsed_lease_before_the_crash_is_still_found(
    world: World, make_world: Callable[..., World], when: str
) -> None:
    await world.turn("leased", lease_s=10)
    row = await world.ask(turn_id="leased")
    after = await down(world, make_world, 600)
    await after.advance(9 if when == "before" else 10)
    assert (await after.row(row)).cause == (None if when == "before" else "requester_gone")
    turn = await after.store.get(Turn, session_key("default", "leased"))
    assert turn is not None
    assert (turn.ended_at is None) == (when == "before")


async def test_the_sweeper_runs_as_a_task(world: World) -> None:
    """The loop itself: it beats, sleeps until the next deadline and is woken by an earlier one."""
    task = asyncio.ensure_future(world.sweeper.run())
    row = await world.ask(timeout_s=30)
    await world.clock.advance(29)
    await _true(lambda: world.broker.get("default", row.request_id), lambda r: r.outcome is None)
    await world.clock.advance(2)
    await _true(lambda: world.broker.get("default", row.request_id), lambda r: r.outcome == "timeout")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await world.flush()
    assert not tokens_of(await world.card(row))
    assert await world.decide(row, "once", BY_ANN) == "lost"


async def _true(read: Callable[[], Awaitable[ApprovalRequest]], holds: Callable[[ApprovalRequest], bool]) -> None:
    async with asyncio.timeout(15):
        while not holds(await read()):  # noqa: ASYNC110  # the sweeper tells nobody when it has slept
            await asyncio.sleep(0)


async def runs(world: World) -> asyncio.Task[None]:
    """The sweeper is at work, as in a gateway."""
    running = asyncio.ensure_future(world.sweeper.run())
    await until_noted(world)
    return running


async def until_noted(world: World) -> None:
    """Its last heartbeat is of now."""
    for _ in range(20_000):
        note = await world.store.get(Note, HEARTBEAT)
        if note is not None and note.value == world.clock.now().isoformat():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("no heartbeat is noted")


async def test_while_the_machine_slept_nobody_had_time_to_answer(make_world: Callable[..., World]) -> None:
    world = make_world(alone=True)
    await world.session()
    await world.turn("leased", lease_s=60)
    row = await world.ask(turn_id="leased", timeout_s=300)
    message, token = await world.button(row, "once")
    running = await runs(world)
    await world.clock.leap(1800)
    await until_noted(world)
    assert (await world.row(row)).expires_at == _plus(row.expires_at, timedelta(minutes=30))
    assert (await world.press(token, message)).text == "Approved once. The agent is told."
    late = await world.ask("deploy late", timeout_s=300)
    await world.clock.leap(7200)
    await until_noted(world)
    assert (await world.row(late)).expires_at == _plus(late.expires_at, timedelta(hours=1)), "an hour at most"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_time_that_passes_while_it_is_up_is_nobody_s_gain(make_world: Callable[..., World]) -> None:
    world = make_world(alone=True)
    await world.session()
    row = await world.ask(timeout_s=300)
    running = await runs(world)
    await world.clock.leap(4)
    await world.clock.advance(20)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert (await world.row(row)).expires_at == row.expires_at


async def test_a_clock_that_was_set_back_before_a_restart_brings_deadlines_back(
    make_world: Callable[..., World],
) -> None:
    world = make_world(alone=True)
    await world.session()
    await world.turn("leased", lease_s=60)
    row = await world.ask(turn_id="leased", timeout_s=300)
    unsent = await world.submit("deploy unsent")
    ahead = timedelta(hours=5)
    await world.store.transact(lambda tx: tx.put(Note(name=HEARTBEAT, value=_plus(tx.now, ahead).isoformat())))
    await world.store.transact(
        lambda tx: sweeping.shift(
            tx,
            [request_key("default", each.request_id) for each in (row, unsent)],
            [session_key("default", "leased")],
            [],
            ahead,
        )
    )
    await world.put(*[replace(copy, due_at=_plus(copy.due_at, ahead)) for copy in await world.copies(unsent)])
    after = make_world(chat=world.chat, alone=True)
    assert await after.sweeper.resume() == -ahead
    assert (await after.row(row)).expires_at == row.expires_at
    await after.settle()
    assert [copy.state for copy in await after.copies(unsent)] == ["sent"], "a card does not wait for the old time"
    await after.advance(61)
    assert (await after.row(row)).cause == "requester_gone"


class _SetBack(FakeClock):
    """The system's clock on a machine that a test sets back."""

    def __init__(self) -> None:
        super().__init__()
        self.back = timedelta(0)
        self._system = SystemClock(
            lambda: int((self._now - self.back).timestamp()) * 10**9, lambda: int(self.passed()) * 10**9
        )

    def now(self) -> datetime:
        return self._system.now()


async def test_a_clock_that_is_set_back_stops_no_card() -> None:
    clock = _SetBack()
    world = World(MemoryStore(clock), clock, info=replace(FakeAdapter().info, per_second=4.0))
    for number in range(8):
        await world.session(f"s{number}", destination=Destination("fake", str(500 + number)))
    before = [await world.submit(f"deploy {number}", f"s{number}") for number in range(4)]
    await world.flush()
    clock.back = timedelta(minutes=10)
    after = [await world.submit(f"deploy {number}", f"s{number}") for number in range(4, 8)]
    for _ in range(3):
        await clock.advance(1)
        await world.flush()
    assert all([(await world.row(row)).delivered_to for row in (*before, *after)])
    await world.aclose()
