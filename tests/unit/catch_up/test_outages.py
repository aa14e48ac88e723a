"""A store that is away for a moment loses no sign of life and no handled command."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.catch_up.world import ANN, PLACE, Absent

from signoff.changes.catching_up import place_name
from signoff.errors import StoreUnavailable
from signoff.model import Message, Note, Person


async def test_who_came_back_while_the_store_was_away_is_told(world: Absent, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.unanswered()
    await world.passes(3600)
    get = world.store.get
    refused: list[str] = []

    async def away_once(kind: Any, key: str) -> Any:
        if kind is Note and key == place_name("default", PLACE) and not refused:
            refused.append(key)
            raise StoreUnavailable
        return await get(kind, key)

    monkeypatch.setattr(world.store, "get", away_once)
    world.catch_ups.alive("default", PLACE, Person(platform="fake", user_id=ANN))
    with pytest.raises(StoreUnavailable):
        await world.catch_ups.round()
    await world.looked()
    assert refused
    await world.only()


async def test_commands_that_come_at_once_are_all_remembered(world: Absent) -> None:
    """A platform that delivers them again would have them run twice."""
    inbox = await world.chat._open_inbox()

    def typed(number: int) -> Message:
        person = Person(platform="fake", user_id=ANN)
        return Message(
            destination=PLACE, message_id=f"m{number}", order=number, person=person, text="/help", replies="all"
        )

    first = await asyncio.gather(*(inbox.message(typed(number)) for number in range(4)))
    again = [await inbox.message(typed(number)) for number in range(4)]
    assert (None in first, again) == (False, [None] * 4)
