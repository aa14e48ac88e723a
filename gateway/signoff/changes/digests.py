"""A digest: one message that lists many questions where a place takes fewer cards than there are.

Each listed question keeps a card copy of its own, without a message, whose state follows the digest's. So whatever
looks for the cards of a question or of a place finds the listed ones too. What the digest shows is read from the rows
when it is rendered; only what each revision counted is kept, on the listed copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from signoff.actions import plain_text
from signoff.changes import delivering
from signoff.changes.common import ANSWER, DIGEST_EVERY_S, FINAL, NEW, OTHER, close_panel, emit, plus, touch_digest
from signoff.changes.copies import new_card, new_digest
from signoff.changes.deciding import offered
from signoff.changes.delivering import learned_state, lost_state, row_of, state_after
from signoff.elicitation import needs_somebody
from signoff.ids import row_id
from signoff.model import ApprovalRequest, Copy, Destination, Face, Posted, replace
from signoff.ports import Tx
from signoff.rows import joined, request_key

LEAST = 5
"""Fewer cards than this wait for their turns rather than make a digest."""
MOST = 100
"""Questions on one digest."""
LISTABLE_CHARS = 40_000
"""A longer action keeps a card and a file of its own, so that a digest's file stays below 5 MB."""
REPOST_AFTER_S = 10.0
"""A doubtful send without a tap is repeated after this long."""

Op = Literal["post", "update"]
Versions = Mapping[str, tuple[str, int]]
"""What a rendered digest showed: by copy id, the request and its card version."""


class Gathered(Struct, frozen=True):
    """What became of cards that were to be listed."""

    digest_id: str
    listed: frozenset[str] = frozenset()
    unfit: frozenset[str] = frozenset()
    """Those that are gone meanwhile, or too long: they stay as they are."""


class Listed(Struct, frozen=True):
    """One question of a digest, with its copy there."""

    copy: Copy
    row: ApprovalRequest


def versions(listed: Iterable[Listed]) -> dict[str, tuple[str, int]]:
    """What a digest that was rendered from these shows."""
    return {each.copy.copy_id: (each.row.request_id, each.row.card_version) for each in listed}


def approvable(row: ApprovalRequest) -> bool:
    """Whether approving all of a digest covers this one."""
    single = row.severity == "critical" or row.stages is not None or needs_somebody(row.action)
    return row.outcome is None and not single and "once" in offered(row)


def face_at(copy: Copy, revision: int) -> Face | None:
    """What a listed copy counted on that revision of its digest; None where it belonged to another question."""
    known = [face for face in copy.faces if copy.valid_from <= face.revision <= revision]
    return known[-1] if known else None


# --- listing -------------------------------------------------------------------------------------


def gather(
    tx: Tx, profile: str, place: Destination, copy_ids: Sequence[str], *, into: str | None, new_id: str
) -> Gathered:
    """List these unsent cards on the digest `into` while that is not sent yet and has room, else on a new one."""
    digest = tx.get(Copy, into) if into is not None else None
    if digest is None or digest.state != "queued" or digest.destination != place or len(digest.listed) >= MOST:
        digest = new_digest(new_id, profile, place, tx.now)
    taken: list[Copy] = []
    unfit: set[str] = set()
    for copy_id in copy_ids:
        copy = tx.get(Copy, copy_id)
        if copy is None or not _may_list(tx, copy, place):
            unfit.add(copy_id)
        elif len(digest.listed) + len(taken) < MOST:
            taken.append(copy)
    if len(digest.listed) + len(taken) < 2:
        return Gathered(digest.copy_id, unfit=frozenset(unfit))
    for copy in taken:
        tx.put(replace(copy, digest=digest.copy_id, due_at=None, limited=True))
    names = tuple(copy.copy_id for copy in taken)
    tx.put(replace(digest, listed=(*digest.listed, *names)))
    return Gathered(digest.copy_id, frozenset(names), frozenset(unfit))


def fits(tx: Tx, copy_id: str) -> bool:
    """Whether this card may be listed in its place."""
    copy = tx.get(Copy, copy_id)
    return copy is not None and _may_list(tx, copy, copy.destination)


def _may_list(tx: Tx, copy: Copy, place: Destination) -> bool:
    if copy.kind != "card" or copy.state != "queued" or copy.digest is not None or copy.due_at is None:
        return False
    row = row_of(tx, copy)
    if row is None or row.outcome is not None or copy.destination != place:
        return False
    return len(plain_text(row.action)) <= LISTABLE_CHARS


# --- leasing -------------------------------------------------------------------------------------


def step(tx: Tx, digest: Copy) -> tuple[Op, Copy, tuple[Listed, ...]] | None:
    """What is to be done for a due digest; None when rows alone changed."""
    if digest.state == "sending":
        doubt(tx, digest)
    elif digest.state == "ambiguous":
        _repost(tx, digest)
    elif digest.state == "queued":
        return _to_post(tx, digest)
    elif digest.state == "sent":
        return "update", digest, entries(tx, digest)
    else:
        tx.put(replace(digest, due_at=None))
    return None


def entries(tx: Tx, digest: Copy) -> tuple[Listed, ...]:
    """Everything that the digest lists, in its order."""
    found = []
    for copy_id in digest.listed:
        copy = tx.get(Copy, copy_id)
        row = row_of(tx, copy) if copy is not None else None
        if copy is not None and row is not None:
            found.append(Listed(copy, row))
    return tuple(found)


def _to_post(tx: Tx, digest: Copy) -> tuple[Op, Copy, tuple[Listed, ...]] | None:
    """What ended meanwhile is not sent; a digest of one is a card."""
    alive = tuple(each for each in entries(tx, digest) if each.copy.state == "queued" and each.row.outcome is None)
    if len(alive) > 1:
        return "post", replace(digest, listed=tuple(each.copy.copy_id for each in alive)), alive
    for each in alive:
        tx.put(replace(each.copy, digest=None, due_at=tx.now, limited=False))
    tx.put(replace(digest, state=state_after(digest, "drop"), due_at=None, listed=()))
    return None


def leased(tx: Tx, digest: Copy, listed: tuple[Listed, ...], lease_s: float) -> tuple[Copy, tuple[Listed, ...]]:
    """Take a digest to work on: a new revision, and what each of its cards counts on it."""
    revision = digest.faces[-1].revision + 1 if digest.faces else 0
    until = plus(tx.now, lease_s)
    post = digest.state == "queued"
    taken = []
    for each in listed:
        copy = _faced(each.copy, each.row, revision, tx.now)
        if post:
            first = copy.first_attempt_at or tx.now
            copy = replace(copy, state=state_after(copy, "lease"), limited=False, first_attempt_at=first)
        if copy != each.copy:
            tx.put(copy)
        taken.append(Listed(copy, each.row))
    held = replace(
        digest,
        state=state_after(digest, "lease") if post else digest.state,
        faces=(Face(revision),),
        lease_until=until,
        due_at=until,
        attempts=digest.attempts + 1,
        first_attempt_at=digest.first_attempt_at or tx.now,
        limited=False,
    )
    tx.put(held)
    return held, tuple(taken)


def _faced(copy: Copy, row: ApprovalRequest, revision: int, now: datetime) -> Copy:
    last = copy.faces[-1] if copy.faces else None
    if row.outcome is not None:
        return copy
    if last and last.revision >= copy.valid_from and (last.upto, last.shown) == (row.last_follow_no, row.waiters):
        return copy
    face = Face(max(revision, copy.valid_from), row.last_follow_no, row.waiters, now if last else None)
    return replace(copy, faces=(*copy.faces, face))


# --- what the platform answered ------------------------------------------------------------------


def posted(tx: Tx, digest: Copy, result: Posted, shown: Versions) -> None:
    """The digest stands in the chat, and shows these versions."""
    state = state_after(digest, "accept") if digest.state == "sending" else learned_state(digest)
    done = replace(
        digest,
        state=state,
        message_id=result.message_id,
        file_id=result.file_id,
        order=result.order,
        sent_at=digest.sent_at or tx.now,
        error=None,
    )
    for each in entries(tx, done):
        if each.copy.state not in ("sending", "ambiguous", "sent"):
            continue
        known = state_after(each.copy, "accept") if each.copy.state == "sending" else learned_state(each.copy)
        tx.put(replace(each.copy, state=known, order=result.order, sent_at=each.copy.sent_at or tx.now, error=None))
        row = delivering.delivered(tx, each.row, digest.destination)
        emit(tx, "approval.delivered", row, destination=str(digest.destination), copy=each.copy.copy_id)
    tx.put(_after_showing(tx, done, shown))


def updated(tx: Tx, digest: Copy, shown: Versions) -> None:
    """An edit went through and shows these versions."""
    tx.put(_after_showing(tx, replace(digest, error=None), shown))


def _after_showing(tx: Tx, digest: Copy, shown: Versions) -> Copy:
    """The digest after it was shown so: due again for what changed meanwhile, final once nothing more will be."""
    stale = waiting = live = False
    for each in entries(tx, digest):
        copy, row = each.copy, each.row
        if copy.state != "sent":
            continue
        current = shown.get(copy.copy_id) == (row.request_id, row.card_version)
        waiting |= row.outcome is None
        stale |= not current
        if current and delivering.closed(row):
            tx.put(replace(copy, state=state_after(copy, "close"), shown_version=row.card_version))
        else:
            live = True
    done = replace(digest, lease_until=None, attempts=0, due_at=None, shown_at=tx.now)
    if not waiting:
        _close_panels(tx, done)
    if stale:
        return replace(done, due_at=plus(tx.now, DIGEST_EVERY_S), priority=OTHER if waiting else FINAL)
    if not live and done.state == "sent":
        return replace(done, state=state_after(done, "close"))
    return done


def doubt(tx: Tx, digest: Copy) -> None:
    """The answer to its send never came: it may stand in the chat, and counts as sent for all that it lists."""
    pending = False
    for each in entries(tx, digest):
        if each.copy.state != "sending":
            continue
        tx.put(replace(each.copy, state=state_after(each.copy, "doubt"), sent_at=tx.now))
        if each.row.outcome is None:
            pending |= not each.copy.reposted
            delivering.delivered(tx, each.row, digest.destination)
    due = plus(tx.now, REPOST_AFTER_S) if pending else None
    state = state_after(digest, "doubt")
    tx.put(replace(digest, state=state, lease_until=None, due_at=due, sent_at=tx.now, priority=NEW))


def _repost(tx: Tx, digest: Copy) -> None:
    """What still waits is posted once more, marked: on cards, or on the next digest."""
    tx.put(replace(digest, due_at=None, reposted=True))
    for each in entries(tx, digest):
        copy, row = each.copy, each.row
        if copy.state != "ambiguous" or copy.reposted or row.outcome is not None:
            continue
        tx.put(replace(copy, reposted=True))
        tx.put(new_card(row_id(), row, digest.destination, tx.now, NEW, again=True))


def learn(tx: Tx, digest: Copy, message_id: str, order: int) -> Copy:
    """A tap tells us the id of a digest whose send has not returned or was lost."""
    state = learned_state(digest)
    for each in entries(tx, digest):
        if each.copy.state in ("sending", "ambiguous"):
            sent_at = each.copy.sent_at or tx.now
            tx.put(replace(each.copy, state=learned_state(each.copy), order=order, sent_at=sent_at))
            if each.row.outcome is None:
                delivering.delivered(tx, each.row, digest.destination)
    known = replace(
        digest,
        state=state,
        message_id=message_id,
        order=order,
        sent_at=digest.sent_at or tx.now,
        lease_until=None,
        due_at=tx.now if digest.state == "ambiguous" else None,  # a send that returns tells what it shows
        priority=FINAL,
    )
    tx.put(known)
    return known


def put_back(tx: Tx, digest: Copy, error: str | None, *, limited: bool) -> None:
    """A send that surely did not happen: the listed cards wait again, like the digest."""
    for each in entries(tx, digest):
        copy = each.copy
        if copy.state == "sending":
            first = None if limited else copy.first_attempt_at
            state = state_after(copy, "retry") if each.row.outcome is None else "final"
            tx.put(replace(copy, state=state, error=error, limited=limited, first_attempt_at=first))


def not_sent(tx: Tx, digest: Copy, error: str) -> None:
    """The platform could not be reached: each question gives up 15 s after its own first attempt."""
    for each in entries(tx, digest):
        if each.copy.state == "queued":
            row = row_of(tx, each.copy)  # an end above may have changed it
            delivering.not_sent(tx, row, each.copy.first_attempt_at, error)


def refused(tx: Tx, digest: Copy, error: str, fallback: Destination | None, *, by_platform: bool = True) -> None:
    """The platform refused the digest for good, or its message is gone."""
    tx.put(replace(digest, state=lost_state(digest), due_at=None, lease_until=None, error=error))
    _close_panels(tx, digest)
    mine = [each for each in entries(tx, digest) if each.copy.state not in ("final", "failed")]
    for each in mine:
        tx.put(replace(each.copy, state=lost_state(each.copy), due_at=None, error=error))
    for each in mine:
        delivering.give_up(tx, row_of(tx, each.copy), error, fallback, digest.destination if by_platform else None)


def not_edited(tx: Tx, digest: Copy, error: str) -> None:
    """An edit was refused for good. While something waits on it, it can still be answered there."""
    if any(each.row.outcome is None and each.copy.state == "sent" for each in entries(tx, digest)):
        tx.put(replace(digest, due_at=None, lease_until=None, attempts=0, error=error))
    else:
        refused(tx, digest, error, None)


def gone(tx: Tx, digest: Copy, error: str, fallback: Destination | None) -> None:
    """The message was deleted: what still waits is posted anew, on cards or on the next digest."""
    for each in entries(tx, digest):
        if each.copy.state == "sent" and each.row.outcome is None:
            tx.put(new_card(row_id(), each.row, digest.destination, tx.now, NEW))
    refused(tx, digest, error, fallback)


def without_file(tx: Tx, digest: Copy) -> None:
    """The file with the whole texts was refused: nothing of it can be approved here."""
    tx.put(replace(digest, whole_shown=False))
    for each in entries(tx, digest):
        tx.put(replace(each.copy, whole_shown=False))


# --- cards and panels of a digest ----------------------------------------------------------------


def open_card(tx: Tx, listed: Copy) -> Literal["opened", "stands"]:
    """Post a listed question's own card, unless one stands in that place or is on its way."""
    request = request_key(listed.profile, listed.request_id or "")
    for copy in tx.find(Copy, "request", request):
        own = copy.kind == "card" and copy.digest is None and copy.destination == listed.destination
        if own and copy.state not in ("final", "failed"):
            return "stands"
    row = row_of(tx, listed)
    if row is not None:
        tx.put(new_card(row_id(), row, listed.destination, tx.now, ANSWER))
    return "opened"


def panels(tx: Tx, digest: Copy) -> list[Copy]:
    """The open panels of a digest."""
    place = digest.destination
    found = tx.find(Copy, "open_chat", joined(digest.profile, place.platform, place.chat_id))
    return [copy for copy in found if copy.kind == "panel" and copy.parent_copy == digest.copy_id]


def panel_lives(tx: Tx, copy: Copy) -> bool:
    """Whether this is a panel of a digest on which something still waits."""
    if copy.kind != "panel" or copy.request_id is not None or copy.parent_copy is None:
        return False
    digest = tx.get(Copy, copy.parent_copy)
    return digest is not None and any(each.row.outcome is None for each in entries(tx, digest))


def _close_panels(tx: Tx, digest: Copy) -> None:
    for panel in panels(tx, digest):
        close_panel(tx, panel)


def handed_over(tx: Tx, copy: Copy) -> None:
    """A listed card that is due, since another question took it over: its digest shows that."""
    tx.put(replace(copy, due_at=None))
    touch_digest(tx, copy.digest or "")
