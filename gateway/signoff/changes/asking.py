"""A question is inserted: with its cards in the outbox, as a follower of an identical one, or already ended."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from signoff.changes import bypassing, grants, repeats
from signoff.changes.common import NEW, OTHER, attached, emit, plus, show
from signoff.changes.copies import new_card
from signoff.errors import IdempotencyConflict, SessionNotFound, TurnNotFound
from signoff.ids import new_short, row_id
from signoff.model import Actor, ApprovalRequest, Execution, Session, Turn, replace
from signoff.ports import Tx
from signoff.rows import joined, request_key, session_key, turn_key

WINDOW_WITHIN_S = 60.0
"""The window starts this long after creation at the latest, sent or not."""
REVIEWER = "reviewer"
"""The rule that is named where the automatic reviewer approved."""
SHORT_ID_REST = timedelta(days=30)
"""A short id is not given out again for this long."""


class Asked(Struct, frozen=True):
    """The stored record, and whether it was there already (the same id and question again)."""

    row: ApprovalRequest
    repeated: bool = False


class ReviewFirst(Exception):  # not an error: the caller asks the automatic reviewer, and then this again
    """Nothing stored answers the question, so the reviewer is asked before a person."""


class StaleFacts(Exception):  # not an error: the caller judges again with the session as it is now
    """The session changed between judging and inserting."""


def ask(tx: Tx, draft: ApprovalRequest, judged: Session, claim_within_s: float) -> Asked:
    """Insert `draft`, which was judged for the session row `judged`.

    A draft with an outcome is born ended. A pending one is born `cancelled` when its turn or session was ended
    meanwhile, approved when grants cover it, denied when a person's denial of it still holds, a follower when an
    identical question waits, else a leader with cards.
    Raises `IdempotencyConflict`, `SessionNotFound`, `TurnNotFound`, `StaleFacts`, `ReviewFirst`.
    """
    stored = tx.get(ApprovalRequest, request_key(draft.profile, draft.request_id))
    if stored is not None:
        if stored.digest == draft.digest and stored.session_id == draft.session_id:
            return Asked(stored, repeated=True)
        raise IdempotencyConflict
    session = tx.get(Session, session_key(draft.profile, draft.session_id))
    if session is None:
        raise SessionNotFound
    row = replace(draft, short_id=_short_id(tx, draft.profile), created_at=tx.now)
    void = _void(tx, row, session, judged)
    if void is not None:
        return Asked(_born(tx, void))
    if session != judged or bypassing.over(row, session, tx.now):
        raise StaleFacts
    if row.outcome is not None:
        return Asked(_born(tx, row, claim_within_s))
    found = grants.covering(tx, row)
    if found:
        by = grants.actors(found)
        covered = replace(row, outcome="approved", choice="once", decided_by=by, grant_id=found[0].grant_id)
        return Asked(_born(tx, covered, claim_within_s))
    denied = repeats.denied_before(tx, row)
    if denied is not None:
        return Asked(_born(tx, repeats.refuse(tx, row, denied)))
    if not row.destinations and not attached(tx, row.profile, row.session_id):
        raise StaleFacts  # who could have answered went away meanwhile
    if row.review == "approve":
        by = (Actor(type="policy", rule=REVIEWER),)
        row = replace(row, outcome="approved", choice="once", decided_by=by, rung=REVIEWER)
        return Asked(_born(tx, row, claim_within_s))
    like = repeats.denied_alike(tx, row)
    row = replace(
        row,
        coalesce_key=coalesce_key(row),
        denied_like=like.request_id if like is not None else None,
        offer_box=repeats.approved_often(tx, row),
    )
    if row.review == "wanted" and not _leader_of(tx, row):
        raise ReviewFirst
    return Asked(_pending(tx, row))


def coalesce_key(row: ApprovalRequest) -> str:
    """Two pending questions with the same key are one question: session, requester, digest, threshold and choices."""
    facts = joined(row.session_id, row.requested_by or "", row.digest, str(row.threshold), *row.choices)
    return hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()


def _void(tx: Tx, row: ApprovalRequest, session: Session, judged: Session) -> ApprovalRequest | None:
    """The row as born cancelled, when what it belongs to ended before it was inserted. Nobody decided it, so what
    a rule or a bypass had said of it goes."""
    row = replace(row, choice=None, decided_by=())
    if session.closed_at is not None:
        return replace(row, outcome="cancelled", cause=session.cause or "parent_ended", ended_by=session.ended_by)
    if row.turn_id is not None:
        turn = tx.get(Turn, turn_key(row.profile, row.turn_id))
        if turn is None or turn.session_id != row.session_id:
            raise TurnNotFound
        if turn.ended_at is not None:
            return replace(row, outcome="cancelled", cause=turn.cause or "turn_ended", ended_by=turn.ended_by)
    if session.generation != judged.generation:
        return replace(row, outcome="cancelled", cause=session.cause or "stop_requested", ended_by=session.ended_by)
    return None


def _short_id(tx: Tx, profile: str) -> str:
    """A short id that nothing recent bears."""
    while True:
        short = new_short()
        known = tx.find(ApprovalRequest, "short", joined(profile, short), limit=8)
        if all(tx.now - row.created_at > SHORT_ID_REST and row.outcome is not None for row in known):
            return short


def _born(tx: Tx, row: ApprovalRequest, claim_within_s: float = 0.0) -> ApprovalRequest:
    """Insert a row that is ended already. No card is posted for it."""
    if row.outcome == "approved":
        row = replace(row, claim_by=plus(tx.now, claim_within_s))
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
