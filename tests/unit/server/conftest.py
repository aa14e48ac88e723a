"""Servers on loopback for the tests of the HTTP door."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.server.world import World, world_on


@pytest.fixture(params=["memory", "sqlite"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """A gateway's core behind a real server, over each engine."""
    url = "memory://" if request.param == "memory" else f"sqlite://{tmp_path}/store.db"
    async with world_on(url) as made:
        yield made


@pytest.fixture
async def quick() -> AsyncIterator[World]:
    """The same over memory alone, for what no engine changes."""
    async with world_on("memory://") as made:
        yield made
