"""A gateway as a process: the API, the local socket, the hooks listener and every platform, until told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from signoff.config import Config
from signoff.console import Console
from signoff.gateway import Gateway
from signoff.runtime import settle_memory
from signoff.server.serve import serve


class Addresses(Struct, frozen=True, kw_only=True):
    """Where a gateway answers."""

    api: str
    hooks: str | None = None
    socket: Path | None = None


def _pages(gateway: Gateway, config: Config) -> Console | None:
    """The web console, where it is on."""
    return Console(gateway, url=config.gateway.console_url) if config.gateway.console else None


def _names(url: str | None) -> tuple[str, ...]:
    """The host name of a public address, under which browsers call."""
    name = urlsplit(url).hostname if url is not None else None
    return (name,) if name else ()


async def run_gateway(config: Config, *, on_ready: Callable[[Addresses], None], stop: asyncio.Event) -> None:
    """Serve until `stop` is set: the API, the local socket, the hooks listener, and every platform."""
    settings = config.gateway
    gateway = Gateway(config)
    await gateway.open()
    pages = _pages(gateway, config)
    try:
        hooks = (settings.hooks_host, settings.hooks_port) if config.webhooks else None
        async with serve(
            gateway,
            host=settings.host,
            port=settings.port,
            hooks=hooks,
            state_dir=settings.state_dir,
            host_names=_names(settings.console_url),
            pages=pages,
        ) as bound:
            if pages is not None:
                pages.opened(bound.api)
            await gateway.connect(settings.hooks_url or bound.hooks)
            settle_memory()
            on_ready(Addresses(api=bound.api, hooks=bound.hooks, socket=bound.socket))
            await stop.wait()
            await gateway.stop_receiving()
    finally:
        await gateway.aclose()
