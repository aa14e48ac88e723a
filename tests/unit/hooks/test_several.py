"""Several gateways on one store: one at a time tells a receiver, and another goes on where it stopped."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.unit.hooks.receiver import SECRET, Receiver
from tests.unit.hooks.test_deliveries import Told, delivering, emitted, moving, profiles

from signoff.clock import SystemClock
from signoff.config import load_config
from signoff.gateway import Gateway
from signoff.hooks import places
from signoff.hooks.deliveries import FORGET_EVERY, Deliveries
from signoff.hooks.lines import ELSEWHERE, MISSING
from signoff.hooks.places import HELD_FOR, HOLD_EVERY, KEPT_FOR
from signoff.model import Command, Note, replace
from signoff.ports import Store
from signoff.settings import Profile
from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock


async def hold(store: Store, holder: str, **facts: Any) -> places.Place:
    """Hold the place of `audit` as that gateway; the place as it stands then."""
    facts = {"last": places.Place(seq=0, name="none")} | facts
    found, missing = await store.transact(partial(places.hold, profile="default", hook="audit", holder=holder, **facts))
    assert not missing
    return found


async def begun(store: Store, clock: FakeClock, url: str) -> Deliveries:
    """The hook with a place, told by nobody yet."""
    deliveries = Deliveries(store, clock, profiles(url))
    await deliveries.begin()
    return deliveries


async def test_each_event_is_told_once_by_two(receiver: Receiver, store: Store, clock: FakeClock) -> None:
    settings, told = profiles(receiver.url), Told()
    async with (
        delivering(store, clock, settings, counted=told.count),
        delivering(store, clock, settings, counted=told.count),
    ):
        for _ in range(10):
            await emitted(store, 3)
            await asyncio.sleep(0)
        # Whoever took over before the last is saved would tell it once more, as after a kill.
        await moving(clock, lambda: told["delivered"] == 30, step_s=0)
        await clock.advance(HELD_FOR.total_seconds() + 1)
        await emitted(store, 1)
        await moving(clock, lambda: len(receiver.taken) >= 31)
    assert Counter(heard.seq for heard in receiver.tried) == Counter(range(1, 32))
    receiver.each_once_in_order()


async def test_one_waits_for_the_other_while_the_receiver_hangs(
    receiver: Receiver, store: Store, clock: FakeClock
) -> None:
    settings, told = profiles(receiver.url), Told()
    receiver.always = 503
    async with delivering(store, clock, settings, counted=told.count):
        await emitted(store, 2)
        await moving(clock, lambda: told["failed"] == 2)
        other = Told()
        async with delivering(store, clock, settings, counted=other.count):
            await moving(clock, lambda: told["failed"] == 3, others=2)
            assert other["failed"] == 0, "the first one goes on holding it between its tries"
            receiver.always = None
            await moving(clock, lambda: told["delivered"] == 2, others=2)
            assert other["delivered"] == 0


async def test_one_that_died_is_followed_after_its_time(receiver: Receiver, store: Store, clock: FakeClock) -> None:
    settings = profiles(receiver.url)
    await begun(store, clock, receiver.url)
    assert (await hold(store, "dead")).holder == "dead"
    async with delivering(store, clock, settings):
        await emitted(store, 2)
        await clock.advance(HELD_FOR.total_seconds() - 1)
        for _ in range(50):
            await asyncio.sleep(0)
        assert receiver.tried == []
        await moving(clock, lambda: len(receiver.taken) == 2)
    receiver.each_once_in_order()


async def test_whoever_asks_late_waits_no_longer_than_the_place_is_held(
    receiver: Receiver, store: Store, clock: FakeClock
) -> None:
    await begun(store, clock, receiver.url)
    await hold(store, "dead")
    await clock.advance(HELD_FOR.total_seconds() - 3)
    async with delivering(store, clock, profiles(receiver.url)):
        await emitted(store, 2)
        await clock.advance(2.5)
        assert receiver.tried == []
        await clock.advance(1)
        await receiver.took(2)
    receiver.each_once_in_order()


async def test_one_that_ends_lets_the_next_go_on_at_once(receiver: Receiver, store: Store, clock: FakeClock) -> None:
    settings = profiles(receiver.url)
    async with delivering(store, clock, settings):
        await emitted(store, 1)
        await receiver.took(1)
    async with delivering(store, clock, settings):
        await emitted(store, 1)
        await receiver.took(2)


async def test_one_that_was_taken_over_saves_nothing_and_tells_no_more(
    receiver: Receiver, store: Store, clock: FakeClock
) -> None:
    settings = profiles(receiver.url)
    receiver.plan.append("hang")
    async with delivering(store, clock, settings, within_s=15.0):
        await emitted(store, 3)
        await receiver.until(lambda: len(receiver.tried) == 1)
        await clock.advance(HELD_FOR.total_seconds())
        taken = await hold(store, "other")
        assert (taken.seq, taken.epoch) == (0, 2)
        receiver.release()
        for _ in range(50):
            await asyncio.sleep(0.001)
        assert [heard.seq for heard in receiver.tried] == [1]
        assert (await hold(store, "other")).seq == 0, "the first one may not move it on"
        await store.transact(partial(places.release, profile="default", hook="audit", holder="other"))
        await moving(clock, lambda: bool(receiver.taken) and receiver.taken[-1].seq == 3)
    assert [heard.seq for heard in receiver.tried] == [1, 1, 2, 3]
    receiver.each_once_in_order()


async def test_a_place_is_held_by_one_for_its_time(store: Store, clock: FakeClock) -> None:
    await begun(store, clock, "http://127.0.0.1:9/x")
    first = await hold(store, "a")
    assert (first.holder, first.epoch, first.held_until) == ("a", 1, clock.now() + HELD_FOR)
    assert (await hold(store, "b")).holder == "a"
    await clock.advance(HELD_FOR.total_seconds() / 2)
    assert (await hold(store, "a")).epoch == 1
    await clock.advance(HELD_FOR.total_seconds() / 2)
    assert (await hold(store, "b")).holder == "a", "it was renewed"
    await clock.advance(HELD_FOR.total_seconds() / 2 + 0.001)
    second = await hold(store, "b")
    assert (second.holder, second.epoch) == ("b", 2)
    save = partial(places.save, profile="default", hook="audit")
    assert await store.transact(partial(save, place=first)) == (None, False)
    assert (await store.transact(partial(save, place=second)))[0] is not None
    await store.transact(partial(places.release, profile="default", hook="audit", holder="a"))
    assert (await hold(store, "c")).holder == "b"


@pytest.mark.parametrize("count", [2])
async def test_gateways_on_one_file(tmp_path: Path, receiver: Receiver, count: int) -> None:
    """Each with a store of its own, as in processes of their own."""
    environ = {
        "SIGNOFF_GATEWAY__STATE_DIR": str(tmp_path / "state"),
        "SIGNOFF_HOOKS__AUDIT__URL": receiver.url,
        "SIGNOFF_HOOKS__AUDIT__SECRET": SECRET,
        "SIGNOFF_HOOKS__AUDIT__EVENTS": "pre_approval_request",
    }
    config, clock = load_config(environ=environ), SystemClock()
    stores = [open_store(f"sqlite://{tmp_path}/signoff.db", clock) for _ in range(count)]
    gateways = [Gateway(config, store=store, adapters={}) for store in stores]
    async with gateways[0], gateways[1]:
        await gateways[0].session("s")
        for number in range(20):
            await gateways[number % count].request(Command(command=f"git show {number}"), session_id="s")
        await receiver.took(20)
        states = [(await gateway.health())["hooks"]["default/audit"]["state"] for gateway in gateways]
    assert states == ["ok"] * count
    assert Counter(heard.seq for heard in receiver.tried).most_common(1)[0][1] == 1
    receiver.each_once_in_order()
    assert timedelta(seconds=10) < HELD_FOR


# --- gateways that do not have the same hooks --------------------------------------------------------


async def stored(store: Store, name: str = "audit") -> places.Place | None:
    return places.read(await store.get(Note, places.note_name("default", name)))


async def deleted(store: Store) -> None:
    """The place of `audit` is gone, as after a gateway of an older version, or a hand in the database."""
    await store.transact(lambda tx: tx.delete(Note(name=places.note_name("default", "audit"), value="")))


async def idling(store: Store, clock: FakeClock, span: timedelta) -> None:
    """So much time passes, in which the place is held as often as it has to be."""
    until = clock.now() + span
    while clock.now() < until:
        await clock.advance(HOLD_EVERY.total_seconds())
        async with asyncio.timeout(20):
            while (place := await stored(store)) is None or place.held_until is None or place.held_until < clock.now():  # noqa: ASYNC110 - rows tell nobody
                await asyncio.sleep(0)


@pytest.mark.parametrize("alone", [False, True])
async def test_a_gateway_without_the_hook_ends_no_other_ones(
    receiver: Receiver, store: Store, clock: FakeClock, caplog: pytest.LogCaptureFixture, alone: bool
) -> None:
    told = Told()
    async with delivering(store, clock, profiles(receiver.url), counted=told.count) as deliveries:
        await emitted(store, 3)
        await moving(clock, lambda: told["delivered"] == 3)
        before = await stored(store)
        async with delivering(store, clock, {"default": Profile()}, alone=alone):
            await emitted(store, 3)
            await moving(clock, lambda: told["delivered"] == 6, others=1)
            await idling(store, clock, KEPT_FOR + FORGET_EVERY)
            await emitted(store, 3)
            await moving(clock, lambda: told["delivered"] == 9, others=1)
        health = (await deliveries.health())["default/audit"]
        after = await stored(store)
    assert before is not None and after is not None and after.name == before.name
    assert (health["state"], health["behind"]) == ("ok", 0)
    assert "hook.missing" not in caplog.text, "it was never gone"
    assert [heard.seq for heard in receiver.tried] == list(range(1, 10))
    receiver.each_once_in_order()


async def test_a_place_is_forgotten_a_day_after_its_last_gateway(
    receiver: Receiver, store: Store, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "signoff.hooks")
    both, one = profiles(receiver.url, "audit", "other"), profiles(receiver.url, "other")
    async with delivering(store, clock, both):
        pass
    async with delivering(store, clock, one):
        await clock.advance(KEPT_FOR.total_seconds() / 2)
        async with delivering(store, clock, both):  # it came back in time
            pass
        began = clock.now()
        await moving(clock, lambda: "hook.forgotten default/audit" in caplog.text, step_s=900)
        assert KEPT_FOR < clock.now() - began <= KEPT_FOR + 2 * FORGET_EVERY
    assert await stored(store) is None
    assert await stored(store, "other") is not None


async def test_a_missing_place_is_put_back_and_nothing_is_lost_or_told_twice(
    receiver: Receiver, store: Store, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    told = Told()
    async with delivering(store, clock, profiles(receiver.url), counted=told.count) as deliveries:
        await emitted(store, 3)
        await moving(clock, lambda: told["delivered"] == 3)
        before = await stored(store)
        assert before is not None
        await deleted(store)
        health = (await deliveries.health())["default/audit"]
        assert (health["state"], health["detail"]) == ("failing", MISSING)
        await clock.advance(HELD_FOR.total_seconds())
        await emitted(store, 2)
        await moving(clock, lambda: told["delivered"] == 5)
        after = await stored(store)
        assert after is not None
        assert (after.name, after.seq) == (before.name, 5)
        assert after.epoch > before.epoch
        assert (await deliveries.health())["default/audit"]["state"] == "ok"
    assert [heard.seq for heard in receiver.tried] == [1, 2, 3, 4, 5]
    receiver.each_once_in_order()
    assert caplog.text.count("hook.missing default/audit") == 1


async def test_a_place_that_goes_while_a_message_is_on_its_way(
    receiver: Receiver, store: Store, clock: FakeClock
) -> None:
    told = Told()
    receiver.plan.append("late")
    async with delivering(store, clock, profiles(receiver.url), counted=told.count):
        await emitted(store, 2)
        await receiver.until(lambda: len(receiver.tried) == 1)
        await deleted(store)
        receiver.release()
        await moving(clock, lambda: told["delivered"] == 2)
    assert [heard.seq for heard in receiver.tried] == [1, 2]


async def test_a_place_that_goes_while_nothing_happens_is_put_back_within_the_hour(
    receiver: Receiver, store: Store, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with delivering(store, clock, profiles(receiver.url)) as deliveries:
        await emitted(store, 1)
        await receiver.took(1)
        await clock.advance(HELD_FOR.total_seconds())
        await deleted(store)
        began = clock.now()
        await moving(clock, lambda: "hook.missing default/audit" in caplog.text, step_s=60)
        assert clock.now() - began <= HOLD_EVERY + 2 * timedelta(seconds=60)
        assert (await deliveries.health())["default/audit"]["state"] == "ok"
        async with delivering(store, clock, {"default": Profile()}):
            assert await stored(store) is not None


async def test_only_its_holder_puts_a_place_back(store: Store, clock: FakeClock) -> None:
    await begun(store, clock, "http://127.0.0.1:9/x")
    held = await hold(store, "a")
    await deleted(store)
    change = partial(places.hold, profile="default", hook="audit", holder="b", last=held)
    assert await store.transact(change) == (held, False)
    assert await stored(store) is None
    kept, missing = await store.transact(
        partial(places.save, profile="default", hook="audit", place=replace(held, seq=7))
    )
    assert kept is not None and missing
    assert (kept.seq, kept.name, kept.holder) == (7, held.name, "a")
    assert kept.epoch > held.epoch


async def test_who_has_the_lock_waits_for_whoever_has_not(store: Store, clock: FakeClock) -> None:
    await begun(store, clock, "http://127.0.0.1:9/x")
    assert (await hold(store, "embedded")).holder == "embedded"
    assert (await hold(store, "served", alone=True)).holder == "embedded", "it has no lock, so it may live"
    await clock.advance(HELD_FOR.total_seconds())
    assert (await hold(store, "served", alone=True)).holder == "served"
    assert (await hold(store, "embedded")).holder == "served"
    assert (await hold(store, "next", alone=True)).holder == "next", "the lock is free, so its holder is gone"


async def test_health_tells_what_another_gateway_meets(receiver: Receiver, store: Store, clock: FakeClock) -> None:
    settings, told = profiles(receiver.url), Told()
    receiver.always = 503
    async with delivering(store, clock, settings, counted=told.count) as one:
        await emitted(store, 2)
        await moving(clock, lambda: told["failed"] == 1)
        async with delivering(store, clock, settings) as other:
            health, elsewhere = [(await each.health())["default/audit"] for each in (one, other)]
    assert health | {"detail": ""} == elsewhere | {"detail": ""}
    assert (health["state"], health["detail"], elsewhere["detail"]) == ("failing", "HTTP 503", ELSEWHERE)
