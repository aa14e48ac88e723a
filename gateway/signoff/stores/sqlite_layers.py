"""What the changes of one group have staged so far: over the committed rows, under the change that runs.

A change that raises leaves no trace here, and its rows were never written. The rows of all others are written at the
group's end, each once however often they changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec import Struct

from signoff.errors import StoreError
from signoff.stores.sqlite_ahead import kept_rows
from signoff.stores.sqlite_cache import Cache
from signoff.stores.sqlite_shapes import SHAPES, Shape, decoded
from signoff.stores.sqlite_write import UNKNOWN, Old, Write, write_rows
from signoff.stores.staged import Staged

R = TypeVar("R", bound=Struct)
MANY = 2048
"""Rows of one transaction that are not worth going through again for the cache: 3 ms on the event loop."""
Tables = Mapping[type[Struct], Staged[Any]]


class Layers:
    """The rows of one transaction: staged by its changes, and below them committed ones from the cache or the file."""

    __slots__ = ("_cache", "_db", "_free", "_written", "staged")

    def __init__(self, db: sqlite3.Connection, cache: Cache) -> None:
        self._db = db
        self._cache = cache
        self._written: list[tuple[Shape[Any], Staged[Any], list[Write]]] = []
        self._free: set[tuple[str, str]] = set()
        """Unique columns and values that no row in the file has."""
        self.staged: dict[type[Struct], Staged[Any]] = {}

    def get(self, row: type[R], key: str) -> R | None:
        """The row as the changes before left it, or None."""
        staged = self.staged.get(row)
        if staged is not None and key in staged.rows:
            found: R | None = staged.rows[key]
            return found
        return self.committed(SHAPES[row], key)

    def committed(self, shape: Shape[R], key: str) -> R | None:
        """The row as the transaction found it."""
        kept = self._cache.rows(shape.name).get(key)
        if kept is not None:
            row: R | None = kept.row
            return row
        try:
            found = self._db.execute(shape.select, (key,)).fetchone()
        except UnicodeEncodeError:  # no key holds half a surrogate pair
            return None
        if found is None:
            self._cache.keep(shape.name, key, None, len(key))
            return None
        row = decoded(shape.decode, found[0], shape.name)
        self._cache.keep(shape.name, key, row, len(found[0]))
        return row

    def find(self, shape: Shape[R], path: str, value: str, limit: int | None) -> list[R]:
        """The matches as the changes before left them; with a limit, at least as many."""
        staged = self.staged.get(shape.table.row)
        found = self._cache.found(shape, path, value)
        if found is None and (path, value) in self._free:
            found = []
        if found is None:
            found = self._look_up(
                shape, path, value, -1 if limit is None else limit + (len(staged.rows) if staged else 0)
            )
        return found if staged is None else staged.over(found, path, value, None)

    def _look_up(self, shape: Shape[R], path: str, value: str, limit: int) -> list[R]:
        """The matches in the file; a limit of -1 is none."""
        try:
            (whole,) = self._db.execute(shape.find(path), (value, limit)).fetchone()
        except UnicodeEncodeError:  # no stored text holds half a surrogate pair
            return []
        if whole is None:
            if path in shape.table.unique and limit != 0:  # asked for no row at all, the file says nothing
                self._free.add((path, value))
            return []
        rows = kept_rows(self._cache, shape, whole)
        if limit == -1:
            self._cache.remember(shape, path, value, rows)
        return rows

    def check(self, tables: Tables) -> None:
        """Raise `StoreError` when a row of this change takes a unique value that another row holds after it."""
        for row_type, staged in tables.items():
            table = SHAPES[row_type].table
            for path in table.unique:
                place = table.places[path]
                for key, row in staged.rows.items():
                    value = None if row is None else table.values(row)[place]
                    # What a row has had is taken from it only by a row that is checked itself.
                    if value is not None and value != self._had(row_type, key, path):
                        self._check_free(staged, path, value)

    def _had(self, row_type: type[Struct], key: str, path: str) -> str | None:
        """The row's column below the running change, as far as it is known."""
        shape = SHAPES[row_type]
        staged = self.staged.get(row_type)
        if staged is not None and key in staged.rows:
            row = staged.rows[key]
        else:
            kept = self._cache.rows(shape.name).get(key)
            if kept is not None and kept.values is not None:
                had: str | None = kept.values[shape.places[path]]
                return had
            row = None if kept is None else kept.row
        return None if row is None else shape.table.columns[path](row)

    def _check_free(self, staged: Staged[Any], path: str, value: str) -> None:
        shape = SHAPES[staged.table.row]
        if len(staged.over(self.find(shape, path, value, None), path, value, None)) > 1:
            raise StoreError(f"two {shape.name} have the same {path}; nothing was saved")

    def merge(self, tables: Tables) -> None:
        """Take over what a change has staged; the change is over."""
        for row_type, staged in tables.items():
            mine = self.staged.get(row_type)
            if mine is None:
                self.staged[row_type] = staged
            else:
                mine.take_over(staged)

    def write(self) -> None:
        """Write everything, at the group's end."""
        for row_type, staged in self.staged.items():
            shape = SHAPES[row_type]
            writes: list[Write] = []
            for key, row in staged.rows.items():
                old = self._old(shape, key)
                if row is None:
                    writes.append(Write(key, None, None, old))
                else:
                    writes.append(Write(key, staged.documents[key], shape.values(row), old))
            write_rows(self._db, shape, writes)
            self._written.append((shape, staged, writes))

    def _old(self, shape: Shape[Any], key: str) -> Old:
        """The columns as they stand in the file."""
        rows = self._cache.rows(shape.name)
        if key not in rows:
            if not shape.unique:
                return UNKNOWN
            self.committed(shape, key)
        kept = rows[key]
        return None if kept.row is None else kept.values or shape.values(kept.row)

    def settle(self) -> None:
        """The transaction is durable."""
        if sum(len(writes) for _, _, writes in self._written) > MANY:
            self._cache.clear()
            return
        try:
            for shape, staged, writes in self._written:
                self._cache.apply(shape, staged.rows, writes)
        except BaseException:  # half of it would be stale for ever
            self._cache.clear()
            raise
