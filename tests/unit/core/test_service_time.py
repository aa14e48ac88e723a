"""Deadlines run in the time in which a gateway is up: an outage is made up for, up to an hour."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from tests.unit.core.harness import BY_ANN, World, tokens_of

from signoff.changes import sweeping
from signoff.clock import SystemClock
from signoff.config import load_config
from signoff.errors import StoreCorrupt, StoreUnavailable
from signoff.gateway import Gateway
from signoff.model import ApprovalRequest, Destination, Note, Notifier, Turn, replace
from signoff.ports import Tx
from signoff.rows import request_key, session_key
from signoff.stores.memory import MemoryStore
from signoff.stores.open import open_store
from signoff.sweeper import HEARTBEAT
from signoff.telemetry import Telemetry, TimedStore
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
            {
                ApprovalRequest: [request_key("default", each.request_id) for each in (row, unsent)],
                Turn: [session_key("default", "leased")],
            },
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


async def test_what_a_start_took_back_is_given_back_once_the_clock_is_right(make_world: Callable[..., World]) -> None:
    """A machine without a clock of its own starts in the past, until a time server sets it."""
    world = make_world(alone=True)
    await world.session()
    row = await world.ask(timeout_s=300)
    behind = timedelta(hours=3)
    await world.store.transact(lambda tx: tx.put(Note(name=HEARTBEAT, value=_plus(tx.now, behind).isoformat())))
    moved: dict[type[Struct], list[str]] = {ApprovalRequest: [request_key("default", row.request_id)]}
    await world.store.transact(lambda tx: sweeping.shift(tx, moved, behind))
    after = make_world(chat=world.chat, alone=True)
    assert await after.sweeper.resume() == -behind
    assert (await after.row(row)).expires_at == row.expires_at
    for ahead in (3600 + 20, 7200 + 20):
        after.clock.slept(ahead)
        await after.sweeper.awake()
        before, row = row.expires_at, await after.row(row)
        assert row.expires_at == _plus(before, timedelta(seconds=ahead))
    after.clock.slept(7200)
    await after.sweeper.awake()
    assert (await after.row(row)).expires_at == _plus(row.expires_at, timedelta(hours=1)), "an hour, from now on"


@pytest.fixture
async def alert(tmp_path: Path) -> AsyncIterator[World]:
    """A gateway's core whose store makes up for a sleep before each commit; nothing sweeps."""
    clock = FakeClock()
    store = TimedStore(open_store(f"sqlite://{tmp_path}/signoff.db", clock), Telemetry())
    world = World(store, clock, alone=True)
    await world.session()
    await world.sweeper.resume()
    store.first = world.sweeper.awake
    yield world
    await world.aclose()
    await store.aclose()


async def test_who_is_faster_than_the_sweeper_after_a_sleep_is_in_time(alert: World) -> None:
    pressed, typed, unclaimed = [await alert.ask(f"deploy {name}", timeout_s=300) for name in "abc"]
    message, token = await alert.button(pressed, "once")
    await alert.decide(unclaimed, "once")
    alert.clock.slept(1800)
    told, won, claimed = await asyncio.gather(
        alert.press(token, message), alert.decide(typed, "once"), alert.claim(unclaimed)
    )
    assert told.text == "Approved once. The agent is told."
    assert won == "won"
    assert claimed.may_run
    waits = await alert.ask("deploy d", timeout_s=300)
    await alert.clock.advance(301)
    await alert.settle()
    assert (await alert.row(waits)).outcome == "timeout", "time that passed is not made up for"


async def test_a_store_that_is_away_after_a_sleep_makes_up_for_it_later(
    alert: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [await alert.ask(f"deploy {number}", timeout_s=300) for number in range(3)]
    alert.clock.slept(1800)
    bad, _, late = [request_key("default", row.request_id) for row in rows]
    shift, away = sweeping.shift, True

    def failing(tx: Tx, keys: Mapping[type[Struct], Sequence[str]], by: timedelta) -> None:
        those = keys.get(ApprovalRequest, ())
        if bad in those:
            raise OverflowError("a row that cannot be moved")
        if late in those and away:
            raise StoreUnavailable
        shift(tx, keys, by)

    monkeypatch.setattr(sweeping, "shift", failing)
    with pytest.raises(StoreUnavailable):
        await alert.decide(rows[1], "once")
    away = False
    assert await alert.decide(rows[1], "once") == "won"
    later = [_plus(row.expires_at, timedelta(minutes=30)) for row in rows]
    assert [(await alert.row(row)).expires_at for row in rows] == [rows[0].expires_at, *later[1:]], "each once"


async def test_a_make_up_that_fails_for_good_keeps_nothing_else_from_the_store(
    alert: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    alert.clock.slept(1800)

    async def corrupt(*given: Any, **words: Any) -> list[Any]:
        raise StoreCorrupt("a document cannot be read")

    with monkeypatch.context() as patched:
        patched.setattr(alert.store, "due", corrupt)
        assert (await alert.submit("deploy a")).outcome is None
    assert (await alert.submit("deploy b")).outcome is None


async def test_a_make_up_outlives_who_began_it(alert: World) -> None:
    row = await alert.ask(timeout_s=300)
    alert.clock.slept(1800)
    first = asyncio.ensure_future(alert.submit("deploy a"))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await alert.decide(row, "once")
    assert (await alert.row(row)).expires_at == _plus(row.expires_at, timedelta(minutes=30)), "moved on once"


@pytest.mark.parametrize("alone", [True, False])
async def test_a_gateway_makes_up_for_a_sleep_before_anything_is_judged(tmp_path: Path, alone: bool) -> None:
    """On a store that others may serve too, nobody knows whether they slept."""
    file = tmp_path / "signoff.toml"
    file.write_text(f'[gateway]\nstate_dir = "{tmp_path}/state"\nstore = "memory://"\n')
    clock = FakeClock()
    made = Gateway(load_config(file, {}), clock=clock, store=None if alone else MemoryStore(clock), adapters={})
    await made.open()
    clock.slept(1800)
    await made.store.transact(lambda tx: tx.put(Note(name="any", value="")))
    beat = await made.store.get(Note, HEARTBEAT)
    assert beat is not None and (beat.value == clock.now().isoformat()) == alone
    await made.aclose()


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
