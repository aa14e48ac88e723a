"""The running server: listeners, sessions, and the parts it is made of."""

from __future__ import annotations

from types import TracebackType

from aiohttp import ClientSession, DummyCookieJar, web

from tests.platforms.telegram.changes import Changes
from tests.platforms.telegram.clock import ServerClock
from tests.platforms.telegram.control import Dispatcher

from .acting import Acting
from .api import RestApi
from .building import Building
from .callbacks import Callbacks
from .faults import FaultBook
from .gateway import Gateway
from .hooks import HookSender
from .interactions import InteractionBook
from .limits import RateLimiter, RateLimits
from .messaging import Messenger
from .model import WhereAt
from .platform import DiscordPlatform
from .requestlog import RequestLog
from .sessions import SessionBook
from .switches import GatewaySwitches, HookSwitches, Switches
from .wire import API, BODY_MAX_BYTES, NetworkState, Wire
from .world import World

HOST = "127.0.0.1"
STOP_WITHIN_S = 0.5


class DiscordServer:
    """A Discord on loopback; `platform` is how tests build its world and act in it.

    `control` opens the control API too, at `/_control/` on the same port and on a port of its own that stays reachable
    while Discord is down.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        control: bool = False,
        clock: ServerClock | None = None,
        limits: RateLimits | None = None,
    ) -> None:
        self.clock = clock or ServerClock()
        self.limits = limits or RateLimits()
        self.changes = Changes()
        self.world = World(self.clock, self.changes)
        self.limiters: dict[int, RateLimiter] = {}
        self.faults = FaultBook()
        self.requests = RequestLog(self.clock)
        self.sessions = SessionBook(self.world, self.changes)
        self.interactions = InteractionBook(self.world)
        messenger = Messenger(self.world, self.sessions.tell)
        callbacks = Callbacks(self.world, self.interactions, messenger)
        self.hooks = HookSender(self.world, callbacks, self.faults)
        self.api = RestApi(self.world, messenger, callbacks, self.interactions)
        self.api.limiters = self.limiters
        self.api.verify = self.hooks.verify
        self.wire = Wire(self.world, self.api, self.faults, self.requests, self.changes)
        self.gateway = Gateway(self.world, self.sessions, self.limiters, lambda: self.where().gateway_url)
        self.gateway.silent = lambda: self.wire.silent
        self.dispatcher = Dispatcher(
            Building(self.world, messenger, self.sessions, self.add_limiter),
            Acting(self.world, self.interactions, messenger, self.sessions, self.hooks),
            Switches(self),
            GatewaySwitches(self.sessions, self.gateway),
            HookSwitches(self.world, self.hooks),
        )
        self.platform = DiscordPlatform(self.dispatcher)
        self.port = port
        self.control_port: int | None = None
        self._control = control
        self._runner: web.AppRunner | None = None
        self._control_runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None
        self._session: ClientSession | None = None

    async def __aenter__(self) -> DiscordServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def add_limiter(self, bot_id: int) -> None:
        """Budgets for a new bot."""
        self.limiters[bot_id] = RateLimiter(self.clock, self.limits)

    def where(self) -> WhereAt:
        """The addresses, once started."""
        url = f"http://{HOST}:{self.port}"
        return WhereAt(
            url=url,
            api_base_url=url + API,
            gateway_url=f"ws://{HOST}:{self.port}/gw/",
            control_url=None if self.control_port is None else f"http://{HOST}:{self.control_port}",
        )

    async def start(self) -> None:
        """Listen; OSError when the port is taken."""
        self._session = ClientSession(cookie_jar=DummyCookieJar())
        await self.hooks.start(self._session)
        app = web.Application(client_max_size=BODY_MAX_BYTES)
        app.add_routes([*self.wire.routes(), web.get("/gw/", self.gateway.handle)])
        if self._control:
            app.router.add_post("/_control/{name}", self.dispatcher.handle)
            control_app = web.Application(client_max_size=BODY_MAX_BYTES)
            control_app.router.add_post("/_control/{name}", self.dispatcher.handle)
            self._control_runner = await _runner(control_app)
            self.control_port = (await _listen(self._control_runner, 0))[1]
        self._runner = await _runner(app)
        self._site, self.port = await _listen(self._runner, self.port)
        self.api.gateway_url = self.where().gateway_url

    async def stop(self) -> None:
        """Break what is open and leave nothing running."""
        await self.hooks.stop()
        if self._session is not None:
            await self._session.close()
            self._session = None
        for runner in (self._runner, self._control_runner):
            if runner is not None:
                _break_connections(runner)
                await runner.cleanup()
        self._runner = self._control_runner = self._site = None

    async def set_network(self, state: NetworkState) -> None:
        """Change the network's state; connections that are open break, except that a black hole keeps them."""
        if self._runner is None:
            raise ValueError("the server is not running")
        self.wire.state = state
        if state == "down" and self._site is not None:
            await self._site.stop()
            self._site = None
        if state != "blackhole":
            _break_connections(self._runner)
        if state != "down" and self._site is None:
            self._site, self.port = await _listen(self._runner, self.port)
        self.changes.bump()


async def _runner(app: web.Application) -> web.AppRunner:
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=STOP_WITHIN_S)
    await runner.setup()
    return runner


async def _listen(runner: web.AppRunner, port: int) -> tuple[web.TCPSite, int]:
    """Listen on loopback; the site and its port."""
    site = web.TCPSite(runner, HOST, port, reuse_address=True)
    await site.start()
    return site, int(runner.addresses[-1][1])


def _break_connections(runner: web.AppRunner) -> None:
    """Reset every open connection."""
    if runner.server is None:
        return
    for connection in runner.server.connections:
        if connection.transport is not None:
            connection.transport.abort()
