"""Worlds of the core, as the core's own tests have them."""

from __future__ import annotations

import pytest
from tests.unit.core.conftest import make_world, world

__all__ = ["engine", "make_world", "world"]


@pytest.fixture(params=["memory-replay", "sqlite"])
def engine(request: pytest.FixtureRequest) -> str:
    """What a session's end does is the same in every engine."""
    name: str = request.param
    return name
