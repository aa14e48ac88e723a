"""What ended, or was kept for later, while nobody answered in a place: gathered from the event log, told once.

Each place has a note of what is not told yet. It is written behind the event log: the note of the profile says up to
which event everything was gathered, in the same commit, so that a restart neither loses nor repeats anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec
from msgspec import Struct

from signoff.changes.common import FINAL, NEW, emit
from signoff.changes.copies import new_card
from signoff.changes.passing import GATED
from signoff.ids import row_id
from signoff.model import Actor, ApprovalRequest, Copy, Destination, Note, replace
from signoff.policy.protected import PROTECTED_KEY
from signoff.ports import Tx
from signoff.rows import joined, request_key

ABSENT_FOR = timedelta(minutes=3)
"""Less than this is no absence: who comes back within it has the cards still before their eyes."""
KEPT = 100
"""So many of a place are kept one by one, the newest; of older ones only the number."""
OLDER_STAGED = 1000
"""So many older staged ones are kept by their ids, since they may be answered before anything is told."""
PLACES = 500
"""So many are listed, those with the newest of it; one that is not is told when somebody gives a sign of life there."""
LINES = 20
"""So many stand on the message, one line and one button each; the rest is counted."""
TOLD = 20
"""So many of a profile's newest messages are remembered, for the console."""
DEFER = '"defer"'
UNATTENDED_SETTINGS = ("cron_mode", "unattended_mode", "single_query_mode")
Kind = Literal["timeout", "notify_failed", "blocked", "staged"]
KINDS: tuple[Kind, ...] = ("timeout", "notify_failed", "blocked", "staged")
"""In the order in which they are counted."""


class Entry(Struct, frozen=True):
    """One that ended or is kept: of what is staged, the question whether it may run."""

    request_id: str
    kind: Kind
    at: datetime


class Missed(Struct, frozen=True, kw_only=True):
    """What a place was not told yet."""

    place: Destination | None = None
    """None: there is no place to tell it in; the console shows it."""
    since: datetime
    """When the first of it ended."""
    entries: tuple[Entry, ...] = ()
    older: dict[str, int] = {}
    """How many of each kind are not kept one by one any more."""
    older_staged: tuple[str, ...] = ()
    """Of these, the staged ones that may still be answered, by their ids; they are not in `older`."""


class Index(Struct, frozen=True, kw_only=True):
    """The note of a profile."""

    seq: int
    """Everything up to this event was gathered."""
    since: datetime
    """What ended before was never gathered: it is history."""
    places: tuple[Destination | None, ...] = ()
    """Those with something that is not told yet."""
    told: tuple[str, ...] = ()
    """The copies of the newest messages."""


class Absence(Struct, frozen=True, kw_only=True):
    """What one message tells; it stands in its copy's `note`."""

    since: datetime
    until: datetime
    away: bool
    """The platform or the gateway was away, so that nobody could answer; otherwise nobody did."""
    entries: tuple[Entry, ...]
    older: dict[str, int] = {}
    opened: tuple[str, ...] = ()
    """Kept actions whose card was posted anew from here."""

    @property
    def counts(self) -> dict[str, int]:
        """How many of each kind, in the order of `KINDS`."""
        found = Counter(self.older) + Counter(entry.kind for entry in self.entries)
        return {kind: found[kind] for kind in KINDS if found[kind]}


class Gathered(Struct, frozen=True):
    """One entry on its way to its place's note."""

    place: Destination | None
    entry: Entry


def index_name(profile: str) -> str:
    """The name of a profile's note."""
    return f"catch-up:{joined(profile, '')}"


def place_name(profile: str, place: Destination | None) -> str:
    """The name of a place's note."""
    parts = (place.platform, place.chat_id, place.thread_id or "") if place is not None else ()
    return f"catch-up:{joined(profile, 'place', *parts)}"


def absence_of(copy: Copy) -> Absence:
    """What the copy of such a message holds."""
    return msgspec.json.decode(copy.note or "", type=Absence)


def kind_of(row: ApprovalRequest) -> Kind | None:
    """Whether it ended because nobody was there, or is kept for somebody; None for every other ending."""
    if row.outcome == "blocked":
        by = row.decided_by[0] if row.decided_by else Actor(type="policy")
        nobody = by.rule == PROTECTED_KEY or unattended_setting(by) is not None
        return "blocked" if nobody or lacked_executor(row) else None
    if row.outcome in ("timeout", "notify_failed"):
        return "timeout" if row.outcome == "timeout" else "notify_failed"
    return "staged" if row.outcome == "staged" and row.kept_as else None


def unattended_setting(by: Actor) -> tuple[str, str] | None:
    """The setting's name and value where it says what becomes of what nobody can be asked about."""
    name, _, value = (by.setting or "").partition(" = ")
    name = name.rpartition(".")[2]
    return (name, value) if name in UNATTENDED_SETTINGS else None


def lacked_executor(row: ApprovalRequest) -> bool:
    """Whether it was blocked since it would have been kept, and no executor is registered that could run it later."""
    setting = unattended_setting(row.decided_by[0]) if row.decided_by else None
    # The tool gate forbids nothing by itself, and `defer` neither.
    return row.outcome == "blocked" and (row.rung == GATED or (setting is not None and setting[1].startswith(DEFER)))


def read_index(note: Note | None) -> Index | None:
    """What a profile's note says."""
    return None if note is None else msgspec.json.decode(note.value, type=Index)


def read_missed(note: Note | None) -> Missed | None:
    """What a place's note says."""
    return None if note is None else msgspec.json.decode(note.value, type=Missed)


# --- gathering -----------------------------------------------------------------------------------


def begin(tx: Tx, *, profile: str, seq: int, since: datetime) -> Index:
    """What is known of a profile; the first time, that nothing up to `seq` and before `since` is to be told."""
    index = read_index(tx.get(Note, index_name(profile)))
    if index is None:
        index = Index(seq=seq, since=since)
        _put(tx, index_name(profile), index)
    return index


def gather(tx: Tx, *, profile: str, after: int, seq: int, found: Sequence[Gathered]) -> bool:
    """Write down what ended in the events after `after` up to `seq`. False when somebody else did so already."""
    index = read_index(tx.get(Note, index_name(profile)))
    if index is None or index.seq != after:
        return False
    places = dict.fromkeys(index.places)
    for each in found:
        if each.entry.at < index.since:
            continue
        places.pop(each.place, None)
        places[each.place] = None
        _add(tx, profile, each)
    _put(tx, index_name(profile), replace(index, seq=seq, places=tuple(places)[-PLACES:]))
    return True


def _add(tx: Tx, profile: str, each: Gathered) -> None:
    name = place_name(profile, each.place)
    missed = read_missed(tx.get(Note, name)) or Missed(place=each.place, since=each.entry.at)
    entries = (*missed.entries, each.entry)
    gone = entries[:-KEPT]
    staged = (*missed.older_staged, *(entry.request_id for entry in gone if entry.kind == "staged"))
    older = Counter(missed.older)
    older.update(entry.kind for entry in gone if entry.kind != "staged")
    older.update({"staged": len(staged[:-OLDER_STAGED])})
    since = min(missed.since, each.entry.at)
    kept = replace(
        missed, since=since, entries=entries[-KEPT:], older=dict(+older), older_staged=staged[-OLDER_STAGED:]
    )
    _put(tx, name, kept)


def untold_in(tx: Tx, profile: str, place: Destination | None) -> Missed | None:
    """What the place was not told yet, without what was answered meanwhile: `older` counts all that is not among the
    entries. Where that was all of it, the place is forgotten."""
    missed = read_missed(tx.get(Note, place_name(profile, place)))
    if missed is not None:
        waiting = sum(_waits(tx, profile, name) for name in missed.older_staged)
        older = dict(Counter(missed.older) + Counter(staged=waiting))
        left = replace(missed, entries=tuple(_standing(tx, profile, missed.entries)), older=older, older_staged=())
        if left.entries or left.older:
            return left
    forget(tx, profile=profile, place=place)
    return None


def _standing(tx: Tx, profile: str, entries: Iterable[Entry]) -> Iterable[Entry]:
    """Those that are still as they were: what was kept and has been answered since needs nobody any more."""
    for entry in entries:
        row = tx.get(ApprovalRequest, request_key(profile, entry.request_id))
        if row is not None and (entry.kind != "staged" or row.outcome is None):
            yield entry


def _waits(tx: Tx, profile: str, request_id: str) -> bool:
    row = tx.get(ApprovalRequest, request_key(profile, request_id))
    return row is not None and row.outcome is None


# --- telling -------------------------------------------------------------------------------------


def returned(tx: Tx, *, profile: str, place: Destination, back_at: datetime, away_since: datetime | None) -> str | None:
    """Somebody, or the way to them, is back: queue the message and forget what it tells. The copy's id, or None where
    there is nothing to tell.

    `away_since`: the platform or the gateway was away from then on, and only what ended since is a reason to speak.
    Without it somebody who may decide gave a sign of life; what ended just before that is forgotten, since that person
    was there.
    """
    missed = untold_in(tx, profile, place)
    if missed is None:
        return None
    away = away_since is not None
    if away_since is not None and not any(entry.at >= away_since for entry in missed.entries):
        return None
    forget(tx, profile=profile, place=place)
    if not away and back_at - missed.since < ABSENT_FOR:
        return None
    whole = away_since is not None and away_since <= missed.since
    absence = Absence(
        since=away_since if whole and away_since is not None else missed.since,
        until=back_at,
        away=whole,
        entries=missed.entries,
        older=missed.older,
    )
    copy = Copy(
        copy_id=row_id(),
        profile=profile,
        kind="catch_up",
        destination=place,
        note=msgspec.json.encode(absence).decode(),
        priority=NEW,
        due_at=tx.now,
        created_at=tx.now,
    )
    tx.put(copy)
    index = read_index(tx.get(Note, index_name(profile)))
    if index is not None:
        _put(tx, index_name(profile), replace(index, told=(*index.told, copy.copy_id)[-TOLD:]))
    return copy.copy_id


def forget(tx: Tx, *, profile: str, place: Destination | None) -> None:
    """What the place was not told yet needs no telling any more."""
    note = tx.get(Note, place_name(profile, place))
    if note is not None:
        tx.delete(note)
    index = read_index(tx.get(Note, index_name(profile)))
    if index is not None and place in index.places:
        left = tuple(each for each in index.places if each != place)
        _put(tx, index_name(profile), replace(index, places=left))


# --- what its buttons do -------------------------------------------------------------------------


def ask_again(tx: Tx, *, profile: str, request_id: str, by: Actor) -> ApprovalRequest | None:
    """Tell the agent that a person wants to be asked. It decides nothing and lifts nothing; told once, however often it
    is pressed. The request, or None where it did not end for want of an answer."""
    row = tx.get(ApprovalRequest, request_key(profile, request_id))
    if row is None or kind_of(row) in (None, "staged"):
        return None
    if row.wanted_by is not None:
        return row
    wanted = replace(row, wanted_by=by)
    tx.put(wanted)
    emit(tx, "approval.ask_again", wanted)
    return wanted


def open_kept(tx: Tx, copy: Copy, request_id: str) -> tuple[ApprovalRequest | None, bool]:
    """Post the card of a kept action anew below the message, once; the question, and whether a card comes."""
    row = tx.get(ApprovalRequest, request_key(copy.profile, request_id))
    absence = absence_of(copy)
    if row is None or row.outcome is not None or request_id in absence.opened:
        return row, False
    told = replace(absence, opened=(*absence.opened, request_id))
    tx.put(replace(copy, note=msgspec.json.encode(told).decode()))
    tx.put(new_card(row_id(), row, copy.destination, tx.now, FINAL))
    return row, True


def _put(tx: Tx, name: str, value: Struct) -> None:
    tx.put(Note(name=name, value=msgspec.json.encode(value).decode()))
