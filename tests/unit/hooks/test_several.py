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
from signoff.hooks.deliveries import Deliveries
from signoff.hooks.places import HELD_FOR
from signoff.model import Command
from signoff.ports import Store
from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock


async def hold(store: Store, holder: str, **facts: Any) -> places.Place:
    """Hold the place of `audit` as that gateway; the place as it stands then."""
    found = await store.transact(partial(places.hold, profile="default", hook="audit", holder=holder, **facts))
    assert found is not None
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
            await moving(clock, lambda: told["failed"] == 3)
            assert other["failed"] == 0, "the first one goes on holding it between its tries"
            receiver.always = None
            await moving(clock, lambda: told["delivered"] == 2)
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
        taken = await hold(store, "other", seize=True)
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
    assert not await store.transact(partial(save, place=first))
    assert await store.transact(partial(save, place=second))
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
