"""Cores with the tool gate on, over both engines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.gate.kept import KeptWorld

from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock


@pytest.fixture(params=["memory-replay", "sqlite"])
async def make(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Callable[..., KeptWorld]]:
    """Worlds over one store and one clock; a second one is another gateway, or the same after a restart."""
    clock = FakeClock()
    url = "memory://?replay=2" if request.param == "memory-replay" else f"sqlite://{tmp_path}/signoff.db"
    store = open_store(url, clock)
    made: list[KeptWorld] = []

    def one(**facts: Any) -> KeptWorld:
        made.append(KeptWorld(store, clock, **facts))
        return made[-1]

    yield one
    for world in made:
        await world.aclose()
    await store.aclose()


@pytest.fixture
async def world(make: Callable[..., KeptWorld]) -> KeptWorld:
    """A world with an open chat session `s`, and a cron session `job`."""
    world = make()
    await world.session()
    await world.job()
    return world
