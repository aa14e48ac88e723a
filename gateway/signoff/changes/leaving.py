"""A place is gone: the bot was removed, or the chat deleted. What stood there can be answered by nobody any more."""

from __future__ import annotations

from signoff.changes import delivering, ending, moving
from signoff.changes.common import followers
from signoff.changes.delivering import row_of, state_after
from signoff.model import Copy, Destination, replace
from signoff.ports import Tx
from signoff.rows import joined

CHAT_GONE = frozenset({"chat_not_found", "chat_closed", "bot_removed", "blocked", "deactivated"})
"""Reasons of a `SendRefused` that say that nobody can answer in that chat any more."""
THREAD_GONE = frozenset({"thread_not_found"})
"""The same for one thread of a chat."""
UNSEEN = frozenset({"no_access"})
"""Reasons that only say that we may not look in there now: what stands there can perhaps still be pressed."""


def place_gone(place: Destination, reason: object) -> Destination | None:
    """What of `place` is out of reach when the platform refuses with this reason: the whole chat, the thread, or
    nothing."""
    if reason in UNSEEN:
        return place
    if reason in CHAT_GONE:
        return replace(place, thread_id=None)
    return place if reason in THREAD_GONE and place.thread_id is not None else None


def left(
    tx: Tx, profile: str, place: Destination, error: str, *, fallback: Destination | None, for_good: bool = True
) -> None:
    """Give up what stands in `place`, a chat with its threads or one thread. Questions that nobody else can answer go
    to `fallback`, as if their card had been refused; where that has them already, or there is none, they end, or wait
    on as they stand where it may not be `for_good`. What is still to be sent there is tried and refused by itself."""
    moving.forget(tx, profile, place)
    standing = [
        copy
        for copy in tx.find(Copy, "open_chat", joined(profile, place.platform, place.chat_id))
        if place.thread_id in (None, copy.destination.thread_id) and copy.state in ("sent", "ambiguous")
    ]
    if not for_good:
        standing = [copy for copy in standing if _moves(tx, copy, fallback)]
    for copy in standing:
        state = state_after(copy, "lose" if copy.state == "sent" else "drop")
        tx.put(replace(copy, state=state, due_at=None, lease_until=None, error=error))
    for copy in standing:
        row = row_of(tx, copy) if copy.kind == "card" else None
        if row is None or not delivering.asks_on(row) or delivering.may_reach(tx, row):
            continue
        if row.stages is None and (fallback is None or fallback in row.destinations):
            # Its card stood there, so it is not true that nobody was asked.
            row = replace(row, delivery_error=error)
            tx.put(row)
            ending.withdraw_many(tx, [*followers(tx, row), row], "destination_removed", None)
        else:
            delivering.give_up(tx, row, error, fallback, copy.destination, copy)


def _moves(tx: Tx, copy: Copy, fallback: Destination | None) -> bool:
    """Whether the question of this card can be asked at the fallback, beside the card that stands."""
    row = row_of(tx, copy) if copy.kind == "card" else None
    return row is not None and row.outcome is None and fallback is not None and fallback not in row.destinations
