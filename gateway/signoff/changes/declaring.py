"""A session is declared: made, changed, made again after it was closed, or over before it has asked anything."""

from __future__ import annotations

import hashlib
from datetime import datetime

from msgspec import Struct

from signoff.changes import late_children, moving
from signoff.errors import InvalidInput, SessionNotFound
from signoff.model import Actor, Cause, Destination, Session, SessionKind, Turn, replace
from signoff.ports import Tx
from signoff.routing import MAX_PARENTS
from signoff.rows import joined, session_key


class Declaration(Struct, frozen=True, kw_only=True):
    """What an agent says of its session. It may only name what its registration allows."""

    session_id: str
    kind: SessionKind = "api"
    destination: Destination | None = None
    user_id: str | None = None
    parent: str | None = None
    parent_turn: str | None = None
    """The parent's turn that a child was made in, where the embedding program says so; else the one that is open."""
    made_at: datetime | None = None
    """When the embedding program made the child, which it declares with the first question only."""


def declare(tx: Tx, profile: str, declaration: Declaration, agent: str | None, *, only_new: bool = False) -> Session:
    """Make or change a session; `only_new` leaves one that was ever declared as it is, but for a child that is made
    again. A child that is over already is stored as that. Raises `InvalidInput`, `SessionNotFound`."""
    known = tx.get(Session, session_key(profile, declaration.session_id))
    if only_new:
        made = _made_in_process(tx, profile, declaration, known)
        if made is not None:
            return made
    if known is not None and agent is not None and known.agent != agent:
        raise SessionNotFound
    same_child = known is not None and known.closed_at is None and known.parent == declaration.parent
    parent_turn = known.parent_turn if known is not None and same_child else None
    place = declaration.destination
    if declaration.parent is not None:
        _check_line(tx, profile, declaration, agent, known)
    if declaration.parent is not None and not same_child:
        turns = tx.find(Turn, "open_session", session_key(profile, declaration.parent))
        if not turns and not only_new and known and late_children.ended_with_its_turn(tx, known, declaration.parent):
            return known  # nothing says that it is made again
        parent_turn = declaration.parent_turn or (turns[-1].turn_id if turns else None)
    session = Session(
        profile=profile,
        session_id=declaration.session_id,
        kind=declaration.kind,
        agent=agent if agent is not None or known is None else known.agent,
        destination=None if place is None else moving.place_now(tx, profile, place),
        user_id=declaration.user_id,
        parent=declaration.parent,
        parent_turn=parent_turn,
        generation=known.generation + (known.closed_at is not None) if known else 0,
        created_at=known.created_at if known else tx.now,
        cause=known.cause if known else None,
        ended_by=known.ended_by if known else None,
        stopped_at=known.stopped_at if known else None,
        bypass_until=known.bypass_until if known else None,
        bypass_by=known.bypass_by if known else None,
        bypass_place=known.bypass_place if known else None,
        bypass_message=known.bypass_message if known else None,
        seen_at=known.seen_at if known else None,
        ends_at=known.ends_at if known else None,
    )
    tx.put(session)
    return session


def _made_in_process(tx: Tx, profile: str, declaration: Declaration, known: Session | None) -> Session | None:
    """The session of what the embedding program made; None where it is to be made now."""
    parent, turn, made_at = declaration.parent, declaration.parent_turn, declaration.made_at
    ended = None if parent is None else late_children.ended_before(tx, profile, parent, turn, made_at)
    if known is None or known.closed_at is not None:
        if known is not None and (ended is not None or not late_children.made_again(tx, known, parent, turn, made_at)):
            return known
        return None if ended is None else _ended_child(tx, profile, declaration, *ended)
    if ended is None:
        if known.kind == "child" and known.parent != parent:
            raise InvalidInput(
                f"Session {known.session_id} is a child of {known.parent}, and one of {parent} is bound here: name "
                "this one otherwise, or not at all.",
                param="session_id",
            )
        return known
    # Its name is that of a child that was made later and goes on. What it asks is not that one's.
    stand_in = replace(declaration, session_id=_stand_in(declaration))
    return tx.get(Session, session_key(profile, stand_in.session_id)) or _ended_child(tx, profile, stand_in, *ended)


def _stand_in(declaration: Declaration) -> str:
    """The id of what stands for a child that is over: the same for all that it asks."""
    made_in = declaration.parent_turn or "", str(declaration.made_at or "")
    facts = joined(declaration.parent or "", declaration.session_id, *made_in)
    return f"child_{hashlib.sha256(facts.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _ended_child(tx: Tx, profile: str, declaration: Declaration, cause: Cause, by: Actor | None) -> Session:
    """A child that is declared when it is over already: what it asks is born cancelled with this cause."""
    session = Session(
        profile=profile,
        session_id=declaration.session_id,
        kind="child",
        user_id=declaration.user_id,
        parent=declaration.parent,
        parent_turn=declaration.parent_turn,
        created_at=tx.now,
        closed_at=tx.now,
        stopped_at=tx.now,
        cause=cause,
        ended_by=by,
    )
    tx.put(session)
    return session


def _check_line(tx: Tx, profile: str, declaration: Declaration, agent: str | None, known: Session | None) -> None:
    """Refuse a parent that no person can be found above, or that would make a line of children too long."""
    parent = declaration.parent
    above = 0
    while parent is not None:
        above += 1
        if parent == declaration.session_id:
            raise InvalidInput("A session cannot descend from itself; name another parent.", param="parent")
        if above > MAX_PARENTS:
            raise _too_deep()
        session = tx.get(Session, session_key(profile, parent))
        if above == 1 and (session is None or (agent is not None and session.agent != agent)):
            raise SessionNotFound
        if session is None or session.closed_at is not None:
            raise InvalidInput(
                "A session above this one was closed; name a parent that is open, or declare it anew.", param="parent"
            )
        parent = session.parent if session.kind == "child" else None
    if known is not None and known.parent != declaration.parent:
        _check_below(tx, known, MAX_PARENTS - above)


def _check_below(tx: Tx, session: Session, levels: int) -> None:
    """Refuse to move a session whose own children reach more than `levels` below it."""
    row = [session.session_id]
    for _ in range(levels + 1):
        row = [c.session_id for name in row for c in tx.find(Session, "parent", session_key(session.profile, name))]
        if not row:
            return
    raise _too_deep()


def _too_deep() -> InvalidInput:
    return InvalidInput(
        f"A session can have at most {MAX_PARENTS} others above it; name a parent further up.", param="parent"
    )
