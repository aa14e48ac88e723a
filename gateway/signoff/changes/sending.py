"""The outbox: leasing copies, and what each answer of a platform makes of them.

Before a send the request is read again and copies of ended ones are dropped. Storing a message id reads it again too:
if it ended or changed meanwhile the edit is queued in the same commit. A copy whose lease lapsed in `sending` is
`ambiguous`: it may stand in the chat. It counts as sent, and is posted once more, marked, if nobody taps it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from msgspec import Struct

from signoff.changes import alike, delivering, digests, drilling
from signoff.changes.common import FINAL, NEW, OTHER, RUNNING_AFTER_S, UNDO_AFTER_S, emit, plus, show, unsure
from signoff.changes.copies import new_card
from signoff.changes.delivering import (
    card_anew,
    closed,
    delivered,
    learned_state,
    lost_state,
    next_try,
    row_of,
    state_after,
)
from signoff.changes.digests import REPOST_AFTER_S, Listed, Versions
from signoff.ids import row_id
from signoff.model import ApprovalRequest, Copy, CopyState, Destination, Face, Posted, replace
from signoff.ports import Tx

NOTHING: Versions = {}
KEY_HOLDS_S = 90.0
"""How long a platform is trusted to remember a send's idempotency key: Discord says "the past few minutes"."""


class Work(Struct, frozen=True):
    """One thing a dispatcher has to do now, with the rows it was leased on."""

    copy: Copy
    row: ApprovalRequest | None
    op: Literal["post", "update", "delete"]
    listed: tuple[Listed, ...] = ()
    """What a digest lists."""


def next_look(row: ApprovalRequest, shown_at: datetime) -> datetime | None:
    """When a card that shows `row` as of `shown_at` changes by itself: Undo appears, then Running."""
    if row.outcome != "approved":
        return None
    if row.execution.state == "none" and row.decided_at is not None:
        at = plus(row.decided_at, UNDO_AFTER_S)
    elif row.execution.state == "claimed" and row.execution.claimed_at is not None:
        at = plus(row.execution.claimed_at, RUNNING_AFTER_S)
    else:
        return None
    return at if at > shown_at else None


def lease(tx: Tx, copy_ids: Iterable[str], *, lease_s: float, resend: frozenset[str]) -> list[Work]:
    """Take the due ones of these copies to work on until the lease ends. `resend`: platforms without an idempotency
    key, where a doubtful send is repeated once."""
    work = []
    for copy_id in copy_ids:
        copy = tx.get(Copy, copy_id)
        if copy is None or copy.due_at is None or copy.due_at > tx.now:
            continue
        if copy.state == "sent" and copy.lease_until is not None and copy.lease_until > tx.now:
            # Two edits of one message at once may land in either order. What this one lacks is queued on its return.
            tx.put(replace(copy, due_at=copy.lease_until))
            continue
        if copy.digest is not None:
            digests.handed_over(tx, copy)
            continue
        done = _lease_digest(tx, copy, lease_s) if copy.kind == "digest" else _lease(tx, copy, lease_s, resend)
        if done is not None:
            work.append(done)
    return work


def _lease(tx: Tx, copy: Copy, lease_s: float, resend: frozenset[str]) -> Work | None:
    step = _step(tx, copy, row_of(tx, copy), resend)
    if step is None:
        return None
    leased = _leased(step.copy, step.row, tx.now, lease_s)
    tx.put(leased)
    return Work(leased, step.row, step.op)


def _lease_digest(tx: Tx, copy: Copy, lease_s: float) -> Work | None:
    step = digests.step(tx, copy)
    if step is None:
        return None
    op, digest, listed = step
    leased, listed = digests.leased(tx, digest, listed, lease_s)
    return Work(leased, None, op, listed)


def _step(tx: Tx, copy: Copy, row: ApprovalRequest | None, resend: frozenset[str]) -> Work | None:
    """What is to be done for a due copy; None when the row alone changed."""
    if copy.remove:
        if copy.message_id:
            return Work(copy, row, "delete")
        tx.put(replace(copy, state="final", due_at=None))
        return None
    ended = row is not None and row.outcome is not None
    if copy.state == "sending":
        if not ended and _recognised(copy, tx.now, resend):
            return Work(replace(copy, reposted=True), row, "post")
        _doubt(tx, copy, row)
        return None
    if copy.state == "ambiguous":
        if not ended and _recognised(copy, tx.now, resend):
            return Work(replace(copy, reposted=True), row, "post")
        _repost(tx, copy, row, resend)
        return None
    if copy.kind == "drill":
        found = drilling.step(tx, copy)
        return Work(found[0], None, found[1]) if found is not None else None
    if copy.state == "queued":
        if not _wanted(tx, copy, row):
            tx.put(replace(copy, state=state_after(copy, "drop"), due_at=None))
            return None
        return Work(copy, row, "post")
    if copy.state == "sent" and row is not None and copy.kind == "card":
        held = _held_until(row, copy.shown_version, tx.now)
        if held is None:
            return Work(copy, row, "update")
        tx.put(replace(copy, due_at=held))
        return None
    tx.put(replace(copy, due_at=None))
    return None


def _wanted(tx: Tx, copy: Copy, row: ApprovalRequest | None) -> bool:
    """Whether what is queued still has something to say."""
    if row is not None:
        anew = copy.kind == "card" and copy.shown_version >= 0  # it is lost where it stood
        return row.outcome is None or anew or _asks_anew(copy, row)
    return copy.kind in ("note", "catch_up") or digests.panel_lives(tx, copy)


def _asks_anew(copy: Copy, row: ApprovalRequest | None) -> bool:
    """Whether it is the panel that asks whether a kept action is to run once more."""
    return copy.kind == "panel" and row is not None and unsure(row)


def _recognised(copy: Copy, now: datetime, resend: frozenset[str]) -> bool:
    """Whether the platform would recognise the card whose send is in doubt, should it stand already."""
    keyed = copy.kind == "card" and copy.destination.platform not in resend
    since = copy.first_attempt_at or now
    return keyed and not copy.reposted and now < plus(since, KEY_HOLDS_S)


def _leased(copy: Copy, row: ApprovalRequest | None, now: datetime, lease_s: float) -> Copy:
    until = plus(now, lease_s)
    state = state_after(copy, "lease") if copy.state == "queued" else copy.state
    return replace(
        copy,
        state=state,
        faces=_faces(copy, row, now),
        lease_until=until,
        due_at=until,
        attempts=copy.attempts + 1,
        first_attempt_at=copy.first_attempt_at or now,
        limited=False,
    )


def _faces(copy: Copy, row: ApprovalRequest | None, now: datetime) -> tuple[Face, ...]:
    """A new face when what the buttons mean has changed: first shown, taken over, or another number of followers."""
    if copy.kind != "card" or row is None or row.outcome is not None:
        return copy.faces or (Face(0),)
    if copy.state in ("sending", "ambiguous") and copy.faces:
        return copy.faces  # the platform knows a repeated send by the tokens of the first
    last = copy.faces[-1] if copy.faces else None
    if last and last.revision >= copy.valid_from and (last.upto, last.shown) == (row.last_follow_no, row.waiters):
        return copy.faces
    revision = max(last.revision + 1 if last else 0, copy.valid_from)
    return (*copy.faces, Face(revision, row.last_follow_no, row.waiters, now if last else None))


def _doubt(tx: Tx, copy: Copy, row: ApprovalRequest | None) -> None:
    """The answer to a send never came: it may stand in the chat."""
    done = replace(copy, state=state_after(copy, "doubt"), lease_until=None, due_at=None, sent_at=tx.now)
    if row is not None and row.outcome is None and copy.kind == "card":
        if not copy.reposted:
            done = replace(done, due_at=plus(tx.now, REPOST_AFTER_S), priority=NEW)
        delivered(tx, row, copy.destination)
    tx.put(done)


def _repost(tx: Tx, copy: Copy, row: ApprovalRequest | None, resend: frozenset[str]) -> None:
    if row is None or row.outcome is not None:
        tx.put(replace(copy, due_at=None))
        return
    tx.put(replace(copy, due_at=None, reposted=True))
    if not copy.reposted and copy.kind == "card" and copy.destination.platform in resend:
        tx.put(new_card(row_id(), row, copy.destination, tx.now, NEW, again=True))


def prolong(tx: Tx, copy_id: str, *, lease_s: float) -> None:
    """A send that is under way takes longer than most: its lease ends so long from now."""
    copy = tx.get(Copy, copy_id)
    if copy is not None and copy.state in ("sending", "ambiguous") and copy.lease_until is not None:
        until = plus(tx.now, lease_s)
        tx.put(replace(copy, lease_until=until, due_at=until))


def without_file(tx: Tx, copy_id: str) -> None:
    """The file with the whole text was refused: whatever becomes of the card, it may not bear a way to approve."""
    copy = tx.get(Copy, copy_id)
    if copy is not None and copy.kind == "digest":
        digests.without_file(tx, copy)
    elif copy is not None:
        tx.put(replace(copy, whole_shown=False))


def posted(
    tx: Tx,
    copy_id: str,
    result: Posted,
    *,
    of: str | None,
    version: int,
    shown_at: datetime | None = None,
    listed: Versions = NOTHING,
) -> None:
    """The platform accepted the message. `of` and `version`: the request and its version that the message shows, as of
    `shown_at` (now by default). `listed`: the same for each question on a digest."""
    copy = tx.get(Copy, copy_id)
    if copy is None:
        return
    if copy.kind == "digest":
        digests.posted(tx, copy, result, listed)
        return
    row = row_of(tx, copy)
    if copy.request_id != of or (copy.reposted and not copy.again):
        version = -1  # a message that was recognised still shows what was sent first
    state = state_after(copy, "accept") if copy.state == "sending" else learned_state(copy)
    done = replace(
        copy,
        state=state,
        message_id=result.message_id,
        file_id=result.file_id,
        order=result.order,
        sent_at=copy.sent_at or tx.now,
        lease_until=None,
        attempts=0,
        shown_version=version,
        error=None,
        due_at=None,
    )
    if row is None:
        tx.put(done if digests.panel_lives(tx, done) else _without_row(done, tx.now))
        return
    if copy.kind == "told":
        tx.put(replace(done, state="final"))
        return
    if copy.kind == "card":
        row = delivered(tx, row, copy.destination)
        emit(tx, "approval.delivered", row, destination=str(copy.destination), copy=copy.copy_id)
    tx.put(_after_showing(done, row, version, tx.now, shown_at or tx.now))


def _without_row(copy: Copy, now: datetime) -> Copy:
    """A note is done once it stands; a digest's panel that came too late goes again."""
    if copy.kind == "panel":
        return replace(copy, remove=True, due_at=now, priority=OTHER)
    return drilling.posted(copy, now) if copy.kind == "drill" else replace(copy, state="final")


def updated(
    tx: Tx,
    copy_id: str,
    *,
    of: str | None,
    version: int,
    shown_at: datetime | None = None,
    listed: Versions = NOTHING,
) -> None:
    """An edit went through and shows this version of that request as of `shown_at` (now by default), or these of
    each question on a digest."""
    copy = tx.get(Copy, copy_id)
    if copy is not None and copy.kind == "digest":
        digests.updated(tx, copy, listed)
        return
    if copy is not None and copy.kind == "drill":
        tx.put(drilling.updated(copy))
        return
    row = row_of(tx, copy) if copy else None
    if copy is None or row is None:
        return
    if copy.request_id != of:
        version = -1
    done = replace(copy, lease_until=None, attempts=0, shown_version=version, error=None, due_at=None)
    tx.put(_after_showing(done, row, version, tx.now, shown_at or tx.now))


def removed(tx: Tx, copy_id: str) -> None:
    """A panel or prompt was deleted."""
    copy = tx.get(Copy, copy_id)
    if copy is not None:
        tx.put(replace(copy, state="final", due_at=None, lease_until=None, remove=False))


def _after_showing(copy: Copy, row: ApprovalRequest, version: int, now: datetime, shown_at: datetime) -> Copy:
    """When to look at a copy again that shows `version` of `row` as of `shown_at`."""
    if copy.remove:
        return replace(copy, due_at=now, priority=OTHER)
    if copy.kind != "card":
        over = row.outcome is not None and not _asks_anew(copy, row)
        return replace(copy, remove=True, due_at=now, priority=OTHER) if over else copy
    if row.card_version > version:
        held = _held_until(row, version, now) or alike.next_count(row, version, now)
        return replace(copy, due_at=held or now, priority=OTHER if row.outcome is None or held else FINAL)
    if closed(row):
        return replace(copy, state=_closed_state(copy), due_at=None)
    return replace(copy, due_at=next_look(row, shown_at), priority=OTHER)


def _held_until(row: ApprovalRequest, version: int, now: datetime) -> datetime | None:
    """Until when a card that shows `version` may stay as it is: the start alone is not told before Running is due. The
    claim is the change after the decision, so the version before it shows the decision."""
    fresh = row.execution.state == "claimed" and version == row.card_version - 1 and not _undo_on(row)
    return next_look(row, now) if fresh else None


def _closed_state(copy: Copy) -> CopyState:
    return state_after(copy, "close") if copy.state == "sent" else copy.state


def _undo_on(row: ApprovalRequest) -> bool:
    """Whether an Undo button may stand on the card that a claim made stale."""
    claimed_at = row.execution.claimed_at
    return row.decided_at is not None and claimed_at is not None and claimed_at >= plus(row.decided_at, UNDO_AFTER_S)


def put_off(tx: Tx, copy_id: str, until: datetime, error: str | None, *, limited: bool) -> None:
    """Not now: the destination's budget is spent (`limited`), or the platform asks us to wait."""
    copy = tx.get(Copy, copy_id)
    if copy is None:
        return
    if copy.kind == "digest" and copy.state == "sending":
        digests.put_back(tx, copy, error, limited=limited)
    state = state_after(copy, "retry") if copy.state == "sending" else copy.state
    # The time that a budget takes is not counted against the place: its 15 s begin with the next attempt.
    first = None if limited else copy.first_attempt_at
    tx.put(
        replace(
            copy,
            state=state,
            due_at=until,
            lease_until=None,
            error=error,
            limited=limited,
            first_attempt_at=first,
        )
    )


def without(tx: Tx, copy_id: str, unfit: frozenset[str]) -> None:
    """Take these off a digest that surely was not sent; each goes by itself. The digest waits again with the others."""
    digest = tx.get(Copy, copy_id)
    if digest is None or digest.state != "sending":
        return
    left = tuple(name for name in digest.listed if name not in unfit)
    digests.put_back(tx, digest, None, limited=False)
    for each in digests.entries(tx, digest):
        if each.copy.copy_id in unfit and each.copy.state == "queued":
            tx.put(replace(each.copy, digest=None, due_at=tx.now))
    tx.put(replace(digest, state=state_after(digest, "retry"), lease_until=None, due_at=tx.now, listed=left))


def unreachable(tx: Tx, copy_id: str, error: str) -> None:
    """Surely not sent: tried again with growing waits, and the request gives up 15 s after the first attempt."""
    copy = tx.get(Copy, copy_id)
    if copy is None:
        return
    put_off(tx, copy_id, next_try(copy, tx.now), error, limited=False)
    if copy.state != "sending":
        return
    if copy.kind == "digest":
        digests.not_sent(tx, copy, error)
    else:
        delivering.not_sent(tx, row_of(tx, copy), copy.first_attempt_at, error)


def not_edited(tx: Tx, copy_id: str, error: str) -> None:
    """The platform refused an edit for good. The message stands as it was, with its buttons: a pending question can
    still be answered on it, and the next change is tried again."""
    copy = tx.get(Copy, copy_id)
    if copy is None:
        return
    if copy.kind == "digest":
        digests.not_edited(tx, copy, error)
        return
    row = row_of(tx, copy)
    if copy.state != "sent" or copy.kind != "card" or row is None or row.outcome is not None:
        refused(tx, copy_id, error)
        return
    tx.put(replace(copy, due_at=None, lease_until=None, attempts=0, error=error))


def gone(tx: Tx, copy_id: str, error: str, *, fallback: Destination | None = None) -> None:
    """The message to edit does not exist any more: what still needs people is posted anew in its place."""
    copy = tx.get(Copy, copy_id)
    if copy is None:
        return
    if copy.kind == "digest":
        digests.gone(tx, copy, error, fallback)
        return
    row = row_of(tx, copy)
    if copy.kind == "card" and copy.state == "sent" and row is not None and (row.outcome is None or unsure(row)):
        tx.put(card_anew(row, copy, copy.destination, tx.now))
    refused(tx, copy_id, error, fallback=fallback)


def refused(tx: Tx, copy_id: str, error: str, *, fallback: Destination | None = None, by_platform: bool = True) -> None:
    """The platform refused for good; `by_platform` is False where it was not even asked. When every copy was refused
    and nobody else can answer, the card goes to `fallback`; when that was tried too, or there is none, nobody was
    asked."""
    copy = tx.get(Copy, copy_id)
    if copy is None:
        return
    if copy.kind == "digest":
        digests.refused(tx, copy, error, fallback, by_platform=by_platform)
        return
    tx.put(replace(copy, state=lost_state(copy), due_at=None, lease_until=None, error=error))
    if copy.kind == "card":
        by = copy.destination if by_platform else None
        delivering.give_up(tx, row_of(tx, copy), error, fallback, by, copy if copy.state == "sent" else None)


def doubtful(tx: Tx, copy_id: str) -> None:
    """The request was written and the answer lost."""
    copy = tx.get(Copy, copy_id)
    if copy is None or copy.state != "sending":
        return
    if copy.kind == "digest":
        digests.doubt(tx, copy)
    else:
        _doubt(tx, copy, row_of(tx, copy))


def learn(tx: Tx, copy: Copy, message_id: str, order: int) -> Copy:
    """A tap tells us the id of a message whose send has not returned or was lost; a stale one is corrected."""
    if copy.message_id is not None:
        return copy
    if copy.kind == "digest":
        return digests.learn(tx, copy, message_id, order)
    row = row_of(tx, copy)
    stale = row is not None and (row.outcome is not None or copy.state == "ambiguous")
    known = replace(
        copy,
        state=learned_state(copy),
        message_id=message_id,
        order=order,
        sent_at=copy.sent_at or tx.now,
        lease_until=None,
        due_at=tx.now if stale else None,
        priority=FINAL,
    )
    tx.put(known)
    if row is not None and row.outcome is None and copy.kind == "card":
        delivered(tx, row, copy.destination)
    return known


def touch(tx: Tx, row: ApprovalRequest) -> ApprovalRequest:
    """Have the cards of `row` rendered again, since what they show by the clock has moved."""
    changed = replace(row, card_version=row.card_version + 1)
    tx.put(changed)
    show(tx, changed, priority=OTHER)
    return changed
