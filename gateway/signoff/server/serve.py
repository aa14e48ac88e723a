"""Opening the door: the API on a port, the same on the local socket, and the hooks listener."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from pathlib import Path

from aiohttp import web
from msgspec import Struct

from signoff.errors import ConfigError
from signoff.loopback import is_loopback, is_signoff
from signoff.server.app import Api, Pages
from signoff.server.backlog import Backlog
from signoff.server.bounds import Bounds
from signoff.server.connections import BoundedServer
from signoff.server.core import Core
from signoff.server.hall import Hall
from signoff.server.hooks import Hooks
from signoff.server.limits import Hosts
from signoff.server.local import local_socket
from signoff.server.routes import Door
from signoff.server.streams import KEEPALIVE_S, WRITE_WITHIN_S, Streams
from signoff.server.table import ROUTES

SHUTDOWN_S = 0.5
"""What is still being answered at the end may take this long, on all listeners together; waits and streams end at
once."""
IPV4, IPV6 = "127.0.0.1", "::1"
_LINGER_S = 1.0
"""After a refusal the rest of a body is read for so long, so that the client reads the answer."""
_BACKLOG = 1024


class Bound(Struct, frozen=True, kw_only=True):
    """Where the door is open."""

    api: str
    """Such as `http://127.0.0.1:8787`."""
    hooks: str | None = None
    socket: Path | None = None


@asynccontextmanager
async def serve(
    core: Core,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    hooks: tuple[str, int] | None = None,
    state_dir: Path | None = None,
    host_names: Iterable[str] = (),
    keepalive_s: float = KEEPALIVE_S,
    write_within_s: float = WRITE_WITHIN_S,
    bounds: Bounds | None = None,
    pages: Pages | None = None,
) -> AsyncIterator[Bound]:
    """Listen until the block is left; then waits and streams end at once.

    Port 0 picks a free one. `hooks` is the hooks listener's host and port; `state_dir` holds the local socket;
    `host_names` are further names under which clients may call, such as a proxy's;
    `bounds` is how much callers may take; `pages` is the web console, None for none. Raises `ConfigError` when an
    address or the state folder is taken.
    """
    hall = Hall()
    bounds = bounds or Bounds()
    streams = Streams(core, keepalive_s=keepalive_s, write_within_s=write_within_s, bounds=bounds)
    backlog = Backlog(core, bounds.pending_per_agent, bounds.kept_per_agent)
    door = Door(core=core, hall=hall, streams=streams, backlog=backlog, routes=ROUTES, version=version("signoff"))
    api = Api(door, Hosts(frozenset((host, *host_names)), reachable=not is_loopback(host)), pages)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(hall.drained)
        stack.callback(backlog.close)
        await backlog.begin()
        runners = await stack.enter_async_context(_runners())
        server = await _server(runners, api.handle, bounds)
        bound = Bound(api=await _listen(stack, server, host, port, "gateway.port"))
        if host == IPV4 and any(is_localhost(name) for name in host_names):
            await _hold_ipv6(stack, server, bound.api)
        if hooks is not None:
            apart = await _server(runners, Hooks(core, hall).handle, bounds)
            bound = _with(bound, hooks=await _listen(stack, apart, *hooks, "gateway.hooks_port"))
        if state_dir is not None:
            sock = stack.enter_context(local_socket(state_dir))
            local = await _server(runners, api.handle, bounds)
            listener = await asyncio.get_running_loop().create_server(local, sock=sock, backlog=_BACKLOG)
            stack.push_async_callback(_closed, listener)
            bound = _with(bound, socket=Path(sock.getsockname()))
        # Runs first at the end: a wait that still stood would hold up the listeners' own ending.
        stack.callback(streams.close)
        stack.callback(hall.close)
        if pages is not None:
            stack.callback(pages.close)
        yield bound


def is_localhost(name: str) -> bool:
    """Whether browsers look that name up nowhere but know it to be this machine (RFC 6761)."""
    return f".{name.lower().rstrip('.')}".endswith(".localhost")


async def _hold_ipv6(stack: AsyncExitStack, server: BoundedServer, api: str) -> None:
    """Listen on `[::1]` too. Browsers try it first for a name that ends in `.localhost`, so whoever held it in our
    place would be handed one-time links and keys. Raises `ConfigError` when somebody does."""
    port = int(api.rpartition(":")[2])
    try:
        sock = _bound_ipv6(port)
    except OSError as error:
        if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            return  # without IPv6 no browser gets there either
        raise ConfigError(
            f"[{IPV6}]:{port} is taken, which browsers call first for the name in gateway.console_url. "
            "End what listens there, or set gateway.port."
        ) from None
    listener = await asyncio.get_running_loop().create_server(server, sock=sock, backlog=_BACKLOG)
    stack.push_async_callback(_closed, listener)


def _bound_ipv6(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((IPV6, port))
    except OSError:
        sock.close()
        raise
    return sock


def _with(bound: Bound, *, hooks: str | None = None, socket: Path | None = None) -> Bound:
    return Bound(api=bound.api, hooks=hooks or bound.hooks, socket=socket or bound.socket)


async def _server(runners: list[web.ServerRunner], handler: object, bounds: Bounds) -> BoundedServer:
    """What answers on a listener; at the end its runner waits for the answers under way."""
    server = BoundedServer(handler, bounds=bounds, access_log=None, lingering_time=_LINGER_S)
    runner = web.ServerRunner(server, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    runners.append(runner)
    return server


@asynccontextmanager
async def _runners() -> AsyncIterator[list[web.ServerRunner]]:
    """Those in the list end together, so that callers who hang on several listeners hold up the end once."""
    runners: list[web.ServerRunner] = []
    try:
        yield runners
    finally:
        await asyncio.gather(*(runner.cleanup() for runner in runners))


async def _listen(stack: AsyncExitStack, server: BoundedServer, host: str, port: int, setting: str) -> str:
    loop = asyncio.get_running_loop()
    try:
        listener = await loop.create_server(server, host, port, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None)
        why = os.strerror(number) if number is not None and number > 0 else str(error)
        if number == errno.EADDRINUSE and await asyncio.to_thread(is_signoff, host, port):
            raise ConfigError(f"Another Signoff gateway listens on {host}:{port}; stop it, or set {setting}.") from None
        raise ConfigError(f"{host}:{port} cannot be listened on: {why}. Set {setting}.") from None
    stack.push_async_callback(_closed, listener)
    address = listener.sockets[0].getsockname()
    name = f"[{address[0]}]" if ":" in address[0] else address[0]
    return f"http://{name}:{address[1]}"


async def _closed(listener: asyncio.Server) -> None:
    """Close a listener. Accepting ends two steps of the loop earlier: asyncio drops a connection, open, that it
    accepted in the very step in which its server is closed, and it would stay so until it is collected."""
    loop = asyncio.get_running_loop()
    for sock in listener.sockets:
        loop.remove_reader(sock)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    listener.close()
