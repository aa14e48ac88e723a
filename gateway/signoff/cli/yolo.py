"""`yolo`: nothing is asked in a session for a while, or again from now on."""

from __future__ import annotations

import click

from signoff.changes.bypassing import DEFAULT_MINUTES
from signoff.cli.connect import Place, placed, with_client
from signoff.cli.output import put_json
from signoff.grammar import Yolo, parse


@click.command()
@click.argument("minutes", metavar="[MINUTES|off]", required=False)
@click.option("--session", "session_id", required=True, help="The session that is meant.")
@placed
def yolo(place: Place, minutes: str | None, session_id: str) -> None:
    """Ask nothing in a session for MINUTES (30; 1 to 1440), or ask again: off.

    Rules that forbid, floors and protected files stay, and what waits goes on waiting. The session's place is told.
    """
    typed = _typed(minutes)
    if typed.off:
        record = with_client(place, lambda client: client.end_bypass(session_id))
    else:
        length = float(typed.minutes or DEFAULT_MINUTES)
        record = with_client(place, lambda client: client.bypass(session_id, minutes=length))
    if place.as_json:
        put_json(record)
    elif record.bypass_until is None:
        click.echo(f"Questions are asked in {session_id}.")
    else:
        click.echo(f"Nothing is asked in {session_id} until {record.bypass_until:%Y-%m-%d %H:%M} UTC. Blocks stay.")


def _typed(minutes: str | None) -> Yolo:
    """As in a chat, so that the same words are the same times."""
    typed = parse(f"/yolo {minutes or ''}")
    if not isinstance(typed, Yolo) or typed.word is not None:
        raise click.BadParameter("choose 1 to 1440 minutes, such as 30, or off", param_hint="MINUTES")
    return typed
