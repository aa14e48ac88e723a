"""A child that asks for the first time after what it belongs to has ended: it ends as it would have then."""

from __future__ import annotations

from signoff.changes.stopping import child_cause
from signoff.model import Actor, Cause, Session, Turn
from signoff.ports import Tx
from signoff.rows import session_key, turn_key


def ended_before(tx: Tx, profile: str, parent: str, parent_turn: str | None) -> tuple[Cause, Actor | None] | None:
    """Why a child of this session, made in this turn of it, is over, and who ended it; None while it may ask."""
    session = tx.get(Session, session_key(profile, parent))
    if session is not None and session.closed_at is not None:
        return session.cause or "parent_ended", session.ended_by  # type: ignore[return-value]  # rows hold causes
    turn = tx.get(Turn, turn_key(profile, parent_turn)) if parent_turn is not None else None
    if turn is not None and turn.session_id == parent and turn.ended_at is not None:
        return child_cause(turn.cause or "turn_ended"), turn.ended_by  # type: ignore[arg-type]  # rows hold causes
    return None
