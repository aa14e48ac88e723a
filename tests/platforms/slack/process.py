"""The server as a process of its own, started and ended by a test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.platforms.own_process import own_process

from .model import WhereAt
from .platform import SlackPlatform


@asynccontextmanager
async def slack_process(*arguments: str) -> AsyncIterator[SlackPlatform]:
    """Start the server with its control API and more `arguments`; it is gone afterwards, whatever happened.

    Raises OSError when it does not come up.
    """
    async with own_process("tests.platforms.slack", WhereAt, *arguments) as where:
        platform = await SlackPlatform.connect(where.control_url or where.url)
        try:
            yield platform
        finally:
            await platform.aclose()
