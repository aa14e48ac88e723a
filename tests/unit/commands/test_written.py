"""Approve all means what its writer had been shown, also where the command comes late."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from tests.unit.commands.world import ANA, ROOM, World, opened, until

from signoff.model import ApprovalRequest, Copy, Message, Person, replace
from signoff.testing.clock import FakeClock


async def grown(world: World) -> tuple[ApprovalRequest, ApprovalRequest, Copy, datetime]:
    """Two runs on one card: the second joined it ten seconds after the first, and the card counts it."""
    await world.session("s1")
    first = await world.ask("deploy a")
    before = world.clock.now()
    await world.clock.advance(10)
    second = await world.submit("deploy a")

    async def counts_it() -> bool:
        (card,) = await world.copies(first)
        return card.faces[-1].shown == 1 and card.lease_until is None

    await until(counts_it)
    (card,) = await world.copies(first)
    return first, second, card, before


def late(card: Copy) -> Message:
    """It stands below the card."""
    return Message(
        destination=ROOM,
        message_id="500",
        order=card.order + 1,
        person=Person(platform="fake", user_id=ANA, name="Ana"),
        text="/approve all",
        addressed=True,
    )


@pytest.mark.parametrize(
    ("after_s", "both"),
    [
        pytest.param(5, False, id="before the second"),
        pytest.param(11, True, id="after it"),
        pytest.param(None, True, id="now"),
        pytest.param(-9 * 86400, True, id="by a clock that is wrong"),
    ],
)
async def test_what_joined_after_the_command_is_not_approved(after_s: float | None, both: bool) -> None:
    async with opened("memory://") as world:
        first, second, card, before = await grown(world)
        await world.clock.advance(60)
        message = replace(late(card), at=None if after_s is None else before + timedelta(seconds=after_s))
        await world.commands.handle("default", message, world.adapter.info)
        outcomes = [(await world.row(row)).outcome for row in (first, second)]
        assert outcomes == ["approved", "approved" if both else None]


class Behind(FakeClock):
    """A database's clock that goes four seconds after the gateway's."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock

    def now(self) -> datetime:
        """Its time."""
        return self._clock.now() - timedelta(seconds=4)


async def test_the_stores_clock_need_not_be_the_gateways(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened("memory://") as world:
        monkeypatch.setattr(world.store, "_clock", Behind(world.clock))
        first, second, card, before = await grown(world)
        await world.clock.advance(60)
        message = replace(late(card), at=before + timedelta(seconds=8))
        await world.commands.handle("default", message, world.adapter.info)
        outcomes = [(await world.row(row)).outcome for row in (first, second)]
        assert outcomes == ["approved", None], "the second joined two seconds after it was written"
