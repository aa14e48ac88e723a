"""A loopback platform as a process of its own, started and ended by a test."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from tests.forked import Forked, fork_module

ROOT = Path(__file__).resolve().parents[2]
READY_WITHIN_S = 60.0
ENDS_WITHIN_S = 5.0
W = TypeVar("W")


@asynccontextmanager
async def own_process(module: str, address: type[W], *arguments: str) -> AsyncIterator[W]:
    """Start `module` with its control API and more `arguments`, and give the addresses it prints once it listens; it is
    gone afterwards, whatever happened.

    Raises OSError when it does not come up.
    """
    process = await fork_module(
        *(module, "--control", "--until-eof", *arguments),
        cwd=ROOT,
        env=os.environ,
        stdin=asyncio.subprocess.PIPE,
        stderr=None,
    )
    try:
        yield msgspec.json.decode(await _first_line(process), type=address)
    finally:
        await _end(process)


async def _first_line(process: Forked) -> bytes:
    if process.stdout is None:
        raise OSError("the server's output is not connected")
    line = await asyncio.wait_for(process.stdout.readline(), READY_WITHIN_S)
    if not line:
        raise OSError(f"the server ended with code {await process.wait()}")
    return line


async def _end(process: Forked) -> None:
    """Ask it to stop, then insist."""
    if process.returncode is None:
        process.terminate()
    try:
        await asyncio.wait_for(process.communicate(), ENDS_WITHIN_S)
    except TimeoutError:
        process.kill()
        await process.communicate()
