"""`signoff serve` with Telegram connected to the loopback server of the repository's tests, both in own processes."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
from msgspec import Struct

import signoff
from signoff.bench.figures import NotMeasured, percentile, rss_bytes
from signoff.bench.rows import Sizes

TOKEN, BOT = "123456:BENCH", "bench_signoff_bot"
FIRST_USER = 1000
SETTLE_S = 2.0
"""How long a gateway that just became ready is left alone before its memory is read."""
LIMIT_S = 20.0


class Served(Struct, frozen=True, kw_only=True):
    """A gateway's process."""

    url: str
    ready_s: float
    pid: int


async def tap(sizes: Sizes) -> dict[str, float]:
    """`telegram_tap_*`: from the press to the arrival of the edit, both by the loopback server's clock.

    One card in each private chat, so that no rate budget is in the way.
    """
    users = [FIRST_USER + n for n in range(sizes.chats)]
    async with AsyncExitStack() as stack:
        telegram, origin = await stack.enter_async_context(_telegram(users))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="signoff-bench-")))
        served = await stack.enter_async_context(_serve(folder, origin, users))
        headers = {"Authorization": f"Bearer {await _key(folder)}"}
        http = await stack.enter_async_context(aiohttp.ClientSession(f"{served.url}", headers=headers))
        times = [await _tapped(telegram, http, user) for user in users]
    return {"telegram_tap_p50_ms": percentile(times, 50), "telegram_tap_p99_ms": percentile(times, 99)}


async def start(sizes: Sizes) -> dict[str, float]:
    """`serve_ready_s`, `serve_rss_mib`."""
    async with AsyncExitStack() as stack:
        _, origin = await stack.enter_async_context(_telegram([FIRST_USER]))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="signoff-bench-")))
        served = await stack.enter_async_context(_serve(folder, origin, [FIRST_USER]))
        await asyncio.sleep(SETTLE_S)
        return {"serve_ready_s": served.ready_s, "serve_rss_mib": rss_bytes(served.pid) / 1024**2}


async def _tapped(telegram: Any, http: aiohttp.ClientSession, user: int) -> float:
    """Ask in the user's chat, press, and wait for the edit; milliseconds."""
    session = {"kind": "chat", "platform": "telegram", "chat_id": str(user)}
    async with http.put(f"/v1/sessions/s{user}", json=session) as answer:
        answer.raise_for_status()
    action = {"kind": "command", "command": "rm -rf ./build && make deploy", "cwd": "/srv/app"}
    async with http.post("/v1/approvals", json={"session_id": f"s{user}", "action": action}) as answer:
        answer.raise_for_status()
    card = await telegram.wait_for_message(user, lambda message: "rm -rf" in message.text)
    query = await telegram.press(user, user, card.message_id, "Approve once")
    edits = await telegram.wait_for_log(bool, method="editMessageText", chat_id=user)
    pressed = await telegram.press_state(query)
    return float((edits[0].at - pressed.pressed_at).total_seconds() * 1000)


@asynccontextmanager
async def _telegram(users: list[int]) -> AsyncIterator[tuple[Any, str]]:
    """The loopback server with a bot and people, and its address."""
    made = _loopback()
    async with made.telegram_process() as telegram:
        await telegram.add_bot(TOKEN, BOT)
        for user in users:
            await telegram.add_user(user, "Ann")
        yield telegram, (await telegram.where()).url


def _loopback() -> Any:
    """The loopback server's module, which only a checkout has."""
    root = Path(signoff.__file__).resolve().parents[2]
    if not (root / "tests" / "platforms" / "telegram").is_dir():
        raise NotMeasured("needs the loopback Telegram of the repository's tests; run it from a checkout")
    sys.path.insert(0, str(root))
    try:
        return importlib.import_module("tests.platforms.telegram")
    except ImportError as error:
        raise NotMeasured(f"the loopback Telegram of the repository's tests cannot be imported: {error}") from None


@asynccontextmanager
async def _serve(folder: Path, origin: str, users: list[int]) -> AsyncIterator[Served]:
    """`signoff serve`, from its start to the line that says it answers; ended afterwards."""
    config = [
        "[gateway]",
        "port = 0",
        f"state_dir = {json.dumps(str(folder))}",
        "[platforms.telegram]",
        f"token = {json.dumps(TOKEN)}",
        f"approvers = {json.dumps([str(user) for user in users])}",
        f"api_base_url = {json.dumps(origin)}",
    ]
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


async def _key(folder: Path) -> str:
    """An agent's key."""
    process = await _signoff(folder, "key", "create", "--scope", "agent", "--json")
    out, _ = await asyncio.wait_for(process.communicate(), LIMIT_S)
    return str(json.loads(out)["key"])


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
