"""`yolo`: nothing is asked in a session for a while, or again from now on."""

from __future__ import annotations

from collections.abc import Sequence

import click

from signoff.changes.bypassing import DEFAULT_MINUTES
from signoff.cli.connect import Place, placed, with_client
from signoff.cli.output import put_json
from signoff.client import SessionRecord
from signoff.grammar import Yolo, parse
from signoff.ids import asker_of
from signoff.presence import JOBS
from signoff.visible import visible

NAMED = 10
"""So many sessions are named where none was given."""


@click.command()
@click.argument("minutes", metavar="[MINUTES|off]", required=False)
@click.option("--session", "session_id", help="The session that is meant; without it the open ones are named.")
@placed
def yolo(place: Place, minutes: str | None, session_id: str | None) -> None:
    """Ask nothing in a session for MINUTES (30; 1 to 1440), or ask again: off.

    Rules that forbid, floors and protected files stay, and what waits goes on waiting. The session's place is told.
    """
    typed = _typed(minutes)
    if session_id is None:
        raise click.UsageError(_which(with_client(place, lambda client: client.open_sessions()), off=typed.off))
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


def _which(sessions: Sequence[SessionRecord], *, off: bool) -> str:
    """What to name, newest first. A command's own session is over with it, and in a job the settings decide."""
    meant = [each for each in reversed(sessions) if asker_of(each.session_id) == each.session_id]
    meant = [each for each in meant if (each.bypass_until is not None if off else each.kind not in JOBS)]
    if not meant:
        return f"Name the session with --session; {'questions are asked in all of them' if off else 'none is open now'}"
    named = ", ".join(f"{visible(each.session_id)} ({_about(each)})" for each in meant[:NAMED])
    more = f", and {len(meant) - NAMED} more" if len(meant) > NAMED else ""
    return f"Name the session with --session; {'nothing is asked in' if off else 'open now'}: {named}{more}"


def _about(session: SessionRecord) -> str:
    """Its kind, its agent and its place."""
    place = ":".join(part for part in (session.platform, session.chat_id) if part)
    place += f"/{session.thread_id}" if session.thread_id else ""
    facts = (session.kind, session.agent and f"of {session.agent}", place and f"in {place}")
    return visible(" ".join(fact for fact in facts if fact))


def _typed(minutes: str | None) -> Yolo:
    """As in a chat, so that the same words are the same times."""
    typed = parse(f"/yolo {minutes or ''}")
    if not isinstance(typed, Yolo) or typed.word is not None:
        raise click.BadParameter("choose 1 to 1440 minutes, such as 30, or off", param_hint="MINUTES")
    return typed
