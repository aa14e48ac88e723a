"""Discord's gateway connected to the loopback server of the repository's tests."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from signoff.bench.figures import percentile
from signoff.bench.rows import Sizes
from signoff.bench.served import FIRST_USER, agent, ask, loopback, serving

TOKEN, BOT = "MTIz.BENCH.abc", "bench_signoff_bot"
GUILD = 10


async def tap(sizes: Sizes) -> dict[str, float]:
    """`discord_tap_*`: from the press to the arrival of the edit, both by the loopback server's clock.

    One card in each direct chat, so that no rate budget is in the way.
    """
    users = [FIRST_USER + n for n in range(sizes.chats)]
    async with AsyncExitStack() as stack:
        discord, settings = await stack.enter_async_context(opened(users))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="signoff-bench-")))
        served = await stack.enter_async_context(serving(folder, {"discord": settings}))
        http = await stack.enter_async_context(agent(folder, served))
        times = [await _tapped(discord, http, user) for user in users]
    return {"discord_tap_p50_ms": percentile(times, 50), "discord_tap_p99_ms": percentile(times, 99)}


async def _tapped(discord: Any, http: aiohttp.ClientSession, user: int) -> float:
    """Ask in the user's chat, press, and wait for the edit; milliseconds."""
    chat = await discord.dm(user)
    await ask(http, "discord", str(chat))
    card = await discord.wait_for_message(chat, lambda message: "rm -rf" in message.text)
    press = await discord.press(user, chat, card.message_id, "Approve once")
    edits = await discord.wait_for_log(bool, call="edit_message", channel_id=chat)
    pressed = await discord.press_state(press)
    return float((edits[0].at - pressed.created_at).total_seconds() * 1000)


@asynccontextmanager
async def opened(users: list[int]) -> AsyncIterator[tuple[Any, dict[str, Any]]]:
    """The loopback server with a bot, a guild and people, and the settings that reach it."""
    async with loopback("discord").discord_process() as discord:
        await discord.add_bot(TOKEN, BOT)
        for user in users:
            await discord.add_user(user, f"ann{user}", display_name="Ann")
        await discord.add_guild(GUILD, "Bench", members=users)
        where = await discord.where()
        settings = {
            "token": TOKEN,
            "approvers": [str(user) for user in users],
            "api_base_url": where.url,
            "gateway_url": where.gateway_url,
        }
        yield discord, settings
