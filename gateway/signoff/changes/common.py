"""What every change needs: rows by name, an event, and copies that must show something new."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from signoff import lifecycle
from signoff.errors import RequestNotFound
from signoff.ids import new_short
from signoff.model import ApprovalRequest, Copy, Event, Execution, Notifier, Session, replace
from signoff.ports import Tx
from signoff.rows import EVERY_SESSION, joined, request_key, session_key

ANSWER, FINAL, NEW, OTHER = 0, 1, 2, 3
"""Priorities of sends: answers to people, final edits, new cards, other edits."""

UNDO_AFTER_S = 2.0
"""A card still unclaimed this long after the decision offers Undo."""
MAX_DEPTH = 16
"""Children of children are followed up to this depth."""
DIGEST_EVERY_S = 10.0
"""A digest is edited at most this often, since one edit tells all that happened meanwhile."""
RUNNING_AFTER_S = 5.0
"""'Running' is shown only for what runs longer than this."""
RUN_AGAIN = "run_again"
"""The answer to a kept action of which nobody knows whether it ran; it takes a second tap."""
SHORT_ID_REST = timedelta(days=30)
"""A short id is not given out again for this long."""


def load_request(tx: Tx, profile: str, request_id: str) -> ApprovalRequest:
    """The row, or `RequestNotFound`."""
    row = tx.get(ApprovalRequest, request_key(profile, request_id))
    if row is None:
        raise RequestNotFound
    return row


def fresh_short(tx: Tx, profile: str) -> str:
    """A short id that nothing recent bears."""
    while True:
        short = new_short()
        known = tx.find(ApprovalRequest, "short", joined(profile, short), limit=8)
        if all(tx.now - row.created_at > SHORT_ID_REST and row.outcome is not None for row in known):
            return short


def unsure(row: ApprovalRequest) -> bool:
    """Whether people are asked what became of a kept action: nobody knows whether it ran, and it was not run again."""
    return row.stages is not None and row.execution.state == "unknown" and row.superseded_by is None


def followers(tx: Tx, leader: ApprovalRequest) -> list[ApprovalRequest]:
    """Those that wait on this leader's card, oldest first."""
    if not leader.waiters:
        return []
    rows = tx.find(ApprovalRequest, "follower_of", request_key(leader.profile, leader.request_id))
    return sorted(rows, key=lambda row: row.follow_no)


def emit(tx: Tx, kind: str, row: ApprovalRequest, **data: Any) -> None:
    """An event about a request."""
    tx.emit(
        Event(
            profile=row.profile,
            type=kind,
            at=tx.now,
            session_id=row.session_id,
            request_id=row.request_id,
            data={"short_id": row.short_id, **data},
        )
    )


def copies_of(tx: Tx, row: ApprovalRequest) -> list[Copy]:
    """Every message that belongs to this request: cards, panels, prompts."""
    return tx.find(Copy, "request", request_key(row.profile, row.request_id))


def show(tx: Tx, row: ApprovalRequest, *, priority: int, at: datetime | None = None) -> None:
    """Have the copies of `row` show its newest state at `at` (now by default); panels of an ended request go."""
    when = at or tx.now
    for copy in copies_of(tx, row):
        if copy.kind != "card":
            if row.outcome is not None:
                close_panel(tx, copy)
            continue
        if copy.digest is not None:
            _show_listed(tx, copy, row, copy.digest)
        elif copy.state == "sent":
            _due(tx, copy, earliest(copy.due_at, when), min(priority, copy_priority(copy)))
        elif copy.state in ("queued", "ambiguous") and row.outcome is not None:
            tx.put(replace(copy, due_at=when, priority=priority))


def _show_listed(tx: Tx, copy: Copy, row: ApprovalRequest, digest_id: str) -> None:
    """A listed card has no message: its digest is edited, or it is taken off one that is not sent yet."""
    if copy.state == "sent":
        touch_digest(tx, digest_id)
    elif copy.state == "queued" and row.outcome is not None:
        tx.put(replace(copy, state="final", due_at=None))


def touch_digest(tx: Tx, digest_id: str, *, at_once: bool = False) -> None:
    """Have a digest show the newest state of what it lists: `at_once`, or when its next edit may come."""
    digest = tx.get(Copy, digest_id)
    if digest is None or digest.state != "sent":
        return  # what is being sent, or may have been, is compared with the rows once it is known to stand there
    shown_at = digest.shown_at or tx.now
    when = tx.now if at_once else max(tx.now, plus(shown_at, DIGEST_EVERY_S))
    _due(tx, digest, earliest(digest.due_at, when), FINAL if at_once else copy_priority(digest))


def _due(tx: Tx, copy: Copy, due_at: datetime | None, priority: int) -> None:
    """Have a copy looked at then. Often it is due anyway: what is claimed at once has its final edit still to come."""
    if (due_at, priority) != (copy.due_at, copy.priority):
        tx.put(replace(copy, due_at=due_at, priority=priority))


def close_panel(tx: Tx, copy: Copy) -> None:
    """Have a panel or prompt removed; one that was never sent is dropped."""
    if copy.state in ("sent", "sending", "ambiguous"):
        tx.put(replace(copy, remove=True, due_at=tx.now, priority=OTHER))
    elif copy.state == "queued":
        tx.put(replace(copy, state="final", due_at=None))


def attached(tx: Tx, profile: str, session_id: str) -> bool:
    """Whether an answer client is attached to the session, to one that it is a child of, or to the whole profile."""
    if _notifies(tx, session_key(profile, EVERY_SESSION)):
        return True
    for _ in range(MAX_DEPTH):
        key = session_key(profile, session_id)
        if _notifies(tx, key):
            return True
        session = tx.get(Session, key)
        if session is None or session.kind != "child" or session.parent is None:
            return False
        session_id = session.parent
    return False


def _notifies(tx: Tx, key: str) -> bool:
    return any(n.gone_at is None or n.gone_at > tx.now for n in tx.find(Notifier, "session", key))


def copy_priority(copy: Copy) -> int:
    """A copy's priority while it has something to do; otherwise the lowest."""
    return copy.priority if copy.due_at is not None else OTHER


def earliest(*times: datetime | None) -> datetime | None:
    """The earliest of the times that are set."""
    known = [time for time in times if time is not None]
    return min(known) if known else None


def plus(when: datetime, seconds: float) -> datetime:
    """`when` and `seconds` later."""
    return when + timedelta(seconds=seconds)


def moved(execution: Execution, event: str, **facts: Any) -> Execution:
    """The execution after `event` of the lifecycle table, with `facts`; raises `IllegalTransition`."""
    state = lifecycle.apply(lifecycle.EXECUTION, execution.state, event)
    return replace(execution, state=state, **facts)
