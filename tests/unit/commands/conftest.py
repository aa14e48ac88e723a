"""A world of commands over each engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.commands.world import World, opened


@pytest.fixture(params=["memory", "sqlite"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """Agents, a chat platform and people, with nothing asked yet."""
    url = "memory://?replay=2" if request.param == "memory" else f"sqlite://{tmp_path}/signoff.db"
    async with opened(url) as world:
        yield world
