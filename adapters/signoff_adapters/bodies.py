"""The bodies of requests that a platform posts to us."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web

BODY_MAX_BYTES = 1024 * 1024
"""Larger than anything that a platform posts; chosen."""


async def read_body(request: web.Request) -> bytes | None:
    """The body; None when it is too large. The listener may have read it from the stream already."""
    from aiohttp import web  # who only polls need not have it

    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge:
        return None
    return body if len(body) <= BODY_MAX_BYTES else None
