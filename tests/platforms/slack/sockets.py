"""Socket Mode: single-use tickets, connections, envelopes out, acknowledgements in."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
from aiohttp import WSMsgType, web

from tests.platforms.telegram.changes import Changes

from .deliveries import NOBODY, TIMED_OUT, Deliveries, Envelope
from .faults import OF_SOCKETS, FaultBook
from .model import DisconnectReason, JsonObject, SocketState
from .requestlog import RequestLog
from .timeline import Timeline
from .world import App

SOCKETS_MAX = 10
"""Connections an app may have at a time ("Using Socket Mode")."""
TICKET_LIFE_S = 30.0
GRACE_S = 10.0
"""Time between the order to refresh and the server's own close; Slack announces about ten seconds."""
PING_EVERY_S = 10.0
CLOSING = frozenset({WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR})


@dataclass(kw_only=True, eq=False)
class Link:
    """One connection."""

    number: int
    app: App
    ws: web.WebSocketResponse
    request: web.Request
    draining: bool = False
    deaf: bool = False
    mute: bool = False
    carrying: set[Envelope] = field(default_factory=set)

    async def send(self, frame: JsonObject) -> bool:
        """Send a frame; False when the connection is gone."""
        return await self.send_text(msgspec.json.encode(frame).decode())

    async def send_text(self, text: str) -> bool:
        """Send any text; False when the connection is gone."""
        try:
            await self.ws.send_str(text)
        except (ConnectionError, RuntimeError):
            return False
        return True

    def abort(self) -> None:
        """Reset the connection."""
        if self.request.transport is not None:
            self.request.transport.abort()


class Sockets:
    """All connections, and the way of deliveries over them."""

    def __init__(
        self, timeline: Timeline, deliveries: Deliveries, faults: FaultBook, log: RequestLog, changes: Changes
    ) -> None:
        self.base: Callable[[], str] = str
        """The address that tickets lead to, known once the server listens."""
        self.silent = False
        """Whether the network swallows everything both ways."""
        self._timeline = timeline
        self._deliveries = deliveries
        self._faults = faults
        self._log = log
        self._changes = changes
        self._tickets: dict[str, tuple[App, float]] = {}
        self._links: list[Link] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._opened = 0
        self._turn = 0

    def ticket(self, app: App) -> str:
        """A new address that can be used once."""
        ticket = secrets.token_hex(16)
        self._tickets[ticket] = (app, self._timeline.now())
        return f"{self.base()}/link/?ticket={ticket}&app_id={app.app_id}"

    def links(self, bot: str | None = None) -> list[Link]:
        """Open connections."""
        return [link for link in self._links if bot in (None, link.app.bot)]

    def states(self, bot: str | None) -> list[SocketState]:
        """The same as tests see them."""
        return [
            SocketState(number=link.number, bot=link.app.bot, draining=link.draining, deaf=link.deaf)
            for link in self.links(bot)
        ]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """A client that comes with a ticket; 403 for one that is unknown, used or too old."""
        found = self._tickets.pop(request.query.get("ticket", ""), None)
        number = self._log.open("socket", None if found is None else found[0].bot, {}, None)
        fault = self._faults.strike("socket", None, family=OF_SOCKETS) if found else None
        if found is None or self._timeline.now() - found[1] > TICKET_LIFE_S:
            return self._refuse(number, "refused", "invalid_ticket")
        if fault is not None and fault.kind == "handshake":
            return self._refuse(number, "fault:handshake", "")
        self._log.close(number, status=101, outcome="done" if fault is None else f"fault:{fault.kind}", effect=True)
        ws = web.WebSocketResponse(autoping=False, timeout=0.1)
        await ws.prepare(request)
        self._opened += 1
        link = Link(number=self._opened, app=found[0], ws=ws, request=request)
        if fault is not None:
            link.deaf = fault.kind in ("deaf", "no_hello")
            link.mute = fault.kind in ("no_pong", "no_hello")
        await self._serve(link, hello=fault is None or fault.kind != "no_hello")
        return ws

    def _refuse(self, number: int, outcome: str, error: str) -> web.Response:
        self._log.close(number, status=403, outcome=outcome, error=error, effect=False)
        self._changes.bump()
        return web.Response(status=403)

    async def _serve(self, link: Link, *, hello: bool) -> None:
        """Greet, then read until the connection ends."""
        count = len(self.links(link.app.bot)) + 1
        if count > SOCKETS_MAX:
            await link.send(_disconnect("too_many_websockets"))
            await link.ws.close()
            return
        if hello:
            await link.send(_hello(link.app, count))
        self._links.append(link)
        self._changes.bump()
        try:
            await self._read(link)
        finally:
            self._drop(link)

    async def _read(self, link: Link) -> None:
        while True:
            try:
                message = await link.ws.receive(timeout=PING_EVERY_S)
            except TimeoutError:
                if not link.mute and not self.silent:
                    await link.ws.ping(b"Ping from applink")
                continue
            if message.type in CLOSING:
                return
            if self.silent:
                continue
            if message.type is WSMsgType.PING and not link.mute:
                await link.ws.pong(message.data)
            elif message.type is WSMsgType.TEXT:
                self._take(message.data)

    def _take(self, text: str) -> None:
        """An acknowledgement; anything else is ignored."""
        try:
            frame = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return
        if not isinstance(frame, dict) or not isinstance(frame.get("envelope_id"), str):
            return
        envelope = self._deliveries.of(frame["envelope_id"])
        if envelope is not None:
            payload = frame.get("payload")
            self._deliveries.acknowledge(envelope, payload if isinstance(payload, dict) else {})

    def _drop(self, link: Link) -> None:
        if link in self._links:
            self._links.remove(link)
        for envelope in list(link.carrying):
            envelope.let_go()
        self._changes.bump()

    def _next(self, app: App) -> Link | None:
        """The connection whose turn it is among those that take envelopes."""
        ready = [link for link in self._links if link.app is app and not link.draining]
        if not ready:
            return None
        self._turn += 1
        return ready[self._turn % len(ready)]

    async def carry(self, envelope: Envelope, *, copies: int, abort: bool) -> str | None:
        """As `Way.carry`: over one connection, and over another when that one goes before the acknowledgement."""
        while True:
            link = self._next(envelope.app)
            if link is None:
                return NOBODY
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            envelope.turn = turn
            link.carrying.add(envelope)
            envelope.sockets.append(link.number)
            try:
                for _ in range(0 if link.deaf or self.silent else copies):
                    await link.send(envelope.frame())
                if abort:
                    abort = False
                    link.abort()
                if not await self._timeline.before(turn, envelope.deadline):
                    return TIMED_OUT
            finally:
                link.carrying.discard(envelope)
            if envelope.state == "acknowledged":
                return None
            if envelope.state != "pending":
                return TIMED_OUT

    async def disconnect(self, reason: DisconnectReason) -> int:
        """Tell all connections to go; how many."""
        links = list(self._links)
        for link in links:
            await link.send(_disconnect(reason))
            if reason == "warning":
                continue
            link.draining = True
            task = asyncio.create_task(self._close(link, 0.0 if reason == "link_disabled" else GRACE_S))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._changes.bump()
        return len(links)

    async def _close(self, link: Link, after_s: float) -> None:
        await self._timeline.until(self._timeline.now() + after_s)
        await link.ws.close()

    async def raw(self, app: App, text: str) -> int:
        """Any text to all connections of an app."""
        return sum([await link.send_text(text) for link in self.links(app.bot)])

    async def stop(self) -> None:
        """Leave nothing behind."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for link in list(self._links):
            link.abort()


def _hello(app: App, count: int) -> JsonObject:
    return {
        "type": "hello",
        "num_connections": count,
        "debug_info": {"host": "applink-loopback", "build_number": 1, "approximate_connection_time": 18060},
        "connection_info": {"app_id": app.app_id},
    }


def _disconnect(reason: str) -> JsonObject:
    return {"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-loopback"}}
