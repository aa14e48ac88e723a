"""Slack's Socket Mode connected to the loopback server of the repository's tests."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from signoff.bench.figures import percentile
from signoff.bench.rows import Sizes
from signoff.bench.served import FIRST_USER, agent, ask, loopback, serving

PACE_S = 1.2
"""Between two questions: a card and its edits are most of the few calls that the gateway makes to Slack in a second."""
BOT_TOKEN, APP_TOKEN, SECRET = "xoxb-bench", "xapp-bench", "bench-signing-secret"


async def tap(sizes: Sizes) -> dict[str, float]:
    """`slack_tap_*` and `slack_ack_*`: from the press to the arrival of the edit and of the acknowledgement, all by the
    loopback server's clock.

    One card in each direct chat, one after the other with a pause, so that no rate budget is in the way.
    """
    users = [f"U{FIRST_USER + n}" for n in range(sizes.chats)]
    async with AsyncExitStack() as stack:
        slack, settings = await stack.enter_async_context(opened(users))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="signoff-bench-")))
        served = await stack.enter_async_context(serving(folder, {"slack": settings}))
        http = await stack.enter_async_context(agent(folder, served))
        times = [await _tapped(slack, http, user) for user in users]
    edits, answers = [edit for edit, _ in times], [answer for _, answer in times]
    return {
        "slack_tap_p50_ms": percentile(edits, 50),
        "slack_tap_p99_ms": percentile(edits, 99),
        "slack_ack_p50_ms": percentile(answers, 50),
    }


async def _tapped(slack: Any, http: aiohttp.ClientSession, user: str) -> tuple[float, float]:
    """Ask in the user's chat, press, and wait for the edit and the acknowledgement; milliseconds to each."""
    chat = await slack.add_dm(user)
    await ask(http, "slack", chat)
    card = await slack.wait_for_message(chat, lambda message: "rm -rf" in message.text)
    press = await slack.press(user, chat, card.ts, "Approve once")
    edits = await slack.wait_for_log(bool, method="chat.update", channel=chat)
    pressed = await slack.until(lambda: slack.press_state(press), lambda state: state.acknowledged_at is not None)
    await asyncio.sleep(PACE_S)
    edit, answer = (at - pressed.pressed_at for at in (edits[0].at, pressed.acknowledged_at))
    return float(edit.total_seconds() * 1000), float(answer.total_seconds() * 1000)


@asynccontextmanager
async def opened(users: list[str]) -> AsyncIterator[tuple[Any, dict[str, Any]]]:
    """The loopback workspace with an app and people, and the settings that reach it."""
    async with loopback("slack").slack_process() as slack:
        await slack.add_bot(BOT_TOKEN, APP_TOKEN, signing_secret=SECRET)
        for user in users:
            await slack.add_user(user, "Ann")
        settings = {
            "bot_token": BOT_TOKEN,
            "app_token": APP_TOKEN,
            "approvers": users,
            "api_base_url": (await slack.where()).url,
        }
        yield slack, settings
