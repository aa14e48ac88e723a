"""Signed webhooks: each event once in order, whatever the receiver and the gateway's process do."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from tests.unit.core.harness import World
from tests.unit.hooks.receiver import SECRET, WITHIN_S, Behaviour, Heard, Receiver

from signoff.hooks.deliveries import BACKOFF_S, GIVE_UP_AFTER, Deliveries
from signoff.hooks.reading import PAGE
from signoff.model import ApprovalRequest, Event
from signoff.ports import Store, Tx
from signoff.settings import HookName, HookSettings, Profile
from signoff.telemetry import Telemetry
from signoff.testing.clock import START, FakeClock
from signoff.testing.rows import make_event, make_request


class Told(Counter[str]):
    """How often deliveries said which result."""

    def count(self, _profile: str, _hook: str, result: str) -> None:
        self[result] += 1


def profiles(url: str, *names: str, events: tuple[HookName, ...] | None = None) -> dict[str, Profile]:
    hook = (
        HookSettings(url=url, secret=SECRET) if events is None else HookSettings(url=url, secret=SECRET, events=events)
    )
    return {"default": Profile(hooks=dict.fromkeys(names or ("audit",), hook))}


@asynccontextmanager
async def delivering(
    store: Store, clock: FakeClock, settings: dict[str, Profile], *, alone: bool = False, **facts: Any
) -> AsyncIterator[Deliveries]:
    """Deliveries that run until the block is left, as in a gateway; `alone`: in one that has the store's lock."""
    deliveries = Deliveries(store, clock, settings, **facts)
    await deliveries.begin(alone=alone)
    task = asyncio.create_task(deliveries.run())
    try:
        yield deliveries
    finally:
        task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError | None), ended


async def moving(clock: FakeClock, holds: Callable[[], bool], step_s: float = 1.0, others: int = 0) -> None:
    """Move the clock on until it holds, whenever a delivery waits for it: it stands while one is on its way, which may
    take long on a busy machine. `others`: what other gateways wait for meanwhile."""
    async with asyncio.timeout(WITHIN_S):
        while not holds():
            if clock.sleeping > 1 + others:  # one always sleeps: it looks for places to forget
                await clock.advance(step_s)
            await asyncio.sleep(0.002)


async def emitted(store: Store, count: int, kind: str = "turn.ended", **facts: Any) -> None:
    """So many events in one commit."""

    def change(tx: Tx) -> None:
        for number in range(count):
            tx.emit(
                Event(profile="default", type=kind, at=tx.now, session_id="s", data={"turn_id": f"t{number}"}, **facts)
            )

    await store.transact(change, bulk=True)


async def test_a_question_and_its_answer(receiver: Receiver, store: Store, clock: FakeClock, world: World) -> None:
    async with delivering(store, clock, profiles(receiver.url)):
        row = await world.ask("deploy build --token=abcdefgh12345678")
        await world.decide(row, "session", reason=None)
        pre, post = await receiver.took(2)
    assert (pre.hook, post.hook) == ("pre_approval_request", "post_approval_response")
    assert pre.body["request_id"] == post.body["request_id"] == row.request_id
    assert pre.body["digest"] == row.digest
    assert pre.body["schema_version"] == 1
    assert "abcdefgh12345678" not in str(pre.body) + str(post.body), "masked"
    assert {name: post.body[name] for name in ("outcome", "choice", "cause", "surface", "via")} == {
        "outcome": "approved",
        "choice": "session",
        "cause": None,
        "surface": "fake",
        "via": "command",
    }
    assert post.body["decided_by"][0]["name"] == "Ann"


async def test_a_new_hook_begins_now(receiver: Receiver, store: Store, clock: FakeClock) -> None:
    await emitted(store, 5)
    async with delivering(store, clock, profiles(receiver.url)):
        await emitted(store, 1)
        assert [heard.seq for heard in await receiver.took(1)] == [6]


async def test_only_what_the_hook_wants(receiver: Receiver, store: Store, clock: FakeClock, world: World) -> None:
    async with delivering(store, clock, profiles(receiver.url, events=("agent_end",))):
        await world.ask("deploy build")
        await world.sessions.stop("default", "s", None)
        turn_or_session = {heard.body["how"] for heard in await receiver.took(2)}
    assert turn_or_session == {"turn_ended", "session_stopped"}


@pytest.mark.parametrize("trouble", [500, 404, 302, "redirect", "drop", "hang"])
async def test_a_trouble_is_tried_again_under_the_same_id(
    receiver: Receiver, store: Store, clock: FakeClock, trouble: Behaviour
) -> None:
    told = Told()
    receiver.plan.extend([trouble, trouble])
    within_s = 1.0 if trouble == "hang" else 30.0
    async with delivering(store, clock, profiles(receiver.url), counted=told.count, within_s=within_s) as deliveries:
        await emitted(store, 3)
        await moving(clock, lambda: told["failed"] == 2)
        (health,) = (await deliveries.health()).values()
        assert health["state"] == "failing"
        await moving(clock, lambda: told["delivered"] == 3)
        assert (await deliveries.health())["default/audit"]["state"] == "ok"
    assert [heard.seq for heard in receiver.tried] == [1, 1, 1, 2, 3]
    assert len({heard.id for heard in receiver.tried[:3]}) == 1
    assert receiver.tried[0].at_s < receiver.tried[2].at_s, "each try is signed for its own time"
    receiver.each_once_in_order()


async def test_the_pauses_grow(receiver: Receiver, store: Store, clock: FakeClock) -> None:
    receiver.always = 503
    async with delivering(store, clock, profiles(receiver.url), chance=lambda: 0.0):
        await emitted(store, 1)
        await moving(clock, lambda: len(receiver.tried) == 8, step_s=10)
    times = [heard.at_s for heard in receiver.tried]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert all(want <= gap <= want + 25 for want, gap in zip([*BACKOFF_S, BACKOFF_S[-1]], gaps, strict=True)), gaps


async def test_nobody_listens_there(store: Store, clock: FakeClock) -> None:
    told = Told()
    async with delivering(store, clock, profiles("http://127.0.0.1:9/x"), counted=told.count) as deliveries:
        await emitted(store, 1)
        await moving(clock, lambda: told["failed"] > 0)
        assert "connection refused" in (await deliveries.health())["default/audit"]["detail"]


async def test_one_receiver_does_not_hold_up_another(receiver: Receiver, store: Store, clock: FakeClock) -> None:
    good = HookSettings(url=receiver.url, secret=SECRET)
    bad = HookSettings(url="http://127.0.0.1:9/x", secret=SECRET)
    async with delivering(store, clock, {"default": Profile(hooks={"bad": bad, "good": good})}):
        await emitted(store, 3)
        assert [heard.seq for heard in await receiver.took(3)] == [1, 2, 3]


# --- the gateway's process ends and begins -----------------------------------------------------------


async def test_a_restart_goes_on_where_it_stopped(receiver: Receiver, store: Store, clock: FakeClock) -> None:
    settings, told = profiles(receiver.url), Told()
    async with delivering(store, clock, settings, counted=told.count):
        await emitted(store, 2)
        await moving(clock, lambda: told["delivered"] == 2)
    await emitted(store, 3)
    async with delivering(store, clock, settings):
        await receiver.took(5)
    assert [heard.seq for heard in receiver.taken] == [1, 2, 3, 4, 5]


async def test_a_restart_while_it_hangs_sends_the_same_id_again(
    receiver: Receiver, store: Store, clock: FakeClock
) -> None:
    settings = profiles(receiver.url)
    receiver.plan.append("hang")
    async with delivering(store, clock, settings):
        await emitted(store, 2)
        await receiver.until(lambda: len(receiver.tried) == 1)
    async with delivering(store, clock, settings):
        await receiver.took(2)
    assert [heard.seq for heard in receiver.tried] == [1, 1, 2]
    receiver.each_once_in_order()


async def test_restarts_at_any_moment_lose_and_reorder_nothing(
    receiver: Receiver, store: Store, clock: FakeClock
) -> None:
    settings = profiles(receiver.url)
    async with delivering(store, clock, settings):
        pass
    await emitted(store, 60)
    for step in range(12):
        async with delivering(store, clock, settings):
            await moving(clock, lambda: len(receiver.taken) >= 5 * (step + 1))  # noqa: B023  # it is called at once
            if step % 3 == 0:
                receiver.plan.append("drop")
    async with delivering(store, clock, settings):
        await moving(clock, lambda: bool(receiver.taken) and receiver.taken[-1].seq == 60)
    receiver.each_once_in_order()
    assert sorted({heard.seq for heard in receiver.taken}) == list(range(1, 61))


async def test_a_hook_that_was_taken_out_begins_anew(receiver: Receiver, store: Store, clock: FakeClock) -> None:
    both, one = profiles(receiver.url, "audit", "other"), profiles(receiver.url, "other")
    async with delivering(store, clock, both, alone=True):
        pass
    told = Told()
    async with delivering(store, clock, one, alone=True, counted=told.count):
        await emitted(store, 2)
        await moving(clock, lambda: told["delivered"] == 2)
    async with delivering(store, clock, both, alone=True):
        await emitted(store, 1)
        await receiver.took(4)
    assert Counter(heard.seq for heard in receiver.taken) == {1: 1, 2: 1, 3: 2}
    assert len({heard.id for heard in receiver.taken if heard.seq == 3}) == 2, "each receiver's ids are its own"


# --- a receiver that is gone -------------------------------------------------------------------------


async def test_what_failed_for_a_day_is_given_up_and_newer_events_are_told(
    receiver: Receiver, store: Store, clock: FakeClock
) -> None:
    told, telemetry = Told(), Telemetry()
    store.subscribe(telemetry.heard)
    receiver.always = 500
    day_s = GIVE_UP_AFTER.total_seconds()
    async with delivering(store, clock, profiles(receiver.url), counted=told.count) as deliveries:
        await emitted(store, 3)
        await moving(clock, lambda: clock.now() - START > timedelta(seconds=day_s / 2), step_s=900)
        await emitted(store, 2)
        await moving(clock, lambda: told["parked"] == 3, step_s=900)
        assert (await deliveries.health())["default/audit"]["parked"] == 3
        receiver.always = None
        await moving(clock, lambda: told["delivered"] == 2, step_s=900)
    assert [heard.seq for heard in receiver.taken] == [4, 5]
    events = await store.events("default", 0, limit=100)
    (failed,) = [event for event in events if event.type == "hook.failed"]
    assert failed.data["hook"] == "audit"
    assert failed.data["seq"] == 1
    assert "HTTP 500" in failed.data["detail"]
    assert telemetry.registry.get_sample_value("signoff_alarms_total", {"of": "hook"}) == 1


async def test_one_poisonous_event_costs_no_other(receiver: Receiver, store: Store, clock: FakeClock) -> None:
    told = Told()

    def choose(heard: Heard) -> Behaviour:
        return 400 if heard.seq == 2 else 200

    receiver.choose = choose
    async with delivering(store, clock, profiles(receiver.url), counted=told.count):
        await emitted(store, 5)
        await moving(clock, lambda: told["delivered"] == 4, step_s=900)
    assert [heard.seq for heard in receiver.taken] == [1, 3, 4, 5]
    assert told["parked"] == 1


async def test_a_gateway_that_was_down_for_days_gives_nothing_up(
    receiver: Receiver, store: Store, clock: FakeClock
) -> None:
    settings = profiles(receiver.url)
    async with delivering(store, clock, settings):
        pass
    await emitted(store, 3)
    await clock.advance(5 * 86400)
    receiver.plan.extend([500, 500, 500])
    told = Told()
    async with delivering(store, clock, settings, counted=told.count):
        await moving(clock, lambda: told["delivered"] == 3)
    assert told["parked"] == 0


# --- many --------------------------------------------------------------------------------------------


class CountingStore:
    """Says how many events were read at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.most = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def events(self, profile: str, after: int, *, limit: int, session_id: str | None = None) -> list[Event]:
        found = await self._store.events(profile, after, limit=limit, session_id=session_id)
        self.most = max(self.most, len(found))
        return found


async def test_a_backlog_of_10_000_events_stays_in_the_log(receiver: Receiver, clock: FakeClock, store: Store) -> None:
    settings = profiles(receiver.url, events=("agent_end",))
    async with delivering(store, clock, settings):
        pass
    await emitted(store, 9_800, "grant.created")
    await emitted(store, 200)
    counting: Any = CountingStore(store)
    tracemalloc.start()
    try:
        async with delivering(counting, clock, settings):
            await receiver.took(200)
            most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert counting.most == PAGE
    assert most < 10_000_000, most
    assert [heard.seq for heard in receiver.taken] == list(range(9_801, 10_001))


async def test_what_cannot_be_masked_is_left_out_and_the_next_is_told(
    receiver: Receiver, store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 8.7: an observer never gets what could not be masked.
    def refuse(action: Any) -> Any:
        raise ValueError("no mask")

    monkeypatch.setattr("signoff.hooks.payloads.masked_action", refuse)
    told = Told()
    async with delivering(store, clock, profiles(receiver.url), counted=told.count):

        def change(tx: Tx) -> None:
            row: ApprovalRequest = make_request()
            tx.put(row)
            tx.emit(make_event(request_id=row.request_id, session_id="s1"))

        await store.transact(change)
        await emitted(store, 1)
        assert [heard.hook for heard in await receiver.took(1)] == ["agent_end"]
    assert told["skipped"] == 1
