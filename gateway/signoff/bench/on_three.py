"""One gateway with Telegram, Discord and Slack connected to loopback servers."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from signoff.bench import on_discord, on_slack, on_telegram
from signoff.bench.figures import NotMeasured, rss_bytes
from signoff.bench.rows import Sizes
from signoff.bench.served import FIRST_USER, SETTLE_S, serving


async def start(sizes: Sizes) -> dict[str, float]:
    """`three_ready_s`, `three_rss_mib`. Only a gateway that all three hear of counts as ready."""
    async with AsyncExitStack() as stack:
        _, telegram = await stack.enter_async_context(on_telegram.opened([FIRST_USER]))
        discord, there = await stack.enter_async_context(on_discord.opened([FIRST_USER]))
        slack, here = await stack.enter_async_context(on_slack.opened([f"U{FIRST_USER}"]))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="signoff-bench-")))
        settings = {"telegram": telegram, "discord": there, "slack": here}
        served = await stack.enter_async_context(serving(folder, settings))
        if not await slack.sockets() or not any(each.connected for each in await discord.sessions()):
            raise NotMeasured("signoff serve said that it listens before Discord and Slack were connected")
        await asyncio.sleep(SETTLE_S)
        return {"three_ready_s": served.ready_s, "three_rss_mib": rss_bytes(served.pid) / 1024**2}
