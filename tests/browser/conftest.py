"""Chromium in front of a gateway on loopback."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.browser.house import CHROMIUM, House, chromium, open_house


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A gateway over a file, with one session that asks in the console."""
    async with open_house(tmp_path) as made:
        yield made


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    """Debian's Chromium, without which these tests do not run; where they must, they fail."""
    if not CHROMIUM.exists():
        assert "SIGNOFF_TESTS_NEED_BROWSER" not in os.environ, f"{CHROMIUM} is not installed"
        pytest.skip(f"{CHROMIUM} is not installed")
    async with chromium() as made:
        yield made
