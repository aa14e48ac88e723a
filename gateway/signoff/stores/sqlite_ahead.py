"""Reading ahead for changes over thousands of rows.

Such a change runs in the writer thread, and every statement there may have to wait up to 5 ms for the interpreter lock
while the event loop is busy. A change that finds 5,000 requests and then asks for the copies of each would wait 5,000
times. So a large find also fetches, in one statement each, what changes ask for next.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from signoff.model import ApprovalRequest, Copy
from signoff.stores.sqlite_cache import Cache
from signoff.stores.sqlite_shapes import SHAPES, WHOLE, Shape, decoded

R = TypeVar("R", bound=Struct)

_decode_pairs = msgspec.json.Decoder(list[tuple[str, str]]).decode

FROM_ROWS = 4
"""Smaller finds cost no more one by one."""

CHILDREN: dict[type[Struct], tuple[tuple[type[Struct], str], ...]] = {
    ApprovalRequest: ((Copy, "request"), (ApprovalRequest, "follower_of")),
}
"""Rows whose column holds the key of the row found."""

PARENTS: dict[type[Struct], tuple[tuple[str, type[Struct]], ...]] = {Copy: (("request", ApprovalRequest),)}
"""Columns of the row found that hold another row's key."""


class ReadAhead:
    """What was fetched beyond what was asked, valid for one transaction."""

    def __init__(self, db: sqlite3.Connection, cache: Cache) -> None:
        self._db = db
        self._cache = cache
        self._found: dict[tuple[str, str], dict[str, list[Any]]] = {}

    def found(self, name: str, path: str, value: str) -> list[Any] | None:
        """The rows of a look-up that was fetched already, in order, or None."""
        return self._found.get((name, path), {}).get(value)

    def follow(self, shape: Shape[Any], rows: Sequence[Any]) -> None:
        """Fetch the neighbours of `rows`, which all lie in one table, into the cache."""
        keys = [shape.table.key(row) for row in rows]
        for row_type, path in CHILDREN.get(shape.table.row, ()):
            self._children(SHAPES[row_type], path, keys)
        for path, row_type in PARENTS.get(shape.table.row, ()):
            column = shape.table.columns[path]
            parents = dict.fromkeys(key for row in rows if (key := column(row)) is not None)
            self.follow(SHAPES[row_type], self._rows(SHAPES[row_type], list(parents)))

    def _children(self, shape: Shape[Any], path: str, keys: list[str]) -> None:
        known = self._found.setdefault((shape.name, path), {})
        new: dict[str, list[Any]] = {key: [] for key in keys if key not in known}
        if new:
            query = f"SELECT json_array(key, {path}) AS row FROM {shape.name} WHERE {path} IN (SELECT value FROM json_each(?)) ORDER BY ord, key"  # noqa: E501, S608  # names from rows.TABLES
            pairs = _decode_pairs(self._whole(query, list(new)) or b"[]")
            # Often they are what was found at first, and known already.
            for (_, value), row in zip(pairs, self._rows(shape, [key for key, _ in pairs]), strict=True):
                new[value].append(row)
        known.update(new)

    def _rows(self, shape: Shape[Any], keys: list[str]) -> list[Any]:
        """The rows with these keys, in their order, without those that do not exist."""
        known = self._cache.rows(shape.name)
        new = [key for key in keys if key not in known]
        if new:
            whole = self._whole(f"SELECT row FROM {shape.name} WHERE key IN (SELECT value FROM json_each(?))", new)  # noqa: S608  # the same
            if whole is not None:
                kept_rows(self._cache, shape, whole)
            for key in new:
                if key not in known:
                    self._cache.keep(shape.name, key, None, len(key))
        return [row for key in keys if (row := known[key].row) is not None]

    def _whole(self, query: str, values: list[str]) -> bytes | None:
        """What the query finds for these values, as one JSON list."""
        found: tuple[bytes | None] = self._db.execute(WHOLE.format(query), (msgspec.json.encode(values),)).fetchone()
        return found[0]


def kept_rows(cache: Cache, shape: Shape[R], whole: bytes) -> list[R]:
    """The committed rows of a query; those the cache did not know are put into it."""
    rows = decoded(shape.decode_list, whole, shape.name)
    known, key_of = cache.rows(shape.name), shape.table.key
    size = len(whole) // len(rows)
    for place, row in enumerate(rows):
        kept = known.get(key := key_of(row))
        if kept is None:
            cache.keep(shape.name, key, row, size)
        else:
            rows[place] = kept.row
    return rows
