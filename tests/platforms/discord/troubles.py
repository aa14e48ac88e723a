"""The part of the control client that spoils things: faults, gateway troubles, limits, time; and the request log."""

from __future__ import annotations

from .client import ControlClient
from .hooks import Signing
from .model import FaultKind, JsonObject, LimitReport, LimitsMode, LogEntry, Ping, SeenSession
from .switches import Malformed


class TroubleClient(ControlClient):
    """`faults.py`, `switches.py` and `limits.py` say what each of these does."""

    # REST

    async def fault(
        self,
        kind: FaultKind,
        *,
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
        """Spoil the next `times` requests of this call, method and channel (any when not given); the fault's id."""
        return await self._call(
            int,
            "fault",
            kind=kind,
            call=call,
            method=method,
            channel_id=channel_id,
            times=times,
            code=code,
            retry_after_s=retry_after_s,
            after_s=after_s,
            via=via,
            is_global=is_global,
        )

    async def clear_faults(self) -> None:
        """Disarm all faults."""
        await self._do("clear_faults")

    async def faults_left(self) -> int:
        """Strikes still armed, over all faults."""
        return await self._call(int, "faults_left")

    async def down(self) -> None:
        """Refuse connections and break the open ones; state, sessions and port are kept."""
        await self._do("down")

    async def blackhole(self) -> None:
        """Take connections and requests, answer nothing."""
        await self._do("blackhole")

    async def up(self) -> None:
        """End `down` or `blackhole`."""
        await self._do("up")

    # Gateway

    async def sessions(self) -> list[SeenSession]:
        """All gateway sessions there were."""
        return await self._call(list[SeenSession], "sessions")

    async def reconnect(self) -> None:
        """Ask every connected client to reconnect (op 7)."""
        await self._do("reconnect")

    async def invalidate_session(self, *, resumable: bool = False) -> None:
        """Tell every connected client that its session is invalid (op 9); a lost one is dead, whoever asks."""
        await self._do("invalidate_session", resumable=resumable)

    async def close_gateway(self, code: int = 4000) -> None:
        """Close every socket with a code; sessions stay resumable."""
        await self._do("close_gateway", code=code)

    async def drop_gateway(self) -> None:
        """Reset every socket's connection without a word; sessions stay resumable."""
        await self._do("drop_gateway")

    async def garble_gateway(self) -> None:
        """Send every socket a binary frame that is no part of any stream."""
        await self._do("garble_gateway")

    async def hold_gateway(self, held: bool = True) -> None:
        """Let handshakes hang until told otherwise, so that what happens meanwhile must be replayed."""
        await self._do("hold_gateway", held=held)

    async def hold_ready(self, held: bool = True) -> None:
        """Let IDENTIFY wait for its READY, until told otherwise."""
        await self._do("hold_ready", held=held)

    async def fail_handshakes(self, times: int = 1) -> None:
        """Answer the next handshakes with 502."""
        await self._do("fail_handshakes", times=times)

    async def refuse_resumes(self, times: int = 1, *, code: int | None = None) -> None:
        """Answer the next RESUMEs with op 9 false, or close with a code and leave the session as it is."""
        await self._do("refuse_resumes", times=times, code=code)

    async def mute_heartbeats(self, muted: bool = True) -> None:
        """Leave heartbeats without an answer, until told otherwise."""
        await self._do("mute_heartbeats", muted=muted)

    async def freeze_gateway(self, frozen: bool = True) -> None:
        """Send nothing on open sockets, until told otherwise."""
        await self._do("freeze_gateway", frozen=frozen)

    async def set_heartbeat(self, every_s: float) -> None:
        """The interval that HELLO names from now on."""
        await self._do("set_heartbeat", every_s=every_s)

    async def malform_next(self, kind: Malformed = "thread_null") -> None:
        """Spoil the next interaction over the gateway so that discord.py's loop ends."""
        await self._do("malform_next", kind=kind)

    async def dispatch(self, event: str, data: JsonObject) -> int:
        """Send any event to all sessions; how many took it."""
        return await self._call(int, "dispatch", event=event, data=data)

    # HTTP interactions

    async def set_interactions_url(self, url: str | None, *, validate: bool = True, bot_id: int | None = None) -> bool:
        """Set or remove the interactions URL as on the developer's page; False, and no change, when its pings fail."""
        return await self._call(bool, "set_interactions_url", url=url, validate=validate, bot_id=bot_id)

    async def interactions_url(self, *, bot_id: int | None = None) -> str | None:
        """Where interactions are posted to; none when they go over the gateway."""
        url = await self._channel.call("interactions_url", {"bot_id": bot_id})
        return None if url is None else str(url)

    async def ping_interactions(self, url: str | None = None, *, bot_id: int | None = None) -> list[Ping]:
        """One good ping and several forged ones, to the URL that is set or another."""
        return await self._call(list[Ping], "ping_interactions", url=url, bot_id=bot_id)

    async def post_interaction(
        self, url: str, body: JsonObject, *, signing: Signing = "good", bot_id: int | None = None
    ) -> int:
        """Post any body with a signature made well or badly; the status, 0 when nobody answers."""
        return await self._call(int, "post_interaction", url=url, body=body, signing=signing, bot_id=bot_id)

    # Limits, time, log

    async def set_limits(
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
        await self._do(
            "set_limits",
            mode=mode,
            global_per_s=global_per_s,
            channel_posts=channel_posts,
            channel_edits=channel_edits,
            old_edits_per_hour=old_edits_per_hour,
            invalid_per_10_min=invalid_per_10_min,
            gateway_sends_per_minute=gateway_sends_per_minute,
        )

    async def limit_report(self, *, bot_id: int | None = None) -> LimitReport:
        """Requests beyond the budgets; `total` is 0 for a bot that kept to them."""
        return await self._call(LimitReport, "limit_report", bot_id=bot_id)

    async def reset_limits(self) -> None:
        """Forget what was spent and counted."""
        await self._do("reset_limits")

    async def advance_clock(self, seconds_s: float) -> None:
        """Let time pass for limits, deadlines, tokens and message dates."""
        await self._do("advance_clock", seconds_s=seconds_s)

    async def freeze_clock(self, *, frozen: bool = True) -> None:
        """Let the server's time stand still, or run on."""
        await self._do("freeze_clock", frozen=frozen)

    async def log(self, *, call: str | None = None, channel_id: int | None = None) -> list[LogEntry]:
        """REST requests in the order they came."""
        return await self._call(list[LogEntry], "log", call=call, channel_id=channel_id)

    async def clear_log(self) -> None:
        """Forget the requests so far."""
        await self._do("clear_log")
