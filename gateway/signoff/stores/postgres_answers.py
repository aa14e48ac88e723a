"""What a transaction has read so far, and what its changes have asked for beyond it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from signoff.stores.packing import order_of
from signoff.stores.postgres_shapes import SHAPES, Shape, Statement, can_be_kept, kept_value

R = TypeVar("R", bound=Struct)
Rows = Sequence[tuple[Any, ...]]
Absorb = Callable[[Rows], None]
"""Takes the rows that the server answered."""

_UNREAD: Any = object()
_SEQS = (
    "SELECT w.profile, convert_to(coalesce((SELECT max(seq) FROM signoff.events e WHERE e.profile = w.profile), 0)"
    "::text, 'UTF8') FROM unnest(%s::text[]) AS w (profile)"
)


class Answers:
    """Committed rows under the lock of one transaction. What is not known yet is noted, and told as not there.

    `missed` says that something was told so: the run that asked must be thrown away and made again.
    """

    def __init__(self) -> None:
        self.missed = False
        self._rows: dict[type[Struct], dict[str, Any]] = {}
        self._found: dict[tuple[str, str], dict[str, tuple[list[Any], int | None]]] = {}
        """By table and column: the rows of a value, and how many were asked for at most."""
        self._seqs: dict[str, int] = {}
        self._wanted_rows: dict[type[Struct], dict[str, None]] = {}
        self._wanted_finds: dict[tuple[type[Struct], str], dict[str, int | None]] = {}
        self._wanted_seqs: dict[str, None] = {}

    def get(self, row: type[R], key: str) -> R | None:
        """The committed row, or None."""
        found = self._rows.get(row, {}).get(key, _UNREAD)
        if found is not _UNREAD:
            known: R | None = found
            return known
        if can_be_kept(key):
            self.missed = True
            self._wanted_rows.setdefault(row, {})[key] = None
        return None

    def find(self, shape: Shape[R], path: str, value: str, limit: int | None) -> list[R]:
        """The committed rows with that value in order; with a limit, at least so many where there are."""
        if not can_be_kept(value):
            return []
        value = kept_value(value)
        known = self._found.get((shape.name, path), {}).get(value)
        if known is not None and _answers(known[1], limit):
            return known[0]
        self.missed = True
        wanted = self._wanted_finds.setdefault((shape.table.row, path), {})
        if value not in wanted or not _answers(wanted[value], limit):
            wanted[value] = limit
        return []

    def last_seq(self, profile: str) -> int:
        """The last number in a profile's log."""
        known = self._seqs.get(profile)
        if known is None:
            self.missed = True
            self._wanted_seqs[profile] = None
            return 0
        return known

    def question(self) -> tuple[Statement, Absorb] | None:
        """One statement that fetches all that was missed, and what takes its answer; None if nothing was. It is asked
        once."""
        parts: list[tuple[str, Sequence[Any], Absorb]] = []
        for row, keys in self._wanted_rows.items():
            shape = SHAPES[row]
            parts.append((shape.rows, (list(keys),), _rows_of(self, shape, list(keys))))
        for (row, path), limits in self._wanted_finds.items():
            shape = SHAPES[row]
            values = (list(limits), list(limits.values()))
            parts.append((shape.found(path), values, _finds_of(self, shape, path, limits)))
        if self._wanted_seqs:
            parts.append((_SEQS, (list(self._wanted_seqs),), self._absorb_seqs))
        if not parts:
            return None
        self._wanted_rows, self._wanted_finds, self._wanted_seqs = {}, {}, {}
        numbered = (f"SELECT {place}, p.* FROM ({part}) p" for place, (part, _, _) in enumerate(parts))  # noqa: S608  # ours
        sql = " UNION ALL ".join(numbered)
        given = [value for _, values, _ in parts for value in values]
        return (sql, given), _shared_out([take for _, _, take in parts])

    def absorb_rows(self, shape: Shape[Any], keys: Iterable[str], rows: Rows) -> None:
        """Take the rows of these keys; what did not come is not there."""
        known = self._rows.setdefault(shape.table.row, {})
        for key, document in rows:
            if key not in known:
                known[key] = shape.read(document)
        for key in keys:
            known.setdefault(key, None)

    def absorb_finds(self, shape: Shape[Any], path: str, limits: dict[str, int | None], rows: Rows) -> None:
        """Take the rows of these values."""
        known = self._rows.setdefault(shape.table.row, {})
        found = self._found.setdefault((shape.name, path), {})
        for value, limit in limits.items():
            found[value] = ([], limit)
        key_of = shape.table.key
        for value, document in rows:
            row = shape.read(document)
            found[value][0].append(known.setdefault(key_of(row), row))
        for value in limits:
            if len(found[value][0]) > 1:
                found[value][0].sort(key=lambda row: (order_of(shape.table, row), key_of(row)))

    def _absorb_seqs(self, rows: Rows) -> None:
        for profile, seq in rows:
            self._seqs[profile] = int(seq)


def _answers(had: int | None, limit: int | None) -> bool:
    """Whether a find with the limit `had` tells what one with `limit` asks."""
    return had is None or (limit is not None and limit <= had)


def _shared_out(takes: list[Absorb]) -> Absorb:
    """Give each the rows that begin with its number."""

    def take(rows: Rows) -> None:
        for place, own in enumerate(takes):
            own([row[1:] for row in rows if row[0] == place])

    return take


def _rows_of(answers: Answers, shape: Shape[Any], keys: list[str]) -> Absorb:
    return lambda rows: answers.absorb_rows(shape, keys, rows)


def _finds_of(answers: Answers, shape: Shape[Any], path: str, limits: dict[str, int | None]) -> Absorb:
    return lambda rows: answers.absorb_finds(shape, path, limits, rows)
