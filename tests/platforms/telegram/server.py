"""The running server: listeners, webhook deliveries and the switches of its network."""

from __future__ import annotations

import asyncio
from types import TracebackType

import msgspec
from aiohttp import ClientSession, DummyCookieJar, web

from .acting import Acting
from .api import BotApi
from .building import Building
from .changes import Changes
from .clock import ServerClock
from .control import Dispatcher
from .faults import FaultBook
from .limits import RateLimits
from .model import FaultKind, LimitReport, LimitsMode, LogEntry, WhereAt
from .platform import TelegramPlatform
from .presses import PressBook
from .requestlog import RequestLog
from .webhook import WebhookSender
from .wire import BODY_MAX_BYTES, NetworkState, Wire
from .world import BotAccount, World

HOST = "127.0.0.1"
STOP_WITHIN_S = 0.5


class TelegramServer:
    """A Bot API server on loopback; `platform` is how tests build its world and act in it.

    `control` opens the control API too, at `/_control/` on the same port and on a port of its own that stays reachable
    while the Bot API is down.
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
        self.changes = Changes()
        self.faults = FaultBook()
        self.world = World(self.clock, limits or RateLimits(), self.changes)
        self.requests = RequestLog(self.clock)
        presses = PressBook(self.clock)
        self.api = BotApi(self.world, presses, self.changes)
        self.wire = Wire(self.world, self.api, self.faults, self.requests, self.changes)
        self.building = Building(self.world, self.changes, on_bot=self._serve_bot)
        self.dispatcher = Dispatcher(
            self.building,
            Acting(self.world, presses, self.changes),
            Switches(self),
        )
        self.platform = TelegramPlatform(self.dispatcher)
        self.port = port
        self.control_port: int | None = None
        self._control = control
        self._runner: web.AppRunner | None = None
        self._control_runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None
        self._session: ClientSession | None = None
        self._senders: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> TelegramServer:
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
        self._session = ClientSession(cookie_jar=DummyCookieJar())
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
        for bot in self.world.bots.values():
            self._start_sender(bot, self._session)

    async def stop(self) -> None:
        """Break what is open and leave nothing running."""
        for task in self._senders:
            task.cancel()
        await asyncio.gather(*self._senders, return_exceptions=True)
        self._senders.clear()
        if self._session is not None:
            await self._session.close()
            self._session = None
        for runner in (self._runner, self._control_runner):
            if runner is not None:
                _break_connections(runner)
                await runner.cleanup()
        self._runner = self._control_runner = self._site = None

    def _serve_bot(self, bot: BotAccount) -> None:
        if self._session is not None:
            self._start_sender(bot, self._session)

    def _start_sender(self, bot: BotAccount, session: ClientSession) -> None:
        sender = WebhookSender(bot.updates, session, self.faults, self.clock, is_up=lambda: self.wire.state == "up")
        self._senders.append(asyncio.create_task(sender.run(), name=f"webhook-{bot.id}"))

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
        for bot in self.world.bots.values():
            bot.updates.changes.bump()
        self.changes.bump()


class Switches:
    """Faults, network, limits, clock and log. Names are those of `TelegramPlatform`."""

    def __init__(self, server: TelegramServer) -> None:
        self._server = server

    def where(self) -> WhereAt:
        """The addresses of the server."""
        return self._server.where()

    async def changed(self, since: int, timeout_s: float) -> int:
        """The revision of the state once it exceeds `since`, or after `timeout_s`."""
        return await self._server.changes.after(since, timeout_s)

    def log(self, method: str | None = None, chat_id: int | None = None) -> list[LogEntry]:
        """Requests so far; getUpdates only by name."""
        return self._server.requests.entries(method, chat_id)

    def clear_log(self) -> None:
        """Forget the requests so far."""
        self._server.requests.clear()

    def fault(
        self,
        *,
        kind: FaultKind,
        method: str | None = None,
        chat_id: int | None = None,
        times: int = 1,
        retry_after_s: int = 1,
        after_s: float | None = None,
        migrate_to: int | None = None,
    ) -> int:
        """Arm a fault; its id."""
        return self._server.faults.arm(
            kind,
            method=method,
            chat_id=chat_id,
            times=times,
            retry_after_s=retry_after_s,
            after_s=after_s,
            migrate_to=migrate_to,
        )

    def clear_faults(self) -> None:
        """Disarm all faults."""
        self._server.faults.clear()

    def faults_left(self) -> int:
        """Strikes still armed."""
        return self._server.faults.left()

    async def down(self) -> None:
        """Refuse connections."""
        await self._server.set_network("down")

    async def blackhole(self) -> None:
        """Take connections and requests, answer nothing."""
        await self._server.set_network("blackhole")

    async def up(self) -> None:
        """Serve again, on the same port with the same state."""
        await self._server.set_network("up")

    def set_limits(
        self,
        *,
        mode: LimitsMode | None = None,
        overall_per_s: int | None = None,
        chat_per_s: float | None = None,
        chat_burst: int | None = None,
        group_per_minute: int | None = None,
        group_edits_per_minute: int | None = None,
    ) -> None:
        """Change some of the rate limits, for all bots."""
        given = {
            "mode": mode,
            "overall_per_s": overall_per_s,
            "chat_per_s": chat_per_s,
            "chat_burst": chat_burst,
            "group_per_minute": group_per_minute,
            "group_edits_per_minute": group_edits_per_minute,
        }
        world = self._server.world
        changed = {name: value for name, value in given.items() if value is not None}
        world.limits = msgspec.structs.replace(world.limits, **changed)
        for bot in world.bots.values():
            bot.limiter.limits = world.limits

    def limit_report(self, bot_id: int | None = None) -> LimitReport:
        """What one bot (else the first) did beyond its budgets."""
        return self._server.world.bot(bot_id).limiter.report()

    def reset_limits(self) -> None:
        """Forget what was spent and counted."""
        for bot in self._server.world.bots.values():
            bot.limiter.reset()

    def advance_clock(self, seconds_s: float) -> None:
        """Move the server's clock forward."""
        self._server.clock.advance(seconds_s)
        self._server.changes.bump()

    def freeze_clock(self, frozen: bool = True) -> None:
        """Let the server's clock stand still, or run on."""
        self._server.clock.freeze(frozen)


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
