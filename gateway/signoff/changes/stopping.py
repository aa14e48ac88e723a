"""Turns and sessions end, and with them what they still ask, what was approved but not started, and their children."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from signoff.changes import bypassing, claiming, delivering, ending, grants
from signoff.changes.common import plus
from signoff.errors import Conflict, TurnEnded, TurnNotFound
from signoff.model import Actor, ApprovalRequest, Cause, Event, Grant, Notifier, Session, Turn, replace
from signoff.ports import Tx
from signoff.rows import EVERY_SESSION, joined, request_key, session_key, turn_key

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

    @staticmethod
    def of(parts: Sequence[Stopped]) -> Stopped:
        """All parts together, in their order."""
        return Stopped(
            sessions=tuple(name for part in parts for name in part.sessions),
            cancelled=tuple(row for part in parts for row in part.cancelled),
            voided=tuple(row for part in parts for row in part.voided),
            running=tuple(row for part in parts for row in part.running),
            turns=tuple(name for part in parts for name in part.turns),
            grants=sum(part.grants for part in parts),
        )


Steps = Iterator["Stopped | Steps"]
"""What an end does, step by step: what a step ended, or the steps of what ends with it."""


def end_turn(tx: Tx, turn: Turn, cause: Cause, by: Actor | None) -> Stopped:
    """End an open turn: its questions are withdrawn, its unstarted approvals void, its unreported runs unknown, and
    the children made in it end with it."""
    return _gathered(_end_turn(tx, turn, cause, by, {turn.session_id}))


def stop_session(tx: Tx, session: Session, by: Actor | None, cause: Cause = "stop_requested") -> Stopped:
    """Stop a session: a new generation, every open turn ended, every question withdrawn, children likewise. What is
    asked next is asked: a bypass goes, too."""
    session = bypassing.dropped(tx, session, by, "stop_requested")
    tx.put(replace(session, generation=session.generation + 1, cause=cause, ended_by=by, stopped_at=tx.now))
    _event(tx, "session.stopped", session, cause, by)
    stopped = _gathered(_end_work(tx, session, cause, by, {session.session_id}))
    kept = tx.find(Grant, "live_session", session_key(session.profile, session.session_id))
    counting = sum(grants.in_force(grant, tx.now) for grant in kept)
    return replace(stopped, sessions=(session.session_id, *stopped.sessions), grants=counting)


def clear_session(tx: Tx, session: Session, by: Actor | None, *, close: bool, why: str | None = None) -> Stopped:
    """The session ends or starts anew: as a stop with the cause `session_ended`, and its grants and bypass go.

    `close` also forgets its registration. `why` says in the event log what ended it where nobody did.
    """
    cause: Cause = "session_ended"
    session = bypassing.dropped(tx, session, by, "session_ended")
    tx.put(
        replace(
            session,
            generation=session.generation + 1,
            cause=cause,
            ended_by=by,
            stopped_at=tx.now,
            closed_at=tx.now if close else session.closed_at,
            seen_at=None,
            ends_at=None,
        )
    )
    if close:
        _forget_notifiers(tx, session)
    _event(tx, "session.cleared", session, cause, by, **({"why": why} if why is not None else {}))
    stopped = _gathered(_end_work(tx, session, cause, by, {session.session_id}))
    dropped = grants.drop_session(tx, session.profile, session.session_id, by or Actor(type="system"))
    return replace(stopped, sessions=(session.session_id, *stopped.sessions), grants=len(dropped))


# --- families, however deep ------------------------------------------------------------------
#
# Each step is a generator that yields what it ended and the steps below it. They are run from one stack of their own,
# since the interpreter's would overflow on a long line of children. `seen` holds the sessions that were come to: each
# is ended once, also where a store holds a line that bites its own tail.


def _gathered(steps: Steps) -> Stopped:
    """Run the steps depth first; all that they ended, in that order."""
    parts: list[Stopped] = []
    stack = [steps]
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
        elif isinstance(step, Stopped):
            parts.append(step)
        else:
            stack.append(step)
    return parts[0] if len(parts) == 1 else Stopped.of(parts)


def child_cause(cause: Cause) -> Cause:
    """Why the children of a turn end that ended with this cause."""
    return cause if cause in ("stop_requested", "session_ended") else "parent_ended"


def _end_turn(tx: Tx, turn: Turn, cause: Cause, by: Actor | None, seen: set[str]) -> Steps:
    tx.put(replace(turn, ended_at=tx.now, cause=cause, ended_by=by))
    _event(tx, "turn.ended", turn, cause, by, turn_id=turn.turn_id)
    rows = tx.find(ApprovalRequest, "live_turn", turn_key(turn.profile, turn.turn_id))
    if cause == "requester_gone":
        rows = [replace(row, lease_s=turn.lease_s) for row in rows]
        for row in rows:
            tx.put(row)
    yield replace(_end_rows(tx, rows, cause, by, lose_running=True), turns=(turn.turn_id,))
    for child in tx.find(Session, "parent", session_key(turn.profile, turn.session_id)):
        if child.parent_turn == turn.turn_id:
            yield _close(tx, child, child_cause(cause), by, seen)


def _close(tx: Tx, session: Session, cause: Cause, by: Actor | None, seen: set[str]) -> Steps:
    """Close a child with its parent; what it submits later is born cancelled with this cause."""
    if session.closed_at is not None or session.session_id in seen:
        return
    seen.add(session.session_id)
    session = bypassing.dropped(tx, session, by, "stop_requested" if cause == "stop_requested" else "session_ended")
    closed = {"generation": session.generation + 1, "closed_at": tx.now, "stopped_at": tx.now}
    tx.put(replace(session, **closed, cause=cause, ended_by=by))
    _forget_notifiers(tx, session)
    _event(tx, "session.cleared", session, cause, by)
    yield Stopped(sessions=(session.session_id,))
    yield _end_work(tx, session, cause, by, seen)
    grants.drop_session(tx, session.profile, session.session_id, by or Actor(type="system"))


def _event(tx: Tx, kind: str, ended: Session | Turn, cause: Cause, by: Actor | None, **more: str) -> None:
    """An event about what ended, with the cause and, where somebody did it, who; and with what its session is now,
    which may be declared anew as something else before the event is told."""
    key = session_key(ended.profile, ended.session_id)
    session = ended if isinstance(ended, Session) else tx.get(Session, key)
    data: dict[str, Any] = {**more, "cause": cause}
    if session is not None:
        data["session"] = {"kind": session.kind, "agent": session.agent, "parent": session.parent}
    if by is not None:
        data["ended_by"] = msgspec.to_builtins(by)
    tx.emit(Event(profile=ended.profile, type=kind, at=tx.now, session_id=ended.session_id, data=data))


def _forget_notifiers(tx: Tx, session: Session) -> None:
    """Forget the answer clients of a session that is closed. One with a connection goes on being there, and lapses
    with it: the session may be declared again meanwhile."""
    for notifier in tx.find(Notifier, "session", session_key(session.profile, session.session_id)):
        if notifier.gone_at is None:
            tx.delete(notifier)


def _end_work(tx: Tx, session: Session, cause: Cause, by: Actor | None, seen: set[str]) -> Steps:
    """End the turns, questions, approvals and children of a session."""
    key = session_key(session.profile, session.session_id)
    rows = tx.find(ApprovalRequest, "live_session", key)
    yield _end_rows(tx, rows, cause, by, lose_running=False)
    for turn in tx.find(Turn, "open_session", key):
        yield _end_turn(tx, turn, cause, by, seen)
    for child in tx.find(Session, "parent", key):
        yield _close(tx, child, cause, by, seen)


def _end_rows(tx: Tx, rows: list[ApprovalRequest], cause: Cause, by: Actor | None, *, lose_running: bool) -> Stopped:
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


def notifier_gone(tx: Tx, notifier: Notifier, cause: Cause = "notifier_gone") -> list[ApprovalRequest]:
    """Forget a notifier; questions of the session and its children that no other way to a person is left for are
    withdrawn."""
    tx.delete(notifier)
    alone = []
    if notifier.session_id == EVERY_SESSION:
        pending = tx.find(ApprovalRequest, "pending_profile", notifier.profile)
        alone = [row for row in pending if not delivering.may_reach(tx, _asker(tx, row))]
        return ending.withdraw_many(tx, alone, cause, None)
    for session_id in family(tx, notifier.profile, notifier.session_id):
        rows = tx.find(ApprovalRequest, "live_session", session_key(notifier.profile, session_id))
        alone += [row for row in rows if row.outcome is None and not delivering.may_reach(tx, _asker(tx, row))]
    return ending.withdraw_many(tx, alone, cause, None)


def family(tx: Tx, profile: str, session_id: str) -> list[str]:
    """The session and the open children below it."""
    found = [session_id]
    seen = {session_id}
    for known in found:
        if len(found) > MAX_FAMILY:
            break
        below = [child.session_id for child in tx.find(Session, "parent", session_key(profile, known))]
        found += [child for child in below if child not in seen]
        seen.update(below)
    return found


def _asker(tx: Tx, row: ApprovalRequest) -> ApprovalRequest:
    """The request whose card asks for this one."""
    leader = tx.get(ApprovalRequest, request_key(row.profile, row.leader_id)) if row.leader_id is not None else None
    return row if leader is None else leader


def notifier_key(profile: str, session_id: str, name: str) -> str:
    """The key of a notifier's row."""
    return joined(profile, session_id, name)
