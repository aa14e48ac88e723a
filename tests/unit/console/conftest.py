"""Consoles on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.console.world import Place, place


@pytest.fixture
async def here() -> AsyncIterator[Place]:
    """A console over memory."""
    async with place() as made:
        yield made


@pytest.fixture(params=["memory", "sqlite"])
async def stored(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """A console over each engine."""
    async with place("memory://" if request.param == "memory" else f"sqlite://{tmp_path}/store.db") as made:
        yield made
