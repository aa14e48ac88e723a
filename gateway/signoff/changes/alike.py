"""Those that were approved with their leader: how they run is counted on the leader's row, since its card tells it."""

from __future__ import annotations

from datetime import datetime

from signoff.changes.common import OTHER, plus, show
from signoff.model import ApprovalRequest, replace
from signoff.ports import Tx
from signoff.rows import request_key

COUNTS_EVERY_S = 5.0
"""A card is edited at most this often for its counts alone, since one edit tells all that happened meanwhile."""
MOVING = ("none", "claimed", "unknown")
"""States of execution in which there is still something to be told."""


def states_of(row: ApprovalRequest) -> dict[str, int]:
    """How many of the runs that an approval allowed stand in each state of execution, its own included."""
    counts = dict(row.alike.states) if row.alike is not None else {}
    counts[row.execution.state] = counts.get(row.execution.state, 0) + 1
    return counts


def at_rest(row: ApprovalRequest) -> bool:
    """Whether every run that an approval allowed has ended, or will never start."""
    return not any(state in MOVING for state in states_of(row))


def newest(tx: Tx, row: ApprovalRequest) -> ApprovalRequest:
    """The row, read again where others count on it: they may have moved on since the caller read it."""
    if row.alike is None:
        return row
    known = tx.get(ApprovalRequest, request_key(row.profile, row.request_id))
    return row if known is None else known


def moved_on(tx: Tx, before: ApprovalRequest, done: ApprovalRequest) -> None:
    """Count on its leader that one that was approved with others has moved on. The card tells it soon, and at once
    where no run is left."""
    leader = tx.get(ApprovalRequest, request_key(done.profile, done.leader_id)) if done.leader_id is not None else None
    if leader is None or leader.alike is None or leader.decided_at != done.decided_at:
        return
    states = dict(leader.alike.states)
    states[before.execution.state] = states.get(before.execution.state, 0) - 1
    states[done.execution.state] = states.get(done.execution.state, 0) + 1
    kept = {state: count for state, count in states.items() if count > 0}
    changed = replace(leader, alike=replace(leader.alike, states=kept), card_version=leader.card_version + 1)
    tx.put(changed)
    show(tx, changed, priority=OTHER, at=told_at(tx, changed))


def told_at(tx: Tx, row: ApprovalRequest) -> datetime:
    """When the card is to tell how a run went: at once where no run is left, else soon, with what follows till then."""
    return tx.now if row.alike is None or at_rest(row) else plus(tx.now, COUNTS_EVERY_S)


def next_count(row: ApprovalRequest, version: int, now: datetime) -> datetime | None:
    """When a card that shows `version` is to tell newer counts; None where it lacks more than those."""
    if row.alike is None or version < row.alike.since or at_rest(row):
        return None
    return plus(now, COUNTS_EVERY_S)
