"""Waiting for a time or for news, whichever comes first."""

from __future__ import annotations

import asyncio
from datetime import datetime

from signoff.ports import Clock


async def wait_until(clock: Clock, until: datetime, woken: asyncio.Event) -> None:
    """Return at `until` by the clock, or as soon as `woken` is set."""
    if woken.is_set():
        return
    timer = asyncio.ensure_future(clock.sleep_until(until))
    news = asyncio.ensure_future(woken.wait())
    try:
        await asyncio.wait({timer, news}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
        news.cancel()
        # Gathered, not awaited one by one: swallowing a task's cancellation could swallow our own caller's.
        await asyncio.gather(timer, news, return_exceptions=True)
