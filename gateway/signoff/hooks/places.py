"""How far each receiver of webhooks has been told, and which gateway tells it: one note a hook. Pure changes.

A gateway holds a place for a while and renews it as it delivers; another one takes over once that time is over. Each
take-over raises `epoch`, so whoever held it before saves nothing any more.

The gateways on one store need not have the same hooks: a place that is not in this one's settings may be another's. So
it is kept while somebody holds it, and for `KEPT_FOR` after.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
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
    """Until when, unless it is renewed. In the past: since when nobody does."""
    epoch: int = 0
    """How often it passed from one gateway to another."""
    alone: bool = False
    """Its holder had the store to itself, by the store's lock: whoever has that now knows that the holder is gone."""


HELD_FOR = timedelta(seconds=20)
"""How long a gateway that died keeps others from telling its receivers: twice what one of them may take."""
KEPT_FOR = timedelta(hours=24)
"""A place that no gateway has held for so long is forgotten, where several may use the store."""
HOLD_EVERY = timedelta(hours=1)
"""A gateway holds each of its places at least so often, also with nothing to tell: it is not forgotten meanwhile."""


def begin(
    tx: Tx, *, profile: str, hooks: Mapping[str, str], last_seq: int, alone: bool = False
) -> tuple[dict[str, Place], list[str]]:
    """Every hook's place, and the names of those that were forgotten. A new hook (each with the random name that it
    gets) begins after `last_seq`. `alone`: as for `hold`."""
    gone = forget(tx, profile=profile, hooks=hooks, alone=alone)
    places = {}
    for hook, name in hooks.items():
        found = _read(tx, profile, hook)
        place = Place(seq=last_seq, name=name) if found is None else found
        if not _held(place, tx.now):  # by nobody yet, but it has a gateway from now on
            place = replace(place, held_until=tx.now, alone=alone)
            _put(tx, profile, hook, place)
        places[hook] = place
    _enter(tx, profile, hooks)
    return places, gone


def forget(tx: Tx, *, profile: str, hooks: Collection[str], alone: bool = False) -> list[str]:
    """Forget the places of hooks that no gateway has any more, so that one which comes back begins anew; their names.

    Kept are `hooks`, this gateway's own, and what another one held within `KEPT_FOR`. `alone`: as for `hold`.
    """
    known, gone = _known(tx, profile), []
    for hook in sorted(set(known) - set(hooks)):
        place = _read(tx, profile, hook)
        if place is not None and place.held_until is None:
            _put(tx, profile, hook, replace(place, held_until=tx.now))
        elif place is None or _dead(place, alone) or _since(place, tx.now) > KEPT_FOR:
            gone.append(hook)
            if place is not None:
                tx.delete(Note(name=note_name(profile, hook), value=""))
    if gone:
        _index(tx, profile, set(known) - set(gone))
    return gone


def hold(tx: Tx, *, profile: str, hook: str, holder: str, last: Place, alone: bool = False) -> tuple[Place, bool]:
    """Hold a place, or renew that: `holder` of what comes back says who holds it now. True with it: it was missing.

    A missing one is put back as this gateway knew it `last`, under its name and a higher epoch, so nothing after that
    is lost. `alone`: no other gateway has this store's lock, so a holder that had it is dead, whatever the note
    says. One that used the store without its lock may live, and is waited for.
    """
    stored = _read(tx, profile, hook)
    place = last if stored is None else stored
    if place.holder != holder and _held(place, tx.now) and not _dead(place, alone):
        return place, False  # where it is missing, its holder puts it back: that one knows better how far it is
    epoch = place.epoch + (place.holder != holder or stored is None)
    held = replace(place, holder=holder, held_until=tx.now + HELD_FOR, epoch=epoch, alone=alone)
    _put(tx, profile, hook, held)
    _enter(tx, profile, (hook,))
    return held, stored is None


def save(tx: Tx, *, profile: str, hook: str, place: Place, failed: Event | None = None) -> tuple[Place | None, bool]:
    """Keep a held place, which renews it, and in the same commit the event that something was given up. The place as
    it is kept; None, and nothing is kept, where another gateway took over. True with it: it was missing, and was put
    back, so what was told is not told again."""
    stored = _read(tx, profile, hook)
    if stored is not None and stored.epoch != place.epoch:
        return None, False
    kept = replace(place, held_until=tx.now + HELD_FOR, epoch=place.epoch + (stored is None))
    _put(tx, profile, hook, kept)
    _enter(tx, profile, (hook,))
    if failed is not None:
        tx.emit(failed)
    return kept, stored is None


def release(tx: Tx, *, profile: str, hook: str, holder: str) -> None:
    """This gateway ends: the next one need not wait."""
    place = _read(tx, profile, hook)
    if place is not None and place.holder == holder:
        _put(tx, profile, hook, replace(place, holder="", held_until=tx.now))


def read(note: Note | None) -> Place | None:
    """The place that a hook's note says; None for a missing one."""
    return None if note is None else msgspec.json.decode(note.value, type=Place)


def note_name(profile: str, hook: str) -> str:
    """The name of a hook's note."""
    return f"hook:{profile}:{hook}"


# --- what stands there -----------------------------------------------------------------------------


def _held(place: Place, now: datetime) -> bool:
    return place.holder != "" and place.held_until is not None and place.held_until > now


def _dead(place: Place, alone: bool) -> bool:
    return alone and place.alone


def _since(place: Place, now: datetime) -> timedelta:
    """How long nobody has held it."""
    return timedelta() if place.held_until is None else now - place.held_until


def _read(tx: Tx, profile: str, hook: str) -> Place | None:
    return read(tx.get(Note, note_name(profile, hook)))


def _put(tx: Tx, profile: str, hook: str, place: Place) -> None:
    tx.put(Note(name=note_name(profile, hook), value=msgspec.json.encode(place).decode()))


# --- the names of the hooks that have a place ------------------------------------------------------


def _enter(tx: Tx, profile: str, hooks: Collection[str]) -> None:
    known = _known(tx, profile)
    if not set(hooks) <= set(known):
        _index(tx, profile, {*known, *hooks})


def _known(tx: Tx, profile: str) -> list[str]:
    index = tx.get(Note, f"hooks:{profile}")
    return [] if index is None else msgspec.json.decode(index.value, type=list[str])


def _index(tx: Tx, profile: str, hooks: Collection[str]) -> None:
    tx.put(Note(name=f"hooks:{profile}", value=msgspec.json.encode(sorted(hooks)).decode()))
