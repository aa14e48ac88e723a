"""Faults, network, limits, clock and log. Names are those of `DiscordPlatform`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from .faults import Fault
from .gateway import INVALID, RECONNECT, Gateway
from .hooks import HookSender, Signing
from .model import FaultKind, JsonObject, LimitReport, LimitsMode, LogEntry, Ping, SeenSession, WhereAt
from .sessions import SessionBook
from .world import World

if TYPE_CHECKING:
    from .server import DiscordServer

Malformed = Literal["thread_null", "channel_null", "token_missing"]


class Switches:
    """What tests change about the server as a whole."""

    def __init__(self, server: DiscordServer) -> None:
        self._server = server

    def where(self) -> WhereAt:
        """The addresses of the server."""
        return self._server.where()

    async def changed(self, since: int, timeout_s: float) -> int:
        """The revision of the state once it exceeds `since`, or after `timeout_s`."""
        return await self._server.changes.after(since, timeout_s)

    def log(self, call: str | None = None, channel_id: int | None = None) -> list[LogEntry]:
        """REST requests so far."""
        return self._server.requests.entries(call, channel_id)

    def clear_log(self) -> None:
        """Forget the requests so far."""
        self._server.requests.clear()

    def fault(
        self,
        *,
        kind: FaultKind,
        call: str | None = None,
        method: str | None = None,
        channel_id: int | None = None,
        times: int = 1,
        code: int | None = None,
        retry_after_s: float = 1.0,
        after_s: float | None = None,
        via: bool = True,
        is_global: bool = False,
    ) -> int:
        """Arm a fault; its id."""
        fault = Fault(
            fault_id=0,
            kind=kind,
            call=call,
            method=method,
            channel_id=channel_id,
            times_left=times,
            code=code,
            retry_after_s=retry_after_s,
            after_s=after_s,
            via=via,
            is_global=is_global,
        )
        return self._server.faults.arm(fault)

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
        global_per_s: int | None = None,
        channel_posts: int | None = None,
        channel_edits: int | None = None,
        old_edits_per_hour: int | None = None,
        invalid_per_10_min: int | None = None,
        gateway_sends_per_minute: int | None = None,
    ) -> None:
        """Change some of the rate limits, for all bots."""
        given = {
            "mode": mode,
            "global_per_s": global_per_s,
            "channel_posts": channel_posts,
            "channel_edits": channel_edits,
            "old_edits_per_hour": old_edits_per_hour,
            "invalid_per_10_min": invalid_per_10_min,
            "gateway_sends_per_minute": gateway_sends_per_minute,
        }
        server = self._server
        changed = {name: value for name, value in given.items() if value is not None}
        server.limits = msgspec.structs.replace(server.limits, **changed)
        for limiter in server.limiters.values():
            limiter.limits = server.limits

    def limit_report(self, bot_id: int | None = None) -> LimitReport:
        """What one bot (else the first) did beyond its budgets."""
        return self._server.limiters[self._server.world.bot(bot_id).id].report()

    def reset_limits(self) -> None:
        """Forget what was spent and counted."""
        for limiter in self._server.limiters.values():
            limiter.reset()

    def advance_clock(self, seconds_s: float) -> None:
        """Move the server's clock forward."""
        self._server.clock.advance(seconds_s)
        self._server.changes.bump()

    def freeze_clock(self, frozen: bool = True) -> None:
        """Let the server's clock stand still, or run on."""
        self._server.clock.freeze(frozen)


class GatewaySwitches:
    """What goes wrong at the gateway."""

    def __init__(self, book: SessionBook, gateway: Gateway) -> None:
        self._book = book
        self._gateway = gateway

    def sessions(self) -> list[SeenSession]:
        """All gateway sessions there were."""
        return self._book.seen()

    async def reconnect(self) -> None:
        """Ask every connected client to reconnect (op 7)."""
        for session in list(self._book.sessions.values()):
            if session.order is not None:
                await session.order(RECONNECT, None)

    async def invalidate_session(self, resumable: bool = False) -> None:
        """Tell every connected client that its session is invalid (op 9)."""
        for session in list(self._book.sessions.values()):
            if session.order is not None:
                await session.order(INVALID, resumable)
            session.alive = session.alive and resumable
        self._book.changes.bump()

    async def close_gateway(self, code: int = 4000) -> None:
        """Close every socket with a code; sessions stay resumable."""
        for session in list(self._book.sessions.values()):
            if session.socket is not None:
                await session.socket.close(code=code)

    def drop_gateway(self) -> None:
        """Reset every socket's connection without a word."""
        for session in self._book.sessions.values():
            if session.request is not None and session.request.transport is not None:
                session.request.transport.abort()

    async def garble_gateway(self) -> None:
        """Send every socket a binary frame that is no part of any stream."""
        for session in list(self._book.sessions.values()):
            if session.socket is not None:
                await session.socket.send_bytes(b"garbled\x00\x00\xff\xff")

    def hold_gateway(self, held: bool = True) -> None:
        """Let handshakes hang, until told otherwise."""
        self._book.trouble.held = held
        self._book.changes.bump()

    def hold_ready(self, held: bool = True) -> None:
        """Let IDENTIFY wait for its READY, until told otherwise."""
        self._book.trouble.ready_held = held
        self._book.changes.bump()

    def fail_handshakes(self, times: int = 1) -> None:
        """Answer the next handshakes with 502."""
        self._book.trouble.failing_handshakes = times

    def refuse_resumes(self, times: int = 1, code: int | None = None) -> None:
        """Answer the next RESUMEs with op 9 false, or close with a code and leave the session as it is."""
        self._book.trouble.refused_resumes = times
        self._book.trouble.resumes_closed_with = code

    def mute_heartbeats(self, muted: bool = True) -> None:
        """Leave heartbeats without an answer, until told otherwise."""
        self._book.trouble.heartbeats_muted = muted

    def freeze_gateway(self, frozen: bool = True) -> None:
        """Send nothing on open sockets, until told otherwise."""
        self._book.trouble.frozen = frozen
        self._book.changes.bump()

    def set_heartbeat(self, every_s: float) -> None:
        """The interval that HELLO names from now on."""
        self._gateway.heartbeat_every_s = every_s

    def malform_next(self, kind: Malformed = "thread_null") -> None:
        """Spoil the next interaction that goes over the gateway."""
        self._book.trouble.malformed.append(kind)

    def dispatch(self, event: str, data: JsonObject) -> int:
        """Send any event to all sessions; how many there are."""
        bots = {each.bot_id for each in self._book.sessions.values()}
        return sum(self._book.tell(bot_id, event, data, 0) for bot_id in bots)


class HookSwitches:
    """The interactions URL and what is posted to it."""

    def __init__(self, world: World, hooks: HookSender) -> None:
        self._world = world
        self._hooks = hooks

    async def set_interactions_url(self, url: str | None, validate: bool = True, bot_id: int | None = None) -> bool:
        """Set or remove the URL as on the developer's page; False, and no change, when its pings fail."""
        bot = self._world.bot(bot_id)
        if url is not None and validate and not await self._hooks.verify(bot, url):
            return False
        bot.interactions_url = url
        return True

    def interactions_url(self, bot_id: int | None = None) -> str | None:
        """Where interactions are posted to; none when they go over the gateway."""
        return self._world.bot(bot_id).interactions_url

    async def ping_interactions(self, url: str | None = None, bot_id: int | None = None) -> list[Ping]:
        """One good ping and several forged ones."""
        bot = self._world.bot(bot_id)
        target = url or bot.interactions_url
        if target is None:
            raise LookupError("no interactions URL is set")
        return await self._hooks.ping(bot, target)

    async def post_interaction(
        self,
        url: str,
        body: JsonObject,
        signing: Signing = "good",
        bot_id: int | None = None,
    ) -> int:
        """Post any body to a URL with a signature made well or badly; the status, 0 when nobody answers."""
        bot = self._world.bot(bot_id)
        raw = msgspec.json.encode(body)
        return (await self._hooks.post_raw(url, raw, self._hooks.signed(bot, raw, signing)))[0]
