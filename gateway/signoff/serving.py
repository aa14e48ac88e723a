"""A gateway as a process: the API, the local socket, the hooks listener and every platform, until told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from signoff.config import Config
from signoff.gateway import Gateway
from signoff.runtime import settle_memory
from signoff.server.serve import serve


class Addresses(Struct, frozen=True, kw_only=True):
    """Where a gateway answers."""

    api: str
    hooks: str | None = None
    socket: Path | None = None


async def run_gateway(config: Config, *, on_ready: Callable[[Addresses], None], stop: asyncio.Event) -> None:
    """Serve until `stop` is set: the API, the local socket, the hooks listener, and every platform."""
    settings = config.gateway
    gateway = Gateway(config)
    await gateway.open()
    try:
        hooks = (settings.hooks_host, settings.hooks_port) if config.webhooks else None
        async with serve(
            gateway, host=settings.host, port=settings.port, hooks=hooks, state_dir=settings.state_dir
        ) as bound:
            await gateway.connect(settings.hooks_url or bound.hooks)
            settle_memory()
            on_ready(Addresses(api=bound.api, hooks=bound.hooks, socket=bound.socket))
            await stop.wait()
            await gateway.stop_receiving()
    finally:
        await gateway.aclose()
