"""In whose name a call in the gateway's own process asks: what it names itself, else what is bound around it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Literal, cast, get_args

from msgspec import Struct

from signoff.context import Context, current, made, within
from signoff.errors import InvalidInput
from signoff.ids import new_id
from signoff.judging import NO_CONTEXT_SETTING
from signoff.model import ApprovalRequest, Session, SessionKind, replace
from signoff.presence import JOBS, misplaced
from signoff.routing import MAX_PARENTS
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
        context=context if context.kind is not None else None,
    )


async def declared(sessions: Sessions, asker: Asker) -> Asker:
    """Declare the session that is asked in, and those above it, where nobody ever did, and who asks in it. One that was
    closed stays so, but for a child that is made again. One that is over while a later one goes on under its name asks
    in a session of its own, which is closed.

    Raises `DestinationNotAllowed` for a place that the gateway does not serve, `InvalidInput` (also for a job that is
    bound under the id of a session which is none), `SessionNotFound`.
    """
    if asker.no_context:
        known = await sessions.known(asker.profile, NO_CONTEXT)
        if known is None or known.closed_at is not None:
            await sessions.declare(asker.profile, Declaration(session_id=NO_CONTEXT), None)
        return asker
    above: Session | None = None
    line: dict[str, Session] = {}
    for each in reversed(_line(asker.context)):
        name = each.session_id or asker.session_id
        over = above is not None and above.closed_at is not None
        # Where a later one goes on under the name of the one above, that is not whose child this is.
        context = replace(each, parent=above.session_id) if above is not None and over else each
        known = await sessions.known(asker.profile, name)
        await _check_job(sessions, asker.profile, name, context, known, line)
        found = known
        if found is None or over or _made_elsewhere(context, found):
            declaration = _declaration(sessions, asker.profile, name, context)
            found = await sessions.declare(asker.profile, declaration, None, only_new=True)
        above = line[found.session_id] = found
        if known is None and (own := made(name)) is not None:
            own.when_over(sessions.ender(asker.profile, name, asyncio.get_running_loop()))
    return asker if above is None else replace(asker, session_id=above.session_id)


async def undeclared(sessions: Sessions, asker: Asker, now: datetime) -> Session | None:
    """A row that stands for a session that would be declared with the first question; None where it is stored.

    For a child it is its nearest parent that is not stored, since that one says where its questions go. Raises
    `InvalidInput` as `declared` does.
    """
    found: Session | None = None
    for context in _line(asker.context):
        name = context.session_id or asker.session_id
        known = await sessions.known(asker.profile, name)
        await _check_job(sessions, asker.profile, name, context, known, {})
        if known is not None:
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


@contextmanager
def in_turn(asker: Asker, turn_id: str) -> Iterator[None]:
    """Bind the turn inside the block, where its session is the bound one; in the name of another session nothing that
    is bound here asks."""
    here = asker_of(None, None)
    if (here.profile, here.session_id) != (asker.profile, asker.session_id):
        yield
        return
    binding = within(turn_id=turn_id)
    binding.begin()
    try:
        yield
    finally:
        # It may be left in another task than it was entered in, where nothing was bound.
        with suppress(ValueError):
            binding.restore()


def tell_outside(row: ApprovalRequest) -> None:
    """Log what became of a question, if it was asked outside of any session and for that reason."""
    setting = row.decided_by[0].setting if row.decided_by else None
    if row.session_id != NO_CONTEXT or setting is None:
        return
    if row.outcome != "approved" or setting.startswith(NO_CONTEXT_SETTING):
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


def _made_elsewhere(context: Context, known: Session) -> bool:
    """Whether a child may be another one than the stored one of its name: below another session, or before its end."""
    if context.made_at is None or known.kind != "child":
        return False
    if known.parent != context.parent or known.closed_at is not None:
        return True
    return known.stopped_at is not None and context.made_at <= known.stopped_at


async def _check_job(
    sessions: Sessions, profile: str, name: str, context: Context, known: Session | None, line: Mapping[str, Session]
) -> None:
    """Refuse a job that is bound under the id of a session which is none, or is to be the child of one. What `line`
    holds is read already."""
    if context.kind is None or context.kind not in JOBS:
        return
    root = known
    if root is None and context.parent is not None:
        root = line.get(context.parent) or await sessions.known(profile, context.parent)
    if root is None:
        return
    for _ in range(MAX_PARENTS):
        above = root.parent and (line.get(root.parent) or await sessions.known(profile, root.parent))
        if not above:
            break
        root = above
    why = misplaced(context.kind, name, "child" if known is None else known.kind, root.kind)
    if why is not None:
        raise InvalidInput(why, param="session_id")


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
        made_at=context.made_at,
    )
