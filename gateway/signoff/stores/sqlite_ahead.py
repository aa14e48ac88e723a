"""Reading ahead for changes over thousands of rows.

Such a change runs in the writer thread, and every statement there may have to wait up to 5 ms for the interpreter lock
while the event loop is busy. A change that finds 5,000 requests and then asks for the copies of each would wait 5,000
times. So a large find also fetches, in one statement each, what changes ask for next.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from signoff.model import ApprovalRequest, Copy
from signoff.stores.sqlite_shapes import SHAPES, WHOLE, Shape, decoded

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

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._found: dict[tuple[str, str], dict[str, list[Any]]] = {}

    def found(self, name: str, path: str, value: str) -> list[Any] | None:
        """The rows of a look-up that was fetched already, in order, or None."""
        return self._found.get((name, path), {}).get(value)

    def follow(self, shape: Shape[Any], rows: Sequence[Any], read: dict[tuple[str, str], Any]) -> None:
        """Fetch the neighbours of `rows`, which all lie in one table; rows by key go into `read`."""
        for row_type, path in CHILDREN.get(shape.table.row, ()):
            self._children(SHAPES[row_type], path, [shape.table.key(row) for row in rows], read)
        for path, row_type in PARENTS.get(shape.table.row, ()):
            column = shape.table.columns[path]
            keys = dict.fromkeys(key for row in rows if (key := column(row)) is not None)
            self._parents(SHAPES[row_type], list(keys), read)

    def _children(self, shape: Shape[Any], path: str, keys: list[str], read: dict[tuple[str, str], Any]) -> None:
        known = self._found.setdefault((shape.name, path), {})
        new: dict[str, list[Any]] = {key: [] for key in keys if key not in known}
        column = shape.table.columns[path]
        for row in self._rows(shape, path, list(new), " ORDER BY ord, key"):
            new[str(column(row))].append(row)
            read.setdefault((shape.name, shape.table.key(row)), row)
        known.update(new)

    def _parents(self, shape: Shape[Any], keys: list[str], read: dict[tuple[str, str], Any]) -> None:
        new = [key for key in keys if (shape.name, key) not in read]
        found = {shape.table.key(row): row for row in self._rows(shape, "key", new, "")}
        for key in new:
            read[shape.name, key] = found.get(key)

    def _rows(self, shape: Shape[Any], column: str, values: list[str], order: str) -> list[Any]:
        if not values:
            return []
        query = f"SELECT row FROM {shape.name} WHERE {column} IN (SELECT value FROM json_each(?)){order}"  # noqa: S608  # names from rows.TABLES
        (whole,) = self._db.execute(WHOLE.format(query), (msgspec.json.encode(values),)).fetchone()
        return [] if whole is None else decoded(shape.decode_list, whole, shape.name)
