"""What the running gateway says of itself, over its local socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from signoff.client import Client
from signoff.config import Config
from signoff.errors import SignoffError
from signoff.ports import Finding

PATIENCE_S = 2.0


class Beside(Struct, frozen=True, kw_only=True):
    """A running gateway's parts, as `GET /health/detailed` tells them."""

    store: dict[str, Any]
    platforms: dict[str, dict[str, Any]]
    failing: dict[str, str] = {}
    """The gateway's own loops that keep failing, each with how long and why."""
    hooks: dict[str, dict[str, Any]] = {}
    executors: dict[str, Any] = {}
    """Those that approved actions wait for and no gateway has, by `profile/name`."""

    unasked: dict[str, str] = {}
    """The profiles in which no place could ask anybody, and why."""

    def receives(self, profile: str, platform: str) -> bool:
        """Whether it holds the way in of that platform."""
        return f"{profile}/{platform}" in self.platforms

    def health_finding(self, profile: str, platform: str) -> Finding:
        """The state of its adapter."""
        facts = self.platforms.get(f"{profile}/{platform}", {})
        state, detail = facts.get("state"), str(facts.get("detail") or "")
        if state == "ready":
            return Finding.fine("connection", "The running gateway is connected.")
        if not facts:
            return Finding.problem(
                "connection", "The running gateway does not serve it.", "Start it again with this configuration."
            )
        text = f"The running gateway is {state}" + (f": {detail.rstrip('.')}." if detail else ".")
        return Finding.problem("connection", text, "Mend what this line names; it connects again by itself.")


def running_findings(beside: Beside) -> Iterator[Finding]:
    """Whether the gateway's loops do their work, and somebody could be asked. While its store fails, that alone is
    told, by the store's own line."""
    for profile, why in beside.unasked.items():
        text = f"No place of profile {profile} can ask anybody now: {why}."
        yield Finding.warning("asking", text, "Mend that, or name a place in the console, such as console:main.")
    if not beside.failing or beside.store.get("status") != "ok":
        yield Finding.fine("running", "A gateway runs and answers on its local socket.")
        return
    for loop, why in beside.failing.items():
        yield Finding.problem(
            "running", f"{loop} of the running gateway keeps failing ({why}).", "Read its log, and report this."
        )


async def ask_gateway(config: Config) -> Beside | None:
    """The running gateway's account of itself; None where none answers."""
    socket = config.gateway.admin_socket
    if not socket.exists():
        return None
    async with Client(socket=socket, unreachable_after_s=PATIENCE_S, environ={}) as client:
        try:
            parts = (await client.health_detailed())["parts"]
        except SignoffError:
            return None
    return Beside(
        store=parts["store"],
        platforms=parts["platforms"],
        failing=parts.get("failing") or {},
        hooks=parts.get("hooks", {}),
        executors=parts.get("executors", {}),
        # Of a profile without a platform the report says so itself.
        unasked={name: why for name, why in parts.get("unasked", {}).items() if _has_platform(config, name)},
    )


def _has_platform(config: Config, name: str) -> bool:
    profile = config.profiles.get(name)
    return profile is not None and bool(profile.platforms)
