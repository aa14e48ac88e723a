"""The gateway's socket: identify, resume, heartbeats and dispatches."""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from tests.platforms.telegram.changes import Changes

from .limits import RateLimiter
from .messaging import CONTENT_INTENT, GUILDS_INTENT
from .model import JsonObject
from .sessions import Session, SessionBook
from .shapes import guild_json
from .world import BotAccount, World

DISPATCH, HEARTBEAT, IDENTIFY, PRESENCE, RESUME, RECONNECT, INVALID, HELLO, ACK = 0, 1, 2, 3, 6, 7, 9, 10, 11
OTHER_OPS = frozenset({PRESENCE, 4, 8, 31})
HEARTBEAT_EVERY_S = 41.25
WAIT_S = 3600.0
PRIVILEGED_MEMBERS, PRIVILEGED_PRESENCES = 1 << 1, 1 << 8
ALL_INTENTS = (1 << 26) - 1


class Refusal(Exception):
    """The socket must be closed with this code."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Gateway:
    """Serves sockets; the sessions live in the book."""

    def __init__(
        self, world: World, book: SessionBook, limiters: dict[int, RateLimiter], url: Callable[[], str]
    ) -> None:
        self._world = world
        self._book = book
        self._limiters = limiters
        self._url = url
        self.heartbeat_every_s = HEARTBEAT_EVERY_S
        self.silent: Callable[[], bool] = lambda: False

    @property
    def _changes(self) -> Changes:
        return self._book.changes

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One socket, from the handshake to its end."""
        trouble = self._book.trouble
        await self._until(lambda: not trouble.held and not self.silent())
        if trouble.failing_handshakes > 0:
            trouble.failing_handshakes -= 1
            return web.Response(status=502, text="bad gateway")
        socket = web.WebSocketResponse(autoclose=True, autoping=True, max_msg_size=1 << 20, timeout=1.0)
        await socket.prepare(request)
        link = Link(self, self._world, self._book, socket, request)
        try:
            await link.run()
        except Refusal as refusal:
            await socket.close(code=refusal.code, message=refusal.reason.encode())
        except ConnectionResetError:
            pass
        finally:
            await link.end()
        return socket

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self._changes.after(self._changes.revision, WAIT_S)

    def limiter(self, bot_id: int) -> RateLimiter:
        """A bot's budgets."""
        return self._limiters[bot_id]

    def resume_url(self) -> str:
        """Where sessions are resumed: here."""
        return self._url()


class Link:
    """One connected socket and the session it holds."""

    def __init__(
        self, gateway: Gateway, world: World, book: SessionBook, socket: web.WebSocketResponse, request: web.Request
    ) -> None:
        self._gateway = gateway
        self._world = world
        self._book = book
        self._socket = socket
        self._request = request
        self._session: Session | None = None
        self._pump: asyncio.Task[None] | None = None
        self._sends: deque[float] = deque()
        self._packer = zlib.compressobj() if request.query.get("compress") == "zlib-stream" else None
        """One stream over all frames of a socket whose client asked for it."""

    async def run(self) -> None:
        """Say hello and obey until the socket ends; Refusal when it must be closed."""
        await self._send(HELLO, {"heartbeat_interval": int(self._gateway.heartbeat_every_s * 1000), "_trace": []})
        async for message in self._socket:
            if message.type is not WSMsgType.TEXT:
                raise Refusal(4002, "Error while decoding payload.")
            try:
                body = msgspec.json.decode(message.data, type=dict[str, Any])
            except msgspec.DecodeError:
                raise Refusal(4002, "Error while decoding payload.") from None
            if self._session is not None and not self._gateway.limiter(self._session.bot_id).gateway_sends(self._sends):
                raise Refusal(4008, "Rate limited.")
            await self._obey(body)

    async def _obey(self, body: JsonObject) -> None:
        operation, data = body.get("op"), body.get("d")
        if operation == HEARTBEAT:
            await self._heartbeat()
        elif operation in (IDENTIFY, RESUME):
            if self._session is not None:
                raise Refusal(4005, "Already authenticated.")
            fields = data if isinstance(data, dict) else {}
            await (self._identify(fields) if operation == IDENTIFY else self._resume(fields))
        elif self._session is None:
            raise Refusal(4003, "Not authenticated.")
        elif operation not in OTHER_OPS:
            raise Refusal(4001, "Unknown opcode.")

    async def _heartbeat(self) -> None:
        if self._session is not None:
            self._session.heartbeats += 1
            self._book.changes.bump()
        trouble = self._book.trouble
        if not (trouble.heartbeats_muted or trouble.frozen or self._gateway.silent()):
            await self._send(ACK, None)

    def _bot(self, token: object) -> BotAccount:
        for bot in self._world.bots.values():
            if token in (bot.token, f"Bot {bot.token}"):
                return bot
        raise Refusal(4004, "Authentication failed.")

    async def _identify(self, data: JsonObject) -> None:
        bot = self._bot(data.get("token"))
        intents = data.get("intents")
        if not isinstance(intents, int) or intents & ~ALL_INTENTS:
            raise Refusal(4013, "Invalid intent(s).")
        forbidden = PRIVILEGED_MEMBERS | PRIVILEGED_PRESENCES | (0 if bot.content_intent else CONTENT_INTENT)
        if intents & forbidden:
            raise Refusal(4014, "Disallowed intent(s).")
        self._gateway.limiter(bot.id).identify()
        trouble = self._book.trouble
        while trouble.ready_held:
            await self._book.changes.after(self._book.changes.revision, WAIT_S)
        session = self._book.start(bot, intents)
        guilds = [each for each in self._world.guilds.values() if bot.id in each.bots]
        session.add("READY", self._ready(bot, session, data))
        if intents & GUILDS_INTENT:
            for guild in guilds:
                session.add("GUILD_CREATE", guild_json(self._world, guild, bot))
        self._hold(session)

    def _ready(self, bot: BotAccount, session: Session, data: JsonObject) -> JsonObject:
        guilds = [each for each in self._world.guilds.values() if bot.id in each.bots]
        ready: JsonObject = {
            "v": 10,
            "user": self._world.person(bot.id).json() | {"verified": True, "mfa_enabled": False, "email": None},
            "guilds": [{"id": str(each.id), "unavailable": True} for each in guilds],
            "session_id": session.id,
            "resume_gateway_url": self._gateway.resume_url(),
            "application": {"id": str(bot.id), "flags": 0},
            "private_channels": [],
            "_trace": [],
        }
        return ready | ({"shard": data["shard"]} if "shard" in data else {})

    async def _resume(self, data: JsonObject) -> None:
        bot = self._bot(data.get("token"))
        session = self._book.sessions.get(str(data.get("session_id")))
        trouble = self._book.trouble
        refused = trouble.refused_resumes > 0
        trouble.refused_resumes -= 1 if refused else 0
        if refused and trouble.resumes_closed_with is not None:
            raise Refusal(trouble.resumes_closed_with, "The session cannot go on.")
        if refused or session is None or not session.alive or session.bot_id != bot.id:
            if session is not None:
                session.alive = False
            await self._send(INVALID, False)
            return
        sequence = data.get("seq")
        if not isinstance(sequence, int) or not 0 <= sequence <= session.sequence:
            raise Refusal(4007, "Invalid seq.")
        if session.socket is not None and session.socket is not self._socket:
            await session.socket.close(code=4000, message=b"Session resumed elsewhere.")
        session.sent = sequence
        session.resumes += 1
        session.add("RESUMED", {"_trace": []})
        self._hold(session)

    def _hold(self, session: Session) -> None:
        self._session = session
        session.socket, session.request, session.order = self._socket, self._request, self._send
        self._pump = asyncio.create_task(self._pump_events(session), name=f"gateway-{session.id}")
        self._book.changes.bump()

    async def _pump_events(self, session: Session) -> None:
        """Send what is dispatched, in order."""
        changes = self._book.changes
        while not self._socket.closed:
            before = changes.revision
            for number, event, data in session.unsent():
                if self._book.trouble.frozen or self._gateway.silent():
                    break
                try:
                    await self._send(DISPATCH, data, event, number)
                except ConnectionResetError:
                    return
                session.sent = number
                changes.bump()
            await changes.after(before, WAIT_S)

    async def _send(self, operation: int, data: Any, event: str | None = None, number: int | None = None) -> None:
        body = {"op": operation, "d": data, "s": number, "t": event}
        frame = msgspec.json.encode(body)
        if self._packer is None:
            await self._socket.send_str(frame.decode())
        else:
            await self._socket.send_bytes(self._packer.compress(frame) + self._packer.flush(zlib.Z_SYNC_FLUSH))

    async def end(self) -> None:
        """Let go of the session, which stays resumable unless the client closed it with 1000 or 1001."""
        session = self._session
        if session is not None and session.socket is self._socket:
            session.socket = session.request = session.order = None
            if self._socket.close_code in (1000, 1001):
                session.alive = False
        self._book.changes.bump()
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
