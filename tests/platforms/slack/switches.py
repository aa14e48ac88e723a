"""Controls for sockets, faults, network, limits, clock and log. Names are those of `SlackPlatform`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec

from .model import DisconnectReason, FaultKind, JsonObject, LimitReport, LimitsMode, LogEntry, SocketState, WhereAt
from .posting import FORM, JSON

if TYPE_CHECKING:
    from .server import SlackServer


class Switches:
    """What no person in the workspace could do."""

    def __init__(self, server: SlackServer) -> None:
        self._server = server

    def where(self) -> WhereAt:
        """The addresses of the server."""
        return self._server.where()

    async def changed(self, since: int, timeout_s: float) -> int:
        """The revision of the state once it exceeds `since`, or after `timeout_s`."""
        return await self._server.changes.after(since, timeout_s)

    def sockets(self, bot: str | None = None) -> list[SocketState]:
        """Open connections."""
        return self._server.sockets.states(bot)

    async def disconnect(self, reason: DisconnectReason) -> int:
        """Tell all sockets to disconnect."""
        return await self._server.sockets.disconnect(reason)

    def abort_sockets(self) -> int:
        """Reset all sockets."""
        links = self._server.sockets.links()
        for link in links:
            link.abort()
        return len(links)

    def deafen(self, deaf: bool = True) -> None:
        """Deliver nothing over the open sockets, or again."""
        for link in self._server.sockets.links():
            link.deaf = deaf
        self._server.changes.bump()

    def mute_pongs(self, muted: bool = True) -> None:
        """Answer no pings of the open sockets, or again."""
        for link in self._server.sockets.links():
            link.mute = muted

    async def raw_frame(self, text: str, bot: str | None = None) -> int:
        """Any text to all sockets of an app, or signed to its request URL."""
        app = self._server.world.app(bot)
        if app.request_url is None:
            return await self._server.sockets.raw(app, text)
        await self._server.posting.post(app, text.encode(), JSON, secret=app.signing_secret)
        return 1

    async def post_forged(
        self,
        payload: JsonObject,
        headers: dict[str, str],
        secret: str | None = None,
        age_s: float = 0.0,
        form: bool = False,
        bot: str | None = None,
    ) -> int:
        """Post as anybody could; the status."""
        app = self._server.world.app(bot)
        body = msgspec.json.encode(payload)
        if form:
            body = urlencode({"payload": body.decode()}).encode()
        status, _, _ = await self._server.posting.post(
            app,
            body,
            FORM if form else JSON,
            secret=app.signing_secret if secret is None else secret,
            age_s=age_s,
            headers=headers,
        )
        return status

    def log(self, method: str | None = None, channel: str | None = None) -> list[LogEntry]:
        """Requests so far."""
        return self._server.requests.entries(method, channel)

    def clear_log(self) -> None:
        """Forget the requests so far."""
        self._server.requests.clear()

    def fault(
        self,
        *,
        kind: FaultKind,
        method: str | None = None,
        channel: str | None = None,
        times: int = 1,
        error: str | None = None,
        retry_after_s: int = 1,
        after_s: float | None = None,
    ) -> int:
        """Arm a fault; its id."""
        return self._server.faults.arm(
            kind,
            method=method,
            channel=channel,
            times=times,
            error=error,
            retry_after_s=retry_after_s,
            after_s=after_s,
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
        channel_per_s: float | None = None,
        channel_burst: int | None = None,
        workspace_per_minute: int | None = None,
        tiers_per_minute: list[int] | None = None,
        connections_burst: int | None = None,
    ) -> None:
        """Change some of the rate limits, for all bots."""
        given = {
            "mode": mode,
            "channel_per_s": channel_per_s,
            "channel_burst": channel_burst,
            "workspace_per_minute": workspace_per_minute,
            "tiers_per_minute": None if tiers_per_minute is None else tuple(tiers_per_minute),
            "connections_burst": connections_burst,
        }
        world = self._server.world
        changed = {name: value for name, value in given.items() if value is not None}
        world.limits = msgspec.structs.replace(world.limits, **changed)
        for app in world.apps.values():
            app.budgets.limits = world.limits

    def limit_report(self, bot: str | None = None) -> LimitReport:
        """Requests beyond the budgets."""
        return self._server.world.app(bot).budgets.report()

    def reset_limits(self) -> None:
        """Forget what was spent and counted."""
        for app in self._server.world.apps.values():
            app.budgets.reset()

    def advance_clock(self, seconds_s: float) -> None:
        """Let time pass."""
        self._server.timeline.advance(seconds_s)
        self._server.changes.bump()

    def freeze_clock(self, frozen: bool = True) -> None:
        """Let time stand still, or run on."""
        self._server.timeline.clock.freeze(frozen)
        self._server.timeline.turn()
