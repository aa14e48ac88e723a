"""What a change has staged of one table, and how it shines through the table's committed rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from msgspec import Struct

from signoff.rows import Table
from signoff.stores.packing import order_of, pack

R = TypeVar("R", bound=Struct)


class Staged(Generic[R]):
    """Rows put (or None: deleted) by one change in one table, indexed by a column from the first look-up on.

    `documents` holds the JSON of each row that was put.
    """

    __slots__ = ("_indexes", "documents", "rows", "table")

    def __init__(self, table: Table[R]) -> None:
        self.table = table
        self.rows: dict[str, R | None] = {}
        self.documents: dict[str, bytes] = {}
        self._indexes: dict[str, dict[str, dict[str, None]]] = {}

    def put(self, row: R) -> None:
        """Set a row. Raises `InvalidInput` for what JSON cannot hold."""
        document = pack(row)
        key = self.table.key(row)
        self._set(key, row)
        self.documents[key] = document

    def delete(self, row: R) -> None:
        """Set a row's removal."""
        self._set(self.table.key(row), None)

    def _set(self, key: str, row: R | None) -> None:
        if self._indexes:
            self._reindex(key, self.rows.get(key), row)
        self.rows[key] = row

    def over(self, committed: Iterable[R], path: str, value: str, limit: int | None) -> list[R]:
        """The matches as this change sees them, in the table's order.

        `committed` are matches of the committed rows, in order; with a limit, at least `limit` more than are staged.
        """
        table = self.table
        found = [row for row in committed if table.key(row) not in self.rows]
        mine = [row for key in self._index(path).get(value, ()) if (row := self.rows[key]) is not None]
        if mine:
            found.extend(mine)
            found.sort(key=lambda row: (order_of(table, row), table.key(row)))
        return found if limit is None else found[:limit]

    def _index(self, path: str) -> dict[str, dict[str, None]]:
        index = self._indexes.get(path)
        if index is None:
            column = self.table.columns[path]
            index = self._indexes[path] = {}
            for key, row in self.rows.items():
                if row is not None and (value := column(row)) is not None:
                    index.setdefault(value, {})[key] = None
        return index

    def _reindex(self, key: str, before: R | None, after: R | None) -> None:
        for path, index in self._indexes.items():
            column = self.table.columns[path]
            old = None if before is None else column(before)
            new = None if after is None else column(after)
            if old == new:
                continue
            if old is not None:
                del index[old][key]
            if new is not None:
                index.setdefault(new, {})[key] = None
