"""The part of `SlackPlatform` that is not the workspace: the way to a server, waiting, faults, limits, time and log."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Self, TypeVar

import msgspec

from tests.platforms.telegram.control import ControlChannel, RemoteControl

from .model import DisconnectReason, FaultKind, LimitReport, LimitsMode, LogEntry, SocketState, WhereAt

T = TypeVar("T")
WAIT_S = 15.0


class ServerHandle:
    """Calls the controls of a server in this process or in another."""

    def __init__(self, channel: ControlChannel) -> None:
        self._channel = channel

    @classmethod
    async def connect(cls, url: str) -> Self:
        """A server with its control API open at `url`; from then on its own control port is used."""
        first = cls(RemoteControl(url))
        try:
            where = await first.where()
        finally:
            await first.aclose()
        return cls(RemoteControl(where.control_url or url))

    async def aclose(self) -> None:
        """Let go of a server in another process; it goes on running."""
        await self._channel.aclose()

    async def _call(self, result: type[T], name: str, /, **arguments: object) -> T:
        answer = await self._channel.call(name, msgspec.to_builtins(arguments))
        return msgspec.convert(answer, result)

    async def _do(self, name: str, /, **arguments: object) -> None:
        await self._channel.call(name, msgspec.to_builtins(arguments))

    async def where(self) -> WhereAt:
        """Addresses of Slack and of its control API."""
        return await self._call(WhereAt, "where")

    async def base_url(self) -> str:
        """What client libraries call `base_url`: the method follows it."""
        return f"{(await self.where()).url}/api/"

    # Waiting

    async def until(
        self, look: Callable[[], Awaitable[T]], predicate: Callable[[T], bool], *, timeout_s: float = WAIT_S
    ) -> T:
        """What `look` gives once `predicate` holds for it; asked again after each change of the server's state."""
        deadline = time.monotonic() + timeout_s
        revision = await self._changed(-1, 0.0)
        while True:
            seen = await look()
            if predicate(seen):
                return seen
            if time.monotonic() > deadline:
                raise TimeoutError(f"not so within {timeout_s} s; there is {seen!r}")
            revision = await self._changed(revision, max(0.0, deadline - time.monotonic()))

    async def _changed(self, since: int, timeout_s: float) -> int:
        return await self._call(int, "changed", since=since, timeout_s=timeout_s)

    async def wait_for_log(
        self,
        predicate: Callable[[list[LogEntry]], bool],
        *,
        method: str | None = None,
        channel: str | None = None,
        timeout_s: float = WAIT_S,
    ) -> list[LogEntry]:
        """The requests (see `log`) as soon as `predicate` holds for them."""
        return await self.until(lambda: self.log(method=method, channel=channel), predicate, timeout_s=timeout_s)

    # Sockets

    async def sockets(self, *, bot: str | None = None) -> list[SocketState]:
        """Open Socket Mode connections."""
        return await self._call(list[SocketState], "sockets", bot=bot)

    async def disconnect(self, reason: DisconnectReason = "refresh_requested") -> int:
        """Tell all sockets to disconnect; how many. `link_disabled` closes them at once, `warning` never does."""
        return await self._call(int, "disconnect", reason=reason)

    async def abort_sockets(self) -> int:
        """Reset the connections of all sockets; how many."""
        return await self._call(int, "abort_sockets")

    async def deafen(self, *, deaf: bool = True) -> None:
        """Let the open sockets get no envelopes any more while they stay connected, or get them again."""
        await self._do("deafen", deaf=deaf)

    async def mute_pongs(self, *, muted: bool = True) -> None:
        """Leave the open sockets' pings unanswered, or answer them again."""
        await self._do("mute_pongs", muted=muted)

    # Faults, limits, time, log

    async def fault(
        self,
        kind: FaultKind,
        *,
        method: str | None = None,
        channel: str | None = None,
        times: int = 1,
        error: str | None = None,
        retry_after_s: int = 1,
        after_s: float | None = None,
    ) -> int:
        """Spoil the next `times` requests, sockets or deliveries that match (any when not given); the fault's id."""
        return await self._call(
            int,
            "fault",
            kind=kind,
            method=method,
            channel=channel,
            times=times,
            error=error,
            retry_after_s=retry_after_s,
            after_s=after_s,
        )

    async def clear_faults(self) -> None:
        """Disarm all faults."""
        await self._do("clear_faults")

    async def faults_left(self) -> int:
        """Strikes still armed, over all faults."""
        return await self._call(int, "faults_left")

    async def down(self) -> None:
        """Refuse connections and break the open ones; state and port are kept."""
        await self._do("down")

    async def blackhole(self) -> None:
        """Take connections and requests, answer nothing."""
        await self._do("blackhole")

    async def up(self) -> None:
        """End `down` or `blackhole`."""
        await self._do("up")

    async def set_limits(
        self,
        *,
        mode: LimitsMode | None = None,
        channel_per_s: float | None = None,
        channel_burst: int | None = None,
        workspace_per_minute: int | None = None,
        tiers_per_minute: Sequence[int] | None = None,
        connections_burst: int | None = None,
    ) -> None:
        """Change some of the rate limits, for all bots."""
        await self._do(
            "set_limits",
            mode=mode,
            channel_per_s=channel_per_s,
            channel_burst=channel_burst,
            workspace_per_minute=workspace_per_minute,
            tiers_per_minute=None if tiers_per_minute is None else list(tiers_per_minute),
            connections_burst=connections_burst,
        )

    async def limit_report(self, *, bot: str | None = None) -> LimitReport:
        """Requests beyond the budgets; `total` is 0 for a bot that kept to them."""
        return await self._call(LimitReport, "limit_report", bot=bot)

    async def reset_limits(self) -> None:
        """Forget what was spent and counted."""
        await self._do("reset_limits")

    async def advance_clock(self, seconds_s: float) -> None:
        """Let time pass for limits, deadlines, retries and lifetimes."""
        await self._do("advance_clock", seconds_s=seconds_s)

    async def freeze_clock(self, *, frozen: bool = True) -> None:
        """Let the server's time stand still, or run on."""
        await self._do("freeze_clock", frozen=frozen)

    async def log(self, *, method: str | None = None, channel: str | None = None) -> list[LogEntry]:
        """Requests in the order they came."""
        return await self._call(list[LogEntry], "log", method=method, channel=channel)

    async def clear_log(self) -> None:
        """Forget the requests so far."""
        await self._do("clear_log")
