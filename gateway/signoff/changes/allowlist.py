"""An allowlist whose lines are rows: adding to it and taking out of it, each in one commit.

An "Always" on a command is a line too, and its grant is that line's row: it came with the decision's own commit, and
whoever takes the line out revokes the grant.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from msgspec import Struct

from signoff.allowlist_file import KEYS, MAX_BYTES, entry_of
from signoff.changes import grants
from signoff.display import shown
from signoff.errors import InvalidInput
from signoff.model import Actor, AllowlistEntry, Event, Grant, Note, replace
from signoff.ports import Tx
from signoff.rows import joined

_NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""No shell is handed these in a command, and not every database can keep them."""

TOLD_CHARS = 2000
"""A longer text is told of in the log by its length: secrets are looked for in every character of what is shown."""


class Line(Struct, frozen=True, kw_only=True):
    """A text and the list that it stands in."""

    list: str
    text: str


class Changed(Struct, frozen=True, kw_only=True):
    """What came of a change: what stands there now and did not before, what no longer stands there, and what was left
    out because somebody had removed it."""

    added: tuple[AllowlistEntry, ...] = ()
    removed: tuple[AllowlistEntry, ...] = ()
    ended: tuple[Grant, ...] = ()
    left: tuple[AllowlistEntry, ...] = ()


def entry_id(line: Line) -> str:
    """The id of a line in its profile: the same for the same line, so that two who add it add it once."""
    return hashlib.sha256(f"{line.list}\n{line.text}".encode()).hexdigest()[:32]


def checked(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines, each once. Raises `InvalidInput` for a list that there is not and for a text that admits nothing."""
    for line in lines:
        if line.list not in KEYS:
            raise InvalidInput(f"{line.list!r} is not a list of an allowlist ({', '.join(KEYS)}).", param="list")
        if not line.text.strip() or _NO_TEXT.search(line.text):
            raise InvalidInput("An entry that is empty, or holds what is no character, is none.", param=line.list)
    return tuple(dict.fromkeys(lines))


def change(
    tx: Tx,
    *,
    profile: str,
    add: Sequence[Line] = (),
    remove: Sequence[str] = (),
    by: Actor,
    source: str = "",
    again: bool = True,
) -> Changed:
    """Take out the lines with these ids (a grant's id is its line's) and add those of `add` that do not stand there.

    An id that is not known, or whose line is gone, is passed over. Without `again` a line that was removed before stays
    so. Raises `InvalidInput` where all lines together would be longer than a file may be.
    """
    removed, ended = _removed(tx, profile, remove, by)
    spoken_for = {
        Line(list="commands", text=entry_of(grant.exact))
        for grant in (tx.find(Grant, "live_profile", profile) if add else ())
        if grant.exact is not None
    }
    added: list[AllowlistEntry] = []
    left: list[AllowlistEntry] = []
    for line in add:
        known = tx.get(AllowlistEntry, joined(profile, entry_id(line)))
        if line in spoken_for or (known is not None and known.removed_at is None):
            continue
        if known is not None and not again:
            left.append(known)
            continue
        added.append(_put(tx, profile, line, len(added), source, by))
    _check_size(tx, profile, added)
    return Changed(added=tuple(added), removed=tuple(removed), ended=tuple(ended), left=tuple(left))


def first(tx: Tx, *, profile: str, add: Sequence[Line], by: Actor, source: str) -> Changed | None:
    """What the first start brings into a store that never had a line of this profile; None where it had one, such as
    from another gateway that starts at the same time."""
    # Both would read that there is nothing. The note is what they both write.
    note = f"allowlist.first:{profile}"
    if tx.get(Note, note) is not None or tx.find(AllowlistEntry, "profile", profile, limit=1):
        return None
    tx.put(Note(name=note, value=source))
    return change(tx, profile=profile, add=add, by=by, source=source)


def _removed(tx: Tx, profile: str, ids: Sequence[str], by: Actor) -> tuple[list[AllowlistEntry], list[Grant]]:
    removed: list[AllowlistEntry] = []
    ended: list[Grant] = []
    for each in dict.fromkeys(ids):
        entry = tx.get(AllowlistEntry, joined(profile, each))
        if entry is not None and entry.removed_at is None:
            gone = replace(entry, removed_at=tx.now, removed_by=by)
            tx.put(gone)
            _emit(tx, "allowlist.removed", gone, by)
            removed.append(gone)
            continue
        grant = tx.get(Grant, joined(profile, each))
        if grant is not None and grant.exact is not None and grant.revoked_at is None:
            ended.append(grants.revoke(tx, profile, each, by))
    return removed, ended


def _put(tx: Tx, profile: str, line: Line, rank: int, source: str, by: Actor) -> AllowlistEntry:
    entry = AllowlistEntry(
        profile=profile,
        entry_id=entry_id(line),
        list=line.list,
        text=line.text,
        rank=rank,
        source=source,
        by=by,
        created_at=tx.now,
    )
    tx.put(entry)
    _emit(tx, "allowlist.added", entry, by)
    return entry


def _check_size(tx: Tx, profile: str, added: Sequence[AllowlistEntry]) -> None:
    """Each line is compared with every command, wherever they are kept."""
    entries = tx.find(AllowlistEntry, "live_profile", profile) if added else []
    if sum(len(entry.text.encode()) for entry in entries) > MAX_BYTES:
        mib = MAX_BYTES // 1024 // 1024
        raise InvalidInput(f"An allowlist holds at most {mib} MiB; nothing was changed.", param="commands")


def _emit(tx: Tx, kind: str, entry: AllowlistEntry, by: Actor) -> None:
    told = shown(entry.text) if len(entry.text) <= TOLD_CHARS else f"{len(entry.text):,} characters"
    data = {"entry_id": entry.entry_id, "list": entry.list, "shown": told, "by": by}
    tx.emit(Event(profile=entry.profile, type=kind, at=tx.now, data=data))
