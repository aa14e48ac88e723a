"""The core over memory, with each change run twice, so that an impure one shows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.unit.core.harness import World

from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock


@pytest.fixture
async def make_world() -> AsyncIterator[Callable[..., World]]:
    """Worlds over one store and one clock."""
    clock = FakeClock()
    store = open_store("memory://?replay=2", clock)
    made: list[World] = []

    def make(**facts: Any) -> World:
        made.append(World(store, clock, **facts))
        return made[-1]

    yield make
    for world in made:
        await world.aclose()
    await store.aclose()


@pytest.fixture
async def world(make_world: Callable[..., World]) -> World:
    """A world with an open chat session `s` and a turn `t` in it."""
    world = make_world()
    await world.session()
    await world.turn()
    return world
