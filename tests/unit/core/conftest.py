"""The core over every engine that a test wants."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock
from tests.unit.core.harness import World

ENGINES = ("memory-replay", "sqlite")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Which store: in memory with every change run twice, so that an impure one shows; or a file."""
    name: str = request.param
    return name


@pytest.fixture
async def make_world(engine: str, tmp_path: Path) -> AsyncIterator[Callable[..., World]]:
    """Worlds over one store and one clock; a second one is the gateway after a restart."""
    clock = FakeClock()
    url = "memory://?replay=2" if engine == "memory-replay" else f"sqlite://{tmp_path}/signoff.db"
    store = open_store(url, clock)
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
