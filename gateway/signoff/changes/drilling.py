"""A drill's cards: rows of the outbox that ask nothing, take one tap, and tell by themselves when nobody came."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Struct

from signoff.changes.common import FINAL, NEW, plus
from signoff.changes.delivering import state_after
from signoff.model import Actor, Copy, Destination, Event, Note, replace
from signoff.ports import Tx
from signoff.rows import joined


class Drill(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one card of a drill knows; it stands in its copy's `note`."""

    drill_id: str
    by: str
    """Who rehearses, for people."""
    wait_s: float
    ends_at: datetime
    seen_by: Actor | None = None
    seen_at: datetime | None = None
    ended: bool = False
    """Nobody tapped in time, and the card says so."""

    @property
    def over(self) -> bool:
        """Nothing more will change on it."""
        return self.seen_at is not None or self.ended


def drill_of(copy: Copy) -> Drill:
    """What the copy of a drill holds."""
    return msgspec.json.decode(copy.note or "", type=Drill)


def after_s(copy: Copy) -> float | None:
    """Seconds from the card to the tap; None before one."""
    seen_at = drill_of(copy).seen_at
    return None if seen_at is None else max(0.0, (seen_at - (copy.sent_at or copy.created_at)).total_seconds())


def begin(
    tx: Tx, *, profile: str, drill_id: str, by: str, wait_s: float, places: Sequence[tuple[str, Destination]]
) -> None:
    """Queue a card for each place, under the copy id beside it."""
    drill = Drill(drill_id=drill_id, by=by, wait_s=wait_s, ends_at=plus(tx.now, wait_s))
    for copy_id, place in places:
        tx.put(
            Copy(
                copy_id=copy_id,
                profile=profile,
                kind="drill",
                destination=place,
                note=_encoded(drill),
                priority=NEW,
                due_at=tx.now,
                created_at=tx.now,
            )
        )
    copy_ids = [copy_id for copy_id, _ in places]
    tx.put(Note(name=note_name(profile, drill_id), value=msgspec.json.encode(copy_ids).decode()))
    where = [str(place) for _, place in places]
    data = {"drill_id": drill_id, "by": by, "destinations": where}
    tx.emit(Event(profile=profile, type="drill.started", at=tx.now, data=data))


def note_name(profile: str, drill_id: str) -> str:
    """Where the ids of a drill's copies are kept."""
    return f"drill:{joined(profile, drill_id)}"


def press(tx: Tx, copy: Copy, actor: Actor) -> Copy:
    """The first tap in time counts; the copy as it stands after this one."""
    drill = drill_of(copy)
    if drill.over or drill.ends_at <= tx.now:
        return copy
    seen = replace(drill, seen_by=actor, seen_at=tx.now)
    # A card whose posting has not returned yet is edited once it has.
    due = tx.now if copy.state == "sent" else copy.due_at
    pressed = replace(copy, note=_encoded(seen), due_at=due, priority=FINAL, sent_at=copy.sent_at or tx.now)
    tx.put(pressed)
    data = {"drill_id": drill.drill_id, "destination": str(copy.destination), "after_s": after_s(pressed)}
    tx.emit(Event(profile=copy.profile, type="drill.seen", at=tx.now, data=data))
    return pressed


def step(tx: Tx, copy: Copy) -> tuple[Copy, Literal["post", "update"]] | None:
    """What is to be done for a queued or sent card that is due; None when the row alone changed."""
    drill = drill_of(copy)
    if not drill.over and drill.ends_at <= tx.now:
        copy = replace(copy, note=_encoded(replace(drill, ended=True)))
    over = drill_of(copy).over
    if copy.state == "queued" and not over:
        return copy, "post"
    if copy.state == "queued":
        tx.put(replace(copy, state=state_after(copy, "drop"), due_at=None))
        return None
    if copy.state == "sent" and over and copy.message_id is not None:
        return copy, "update"
    tx.put(replace(copy, due_at=drill.ends_at if copy.state == "sent" and not over else None))
    return None


def posted(copy: Copy, now: datetime) -> Copy:
    """The card stands: it is looked at again when the drill ends, or at once when somebody was quicker."""
    drill = drill_of(copy)
    return replace(copy, due_at=now if drill.over else drill.ends_at, priority=FINAL)


def updated(copy: Copy) -> Copy:
    """The card tells how it ended, which is all it will ever tell."""
    done = replace(copy, due_at=None, lease_until=None, attempts=0, error=None)
    return replace(done, state=state_after(done, "close")) if done.state == "sent" else done


def _encoded(drill: Drill) -> str:
    return msgspec.json.encode(drill).decode()
