"""What people answered before about the same action: a denial is not asked again, and is told where a like one is.

Within its turn a denial holds for exactly the action that was denied; where no turn is known, for ten minutes in its
session, or in all those that the asker's commands have for one question each. It ends with a grant that covers the
action, or when a person lets it be asked again.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from signoff import lifecycle
from signoff.changes.common import FINAL, copies_of, emit, load_request
from signoff.ids import of_one_question
from signoff.model import Actor, ApprovalRequest, Elicitation, Turn, replace
from signoff.ports import Tx
from signoff.rows import answered_key, denied_key, request_key

ASK_AGAIN = "ask_again"
"""The answer that ends a denial and decides nothing."""

HOLDS_FOR = timedelta(minutes=10)
"""How long a denial is remembered where no turn bounds it."""

OFFER_AFTER = 3
"""After so many approvals of one action in a session its card offers a time box."""


def denied_before(tx: Tx, row: ApprovalRequest) -> ApprovalRequest | None:
    """The newest denial by a person that still holds for this action. A server's question is put anew each time."""
    if isinstance(row.action, Elicitation):
        return None
    answered = _answered(tx, row)
    denied = [each for each in answered if each.outcome == "denied" and _holds(each, row.turn_id, tx.now)]
    return denied[-1] if denied else None


def still_holds(denied: ApprovalRequest, turn: Turn | None, now: datetime) -> bool:
    """Whether a person's denial would answer the same action, were it asked for now as it was then. `turn` is the one
    in which it was denied, None where there is none any more."""
    if denied.lifted_by is not None or isinstance(denied.action, Elicitation):
        return False
    if not of_one_question(denied.turn_id) and (turn is None or turn.ended_at is not None):
        return False
    return _holds(denied, denied.turn_id, now)


def denied_alike(tx: Tx, row: ApprovalRequest) -> ApprovalRequest | None:
    """The newest denial, in this turn or of late, of an action of the same programs that the same rules ask for. It may
    be the same action, where its denial no longer holds."""
    found = tx.find(ApprovalRequest, "denied_like", denied_key(row))
    late = [each for each in found if _holds(each, row.turn_id, tx.now) or tx.now - _when(each) <= HOLDS_FOR]
    return late[-1] if late else None


def approved_often(tx: Tx, row: ApprovalRequest) -> bool:
    """Whether people approved this very action so often in this session that a time box would spare them."""
    here = [each for each in _answered(tx, row) if each.session_id == row.session_id]
    return sum(each.outcome == "approved" for each in here) >= OFFER_AFTER


def refuse(tx: Tx, row: ApprovalRequest, before: ApprovalRequest) -> ApprovalRequest:
    """The row as it is born where a denial holds: by the same person, for the same reason. The first time, the denied
    card comes to tell of it, with a button that lets it be asked again."""
    emit(tx, "approval.repeated", before, repeat_id=row.request_id, repeat_short=row.short_id)
    if before.asked_after is None:
        told = replace(before, asked_after=tx.now, card_version=before.card_version + 1)
        tx.put(told)
        _tell(tx, told)
    return replace(
        row,
        outcome="denied",
        choice="deny",
        decided_by=before.decided_by,
        reason=before.reason,
        repeat_of=before.request_id,
        repeat_short=before.short_id,
        repeat_at=_when(before),
    )


def _tell(tx: Tx, denied: ApprovalRequest) -> None:
    """Have the cards of a denied request edited once more, though nothing was to come on them."""
    for copy in copies_of(tx, denied):
        if copy.kind != "card" or copy.digest is not None or copy.message_id is None:
            continue
        if copy.state == "final":
            copy = replace(copy, state=lifecycle.apply(lifecycle.DELIVERY, copy.state, "reopen"))  # noqa: PLW2901
        if copy.state == "sent":
            tx.put(replace(copy, due_at=tx.now, priority=FINAL))


def let_ask(tx: Tx, profile: str, request_id: str, by: Actor) -> ApprovalRequest | None:
    """End a person's denial of an action in its session, which decides nothing: the next time it is asked anew.

    The denied row, or None where no person denied this one. One that was not asked again stands for what it repeats.
    Raises `RequestNotFound`.
    """
    row = load_request(tx, profile, request_id)
    if row.repeat_of is not None:
        repeated = tx.get(ApprovalRequest, request_key(profile, row.repeat_of))
        row = row if repeated is None else repeated
    if row.outcome != "denied" or not any(actor.type == "person" for actor in row.decided_by):
        return None
    for each in _answered(tx, row):
        if each.outcome == "denied":
            lifted = replace(each, lifted_by=by, card_version=each.card_version + 1)
            tx.put(lifted)
            emit(tx, "approval.lifted", lifted)
            _tell(tx, lifted)
            row = lifted if each.request_id == row.request_id else row
    return row


def _answered(tx: Tx, row: ApprovalRequest) -> list[ApprovalRequest]:
    return tx.find(ApprovalRequest, "answered", answered_key(row))


def _holds(before: ApprovalRequest, turn_id: str | None, now: datetime) -> bool:
    """Whether that denial answers the same action when it is asked for in that turn."""
    if not of_one_question(turn_id):
        return before.turn_id == turn_id
    return now - _when(before) <= HOLDS_FOR


def _when(row: ApprovalRequest) -> datetime:
    return row.decided_at or row.created_at
