"""A world with a chat place."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.unit.core.harness import World

from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """Everything in memory, with each change run twice, so that an impure one shows."""
    clock = FakeClock()
    store = open_store("memory://?replay=2", clock)
    world = World(store, clock)
    await world.session()
    yield world
    await world.aclose()
    await store.aclose()
