"""`signoff serve` in a process of its own, with platforms on loopback, each in another."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
from msgspec import Struct

import signoff
from signoff.bench.figures import NotMeasured

LIMIT_S = 20.0
SETTLE_S = 2.0
"""How long a gateway that just became ready is left alone before its memory is read."""
FIRST_USER = 1000
"""The id of the first made-up person."""


class Served(Struct, frozen=True, kw_only=True):
    """A gateway's process."""

    url: str
    ready_s: float
    pid: int


def loopback(platform: str) -> Any:
    """The module of a loopback server, which only a checkout has. Raises `NotMeasured`."""
    root = Path(signoff.__file__).resolve().parents[2]
    if not (root / "tests" / "platforms" / platform).is_dir():
        raise NotMeasured(
            f"needs the loopback {platform.capitalize()} of the repository's tests; run it from a checkout"
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        return importlib.import_module(f"tests.platforms.{platform}")
    except ImportError as error:
        raise NotMeasured(
            f"the loopback {platform.capitalize()} of the repository's tests cannot be imported: {error}"
        ) from None


@asynccontextmanager
async def serving(folder: Path, platforms: Mapping[str, Mapping[str, Any]]) -> AsyncIterator[Served]:
    """`signoff serve` with these settings of platforms, from its start to the line that says it answers; ended
    afterwards. Raises `NotMeasured` when it does not start."""
    config = ["[gateway]", "port = 0", f"state_dir = {json.dumps(str(folder))}"]
    for platform, settings in platforms.items():
        config += [f"[platforms.{platform}]", *(f"{name} = {json.dumps(value)}" for name, value in settings.items())]
    (folder / "signoff.toml").write_text("\n".join(config))
    begun = time.perf_counter()
    process = await _signoff(folder, "serve", "--log-level", "error")
    try:
        line = await _line(process)
        ready_s = time.perf_counter() - begun
        yield Served(url=line.removeprefix("listening on "), ready_s=ready_s, pid=process.pid)
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.communicate(), LIMIT_S)
        except TimeoutError:
            process.kill()
            await process.communicate()


@asynccontextmanager
async def agent(folder: Path, served: Served) -> AsyncIterator[aiohttp.ClientSession]:
    """The API under an agent's key."""
    process = await _signoff(folder, "key", "create", "--scope", "agent", "--json")
    out, _ = await asyncio.wait_for(process.communicate(), LIMIT_S)
    headers = {"Authorization": f"Bearer {json.loads(out)['key']}"}
    async with aiohttp.ClientSession(served.url, headers=headers) as http:
        yield http


async def ask(http: aiohttp.ClientSession, platform: str, chat_id: str) -> None:
    """One question in that chat, in a session of its own."""
    session = {"kind": "chat", "platform": platform, "chat_id": chat_id}
    async with http.put(f"/v1/sessions/s{chat_id}", json=session) as answer:
        answer.raise_for_status()
    action = {"kind": "command", "command": "rm -rf ./build && make deploy", "cwd": "/srv/app"}
    async with http.post("/v1/approvals", json={"session_id": f"s{chat_id}", "action": action}) as answer:
        answer.raise_for_status()


async def _signoff(folder: Path, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "signoff",
        *arguments,
        "--config",
        str(folder / "signoff.toml"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )


async def _line(process: asyncio.subprocess.Process) -> str:
    if process.stdout is None:
        raise NotMeasured("the gateway's output is not connected")
    line = await asyncio.wait_for(process.stdout.readline(), LIMIT_S)
    if not line:
        raise NotMeasured(f"signoff serve ended with code {await process.wait()}")
    return line.decode().strip()
