"""What changes have staged of one table, and how it shines through the rows below it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct

from signoff.rows import Columns, Table
from signoff.stores.packing import order_of, pack

R = TypeVar("R", bound=Struct)

_GONE: Columns = ()
"""The columns of a row that was removed: it is found by none."""
UNSTAGED: Any = object()
"""Stands for the row of a key that nothing was staged for."""


class Before(NamedTuple):
    """What was staged for a key until it was staged anew."""

    staged: Staged[Any]
    key: str
    row: Any
    document: bytes | None
    columns: Columns


class Staged(Generic[R]):
    """Rows put (or None: deleted) in one table, by key, indexed by a column from the first look-up on.

    `documents` holds the JSON of each row that was put, `columns` what it is looked up by.
    """

    __slots__ = ("_indexes", "columns", "documents", "rows", "table")

    def __init__(self, table: Table[R]) -> None:
        self.table = table
        self.rows: dict[str, R | None] = {}
        self.documents: dict[str, bytes] = {}
        self.columns: dict[str, Columns] = {}
        self._indexes: dict[int, dict[str, dict[str, None]]] = {}
        """By the column's place."""

    def put(self, row: R) -> Before:
        """Set a row; what it stands instead of. Raises `InvalidInput` for what JSON cannot hold."""
        document = pack(row)
        key = self.table.key(row)
        before = self._before(key)
        self._set(key, row, self.table.values(row))
        self.documents[key] = document
        return before

    def delete(self, row: R) -> Before:
        """Set a row's removal; what it stands instead of."""
        key = self.table.key(row)
        before = self._before(key)
        self._set(key, None, _GONE)
        return before

    def restore(self, before: Before) -> None:
        """Take back what was staged since, the newest first."""
        key = before.key
        if before.row is not UNSTAGED:
            self._set(key, before.row, before.columns)
            if before.document is not None:
                self.documents[key] = before.document
            return
        self._set(key, None, _GONE)
        del self.rows[key], self.columns[key]

    def over(self, below: Iterable[R], path: str, value: str, limit: int | None) -> list[R]:
        """The matches with the rows `below`, in the table's order.

        `below` are the matches there, in order; with a limit, at least `limit` more than are staged.
        """
        table, rows = self.table, self.rows
        key_of = table.key
        found = [row for row in below if key_of(row) not in rows] if below else []
        keys = self._index(table.places[path]).get(value)
        if keys:
            found.extend(row for key in keys if (row := rows[key]) is not None)
            if len(found) > 1:
                found.sort(key=lambda row: (order_of(table, row), key_of(row)))
        return found if limit is None else found[:limit]

    def _before(self, key: str) -> Before:
        rows = self.rows
        if key not in rows:
            return Before(self, key, UNSTAGED, None, _GONE)
        return Before(self, key, rows[key], self.documents.get(key), self.columns[key])

    def _set(self, key: str, row: R | None, columns: Columns) -> None:
        if self._indexes:
            self._reindex(key, columns)
        self.rows[key] = row
        self.columns[key] = columns

    def _index(self, place: int) -> dict[str, dict[str, None]]:
        index = self._indexes.get(place)
        if index is None:
            index = self._indexes[place] = {}
            for key, columns in self.columns.items():
                if columns and (value := columns[place]) is not None:
                    index.setdefault(value, {})[key] = None
        return index

    def _reindex(self, key: str, now: Columns) -> None:
        before = self.columns.get(key, _GONE)
        for place, index in self._indexes.items():
            old = before[place] if before else None
            new = now[place] if now else None
            if old == new:
                continue
            if old is not None:
                del index[old][key]
            if new is not None:
                index.setdefault(new, {})[key] = None
