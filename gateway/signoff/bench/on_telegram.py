"""Telegram connected to the loopback server of the repository's tests."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from signoff.bench.figures import percentile, rss_bytes
from signoff.bench.rows import Sizes
from signoff.bench.served import FIRST_USER, SETTLE_S, agent, ask, loopback, serving

TOKEN, BOT = "123456:BENCH", "bench_signoff_bot"


async def tap(sizes: Sizes) -> dict[str, float]:
    """`telegram_tap_*`: from the press to the arrival of the edit, both by the loopback server's clock.

    One card in each private chat, so that no rate budget is in the way.
    """
    users = [FIRST_USER + n for n in range(sizes.chats)]
    async with AsyncExitStack() as stack:
        telegram, settings = await stack.enter_async_context(opened(users))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="signoff-bench-")))
        served = await stack.enter_async_context(serving(folder, {"telegram": settings}))
        http = await stack.enter_async_context(agent(folder, served))
        times = [await _tapped(telegram, http, user) for user in users]
    return {"telegram_tap_p50_ms": percentile(times, 50), "telegram_tap_p99_ms": percentile(times, 99)}


async def start(sizes: Sizes) -> dict[str, float]:
    """`serve_ready_s`, `serve_rss_mib`."""
    async with AsyncExitStack() as stack:
        _, settings = await stack.enter_async_context(opened([FIRST_USER]))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="signoff-bench-")))
        served = await stack.enter_async_context(serving(folder, {"telegram": settings}))
        await asyncio.sleep(SETTLE_S)
        return {"serve_ready_s": served.ready_s, "serve_rss_mib": rss_bytes(served.pid) / 1024**2}


async def _tapped(telegram: Any, http: aiohttp.ClientSession, user: int) -> float:
    """Ask in the user's chat, press, and wait for the edit; milliseconds."""
    await ask(http, "telegram", str(user))
    card = await telegram.wait_for_message(user, lambda message: "rm -rf" in message.text)
    query = await telegram.press(user, user, card.message_id, "Approve once")
    edits = await telegram.wait_for_log(bool, method="editMessageText", chat_id=user)
    pressed = await telegram.press_state(query)
    return float((edits[0].at - pressed.pressed_at).total_seconds() * 1000)


@asynccontextmanager
async def opened(users: list[int]) -> AsyncIterator[tuple[Any, dict[str, Any]]]:
    """The loopback server with a bot and people, and the settings that reach it."""
    async with loopback("telegram").telegram_process() as telegram:
        await telegram.add_bot(TOKEN, BOT)
        for user in users:
            await telegram.add_user(user, "Ann")
        settings = {
            "token": TOKEN,
            "approvers": [str(user) for user in users],
            "api_base_url": (await telegram.where()).url,
        }
        yield telegram, settings
