"""Turns and sessions end, and with them what they still ask, what was approved but not started, and their children."""

from __future__ import annotations

from msgspec import Struct

from signoff.changes import claiming, ending, grants, sending
from signoff.changes.common import plus
from signoff.errors import Conflict, TurnEnded, TurnNotFound
from signoff.model import Actor, ApprovalRequest, Cause, Event, Grant, Notifier, Session, Turn, replace
from signoff.ports import Tx
from signoff.rows import joined, request_key, session_key, turn_key

MAX_FAMILY = 10_000
"""Sessions below one whose answer client went away; no more are looked at than a session can sensibly have."""


class Stopped(Struct, frozen=True, kw_only=True):
    """What an end took with it, for the reply to whoever ended it."""

    sessions: tuple[str, ...] = ()
    cancelled: tuple[ApprovalRequest, ...] = ()
    voided: tuple[ApprovalRequest, ...] = ()
    running: tuple[ApprovalRequest, ...] = ()
    turns: tuple[str, ...] = ()
    grants: int = 0
    """Grants dropped (clear) or kept (stop)."""

    def plus(self, other: Stopped) -> Stopped:
        """Both together."""
        return Stopped(
            sessions=self.sessions + other.sessions,
            cancelled=self.cancelled + other.cancelled,
            voided=self.voided + other.voided,
            running=self.running + other.running,
            turns=self.turns + other.turns,
            grants=self.grants + other.grants,
        )


def end_turn(tx: Tx, turn: Turn, cause: Cause, by: Actor | None) -> Stopped:
    """End an open turn: its questions are withdrawn, its unstarted approvals void, its unreported runs unknown, and
    the children made in it end with it."""
    ended = replace(turn, ended_at=tx.now, cause=cause, ended_by=by)
    tx.put(ended)
    data = {"turn_id": turn.turn_id, "cause": cause}
    tx.emit(Event(profile=turn.profile, type="turn.ended", at=tx.now, session_id=turn.session_id, data=data))
    rows = tx.find(ApprovalRequest, "live_turn", turn_key(turn.profile, turn.turn_id))
    stopped = _end_rows(tx, rows, cause, by, lose_running=True)
    child_cause: Cause = cause if cause in ("stop_requested", "session_ended") else "parent_ended"
    for child in tx.find(Session, "parent", session_key(turn.profile, turn.session_id)):
        if child.parent_turn == turn.turn_id:
            stopped = stopped.plus(close_session(tx, child, child_cause, by))
    return replace(stopped, turns=(turn.turn_id, *stopped.turns))


def stop_session(tx: Tx, session: Session, by: Actor | None, cause: Cause = "stop_requested") -> Stopped:
    """Stop a session: a new generation, every open turn ended, every question withdrawn, children likewise."""
    tx.put(replace(session, generation=session.generation + 1, cause=cause))
    tx.emit(Event(profile=session.profile, type="session.stopped", at=tx.now, session_id=session.session_id))
    stopped = _end_work(tx, session, cause, by)
    kept = tx.find(Grant, "live_session", session_key(session.profile, session.session_id))
    return replace(stopped, sessions=(session.session_id, *stopped.sessions), grants=len(kept))


def clear_session(tx: Tx, session: Session, by: Actor | None, *, close: bool) -> Stopped:
    """The session ends or starts anew: as a stop with the cause `session_ended`, and its grants and bypass go.

    `close` also forgets its registration.
    """
    cause: Cause = "session_ended"
    tx.put(
        replace(
            session,
            generation=session.generation + 1,
            cause=cause,
            bypass_until=None,
            closed_at=tx.now if close else session.closed_at,
        )
    )
    tx.emit(Event(profile=session.profile, type="session.cleared", at=tx.now, session_id=session.session_id))
    stopped = _end_work(tx, session, cause, by)
    dropped = grants.drop_session(tx, session.profile, session.session_id, by or Actor(type="system"))
    return replace(stopped, sessions=(session.session_id, *stopped.sessions), grants=len(dropped))


def close_session(tx: Tx, session: Session, cause: Cause, by: Actor | None) -> Stopped:
    """Close a child with its parent; what it submits later is born cancelled with this cause."""
    if session.closed_at is not None:
        return Stopped()
    tx.put(replace(session, generation=session.generation + 1, closed_at=tx.now, cause=cause))
    stopped = _end_work(tx, session, cause, by)
    grants.drop_session(tx, session.profile, session.session_id, by or Actor(type="system"))
    return replace(stopped, sessions=(session.session_id, *stopped.sessions))


def _end_work(tx: Tx, session: Session, cause: Cause, by: Actor | None) -> Stopped:
    """End the turns, questions, approvals and children of a session."""
    key = session_key(session.profile, session.session_id)
    rows = tx.find(ApprovalRequest, "live_session", key)
    stopped = _end_rows(tx, rows, cause, by, lose_running=False)
    for turn in tx.find(Turn, "open_session", key):
        stopped = stopped.plus(end_turn(tx, turn, cause, by))
    for child in tx.find(Session, "parent", key):
        stopped = stopped.plus(close_session(tx, child, cause, by))
    return stopped


def _end_rows(
    tx: Tx, rows: list[ApprovalRequest], cause: Cause, by: Actor | None, *, lose_running: bool
) -> Stopped:
    """Withdraw what is pending, void what is approved and unstarted; what runs is lost with its turn only."""
    cancelled = ending.withdraw_many(tx, [row for row in rows if row.outcome is None], cause, by)
    voided, running = [], []
    for row in rows:
        if row.outcome != "approved":
            continue
        if row.execution.state == "none":
            voided.append(claiming.withdraw_approval(tx, row, cause, by))
        elif lose_running:
            running.append(claiming.lapse(tx, row))
        elif row.turn_id is None:
            running.append(row)
    return Stopped(cancelled=tuple(cancelled), voided=tuple(voided), running=tuple(running))


def open_turn(tx: Tx, session: Session, turn_id: str, lease_s: float) -> Turn:
    """Open a turn; the same id again returns it while open. Raises `TurnEnded`, `Conflict` for another session's."""
    known = tx.get(Turn, turn_key(session.profile, turn_id))
    if known is not None:
        if known.session_id != session.session_id:
            raise Conflict("This turn id belongs to another session; use a new one.", param="turn_id")
        if known.ended_at is not None:
            raise TurnEnded(f"Turn {turn_id} ended: {known.cause}. Open a new one.", cause=known.cause)
        return known
    turn = Turn(
        profile=session.profile,
        turn_id=turn_id,
        session_id=session.session_id,
        generation=session.generation,
        lease_s=lease_s,
        lease_until=plus(tx.now, lease_s),
        opened_at=tx.now,
    )
    tx.put(turn)
    return turn


def load_turn(tx: Tx, profile: str, turn_id: str) -> Turn:
    """The turn's row, or `TurnNotFound`."""
    turn = tx.get(Turn, turn_key(profile, turn_id))
    if turn is None:
        raise TurnNotFound
    return turn


def renew(tx: Tx, profile: str, turn_id: str) -> Turn:
    """Renew a lease; raises `TurnNotFound`, `TurnEnded` with the cause."""
    turn = load_turn(tx, profile, turn_id)
    if turn.ended_at is not None:
        raise TurnEnded(f"Turn {turn_id} ended: {turn.cause}. Open a new one.", cause=turn.cause)
    renewed = replace(turn, lease_until=plus(tx.now, turn.lease_s))
    tx.put(renewed)
    return renewed


def notifier_gone(tx: Tx, notifier: Notifier) -> list[ApprovalRequest]:
    """Forget a notifier; questions of the session and its children that no other way to a person is left for are
    withdrawn."""
    tx.delete(notifier)
    alone = []
    for session_id in _family(tx, notifier.profile, notifier.session_id):
        rows = tx.find(ApprovalRequest, "live_session", session_key(notifier.profile, session_id))
        alone += [row for row in rows if row.outcome is None and not sending.may_reach(tx, _asker(tx, row))]
    return ending.withdraw_many(tx, alone, "notifier_gone", None)


def _family(tx: Tx, profile: str, session_id: str) -> list[str]:
    """The session and the open children below it."""
    found = [session_id]
    for known in found:
        if len(found) <= MAX_FAMILY:
            found += [child.session_id for child in tx.find(Session, "parent", session_key(profile, known))]
    return found


def _asker(tx: Tx, row: ApprovalRequest) -> ApprovalRequest:
    """The request whose card asks for this one."""
    leader = tx.get(ApprovalRequest, request_key(row.profile, row.leader_id)) if row.leader_id is not None else None
    return row if leader is None else leader


def notifier_key(profile: str, session_id: str, name: str) -> str:
    """The key of a notifier's row."""
    return joined(profile, session_id, name)
