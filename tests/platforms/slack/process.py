"""The server as a process of its own, started and ended by a test."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from .model import WhereAt
from .platform import SlackPlatform

ROOT = Path(__file__).resolve().parents[3]
READY_WITHIN_S = 20.0
ENDS_WITHIN_S = 5.0


@asynccontextmanager
async def slack_process(*arguments: str) -> AsyncIterator[SlackPlatform]:
    """Start the server with its control API and more `arguments`; it is gone afterwards, whatever happened.

    Raises OSError when it does not come up.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.platforms.slack",
        "--control",
        "--until-eof",
        *arguments,
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        where = await _ready(process)
        platform = await SlackPlatform.connect(where.control_url or where.url)
        try:
            yield platform
        finally:
            await platform.aclose()
    finally:
        await _end(process)


async def _ready(process: asyncio.subprocess.Process) -> WhereAt:
    """The address line it prints once it listens."""
    if process.stdout is None:
        raise OSError("the server's output is not connected")
    line = await asyncio.wait_for(process.stdout.readline(), READY_WITHIN_S)
    if not line:
        raise OSError(f"the server ended with code {await process.wait()}")
    return msgspec.json.decode(line, type=WhereAt)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ask it to stop, then insist."""
    if process.returncode is None:
        process.terminate()
    try:
        await asyncio.wait_for(process.communicate(), ENDS_WITHIN_S)
    except TimeoutError:
        process.kill()
        await process.communicate()
