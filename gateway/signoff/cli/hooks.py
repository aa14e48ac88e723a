"""`hook list|test`: who is told by signed webhooks, and whether a receiver takes them."""

from __future__ import annotations

import asyncio
import difflib
from typing import Any
from urllib.parse import urlsplit

import click

from signoff.cli.app import LazyGroup
from signoff.cli.connect import ADMIN_PATIENCE_S, Place, placed
from signoff.cli.exits import OK, OTHER
from signoff.cli.output import put_json, put_rows
from signoff.client import Client
from signoff.clock import SystemClock
from signoff.config import find_config, load_hooks
from signoff.errors import ConfigError, GatewayUnreachable
from signoff.hooks.posting import Posted, Poster
from signoff.hooks.sample import samples
from signoff.settings import HookSettings


@click.group(
    cls=LazyGroup,
    places={"list": "signoff.cli.hooks:list_hooks", "test": "signoff.cli.hooks:test"},
)
def hook() -> None:
    """List who is told by signed webhooks, and try a receiver."""


@click.command()
@placed
def list_hooks(place: Place) -> None:
    """List the hooks of a profile, with how their deliveries go where a gateway runs here."""
    profile, hooks = _hooks(place)
    states = asyncio.run(_states(place)) if hooks else {}
    rows = [_facts(name, each, states.get(f"{profile}/{name}")) for name, each in hooks.items()]
    if place.as_json:
        put_json({"object": "list", "data": rows, "next": None})
        return
    put_rows(
        ("HOOK", "URL", "EVENTS", "STATE"),
        [(row["name"], row["url"], ", ".join(row["events"]), _state(row["state"])) for row in rows],
        empty="There is no hook; set hooks.NAME.url and hooks.NAME.secret.",
    )


@click.command()
@click.argument("name")
@placed
def test(place: Place, name: str) -> int:
    """Post one signed sample of each event that the hook NAME is told of, and say what came back.

    No gateway is needed, and nothing is stored. Exit codes: 0 every sample was taken, 1 one was not, 2 wrong usage.
    """
    profile, hooks = _hooks(place)
    if name not in hooks:
        near = difflib.get_close_matches(name, hooks, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(hooks) or 'none'}."
        raise ConfigError(f"There is no hook {name!r} in profile {profile!r}; {hint}", param=f"hooks.{name}")
    found = asyncio.run(_tried(profile, hooks[name]))
    if place.as_json:
        put_json({"object": "list", "data": [_result(*each) for each in found], "next": None})
    else:
        put_rows(("EVENT", "CAME BACK", "AFTER", "ANSWER"), [_line(*each) for each in found], empty="No event.")
    return OK if all(posted.ok for _, _, posted in found) else OTHER


def _hooks(place: Place) -> tuple[str, dict[str, HookSettings]]:
    """The profile that is meant and its hooks; raises `ConfigError`."""
    name = place.profile or "default"
    profiles = load_hooks(place.config or find_config())
    if name not in profiles:
        raise ConfigError(f"There is no profile {name!r}; there are: {', '.join(sorted(profiles))}.")
    return name, profiles[name].hooks


async def _states(place: Place) -> dict[str, Any]:
    """How the running gateway's deliveries go; nothing where none runs here."""
    socket = place.location().gateway.admin_socket
    if not socket.exists():
        return {}
    try:
        async with Client(socket=socket, profile=place.profile, unreachable_after_s=ADMIN_PATIENCE_S) as client:
            parts: dict[str, Any] = (await client.health_detailed()).get("parts", {})
            return parts.get("hooks", {}) or {}
    except GatewayUnreachable:
        return {}


async def _tried(profile: str, settings: HookSettings) -> list[tuple[str, str, Posted]]:
    clock = SystemClock()
    poster = Poster(settings, clock)
    try:
        return [
            (kind, message_id, await poster.post(message_id, body, read=True))
            for kind, message_id, body in samples(profile, settings.events, clock.now())
        ]
    finally:
        await poster.aclose()


def _facts(name: str, settings: HookSettings, state: dict[str, Any] | None) -> dict[str, Any]:
    """A hook without its secret; a receiver's own token may stand in the query, so that is left out."""
    parts = urlsplit(settings.url)
    return {
        "name": name,
        "url": f"{parts.scheme}://{parts.netloc}{parts.path}{'?…' if parts.query else ''}",
        "events": list(settings.events),
        "state": state,
    }


def _state(state: dict[str, Any] | None) -> str:
    if state is None:
        return "no gateway runs here"
    if state["state"] == "ok":
        return "ok"
    parked = f", {state['parked']} given up" if state["parked"] else ""
    return f"failing since {state['failing_since']}: {state['detail']}{parked}"


def _result(kind: str, message_id: str, posted: Posted) -> dict[str, Any]:
    return {
        "event": kind,
        "id": message_id,
        "ok": posted.ok,
        "detail": posted.detail,
        "seconds": round(posted.seconds, 3),
        "answer": posted.answer.decode("utf-8", "replace"),
    }


def _line(kind: str, _message_id: str, posted: Posted) -> tuple[str, ...]:
    return kind, posted.detail, f"{posted.seconds:.2f} s", posted.answer.decode("utf-8", "replace")
