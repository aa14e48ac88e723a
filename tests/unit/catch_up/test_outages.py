"""A store that is away for a moment loses no sign of life and no handled command."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.catch_up.world import ANN, PLACE, Absent

from signoff.changes.catching_up import place_name
from signoff.errors import StoreUnavailable
from signoff.model import Message, Note, Person
from signoff.testing.clock import settle


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


async def test_a_command_that_is_delivered_again_while_it_is_handled_acts_once(
    world: Absent, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = await world.chat._open_inbox()
    held, handed = asyncio.Event(), asyncio.Event()
    transact = world.store.transact

    async def slow(change: Any, **how: Any) -> Any:
        handed.set()
        await held.wait()
        return await transact(change, **how)

    monkeypatch.setattr(world.store, "transact", slow)
    message = typed("/stop", "m1")
    first = asyncio.ensure_future(inbox.message(message))
    await handed.wait()
    again = asyncio.ensure_future(inbox.message(message))
    await settle()
    assert not again.done(), "what is confirmed before the first is done is lost where that fails"
    held.set()
    assert (await first is None, await again) == (False, None)


async def test_a_command_that_failed_is_handled_when_it_comes_again(
    world: Absent, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = await world.chat._open_inbox()
    handed = asyncio.Event()
    transact = world.store.transact
    away: list[bool] = [True]

    async def away_once(change: Any, **how: Any) -> Any:
        if away:
            away.clear()
            handed.set()
            await settle()
            raise StoreUnavailable
        return await transact(change, **how)

    monkeypatch.setattr(world.store, "transact", away_once)
    message = typed("/stop", "m1")
    first = asyncio.ensure_future(inbox.message(message))
    await handed.wait()
    again = asyncio.ensure_future(inbox.message(message))
    with pytest.raises(StoreUnavailable):
        await first
    assert await again is not None
    assert await inbox.message(message) is None


def typed(text: str, message_id: str) -> Message:
    person = Person(platform="fake", user_id=ANN)
    return Message(destination=PLACE, message_id=message_id, order=1, person=person, text=text, replies="all")
