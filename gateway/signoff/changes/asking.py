"""A question is inserted: with its cards in the outbox, as a follower of an identical one, or already ended."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from signoff.changes import bypassing, grants, passing, repeats, staging
from signoff.changes.common import NEW, OTHER, attached, emit, fresh_short, plus, show
from signoff.changes.copies import new_card
from signoff.errors import IdempotencyConflict, SessionNotFound, TooManyKept, TurnNotFound
from signoff.gate_pass import GatePass
from signoff.ids import row_id
from signoff.model import Actor, ApprovalRequest, Execution, Session, Turn, replace
from signoff.ports import Tx
from signoff.rows import joined, request_key, session_key, turn_key

WINDOW_WITHIN_S = 60.0
"""The window starts this long after creation at the latest, sent or not."""
REVIEWER = "reviewer"
"""The rule that is named where the automatic reviewer approved."""


class Asked(Struct, frozen=True):
    """The stored record, and whether it was there already (the same id and question again)."""

    row: ApprovalRequest
    repeated: bool = False


class ReviewFirst(Exception):  # not an error: the caller asks the automatic reviewer, and then this again
    """Nothing stored answers the question, so the reviewer is asked before a person."""


class StaleFacts(Exception):  # not an error: the caller judges again with the session as it is now
    """The session changed between judging and inserting."""


def ask(
    tx: Tx,
    draft: ApprovalRequest,
    judged: Session,
    claim_within_s: float,
    gate_pass: GatePass | None = None,
    *,
    may_keep: bool = True,
) -> Asked:
    """Insert `draft`, which was judged for the session row `judged`. `gate_pass` is what a first gate gave for it;
    without `may_keep` nothing is kept for a later yes.

    A draft with an outcome is born ended. A pending one is born `cancelled` when its turn or session was ended
    meanwhile, approved when grants cover it, denied when a person's denial of it still holds, a follower when an
    identical question waits, else a leader with cards.
    Raises `IdempotencyConflict`, `SessionNotFound`, `TurnNotFound`, `StaleFacts`, `ReviewFirst`, `GatePassRefused`,
    `TooManyKept`.
    """
    stored = tx.get(ApprovalRequest, request_key(draft.profile, draft.request_id))
    if stored is not None:
        if stored.digest == draft.digest and stored.session_id == draft.session_id:
            return Asked(stored, repeated=True)
        raise IdempotencyConflict
    session = tx.get(Session, session_key(draft.profile, draft.session_id))
    if session is None:
        raise SessionNotFound
    row = replace(draft, short_id=fresh_short(tx, draft.profile), created_at=tx.now)
    void = _void(tx, row, session, judged)
    if void is not None:
        return Asked(_born(tx, void))
    if not _alike(session, judged) or bypassing.over(row, session, tx.now):
        raise StaleFacts
    row = _answered(tx, row, gate_pass)
    if row.outcome == "staged" and not may_keep:
        raise TooManyKept("So many actions of this agent are kept that no more is. People must answer them first.")
    if row.outcome is not None:
        return Asked(_born(tx, row, claim_within_s))
    denied = repeats.denied_before(tx, row)
    if denied is not None:
        return Asked(_born(tx, repeats.refuse(tx, row, denied)))
    if not row.destinations and not attached(tx, row.profile, row.session_id):
        raise StaleFacts  # who could have answered went away meanwhile
    if row.review == "approve":
        by = (Actor(type="policy", rule=REVIEWER),)
        row = replace(row, outcome="approved", choice="once", decided_by=by, rung=REVIEWER)
        return Asked(_born(tx, row, claim_within_s))
    return Asked(_before_people(tx, row))


def _before_people(tx: Tx, row: ApprovalRequest) -> ApprovalRequest:
    """Insert a question that only a person can answer. Raises `ReviewFirst`."""
    like = repeats.denied_alike(tx, row)
    row = replace(
        row,
        coalesce_key=coalesce_key(row),
        denied_like=like.request_id if like is not None else None,
        offer_box=repeats.approved_often(tx, row),
    )
    if row.review == "wanted" and not _leader_of(tx, row):
        raise ReviewFirst
    return _pending(tx, row)


def _answered(tx: Tx, row: ApprovalRequest, gate_pass: GatePass | None) -> ApprovalRequest:
    """The row as a first gate or standing approvals answer it; as it is where they do not. Raises `GatePassRefused`.

    What the tool gate would keep, a standing approval lets run; where a session's own setting keeps it, none counts.
    """
    if gate_pass is not None and row.outcome in (None, "staged"):
        return passing.through(tx, row, gate_pass)
    if row.outcome is not None and not (row.outcome == "staged" and row.rung == passing.GATED):
        return row
    found = grants.covering(tx, row)
    if not found:
        return row
    grants.used(tx, found)
    by = grants.actors(found)
    return replace(
        row,
        outcome="approved",
        choice="once",
        decided_by=by,
        grant_id=found[0].grant_id,
        covered=grants.covered_by(found[0]),
        executor=None,
    )


def coalesce_key(row: ApprovalRequest) -> str:
    """Two pending questions with the same key are one question: session, requester, digest, threshold and choices."""
    facts = joined(row.session_id, row.requested_by or "", row.digest, str(row.threshold), *row.choices)
    return hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()


def _alike(session: Session, judged: Session) -> bool:
    """Whether nothing that a question is judged by has changed: when the session was used last is no such thing."""
    return session == judged or replace(judged, seen_at=session.seen_at, ends_at=session.ends_at) == session


def _void(tx: Tx, row: ApprovalRequest, session: Session, judged: Session) -> ApprovalRequest | None:
    """The row as born cancelled, when what it belongs to ended before it was inserted. Nobody decided it, so what
    a rule or a bypass had said of it goes."""
    row = replace(row, choice=None, decided_by=(), executor=None)
    if session.closed_at is not None:
        return replace(row, outcome="cancelled", cause=session.cause or "parent_ended", ended_by=session.ended_by)
    if row.turn_id is not None:
        turn = tx.get(Turn, turn_key(row.profile, row.turn_id))
        if turn is None or turn.session_id != row.session_id:
            raise TurnNotFound
        if turn.ended_at is not None:
            return replace(
                row, outcome="cancelled", cause=turn.cause or "turn_ended", ended_by=turn.ended_by, lease_s=turn.lease_s
            )
    if session.generation != judged.generation:
        return replace(row, outcome="cancelled", cause=session.cause or "stop_requested", ended_by=session.ended_by)
    return None


def _born(tx: Tx, row: ApprovalRequest, claim_within_s: float = 0.0) -> ApprovalRequest:
    """Insert a row that is ended already. No card is posted for it."""
    if row.outcome == "approved":
        row = replace(row, claim_by=plus(tx.now, claim_within_s))
    if row.outcome == "staged":
        row = staging.stage(tx, row)
    row = replace(row, decided_at=tx.now, destinations=(), execution=Execution())
    tx.put(row)
    emit(tx, "approval.requested", row)
    emit(tx, "approval.resolved", row, outcome=row.outcome, cause=row.cause, choice=row.choice)
    return row


def _pending(tx: Tx, row: ApprovalRequest) -> ApprovalRequest:
    found = _leader_of(tx, row)
    row = _follow(tx, row, found[0]) if found else _lead(tx, row)
    emit(tx, "approval.requested", row, leader_id=row.leader_id)
    return row


def _leader_of(tx: Tx, row: ApprovalRequest) -> Sequence[ApprovalRequest]:
    """The identical question that waits, if one does."""
    return tx.find(ApprovalRequest, "leader_key", joined(row.profile, row.coalesce_key), limit=1)


def _lead(tx: Tx, row: ApprovalRequest) -> ApprovalRequest:
    """A leader with a card in every destination; its window starts with the first sent copy."""
    if row.destinations:
        row = replace(row, window_by=plus(tx.now, WINDOW_WITHIN_S))
    else:
        row = replace(row, expires_at=deadline(row, tx.now))
    tx.put(row)
    for destination in row.destinations:
        tx.put(new_card(row_id(), row, destination, tx.now, NEW))
    return row


def _follow(tx: Tx, row: ApprovalRequest, leader: ApprovalRequest) -> ApprovalRequest:
    """A follower posts no card. Where the leader's window runs, its own starts now."""
    number = leader.last_follow_no + 1
    row = replace(
        row,
        leader_id=leader.request_id,
        follow_no=number,
        expires_at=deadline(row, tx.now) if leader.window_by is None else None,
        window_by=leader.window_by,
    )
    tx.put(row)
    changed = replace(leader, last_follow_no=number, waiters=leader.waiters + 1, card_version=leader.card_version + 1)
    tx.put(changed)
    show(tx, changed, priority=OTHER)
    return row


def deadline(row: ApprovalRequest, start: datetime) -> datetime | None:
    """When the window ends if it starts at `start`; None without a deadline."""
    return None if row.timeout_s is None else plus(start, row.timeout_s)
