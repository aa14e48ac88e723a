"""`grants` and `revoke`: standing permissions."""

from __future__ import annotations

from datetime import UTC, datetime

import click
from msgspec import Struct

from signoff.allowlist_file import KEYS, AllowlistError, AllowlistFile, allowlist_path
from signoff.cli.connect import Place, placed, with_client
from signoff.cli.output import Shown, left, put_json, put_rows, span_left
from signoff.client import AllowlistRecord, Client, GrantRecord, SessionRecord
from signoff.client.records import Who
from signoff.display import shown
from signoff.errors import AllowlistInFile, InsufficientScope
from signoff.visible import visible


class InAdvance(Struct, frozen=True, kw_only=True):
    """All that lets an action pass unasked but the rules and settings."""

    grants: list[GrantRecord]
    bypassed: list[SessionRecord]
    """Sessions in which nothing is asked."""
    allowlist: list[AllowlistRecord] | None
    """Its lines but those that belong to a grant of `grants`; None where they are not known here."""
    where: str
    """Where the allowlist stands, or why its lines are not known."""


@click.command()
@placed
def grants(place: Place) -> None:
    """List what is allowed in advance: grants, sessions in which nothing is asked, and lines of the allowlist.

    It warns where allowlist.toml admits less than it seems to. `data` of --json holds the grants alone.
    """
    found = with_client(place, lambda client: _found(place, client))
    if place.as_json:
        lines = {"bypasses": found.bypassed, "allowlist": found.allowlist}
        put_json({"object": "list", "data": found.grants, "next": None, **lines})
        return
    heads = ("GRANT", "SCOPE", "SESSION", "COVERS", "GIVEN FOR", "BY", "USED", "EXPIRES IN")
    put_rows(heads, [_row(row) for row in found.grants], empty="No grant is in force.")
    click.echo("")
    if found.bypassed:
        click.echo("Nothing is asked in these sessions; `signoff yolo off --session SESSION` ends it:")
    bypassed = [(each.session_id, giver(each.bypass_by), left(each.bypass_until)) for each in found.bypassed]
    put_rows(("SESSION", "BY", "EXPIRES IN"), bypassed, empty="No session has its questions switched off.")
    click.echo("")
    if found.allowlist:
        click.echo(f"The allowlist, {visible(found.where)}; what was answered with Always stands there too:")
        put_rows(("LIST", "ENTRY"), [(line.list, Shown(shown(line.text))) for line in found.allowlist], empty="")
    elif found.allowlist is None:
        click.echo(f"The allowlist is not listed here: {visible(found.where)}")
    else:
        more = "no further line" if found.grants else "no line"
        click.echo(f"The allowlist, {visible(found.where)}, has {more}.")


async def _found(place: Place, client: Client) -> InAdvance:
    given = await client.grants()
    lines, where = await _allowlist(place, client)
    own = {grant.grant_id for grant in given}
    return InAdvance(
        grants=given,
        bypassed=[each for each in await client.open_sessions() if each.bypass_until is not None],
        allowlist=None if lines is None else [line for line in lines if line.grant_id not in own],
        where=where,
    )


async def _allowlist(place: Place, client: Client) -> tuple[list[AllowlistRecord] | None, str]:
    """The lines, with a warning for each thing that is wrong with the profile's file, and where they stand."""
    try:
        return await client.allowlist(), "in the store"
    except InsufficientScope:
        return None, "this key is no operator's. `signoff grants` on the gateway's machine lists it."
    except AllowlistInFile as error:
        if place.by_url:
            return None, error.message
    path = allowlist_path(place.location().gateway.state_dir, place.profile or "default")
    try:
        entries = AllowlistFile(path).read()
    except AllowlistError as error:
        click.echo(f"signoff: {visible(str(error))}", err=True)
        return [], str(path)
    for warning in entries.warnings:
        click.echo(f"signoff: {visible(warning)}", err=True)
    texts = [(name, text) for name in KEYS for text in getattr(entries, name)]
    return [AllowlistRecord(id="", list=name, text=text) for name, text in texts], str(path)


def _row(grant: GrantRecord) -> tuple[str, ...]:
    return (
        grant.grant_id,
        grant.scope,
        grant.session_id or "",
        grant.label,
        Shown(grant.shown),
        giver(grant.by),
        _used(grant),
        left(grant.expires_at),
    )


def _used(grant: GrantRecord) -> str:
    """How often it answered, and how long ago it last did."""
    if grant.used_at is None:
        return ""
    ago = span_left(max(0.0, (datetime.now(UTC) - grant.used_at).total_seconds()))
    return f"{grant.uses}, {ago} ago"


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
