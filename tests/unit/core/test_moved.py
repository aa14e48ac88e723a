"""A chat that got another id: its sessions are found where they are now."""

from __future__ import annotations

import pytest
from tests.unit.core.harness import OTHER_PLACE, PLACE, World

from signoff.changes import moving
from signoff.errors import ChatMoved
from signoff.model import Destination

NEW = Destination("fake", "-100100")
THREAD = Destination("fake", PLACE.chat_id, "7")


async def found(world: World, place: Destination) -> list[str]:
    """The sessions that a `stop` there would end."""
    return [session.session_id for session in await world.sessions.at_place("default", place)]


async def test_a_platform_that_tells_moves_every_session_of_the_chat(world: World) -> None:
    await world.ask()
    await world.session("in_thread", destination=THREAD)
    await world.session("elsewhere", destination=OTHER_PLACE)
    await world.session("closed")
    await world.sessions.clear("default", "closed", None, close=True)
    await world.store.transact(
        lambda tx: moving.move_chat(tx, "default", "fake", PLACE.chat_id, NEW.chat_id, told=True)
    )
    assert (await found(world, PLACE), await found(world, THREAD)) == ([], [])
    assert await found(world, NEW) == ["s"]
    assert await found(world, Destination("fake", NEW.chat_id, "7")) == ["in_thread"]
    assert await found(world, OTHER_PLACE) == ["elsewhere"]


@pytest.mark.parametrize("place", [PLACE, THREAD])
async def test_a_send_that_learns_the_new_id_moves_the_sessions_of_its_place(world: World, place: Destination) -> None:
    await world.session("asks", destination=place)
    world.chat.fail(ChatMoved(new_chat_id=NEW.chat_id))
    await world.ask(session_id="asks")
    there = Destination("fake", NEW.chat_id, place.thread_id)
    assert "asks" in await found(world, there)
    assert await found(world, place) == []
