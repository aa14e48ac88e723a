"""Requests that a platform posts to us: their bodies, and when they were signed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web

BODY_MAX_BYTES = 1024 * 1024
"""Larger than anything that a platform posts; chosen."""
WINDOW_S = 300
"""Slack's advice; Discord names no age. Five minutes bear clocks that differ, and keep a record of a request from being
posted much later."""
_STAMP_MAX = 12


async def read_body(request: web.Request) -> bytes | None:
    """The body; None when it is too large. The listener may have read it from the stream already."""
    from aiohttp import web  # who only polls need not have it

    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge:
        return None
    return body if len(body) <= BODY_MAX_BYTES else None


def fresh(stamp: str) -> bool:
    """Whether it is a time, in seconds, within five minutes of now. Never raises."""
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= _STAMP_MAX):
        return False
    return abs(time.time() - int(stamp)) <= WINDOW_S
