"""A gateway with all its doors: the API, the local socket, the web console, the hooks listener and every platform."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from signoff.config import Config
from signoff.console import Console
from signoff.gateway import Gateway
from signoff.runtime import settle_memory
from signoff.server import serve as listen


class Addresses(Struct, frozen=True, kw_only=True):
    """Where a gateway answers."""

    api: str
    """Such as `http://127.0.0.1:8787`; the web console is under `/console` there."""
    hooks: str | None = None
    """Where platforms in a webhook mode post to."""
    socket: Path | None = None
    """The local socket, which commands such as `signoff approve` use."""


@asynccontextmanager
async def serve(gateway: Gateway, *, host: str | None = None, port: int | None = None) -> AsyncIterator[Addresses]:
    """Open `gateway` and serve it until the block is left, as `signoff serve` does; then it is closed.

    So a program that has executors or hooks of its own also has the command line, the web console and HTTP. `host` and
    `port` (0 picks a free one) stand for `gateway.host` and `gateway.port`. Every platform had its first try when the
    block begins. Raises `RuntimeError` for a gateway that was opened already, `ConfigError` for an address or a store
    that is taken, `StoreError`.
    """
    if gateway.opened:
        raise RuntimeError("This gateway was opened already; hand over a new one: serve opens and closes it itself.")
    settings = gateway.config.gateway
    await gateway.open()
    pages = _pages(gateway, gateway.config)
    try:
        async with listen(
            gateway,
            host=settings.host if host is None else host,
            port=settings.port if port is None else port,
            hooks=(settings.hooks_host, settings.hooks_port) if gateway.config.webhooks else None,
            state_dir=settings.state_dir,
            host_names=_names(settings.console_url),
            pages=pages,
        ) as bound:
            if pages is not None:
                pages.opened(bound.api)
            await gateway.connect(settings.hooks_url or bound.hooks)
            yield Addresses(api=bound.api, hooks=bound.hooks, socket=bound.socket)
            await gateway.stop_receiving()
    finally:
        await gateway.aclose()


async def run_gateway(config: Config, *, on_ready: Callable[[Addresses], None], stop: asyncio.Event) -> None:
    """Serve a gateway of its own until `stop` is set: the whole of `signoff serve`."""
    async with serve(Gateway(config)) as addresses:
        settle_memory()
        on_ready(addresses)
        await stop.wait()


def _pages(gateway: Gateway, config: Config) -> Console | None:
    """The web console, where it is on."""
    return Console(gateway, url=config.gateway.console_url) if config.gateway.console else None


def _names(url: str | None) -> tuple[str, ...]:
    """The host name of a public address, under which browsers call."""
    name = urlsplit(url).hostname if url is not None else None
    return (name,) if name else ()
