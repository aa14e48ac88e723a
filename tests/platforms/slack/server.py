"""The running server: listeners, deliveries and the switches of its network."""

from __future__ import annotations

from types import TracebackType

from aiohttp import ClientSession, DummyCookieJar, web

from tests.platforms.telegram.changes import Changes
from tests.platforms.telegram.clock import ServerClock
from tests.platforms.telegram.control import Dispatcher

from .acting import Acting
from .api import WebApi
from .budgets import RateLimits
from .building import Building
from .deliveries import Deliveries
from .events import Events
from .faults import FaultBook
from .filing import Filing
from .interacting import Interacting
from .messaging import Messaging
from .model import WhereAt
from .places import Places
from .platform import SlackPlatform
from .posting import Posting
from .presses import PressBook
from .requestlog import RequestLog
from .responding import Responding
from .sockets import Sockets
from .switches import Switches
from .timeline import Timeline
from .viewing import Viewing
from .wire import BODY_MAX_BYTES, NetworkState, Wire
from .world import World

HOST = "127.0.0.1"
STOP_WITHIN_S = 0.5


class SlackServer:
    """A Slack workspace on loopback; `platform` is how tests build it and act in it.

    `control` opens the control API too, at `/_control/` on the same port and on a port of its own that stays reachable
    while Slack is down. A `clock` that is given may be moved by others at any time.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        control: bool = False,
        clock: ServerClock | None = None,
        limits: RateLimits | None = None,
    ) -> None:
        self.timeline = Timeline(clock or ServerClock(), foreign=clock is not None)
        self.changes = Changes()
        self.faults = FaultBook()
        self.world = World(self.timeline.clock, limits or RateLimits(), self.changes)
        self.requests = RequestLog(self.timeline.clock)
        self.deliveries = Deliveries(self.timeline, self.faults, self.changes)
        self.sockets = Sockets(self.timeline, self.deliveries, self.faults, self.requests, self.changes)
        self.posting = Posting(self.timeline, self.deliveries)
        self.deliveries.ways = {"socket": self.sockets, "http": self.posting}
        self._assemble()
        self.port = port
        self.control_port: int | None = None
        self._control = control
        self._runner: web.AppRunner | None = None
        self._control_runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None

    def _assemble(self) -> None:
        """Put the parts together that serve requests and controls."""
        presses = PressBook(self.timeline.clock, self.changes)
        events = Events(self.world, self.deliveries)
        places = Places(self.world)
        messaging = Messaging(self.world, places, events, presses)
        viewing = Viewing(self.world, presses)
        responding = Responding(self.world, messaging, presses, viewing)
        self.deliveries.outcomes = responding
        self.filing = Filing(self.world, places, messaging)
        self.interacting = Interacting(self.world, presses, viewing, self.deliveries)
        self.filing.base = self.interacting.base = lambda: f"http://{HOST}:{self.port}"
        self.sockets.base = lambda: f"ws://{HOST}:{self.port}"
        api = WebApi(self.world, places, messaging, self.filing, viewing, self.sockets)
        self.wire = Wire(
            self.world, api, self.filing, responding, presses, self.sockets, self.faults, self.requests, self.changes
        )
        self.dispatcher = Dispatcher(
            Building(self.world, events, messaging, self.posting),
            Acting(self.world, events, messaging, presses, viewing, self.deliveries),
            self.interacting,
            Switches(self),
        )
        self.platform = SlackPlatform(self.dispatcher)

    async def __aenter__(self) -> SlackServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def where(self) -> WhereAt:
        """The addresses, once started."""
        control_url = None if self.control_port is None else f"http://{HOST}:{self.control_port}"
        return WhereAt(url=f"http://{HOST}:{self.port}", control_url=control_url)

    async def start(self) -> None:
        """Listen; OSError when the port is taken."""
        self.posting.session = ClientSession(cookie_jar=DummyCookieJar())
        app = web.Application(client_max_size=BODY_MAX_BYTES)
        app.add_routes(self.wire.routes())
        if self._control:
            app.router.add_post("/_control/{name}", self.dispatcher.handle)
            control_app = web.Application(client_max_size=BODY_MAX_BYTES)
            control_app.router.add_post("/_control/{name}", self.dispatcher.handle)
            self._control_runner = await _runner(control_app)
            self.control_port = (await _listen(self._control_runner, 0))[1]
        self._runner = await _runner(app)
        self._site, self.port = await _listen(self._runner, self.port)

    async def stop(self) -> None:
        """Break what is open and leave nothing running."""
        await self.deliveries.stop()
        await self.sockets.stop()
        if self.posting.session is not None:
            await self.posting.session.close()
            self.posting.session = None
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
        self.sockets.silent = state == "blackhole"
        self.posting.is_up = state == "up"
        if state != "blackhole":
            _break_connections(self._runner)
        if state != "down" and self._site is None:
            self._site, self.port = await _listen(self._runner, self.port)
        self.changes.bump()


async def _runner(app: web.Application) -> web.AppRunner:
    """Handlers end with their connection."""
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
    for connection in () if runner.server is None else runner.server.connections:
        if connection.transport is not None:
            connection.transport.abort()
