"""A drill's card as rows: the first tap in time counts, whatever the order of post, tap and end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from signoff import drills
from signoff.changes import drilling, moving, sending
from signoff.errors import DrillNotFound, InvalidInput
from signoff.model import Actor, Copy, Destination, Posted
from signoff.ports import Tx
from signoff.settings import AgentSettings, ApprovalSettings, Profile
from signoff.stores.memory import MemoryStore
from signoff.testing.clock import FakeClock

T0 = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
PLACE = Destination("telegram", "-1")
ANA = Actor(type="person", platform="telegram", user_id="1", name="Ana")
BEN = Actor(type="person", platform="telegram", user_id="2", name="Ben")


class World:
    """One drill with one card, and the clock."""

    def __init__(self) -> None:
        self.clock = FakeClock(T0)
        self.store = MemoryStore(self.clock)
        self.drill_id = ""

    async def begin(self) -> World:
        self.drill_id = await drills.begin(self.store, "default", [PLACE], by="Ana", wait_s=60)
        return self

    async def copy(self) -> Copy:
        return (await self.store.find(Copy, "open_chat", "default\x1ftelegram\x1f-1"))[0]

    async def leased(self) -> str | None:
        """What the dispatcher would do now."""
        due = await self.store.due(Copy, self.clock.now(), limit=5)
        ids = [copy.copy_id for copy in due]
        work = await self.store.transact(lambda tx: sending.lease(tx, ids, lease_s=20, resend=frozenset()))
        return work[0].op if work else None

    async def post(self) -> Copy:
        assert await self.leased() == "post"
        return await self.posted(await self.copy())

    async def posted(self, copy: Copy) -> Copy:
        await self.change(lambda tx: sending.posted(tx, copy.copy_id, Posted("7", 7), of=None, version=0))
        return await self.copy()

    async def press(self, copy: Copy, actor: Actor) -> None:
        def change(tx: Tx) -> None:
            found = tx.get(Copy, copy.copy_id)
            assert found is not None
            drilling.press(tx, found, actor)

        await self.change(change)

    async def change(self, change: Callable[[Tx], None]) -> None:
        await self.store.transact(change)

    async def place(self) -> drills.DrillPlace:
        return (await drills.report(self.store, self.clock, "default", self.drill_id)).places[0]

    async def wait(self, seconds: float) -> None:
        await self.clock.advance(seconds)


@pytest.fixture
async def world() -> World:
    return await World().begin()


async def test_a_tap_is_counted_from_the_card_and_edits_it_once(world: World) -> None:
    assert (await world.place()).state == "waiting"
    await world.wait(3)
    copy = await world.post()
    await world.wait(42)
    await world.press(copy, BEN)
    await world.press(copy, ANA)
    found = await world.place()
    assert (found.state, found.by, found.after_s) == ("seen", "Ben", 42.0)
    assert await world.leased() == "update"
    await world.change(lambda tx: sending.updated(tx, copy.copy_id, of=None, version=0))
    assert await world.leased() is None
    assert await world.store.next_due(Copy) is None


async def test_it_ends_by_itself_and_a_later_tap_does_not_count(world: World) -> None:
    copy = await world.post()
    assert await world.store.next_due(Copy) == T0 + timedelta(seconds=60)
    await world.wait(60)
    await world.press(copy, BEN)
    assert await world.leased() == "update"
    found = await world.place()
    assert (found.state, found.by) == ("nobody", None)


async def test_a_tap_before_the_send_has_returned_is_kept(world: World) -> None:
    assert await world.leased() == "post"
    copy = await world.copy()
    await world.press(copy, BEN)
    await world.posted(copy)
    assert (await world.place()).state == "seen"
    assert await world.leased() == "update"


async def test_a_card_that_never_went_is_dropped_at_the_end(world: World) -> None:
    await world.wait(61)
    assert await world.leased() is None
    assert (await world.place()).state == "not_sent"
    assert await world.store.next_due(Copy) is None


async def test_a_lost_answer_counts_as_sent(world: World) -> None:
    assert await world.leased() == "post"
    copy = await world.copy()
    await world.change(lambda tx: sending.doubtful(tx, copy.copy_id))
    assert (await world.place()).state == "waiting"
    await world.wait(61)
    assert await world.leased() is None
    assert (await world.place()).state == "nobody"


async def test_it_follows_a_chat_that_moved_before_it_was_sent(world: World) -> None:
    def change(tx: Tx) -> None:
        moving.move_chat(tx, "default", "telegram", "-1", "-2")

    await world.change(change)
    moved = (await world.store.find(Copy, "open_chat", "default\x1ftelegram\x1f-2"))[0]
    assert (moved.kind, moved.state) == ("drill", "queued")


async def test_what_cannot_be_drilled(world: World) -> None:
    with pytest.raises(InvalidInput):
        await drills.begin(world.store, "default", [], by="Ana", wait_s=60)
    with pytest.raises(InvalidInput):
        await drills.begin(world.store, "default", [PLACE], by="Ana", wait_s=1)
    with pytest.raises(DrillNotFound):
        await drills.report(world.store, world.clock, "other", world.drill_id)


def test_every_destination_of_the_settings_is_named_once() -> None:
    profile = Profile(
        approvals=ApprovalSettings(fallback_destination=PLACE, also_to=(PLACE, Destination("slack", "C1"))),
        agents={"ci": AgentSettings(destinations=("telegram", "telegram:-2/7", "slack:C1"))},
    )
    assert [str(place) for place in drills.named_places(profile)] == ["telegram:-1", "slack:C1", "telegram:-2/7"]
