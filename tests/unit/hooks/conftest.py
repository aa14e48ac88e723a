"""A receiver and the core whose events it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.core.harness import World
from tests.unit.hooks.receiver import Receiver, receiving

from signoff.ports import Store
from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as found:
        yield found


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory://", "sqlite"])
async def store(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Store]:
    url = request.param if request.param != "sqlite" else f"sqlite://{tmp_path}/signoff.db"
    opened = open_store(url, clock)
    yield opened
    await opened.aclose()


@pytest.fixture
async def make_world(store: Store, clock: FakeClock) -> AsyncIterator[Callable[..., World]]:
    made: list[World] = []

    def make(**facts: Any) -> World:
        made.append(World(store, clock, **facts))
        return made[-1]

    yield make
    for world in made:
        await world.aclose()


@pytest.fixture
async def world(make_world: Callable[..., World]) -> World:
    """A world with an open chat session `s` and a turn `t` in it."""
    world = make_world()
    await world.session()
    await world.turn()
    return world
