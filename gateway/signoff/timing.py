"""Waiting for a time or for news, whichever comes first."""

from __future__ import annotations

import asyncio
import contextlib
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
        for task in (timer, news):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
