"""`grants` and `revoke`: standing permissions."""

from __future__ import annotations

import click

from signoff.cli.connect import Place, placed, with_client
from signoff.cli.output import Shown, left, put_json, put_rows
from signoff.client import GrantRecord
from signoff.client.records import Who
from signoff.visible import visible


@click.command()
@placed
def grants(place: Place) -> None:
    """List the standing permissions, and warn where allowlist.toml admits less than it seems to."""
    rows = with_client(place, lambda client: client.grants())
    _warn_of_allowlist(place)
    if place.as_json:
        put_json({"object": "list", "data": rows, "next": None})
        return
    heads = ("GRANT", "SCOPE", "SESSION", "COVERS", "GIVEN FOR", "BY", "EXPIRES IN")
    put_rows(heads, [_row(row) for row in rows], empty="No standing permission is in force.")


def _warn_of_allowlist(place: Place) -> None:
    """A line for each thing that is wrong with the profile's file, which admits commands beside the grants."""
    from signoff.allowlist_file import AllowlistError, AllowlistFile, allowlist_path
    from signoff.stores.open import shared

    if place.by_url:
        return  # the file is on the gateway's machine
    gateway = place.location().gateway
    if shared(str(gateway.store)):
        return  # the store has the allowlist
    path = allowlist_path(gateway.state_dir, place.profile or "default")
    try:
        warnings = AllowlistFile(path).read().warnings
    except AllowlistError as error:
        warnings = (str(error),)
    for line in warnings:
        click.echo(f"signoff: {visible(line)}", err=True)


def _row(grant: GrantRecord) -> tuple[str, ...]:
    return (
        grant.grant_id,
        grant.scope,
        grant.session_id or "",
        grant.label,
        Shown(grant.shown),
        giver(grant.by),
        left(grant.expires_at),
    )


def giver(by: Who | None) -> str:
    """Who gave it, for people."""
    if by is None:
        return ""
    if by.platform == "local" and not by.principal:
        return f"the operator (uid {by.user_id})"
    return by.name or by.principal or by.user_id or ""


@click.command()
@click.argument("grant_id", metavar="GRANT")
@placed
def revoke(place: Place, grant_id: str) -> None:
    """End a standing permission at once."""
    grant = with_client(place, lambda client: client.revoke(grant_id))
    if place.as_json:
        put_json(grant)
    else:
        click.echo(f"{grant.grant_id} is revoked. What it covered is asked again.")
