"""Which keys the gateways of a shared store sign buttons with: one note, told anew while they run.

A key is told of by its mark, from which it cannot be found. A card that one gateway made can be pressed at another only
where that one accepts the key, and the store itself would never show that it does not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

import msgspec

from signoff.model import Note
from signoff.ports import Tx

NOTE = "token-keys"
"""The name of the note."""
TELL_EVERY = timedelta(hours=1)
HOLDS_FOR = timedelta(days=30)
"""A key that no gateway told of for so long is forgotten: as long as buttons of a key work that signs no more."""


def tell(tx: Tx, *, signs: str, accepts: Collection[str]) -> tuple[str, ...]:
    """This gateway signs with the key of this mark and accepts those; the marks of other gateways' keys beside them.

    A key that it accepts and does not sign with was rotated away, so it is not kept.
    """
    note = tx.get(Note, NOTE)
    told = signing(note, tx.now)
    kept = {mark: at for mark, at in told.items() if mark not in accepts} | {signs: tx.now}
    if set(kept) != set(_read(note)) or tx.now - told.get(signs, tx.now - TELL_EVERY) >= TELL_EVERY:
        tx.put(Note(name=NOTE, value=msgspec.json.encode(kept).decode()))
    return tuple(sorted(set(kept) - set(accepts)))


def signing(note: Note | None, now: datetime) -> dict[str, datetime]:
    """The marks of the keys that gateways sign with, and when one last told of each."""
    return {mark: at for mark, at in _read(note).items() if now - at < HOLDS_FOR}


def unknown(note: Note | None, accepts: Collection[str], now: datetime) -> tuple[str, ...]:
    """The marks that are not among these."""
    return tuple(sorted(set(signing(note, now)) - set(accepts)))


def _read(note: Note | None) -> Mapping[str, datetime]:
    return {} if note is None else msgspec.json.decode(note.value, type=dict[str, datetime])
