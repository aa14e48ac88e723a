"""What a change has staged of one table, and how it shines through the rows below it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from msgspec import Struct

from signoff.rows import Columns, Table
from signoff.stores.packing import order_of, pack

R = TypeVar("R", bound=Struct)

_GONE: Columns = ()
"""The columns of a row that was removed: it is found by none."""


class Staged(Generic[R]):
    """Rows put (or None: deleted) in one table, by key, indexed by a column from the first look-up on.

    `documents` holds the JSON of each row that was put.
    """

    __slots__ = ("_columns", "_indexes", "documents", "rows", "table")

    def __init__(self, table: Table[R]) -> None:
        self.table = table
        self.rows: dict[str, R | None] = {}
        self.documents: dict[str, bytes] = {}
        self._columns: dict[str, Columns] = {}
        self._indexes: dict[int, dict[str, dict[str, None]]] = {}
        """By the column's place; kept together with `_columns` once there is one."""

    def put(self, row: R) -> None:
        """Set a row. Raises `InvalidInput` for what JSON cannot hold."""
        document = pack(row)
        key = self.table.key(row)
        if self._indexes:
            self._reindex(key, row)
        self.rows[key] = row
        self.documents[key] = document

    def delete(self, row: R) -> None:
        """Set a row's removal."""
        key = self.table.key(row)
        if self._indexes:
            self._reindex(key, None)
        self.rows[key] = None

    def take_over(self, other: Staged[R]) -> None:
        """Set all that `other` has; it is not used any more."""
        if self._indexes:
            for key, row in other.rows.items():
                self._reindex(key, row)
        self.rows.update(other.rows)
        self.documents.update(other.documents)

    def over(self, below: Iterable[R], path: str, value: str, limit: int | None) -> list[R]:
        """The matches with the rows `below`, in the table's order.

        `below` are the matches there, in order; with a limit, at least `limit` more than are staged.
        """
        table, rows = self.table, self.rows
        key_of = table.key
        found = [row for row in below if key_of(row) not in rows]
        keys = self._index(path).get(value)
        if keys:
            found.extend(row for key in keys if (row := rows[key]) is not None)
            if len(found) > 1:
                found.sort(key=lambda row: (order_of(table, row), key_of(row)))
        return found if limit is None else found[:limit]

    def _index(self, path: str) -> dict[str, dict[str, None]]:
        place = self.table.places[path]
        index = self._indexes.get(place)
        if index is None:
            columns = self._columns
            if not self._indexes:
                values = self.table.values
                for key, row in self.rows.items():
                    columns[key] = _GONE if row is None else values(row)
            index = self._indexes[place] = {}
            for key, of_row in columns.items():
                if of_row and (value := of_row[place]) is not None:
                    index.setdefault(value, {})[key] = None
        return index

    def _reindex(self, key: str, after: R | None) -> None:
        before = self._columns.get(key, _GONE)
        now = self._columns[key] = _GONE if after is None else self.table.values(after)
        for place, index in self._indexes.items():
            old = before[place] if before else None
            new = now[place] if now else None
            if old == new:
                continue
            if old is not None:
                del index[old][key]
            if new is not None:
                index.setdefault(new, {})[key] = None
