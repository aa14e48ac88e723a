"""Worlds over one store, in memory with each change run twice, or in a file; a second one is the next gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.catch_up.world import Absent

from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock, settle


@pytest.fixture(params=["memory", "sqlite"])
async def make(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Callable[..., Absent]]:
    clock = FakeClock()
    url = "memory://?replay=2" if request.param == "memory" else f"sqlite://{tmp_path}/signoff.db"
    store = open_store(url, clock)
    made: list[Absent] = []

    def make(**facts: Any) -> Absent:
        made.append(Absent(store, clock, **facts))
        return made[-1]

    yield make
    for each in made:
        await each.aclose()
    await store.aclose()


@pytest.fixture
async def world(make: Callable[..., Absent]) -> Absent:
    """A chat session `s` in `PLACE`, whose platform works."""
    world = make()
    await world.session(agent="deploy-bot")
    await settle()
    return world
