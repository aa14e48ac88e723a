"""Children that ask after what they belong to has ended: they end as they would have then, unless made again."""

from __future__ import annotations

from datetime import datetime

from signoff.changes.stopping import child_cause
from signoff.ids import of_one_question
from signoff.model import Actor, Cause, Session, Turn
from signoff.ports import Tx
from signoff.rows import session_key, turn_key


def ended_before(
    tx: Tx, profile: str, parent: str, parent_turn: str | None, made_at: datetime | None
) -> tuple[Cause, Actor | None] | None:
    """Why a child of this session, made in this turn of it or then, is over, and who ended it; None while it may ask.

    A turn that goes on was opened after the last stop, and so was what was made in it.
    """
    session = tx.get(Session, session_key(profile, parent))
    if session is None:
        return None
    if session.closed_at is not None:
        return session.cause or "parent_ended", session.ended_by  # type: ignore[return-value]  # rows hold causes
    turn = _turn(tx, profile, parent, parent_turn)
    if turn is not None:
        if turn.ended_at is None:
            return None
        return child_cause(turn.cause or "turn_ended"), turn.ended_by  # type: ignore[arg-type]  # rows hold causes
    if made_at is not None and session.stopped_at is not None and made_at <= session.stopped_at:
        return session.cause or "stop_requested", session.ended_by  # type: ignore[return-value]  # rows hold causes
    return None


def made_again(tx: Tx, known: Session, parent: str | None, parent_turn: str | None, made_at: datetime | None) -> bool:
    """Whether a closed child is made again by this one of its name: in another turn that goes on, or since its end."""
    if known.kind != "child" or known.closed_at is None or parent is None:
        return False
    turn = _turn(tx, known.profile, parent, parent_turn)
    if turn is not None and turn.ended_at is None and turn.turn_id != known.parent_turn:
        return True
    return made_at is not None and made_at > known.closed_at


def ended_with_its_turn(tx: Tx, known: Session, parent: str) -> bool:
    """Whether a child was closed by the end of the turn that it was made in: whoever declares it while no other one is
    open asks late. A turn for a single question says nothing of how long a child's work goes on."""
    if known.closed_at is None or known.parent != parent or of_one_question(known.parent_turn):
        return False
    turn = _turn(tx, known.profile, parent, known.parent_turn)
    return turn is not None and turn.ended_at is not None and known.closed_at >= turn.ended_at


def _turn(tx: Tx, profile: str, session_id: str, turn_id: str | None) -> Turn | None:
    """The turn, where it is one of this session."""
    turn = tx.get(Turn, turn_key(profile, turn_id)) if turn_id is not None else None
    return turn if turn is not None and turn.session_id == session_id else None
