"""How far each receiver of webhooks has been told, and which gateway tells it: one note a hook. Pure changes.

A gateway holds a place for a while and renews it as it delivers; another one takes over once that time is over. Each
take-over raises `epoch`, so whoever held it before saves nothing any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec
from msgspec import Struct

from signoff.model import Event, Note, replace
from signoff.ports import Tx


class Place(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One hook's place in its profile's log."""

    seq: int
    """Everything up to this is told, parked, or nothing for this hook."""
    name: str
    """Random; with `seq` it makes a message's id, so that no two gateways' ids are alike."""
    failing_since: datetime | None = None
    """When the first try failed after the last that did not."""
    parked: int = 0
    """How many events were given up since then."""
    holder: str = ""
    """The gateway that tells this receiver now, by a random name; empty: none."""
    held_until: datetime | None = None
    """Until when, unless it is renewed."""
    epoch: int = 0
    """How often it passed from one gateway to another."""


HELD_FOR = timedelta(seconds=20)
"""How long a gateway that died keeps others from telling its receivers: twice what one of them may take."""


def begin(tx: Tx, *, profile: str, hooks: Mapping[str, str], last_seq: int) -> dict[str, Place]:
    """Every hook's place. A new hook (each with the random name that it gets) begins after `last_seq`; the place of one
    that is not configured any more is forgotten, so that it begins anew if it comes back."""
    index = tx.get(Note, _index(profile))
    known: list[str] = [] if index is None else msgspec.json.decode(index.value)
    for gone in set(known) - set(hooks):
        note = tx.get(Note, note_name(profile, gone))
        if note is not None:
            tx.delete(note)
    places = {}
    for hook, name in hooks.items():
        found = _read(tx, profile, hook)
        places[hook] = Place(seq=last_seq, name=name) if found is None else found
        if found is None:
            _put(tx, profile, hook, places[hook])
    if sorted(known) != sorted(hooks):
        tx.put(Note(name=_index(profile), value=msgspec.json.encode(sorted(hooks)).decode()))
    return places


def hold(tx: Tx, *, profile: str, hook: str, holder: str, seize: bool = False) -> Place | None:
    """Hold a place, or renew that: `holder` of what comes back says who holds it now. None for one that is gone.

    `seize`: whoever holds it is dead, whatever the note says.
    """
    place = _read(tx, profile, hook)
    if place is None:
        return None
    others = place.holder not in ("", holder) and place.held_until is not None and place.held_until > tx.now
    if others and not seize:
        return place
    epoch = place.epoch + (place.holder != holder)
    held = replace(place, holder=holder, held_until=tx.now + HELD_FOR, epoch=epoch)
    _put(tx, profile, hook, held)
    return held


def save(tx: Tx, *, profile: str, hook: str, place: Place, failed: Event | None = None) -> bool:
    """Keep a held place, which renews it, and in the same commit the event that something was given up. False, and
    nothing is kept, where another gateway took over."""
    stored = _read(tx, profile, hook)
    if stored is None or stored.epoch != place.epoch:
        return False
    _put(tx, profile, hook, replace(place, held_until=tx.now + HELD_FOR))
    if failed is not None:
        tx.emit(failed)
    return True


def release(tx: Tx, *, profile: str, hook: str, holder: str) -> None:
    """This gateway ends: the next one need not wait."""
    place = _read(tx, profile, hook)
    if place is not None and place.holder == holder:
        _put(tx, profile, hook, replace(place, holder="", held_until=None))


def _read(tx: Tx, profile: str, hook: str) -> Place | None:
    note = tx.get(Note, note_name(profile, hook))
    return None if note is None else msgspec.json.decode(note.value, type=Place)


def _put(tx: Tx, profile: str, hook: str, place: Place) -> None:
    tx.put(Note(name=note_name(profile, hook), value=msgspec.json.encode(place).decode()))


def note_name(profile: str, hook: str) -> str:
    """The name of a hook's note."""
    return f"hook:{profile}:{hook}"


def _index(profile: str) -> str:
    return f"hooks:{profile}"
