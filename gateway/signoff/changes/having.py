"""Which executors the gateways of a store have: one note a profile, told anew while they run.

The note keeps the names that nobody tells any more, so that what was approved for them is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import msgspec

from signoff.model import Note
from signoff.ports import Tx

TELL_EVERY = timedelta(seconds=60)
HOLDS_FOR = 3 * TELL_EVERY
"""An executor that no gateway told of for so long is gone: a gateway that runs does not miss two times in a row."""


def note_name(profile: str) -> str:
    """The name of a profile's note."""
    return f"executors:{profile}"


def tell(tx: Tx, have: Iterable[tuple[str, str]]) -> None:
    """This gateway has these executors now, each named by profile and name."""
    by_profile: dict[str, list[str]] = {}
    for profile, name in have:
        by_profile.setdefault(profile, []).append(name)
    for profile, names in by_profile.items():
        note = tx.get(Note, note_name(profile))
        told = _read(note) | dict.fromkeys(names, tx.now)
        tx.put(Note(name=note_name(profile), value=msgspec.json.encode(told).decode()))


def had(note: Note | None, now: datetime) -> dict[str, bool]:
    """Every executor that a gateway ever had, and whether one has it now."""
    return {name: now - at < HOLDS_FOR for name, at in _read(note).items()}


def missing(executor: str | None, had_now: Mapping[str, bool]) -> bool:
    """Whether no gateway has it any more; of one that none ever told of, nothing is said."""
    return executor is not None and not had_now.get(executor, True)


def _read(note: Note | None) -> dict[str, datetime]:
    return {} if note is None else msgspec.json.decode(note.value, type=dict[str, datetime])
