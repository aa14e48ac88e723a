"""How far each receiver of webhooks has been told: one note a hook, saved after what it tells of. Pure changes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec
from msgspec import Struct

from signoff.model import Event, Note
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
        found = tx.get(Note, note_name(profile, hook))
        if found is None:
            places[hook] = Place(seq=last_seq, name=name)
            save(tx, profile=profile, hook=hook, place=places[hook])
        else:
            places[hook] = msgspec.json.decode(found.value, type=Place)
    if sorted(known) != sorted(hooks):
        tx.put(Note(name=_index(profile), value=msgspec.json.encode(sorted(hooks)).decode()))
    return places


def save(tx: Tx, *, profile: str, hook: str, place: Place, failed: Event | None = None) -> None:
    """Keep a place, and in the same commit the event that something was given up."""
    tx.put(Note(name=note_name(profile, hook), value=msgspec.json.encode(place).decode()))
    if failed is not None:
        tx.emit(failed)


def note_name(profile: str, hook: str) -> str:
    """The name of a hook's note."""
    return f"hook:{profile}:{hook}"


def _index(profile: str) -> str:
    return f"hooks:{profile}"
