"""A loopback platform as a process of its own, started and ended by a test."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

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
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", module, "--control", "--until-eof", *arguments),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield msgspec.json.decode(await _first_line(process), type=address)
    finally:
        await _end(process)


async def _first_line(process: asyncio.subprocess.Process) -> bytes:
    if process.stdout is None:
        raise OSError("the server's output is not connected")
    line = await asyncio.wait_for(process.stdout.readline(), READY_WITHIN_S)
    if not line:
        raise OSError(f"the server ended with code {await process.wait()}")
    return line


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ask it to stop, then insist."""
    if process.returncode is None:
        process.terminate()
    try:
        await asyncio.wait_for(process.communicate(), ENDS_WITHIN_S)
    except TimeoutError:
        process.kill()
        await process.communicate()
