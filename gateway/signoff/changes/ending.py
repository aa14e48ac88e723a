"""How a request ends, and what its end does to those that wait on its card.

| the leader ends                | each follower                                                        |
|--------------------------------|----------------------------------------------------------------------|
| session, always, time box      | approved alike                                                       |
| once_all                       | those counted on that revision approved; the oldest of the rest asks |
| once                           | the oldest asks with a new card                                      |
| denied                         | denied, with the reason                                              |
| timeout                        | keeps its own deadline; the oldest live one asks with a new card     |
| notify_failed                  | notify_failed alike                                                  |
| withdrawn alone                | the oldest live one takes the card over                              |

No path turns a withdrawal into a denial.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from signoff import lifecycle
from signoff.changes.common import (
    FINAL,
    NEW,
    OTHER,
    close_panel,
    copies_of,
    emit,
    followers,
    plus,
    show,
)
from signoff.changes.copies import new_card
from signoff.changes.grants import covered_by
from signoff.ids import row_id
from signoff.model import Actor, Alike, ApprovalRequest, Cause, Copy, Destination, Grant, replace
from signoff.ports import Tx
from signoff.rows import request_key


def approve(
    tx: Tx,
    row: ApprovalRequest,
    *,
    choice: str,
    by: tuple[Actor, ...],
    claim_within_s: float,
    copy_id: str | None = None,
    grant: Grant | None = None,
    upto: int = 0,
    counted: int | None = None,
    quiet: bool = False,
) -> ApprovalRequest:
    """End `row` as approved, and its followers as the table says. `upto` bounds `once_all`, and `counted` is how many
    followers the tapped card counted; `quiet` queues no edit (a summary tells it instead)."""
    waiting = _live(tx, row)
    alike = _alike(choice, waiting, upto)
    done = _end(
        tx,
        row,
        "approve",
        cards="close" if quiet else "show",
        asked_runs=1 + (len(waiting) if choice != "once_all" else len(alike) if counted is None else counted),
        choice=choice,
        decided_by=by,
        decided_copy=copy_id,
        grant_id=grant.grant_id if grant else row.grant_id,
        covered=covered_by(grant) if grant and by[0].type == "grant" else None,
        claim_by=_start_by(row, tx.now, claim_within_s),
        runs=1 + len(alike),
        alike=Alike(states={"none": len(alike)}, since=row.card_version + 1) if alike else None,
    )
    for follower in alike:
        _approve_alike(tx, follower, done, claim_within_s)
    _next_asks(tx, done, waiting[len(alike) :])
    return done


def _start_by(row: ApprovalRequest, now: datetime, claim_within_s: float) -> datetime | None:
    """Until when an approved action may be started. A kept one waits for its executor as long as it could wait for its
    answer."""
    within_s = claim_within_s if row.stages is None else row.timeout_s
    return None if within_s is None else plus(now, within_s)


def _live(tx: Tx, row: ApprovalRequest) -> list[ApprovalRequest]:
    """Those that wait on this card, oldest first. One whose own deadline has passed times out here, whatever ends its
    leader: nothing is decided over the past."""
    waiting = []
    for follower in followers(tx, row):
        if follower.expires_at is not None and follower.expires_at <= tx.now:
            _end(tx, follower, "expire")
        else:
            waiting.append(follower)
    return waiting


def _alike(choice: str, waiting: list[ApprovalRequest], upto: int) -> list[ApprovalRequest]:
    """The followers that are approved with their leader."""
    if choice == "once":
        return []
    return [f for f in waiting if f.follow_no <= upto] if choice == "once_all" else waiting


def _approve_alike(tx: Tx, row: ApprovalRequest, leader: ApprovalRequest, claim_within_s: float) -> None:
    _end(
        tx,
        row,
        "approve",
        choice=leader.choice,
        decided_by=leader.decided_by,
        grant_id=leader.grant_id,
        covered=leader.covered,
        claim_by=plus(tx.now, claim_within_s),
    )


def deny(
    tx: Tx,
    row: ApprovalRequest,
    *,
    by: tuple[Actor, ...],
    reason: str | None,
    copy_id: str | None = None,
    quiet: bool = False,
) -> ApprovalRequest:
    """End `row` and its followers as denied by that person, with the reason."""
    waiting = _live(tx, row)
    done = _end(
        tx,
        row,
        "deny",
        cards="close" if quiet else "show",
        choice="deny",
        decided_by=by,
        reason=reason,
        decided_copy=copy_id,
        runs=len(waiting) + 1,
    )
    for follower in waiting:
        _end(tx, follower, "deny", choice="deny", decided_by=by, reason=reason)
    return done


def expire(tx: Tx, row: ApprovalRequest) -> ApprovalRequest:
    """End `row` as timed out; the oldest follower whose own deadline has not passed asks with a new card."""
    waiting = _live(tx, row)
    done = _end(tx, row, "expire")
    _next_asks(tx, done, waiting)
    return done


def undeliverable(tx: Tx, row: ApprovalRequest, error: str, refused_by: Destination | None = None) -> ApprovalRequest:
    """End `row` and its followers: nobody could be asked. `refused_by` is the place that refused the card, if one
    did."""
    waiting = _live(tx, row)
    done = _end(tx, row, "undeliverable", delivery_error=error, refused_by=refused_by)
    for follower in waiting:
        _end(tx, follower, "undeliverable", delivery_error=error, refused_by=refused_by)
    return done


def withdraw(
    tx: Tx, row: ApprovalRequest, cause: Cause, by: Actor | None, superseded_by: str | None = None
) -> ApprovalRequest:
    """End `row` alone as cancelled; the oldest follower takes its card over. Withdraw followers first where the
    cause ends them too."""
    if row.leader_id is not None:
        leave(tx, row)
        return _end(tx, row, "withdraw", cause=cause, ended_by=by, superseded_by=superseded_by)
    waiting = _live(tx, row)
    cards: Literal["keep", "show"] = "keep" if waiting else "show"
    done = _end(tx, row, "withdraw", cards=cards, cause=cause, ended_by=by, superseded_by=superseded_by)
    if waiting:
        _take_over(tx, done, waiting)
    return done


def withdraw_many(tx: Tx, rows: list[ApprovalRequest], cause: Cause, by: Actor | None) -> list[ApprovalRequest]:
    """Withdraw pending rows that end for one cause, followers before leaders so that nobody is promoted only to be
    withdrawn next."""
    done = [withdraw(tx, row, cause, by) for row in rows if row.leader_id is not None]
    for row in rows:
        if row.leader_id is None:
            fresh = tx.get(ApprovalRequest, request_key(row.profile, row.request_id))
            done.append(withdraw(tx, row if fresh is None else fresh, cause, by))
    return done


def _end(
    tx: Tx,
    row: ApprovalRequest,
    event: str,
    *,
    cards: Literal["show", "close", "keep"] = "show",
    asked_runs: int | None = None,
    **facts: object,
) -> ApprovalRequest:
    """The one place where a pending request gets its outcome: row, event and what becomes of its cards.

    `show` edits them; `close` leaves them as they are, for a summary tells it; `keep` leaves them to the next leader.
    """
    outcome = lifecycle.apply(lifecycle.REQUEST, "pending", event)
    done = replace(
        row,
        outcome=outcome,
        decided_at=tx.now,
        window_by=None,
        notify_by=None,
        asked_runs=row.waiters + 1 if asked_runs is None else asked_runs,
        waiters=0,
        card_version=row.card_version + 1,
        **facts,
    )
    tx.put(done)
    emit(tx, "approval.resolved", done, outcome=outcome, cause=done.cause, choice=done.choice)
    if row.leader_id is None:
        if cards == "show":
            show(tx, done, priority=FINAL)
        elif cards == "close":
            _close_quietly(tx, done)
    return done


def _close_quietly(tx: Tx, row: ApprovalRequest) -> None:
    """Nothing more is sent for the copies of a request that a summary speaks for."""
    for copy in copies_of(tx, row):
        if copy.state in ("queued", "sent"):
            tx.put(replace(copy, state="final", due_at=None))


def leave(tx: Tx, row: ApprovalRequest) -> None:
    """Take a follower that ends alone off its leader's count."""
    if row.leader_id is None:
        return
    leader = tx.get(ApprovalRequest, request_key(row.profile, row.leader_id))
    if leader is not None and leader.outcome is None:
        changed = replace(leader, waiters=max(0, leader.waiters - 1), card_version=leader.card_version + 1)
        tx.put(changed)
        show(tx, changed, priority=OTHER)


def _promoted(tx: Tx, ended: ApprovalRequest, waiting: list[ApprovalRequest], next_of: str | None) -> ApprovalRequest:
    """The oldest of `waiting` as the new leader, the others behind it."""
    first, rest = waiting[0], waiting[1:]
    leader = replace(
        first,
        leader_id=None,
        waiters=len(rest),
        last_follow_no=ended.last_follow_no,
        card_version=first.card_version + 1,
        next_of=next_of,
        destinations=first.destinations or ended.destinations,
    )
    tx.put(leader)
    for row in rest:
        tx.put(replace(row, leader_id=leader.request_id))
    emit(tx, "approval.promoted", leader, after=ended.request_id)
    return leader


def _next_asks(tx: Tx, ended: ApprovalRequest, waiting: list[ApprovalRequest]) -> None:
    """The oldest follower becomes leader with a card of its own."""
    if not waiting:
        return
    leader = _promoted(tx, ended, waiting, ended.request_id if ended.outcome == "approved" else None)
    for destination in leader.destinations:
        tx.put(new_card(row_id(), leader, destination, tx.now, NEW))


def _take_over(tx: Tx, ended: ApprovalRequest, waiting: list[ApprovalRequest]) -> None:
    """The oldest follower gets the card itself, as a new revision; older buttons are answered 'replaced'."""
    leader = _promoted(tx, ended, waiting, None)
    moved = False
    for copy in copies_of(tx, ended):
        if copy.kind != "card":
            close_panel(tx, copy)  # it was opened on the leader that is gone, so its buttons mean nothing now
            continue
        if copy.state in ("final", "failed"):
            continue
        moved = True
        tx.put(_handed_over(copy, leader, tx.now))
    delivered = replace(leader, delivered_to=ended.delivered_to) if moved else leader
    tx.put(delivered)
    if not moved:
        for destination in leader.destinations:
            tx.put(new_card(row_id(), leader, destination, tx.now, NEW))


def _handed_over(copy: Copy, leader: ApprovalRequest, now: datetime) -> Copy:
    """The copy as the new leader's; a message not yet known to be sent goes on being sent."""
    revision = copy.faces[-1].revision + 1 if copy.faces else 0
    due = now if copy.state in ("sent", "queued") else copy.due_at
    return replace(copy, request_id=leader.request_id, valid_from=revision, shown_version=-1, due_at=due)
