"""A card whose file takes long: it is waited for, and no other process takes it for one that was cut off."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.unit.core.harness import World

from signoff import dispatcher as dispatching

LONG = "deploy " + "x" * 6000


@pytest.mark.parametrize("with_file", [True, False])
async def test_a_file_is_waited_for_longer_than_a_card(
    world: World, monkeypatch: pytest.MonkeyPatch, with_file: bool
) -> None:
    monkeypatch.setattr(dispatching, "SEND_TIMEOUT_S", 0.01)
    world.chat.stall()
    row = await world.submit(LONG if with_file else "deploy")
    await world.dispatcher.start_due()
    sends = list(world.dispatcher._tasks)
    done, _ = await asyncio.wait(sends, timeout=0.2)
    assert bool(done) is not with_file
    world.chat.go_on()
    await world.flush()
    assert (await world.copy(row)).state == ("sent" if with_file else "ambiguous")


async def test_its_lease_lasts_as_long(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatching, "RENEW_S", 0.01)
    row = await world.submit(LONG)
    world.chat.stall()
    await world.dispatcher.start_due()
    for _ in range(3):
        await world.clock.advance(15)

        async def renewed() -> bool:
            copy = await world.copy(row)
            return copy.lease_until is not None and copy.lease_until > world.clock.now() + timedelta(seconds=15)

        async with asyncio.timeout(10):
            while not await renewed():  # noqa: ASYNC110  # the dispatcher tells nobody that it renewed
                await asyncio.sleep(0.001)
        await world.dispatcher.start_due()
        assert (await world.copy(row)).state == "sending"
    world.chat.go_on()
    await world.flush()
    assert (await world.copy(row)).state == "sent"
    assert [message.card.attachment is not None for message in world.chat.messages] == [True]
