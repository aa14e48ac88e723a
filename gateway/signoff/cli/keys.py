"""`key create|list|revoke|rotate`: through the running gateway where there is one, else on its store."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import click

from signoff.authorize import local_actor
from signoff.cli.app import LazyGroup
from signoff.cli.connect import ADMIN_PATIENCE_S, Place, placed, warn_unknown
from signoff.cli.output import put_json, put_rows
from signoff.client import ApprovalRecord, Client, KeyRecord
from signoff.clock import SystemClock
from signoff.config import Location
from signoff.errors import ConfigError, GatewayUnreachable, SignoffError
from signoff.keyring import rotate
from signoff.keys import SCOPES, Keys
from signoff.model import Key
from signoff.settings import Profile
from signoff.stores.open import open_store
from signoff.visible import visible

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@/-]*\Z")
"""Session ids that stand in a command as they are. An agent may choose any, and what is printed may be copied."""


@click.group(
    cls=LazyGroup,
    places={
        "create": "signoff.cli.keys:create",
        "list": "signoff.cli.keys:list_keys",
        "revoke": "signoff.cli.keys:revoke_key",
        "rotate": "signoff.cli.keys:rotate_buttons",
    },
)
def key() -> None:
    """Make, list and revoke API keys; change the key that signs buttons."""


@click.command()
@click.option("--scope", type=click.Choice(SCOPES), required=True, help="What the key may do.")
@click.option("--agent", help="The registered agent that an agent key is for.")
@click.option("--principal", help="The person whom an approver key belongs to.")
@placed
def create(place: Place, scope: str, agent: str | None, principal: str | None) -> None:
    """Make an API key. It is printed this once and kept nowhere."""

    async def go() -> dict[str, Any]:
        async with _client(place) as client:
            if client is not None:
                return await client.create_key(scope, agent=agent, principal=principal)
        async with _on_store(place) as (keys, profile):
            made = await keys.create(profile, scope, agent=agent, principal=principal, by=_me())  # type: ignore[arg-type]  # click checked the scope
            return {"id": made.key.key_id, "key": made.text}

    warn_unknown(place, principal)
    made = asyncio.run(go())
    if place.as_json:
        put_json({"id": made["id"], "key": made["key"]})
    else:
        click.echo(made["key"])


@click.command()
@placed
def list_keys(place: Place) -> None:
    """List the API keys, revoked ones too."""

    async def go() -> list[KeyRecord]:
        async with _client(place) as client:
            if client is not None:
                return await client.keys()
        async with _on_store(place) as (keys, profile):
            return [_record(row) for row in await keys.list(profile)]

    rows = asyncio.run(go())
    if place.as_json:
        put_json({"object": "list", "data": rows, "next": None})
        return
    put_rows(
        ("ID", "SCOPE", "AGENT", "PRINCIPAL", "CREATED", "STATE"),
        [
            (
                row.id,
                row.scope,
                row.agent or "",
                row.principal or "",
                f"{row.created_at:%Y-%m-%d %H:%M} UTC" if row.created_at else "",
                "revoked" if row.revoked_at else "live",
            )
            for row in rows
        ],
        empty="There is no key yet. Make one with `signoff key create`.",
    )


@click.command()
@click.argument("key_id", metavar="ID")
@placed
def revoke_key(place: Place, key_id: str) -> None:
    """End an API key at once."""

    async def go() -> list[ApprovalRecord]:
        async with _client(place) as client:
            if client is not None:
                await client.revoke_key(key_id)
                with suppress(SignoffError):  # the key is revoked, whether or not more can be told
                    return [] if place.as_json else await _orphans(client, key_id)
                return []
        async with _on_store(place) as (keys, profile):
            await keys.revoke(profile, key_id, _me())
        return []

    orphans = asyncio.run(go())
    if place.as_json:
        put_json({"id": key_id, "revoked": True})
        return
    click.echo(f"{key_id} is revoked.")
    if orphans:
        agent, sessions = visible(orphans[0].agent or ""), sorted({each.session_id for each in orphans})
        click.echo(
            f"Questions of agent {agent} that still wait: {len(orphans)}. It has no key now, so nothing comes of their "
            f"answers until it gets one. {_withdrawing(sessions)}"
        )


def _withdrawing(sessions: Sequence[str]) -> str:
    """How the questions of these sessions are withdrawn."""
    ways = [f"`signoff stop {name}`" for name in sessions if _PLAIN.match(name)]
    if len(ways) < len(sessions):
        ways.append("`signoff stop SESSION` for those with other ids in `signoff pending --json`")
    return f"Withdraw them with {', '.join(ways)}."


async def _orphans(client: Client, key_id: str) -> list[ApprovalRecord]:
    """What waits of the agent whose last key this was. Questions are an agent's, so they outlive a change of keys."""
    keys = await client.keys()
    agent = next((row.agent or f"key-{row.id}" for row in keys if row.id == key_id and row.scope == "agent"), None)
    if agent is None or any(row.agent == agent and row.revoked_at is None for row in keys):
        return []
    return [each for each in await client.pending() if each.agent == agent]


@click.command()
@placed
def rotate_buttons(place: Place) -> None:
    """Sign the buttons of new cards with a new key.

    Buttons signed with the old one work for 30 days. A running gateway takes the new key up when it starts again.
    """
    path = place.location().gateway.token_key_file
    number = rotate(path, SystemClock().now())
    if place.as_json:
        put_json({"key": number, "file": str(path)})
    else:
        click.echo(f"Key {number} in {path} signs from the next start on. Old buttons work for 30 days.")


@asynccontextmanager
async def _client(place: Place) -> AsyncIterator[Client | None]:
    """A client of the gateway that runs, or None where none does. By URL there must be one."""
    if place.by_url:
        async with place.client(ADMIN_PATIENCE_S) as client:
            yield client
        return
    try:
        client = Client(socket=place.location().gateway.admin_socket, profile=place.profile, unreachable_after_s=0)
        await client.health()
    except GatewayUnreachable:
        await client.aclose()
        yield None
        return
    async with client:
        yield client


@asynccontextmanager
async def _on_store(place: Place) -> AsyncIterator[tuple[Keys, str]]:
    """The store itself, for before the first start. Other processes on it see the change."""
    location = place.location()
    if location.gateway.store.startswith("memory:"):
        raise ConfigError(
            "gateway.store is memory://, which lives in the running gateway alone; start it first with `signoff serve`."
        )
    profile = place.profile or "default"
    profiles = _profiles(location)
    if profile not in profiles:
        raise ConfigError(f"There is no profile {profile!r}; there are: {', '.join(sorted(profiles))}.")
    _make_private(location)
    store = open_store(str(location.gateway.store), SystemClock())
    try:
        yield Keys(store, profiles), profile
    finally:
        await store.aclose()


def _profiles(location: Location) -> Mapping[str, Profile]:
    return {name: Profile(name=name) for name in location.profiles}


def _make_private(location: Location) -> None:
    folder = location.gateway.state_dir
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"gateway.state_dir: {folder} cannot be made: {error.strerror}.") from None


def _me() -> Any:
    return local_actor(os.getuid() if hasattr(os, "getuid") else 0)


def _record(row: Key) -> KeyRecord:
    return KeyRecord(
        id=row.key_id,
        scope=row.scope,
        profile=row.profile,
        agent=row.agent,
        principal=row.principal,
        created_at=row.created_at,
        revoked_at=row.revoked_at,
    )
