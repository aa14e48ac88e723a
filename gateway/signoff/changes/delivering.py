"""What a copy's delivery, or its failure, means for the question: its window, who was reached, and when nobody was."""

from __future__ import annotations

from datetime import datetime

from signoff.changes import alike, ending
from signoff.changes.asking import deadline
from signoff.changes.common import NEW, attached, copies_of, earliest, followers, plus, unsure
from signoff.changes.copies import new_card, new_word
from signoff.ids import row_id
from signoff.lifecycle import DELIVERY, apply
from signoff.model import ApprovalRequest, Copy, CopyState, Destination, replace
from signoff.ports import Tx
from signoff.rows import request_key

NOTIFY_WITHIN_S = 15.0
"""Somebody must have accepted a copy this long after our first attempt."""
BACKOFF_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Waits between attempts while a platform cannot be reached."""


def row_of(tx: Tx, copy: Copy) -> ApprovalRequest | None:
    """The request that a copy belongs to."""
    return tx.get(ApprovalRequest, request_key(copy.profile, copy.request_id)) if copy.request_id else None


def state_after(copy: Copy, event: str) -> CopyState:
    """The copy's state after `event` of the delivery table; raises `IllegalTransition`."""
    return apply(DELIVERY, copy.state, event)  # type: ignore[return-value]  # the table's words are the state's words


def learned_state(copy: Copy) -> CopyState:
    """`sent` for a copy that turns out to stand in the chat, whatever we believed."""
    return state_after(copy, "learn") if copy.state in ("sending", "ambiguous") else "sent"


def lost_state(copy: Copy) -> CopyState:
    """The state of a copy that the platform refused, or whose message is gone."""
    event = "refuse" if copy.state in ("sending", "queued") else "lose"
    return state_after(copy, event) if copy.state in ("sending", "queued", "sent") else copy.state


def next_try(copy: Copy, now: datetime) -> datetime:
    """When a copy is tried again that could not be sent."""
    return plus(now, BACKOFF_S[min(copy.attempts, len(BACKOFF_S)) - 1])


def closed(row: ApprovalRequest) -> bool:
    """Nothing more will be shown on the cards of this request."""
    if row.outcome is None:
        return False
    return row.outcome != "approved" or alike.at_rest(row)


def speaks(row: ApprovalRequest) -> bool:
    """Whether its card asks, or tells of a run that is to start or goes on: where it is lost, people miss it."""
    under_way = row.outcome == "approved" and any(state in ("none", "claimed") for state in alike.states_of(row))
    return row.outcome is None or under_way or unsure(row)


def asks_on(row: ApprovalRequest) -> bool:
    """Whether people are needed for it, or will be should its run be lost: it waits, or is a kept action that has not
    ended."""
    return row.outcome is None or (row.stages is not None and speaks(row))


def card_anew(row: ApprovalRequest, lost: Copy, place: Destination, now: datetime) -> Copy:
    """The card once more, for one that is lost. That of an approval is sent too, since it stood already."""
    card = new_card(row_id(), row, place, now, NEW)
    return card if row.outcome is None else replace(card, shown_version=max(lost.shown_version, 0))


def delivered(tx: Tx, row: ApprovalRequest, destination: Destination) -> ApprovalRequest:
    """The first sent copy starts the window of the leader and of those that wait with it."""
    places = row.delivered_to if destination in row.delivered_to else (*row.delivered_to, destination)
    changed = replace(row, delivered_to=places, notify_by=None)
    if row.window_by is not None:
        changed = start_window(tx, changed)
    if changed != row:
        tx.put(changed)
    return changed


def start_window(tx: Tx, row: ApprovalRequest) -> ApprovalRequest:
    """Start the window now, also of the followers; the caller stores the returned leader."""
    for follower in followers(tx, row):
        if follower.window_by is not None:
            tx.put(replace(follower, window_by=None, expires_at=deadline(follower, tx.now)))
    return replace(row, window_by=None, expires_at=deadline(row, tx.now))


def not_sent(tx: Tx, row: ApprovalRequest | None, first_attempt_at: datetime | None, error: str) -> None:
    """A platform could not be reached with a card of `row`: the request gives up 15 s after the first attempt."""
    if row is None or row.outcome is not None or row.delivered_to or first_attempt_at is None:
        return
    if row.stages is not None:
        tx.put(replace(row, delivery_error=error))  # it waits for days, and can be answered without a card
        return
    by = plus(first_attempt_at, NOTIFY_WITHIN_S)
    waiting = replace(row, notify_by=earliest(row.notify_by, by), delivery_error=error, refused_by=None)
    if by <= tx.now:
        check_notified(tx, waiting)
    else:
        tx.put(waiting)


def give_up(
    tx: Tx,
    row: ApprovalRequest | None,
    error: str,
    fallback: Destination | None,
    by: Destination | None,
    lost: Copy | None = None,
) -> None:
    """The place `by` refused a card of `row` for good; None where it was lost otherwise. When every copy was refused
    and nobody else can answer, the card goes to `fallback`; when that was tried too, or there is none, nobody was
    asked. A kept action goes on to ask there, where `lost` is its card."""
    if row is None or not (asks_on(row) if lost is not None else row.outcome is None) or may_reach(tx, row):
        return
    if fallback is None or fallback in row.destinations:
        if row.stages is None:
            ending.undeliverable(tx, row, error, by)
        else:
            tx.put(replace(row, delivery_error=error))  # as above
        return
    own = row.destinations[0] if row.destinations else None
    moved = replace(row, destinations=(*row.destinations, fallback), delivery_error=error, refused_by=by)
    tx.put(moved)
    card = (
        card_anew(moved, lost, fallback, tx.now)
        if lost is not None
        else new_card(row_id(), moved, fallback, tx.now, NEW)
    )
    tx.put(replace(card, note=str(own) if own else None))
    if own is not None:
        # A place that refused the card may still take a word; one that is gone refuses it too, and nothing is lost.
        tx.put(new_word(row_id(), moved, own, fallback, tx.now))


def may_reach(tx: Tx, row: ApprovalRequest, *, waiting_counts: bool = True) -> bool:
    """Whether somebody was or may still be reached: a live copy, or an attached answer client."""
    for copy in copies_of(tx, row):
        if copy.kind == "card" and copy.state in ("sent", "ambiguous", "sending"):
            return True
        if copy.kind == "card" and copy.state == "queued" and (waiting_counts or copy.limited):
            return True
    return attached(tx, row.profile, row.session_id)


def unseen(tx: Tx, row: ApprovalRequest) -> bool:
    """Whether the request had places to be shown in and its time passed with every card still waiting for a rate
    budget, or refused, and nobody attached: then nobody can have left it unanswered."""
    if row.delivered_to or not row.destinations or row.stages is not None:
        return False
    cards = [copy for copy in copies_of(tx, row) if copy.kind == "card"]
    if any(copy.state in ("sent", "ambiguous", "sending") or copy.sent_at is not None for copy in cards):
        return False
    return not attached(tx, row.profile, row.session_id)


def check_notified(tx: Tx, row: ApprovalRequest) -> None:
    """15 s after the first attempt: unless a copy is out, in flight or waits for a budget, nobody was asked."""
    if may_reach(tx, row, waiting_counts=False):
        tx.put(replace(row, notify_by=None))  # an attempt that fails after this looks here again
        return
    ending.undeliverable(tx, row, row.delivery_error or "the platform could not be reached", row.refused_by)
