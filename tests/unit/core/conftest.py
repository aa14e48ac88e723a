"""The core over every engine that a test wants."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.core.harness import World

from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock

ENGINES = ("memory-replay", "sqlite")
IN_A_FILE = (
    "test_coalescing",
    "test_claims",
    "test_stopping",
    "test_delivery",
    "test_fallback",
    "test_edits",
    "test_digest_delivery",
    "test_service_time",
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Everything in memory, with each change run twice, so that an impure one shows; what races for rows also in a
    file."""
    if "engine" in metafunc.fixturenames:
        name = metafunc.module.__name__.rpartition(".")[2]
        metafunc.parametrize("engine", ENGINES if name in IN_A_FILE else ENGINES[:1])


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
