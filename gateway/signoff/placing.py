"""In whose name a call in the gateway's own process asks: what it names itself, else what is bound around it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from datetime import datetime
from typing import Literal, cast, get_args

from msgspec import Struct

from signoff.context import Context, current, made
from signoff.errors import InvalidInput
from signoff.ids import new_id
from signoff.judging import NO_CONTEXT_SETTING
from signoff.model import ApprovalRequest, Session, SessionKind
from signoff.presence import JOBS
from signoff.rows import NO_CONTEXT, joined
from signoff.sessions import Declaration, Sessions

log = logging.getLogger(__name__)

NoContext = Literal["deny", "approve"]
DEFAULT_PROFILE = "default"
_PROCESS = new_id("process")
"""Keeps the sessions that only the environment speaks of apart from those of other processes."""


class Asker(Struct, frozen=True, kw_only=True):
    """Who asks. `context` is what its session is declared from, where nobody has declared it yet; None: it must be
    there. `no_context`: it is outside of any session."""

    profile: str
    session_id: str
    turn_id: str | None = None
    tool_call_id: str | None = None
    context: Context | None = None
    no_context: bool = False


def profile_of(profile: str | None) -> str:
    """The tenant of a call: the one it names, else the bound one, else `default`."""
    return profile or current().profile or DEFAULT_PROFILE


def asker_of(
    profile: str | None, session_id: str | None, turn_id: str | None = None, tool_call_id: str | None = None
) -> Asker:
    """Who asks, from what a call names and what is bound around it.

    A bound turn and tool call count only for the bound session: those of another one are not its own. Raises
    `InvalidInput` for an environment that cannot be read.
    """
    context = current()
    profile = profile or context.profile or DEFAULT_PROFILE
    bound = context.session_id or (None if context.empty else _unnamed(context))
    if session_id is not None and session_id != bound:
        return Asker(profile=profile, session_id=session_id, turn_id=turn_id, tool_call_id=tool_call_id)
    if bound is None:
        return Asker(
            profile=profile, session_id=NO_CONTEXT, turn_id=turn_id, tool_call_id=tool_call_id, no_context=True
        )
    return Asker(
        profile=profile,
        session_id=bound,
        turn_id=turn_id or context.turn_id,
        tool_call_id=tool_call_id or context.tool_call_id,
        context=context if session_id is None and context.kind is not None else None,
    )


async def declared(sessions: Sessions, asker: Asker) -> None:
    """Declare the session that is asked in, and those above it, where nobody ever did. One that was closed stays so.

    Raises `DestinationNotAllowed` for a place that the gateway does not serve, `InvalidInput` (also for a job that is
    bound under the id of a session which is none), `SessionNotFound`.
    """
    if asker.no_context:
        known = await sessions.known(asker.profile, NO_CONTEXT)
        if known is None or known.closed_at is not None:
            await sessions.declare(asker.profile, Declaration(session_id=NO_CONTEXT), None)
        return
    for context in reversed(_line(asker.context)):
        name = context.session_id or asker.session_id
        known = await sessions.known(asker.profile, name)
        if known is not None and context.kind in JOBS and known.kind not in (*JOBS, "child"):
            # There it would be asked about and wait, and a job never does.
            raise InvalidInput(
                f"Session {name} is declared as {known.kind}, and a {context.kind} session is bound here: bind it "
                "under an id of its own, or without one.",
                param="session_id",
            )
        if known is None:
            declaration = _declaration(sessions, asker.profile, name, context)
            await sessions.declare(asker.profile, declaration, None, only_new=True)
            own = made(name)
            if own is not None:
                own.when_over(sessions.ender(asker.profile, name, asyncio.get_running_loop()))


async def undeclared(sessions: Sessions, asker: Asker, now: datetime) -> Session | None:
    """A row that stands for a session that would be declared with the first question; None where it is stored.

    For a child it is its nearest parent that is not stored, since that one says where its questions go.
    """
    found: Session | None = None
    for context in _line(asker.context):
        name = context.session_id or asker.session_id
        if await sessions.known(asker.profile, name) is not None:
            break
        facts = _declaration(sessions, asker.profile, name, context)
        found = Session(
            profile=asker.profile,
            session_id=name,
            kind=facts.kind,
            destination=facts.destination,
            user_id=facts.user_id,
            parent=facts.parent,
            created_at=now,
        )
    return found


def tell_outside(row: ApprovalRequest) -> None:
    """Log what became of a question outside of any session, where no rule decided it."""
    setting = row.decided_by[0].setting if row.decided_by else None
    if setting is not None and setting.startswith(NO_CONTEXT_SETTING):
        log.warning(
            "request %s was asked outside of any session, and %s by %s: name its session_id, or bind one "
            "(signoff.context.bind)",
            row.short_id,
            row.outcome,
            setting,
        )


def checked_no_context(word: str) -> NoContext:
    """The argument of `Gateway`; raises `InvalidInput` for any other word."""
    for known in get_args(NoContext):
        if word == known:
            return cast("NoContext", known)
    raise InvalidInput(f"no_context is 'deny' or 'approve', not {word!r}.", param="no_context")


def _line(context: Context | None) -> list[Context]:
    """A context and those of its parents in this process, the nearest first."""
    line = []
    while context is not None:
        line.append(context)
        context = context.above
    return line


def _unnamed(context: Context) -> str:
    """The id of a session of which only the environment speaks, and without a name: the same in the whole process."""
    facts = joined(_PROCESS, context.kind or "", str(context.destination or ""), context.user_id or "")
    return f"{context.kind}_{hashlib.sha256(facts.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _declaration(sessions: Sessions, profile: str, session_id: str, context: Context) -> Declaration:
    kind: SessionKind = "child" if context.parent is not None else (context.kind or "api")
    place = None if kind == "child" else context.destination
    if kind in JOBS and place is not None and not sessions.serves(profile, place):
        place = None  # a job's place is where its outcome is delivered, perhaps by somebody else
    return Declaration(
        session_id=session_id,
        kind=kind,
        destination=place,
        user_id=context.user_id,
        parent=context.parent,
        parent_turn=context.above.turn_id if context.above is not None else None,
    )
