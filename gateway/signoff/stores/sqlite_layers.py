"""What the changes of one group have staged so far, over the committed rows.

A change that raises has its rows taken back, and nothing of it was ever written. The rows of all others are written at
the group's end, each once however often they changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec import Struct

from signoff.errors import StoreError
from signoff.stores.sqlite_ahead import kept_rows
from signoff.stores.sqlite_cache import Cache
from signoff.stores.sqlite_shapes import SHAPES, Shape, decoded
from signoff.stores.sqlite_write import UNKNOWN, Old, Write, write_rows, writing
from signoff.stores.staged import UNSTAGED, Before, Staged

R = TypeVar("R", bound=Struct)
MANY = 2048
"""Rows of one transaction that are not worth going through again for the cache: 3 ms on the event loop."""


class Layers:
    """The rows of one transaction: staged by its changes, and below them committed ones from the cache or the file."""

    __slots__ = ("_cache", "_db", "_none", "_written", "staged")

    def __init__(self, db: sqlite3.Connection, cache: Cache) -> None:
        self._db = db
        self._cache = cache
        self._written: list[tuple[Shape[Any], Staged[Any], list[Write]]] = []
        self._none: set[tuple[str, str, str]] = set()
        """Tables, columns and values by which no row in the file is found."""
        self.staged: dict[type[Struct], Staged[Any]] = {}

    def of(self, row: type[R]) -> Staged[R]:
        """What is staged of that table, to put into."""
        staged = self.staged.get(row)
        if staged is None:
            staged = self.staged[row] = Staged(SHAPES[row].table)
        return staged

    def get(self, row: type[R], key: str) -> R | None:
        """The row as the changes so far left it, or None."""
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
        """The matches as the changes so far left them, in the table's order."""
        staged = self.staged.get(shape.table.row)
        found = self._cache.found(shape, path, value)
        if found is None:
            found = self._look_up(
                shape, path, value, -1 if limit is None else limit + (len(staged.rows) if staged else 0)
            )
        if staged is not None and staged.rows:
            return staged.over(found, path, value, limit)
        return found if limit is None else found[:limit]

    def _look_up(self, shape: Shape[R], path: str, value: str, limit: int) -> list[R]:
        """The matches in the file; a limit of -1 is none."""
        known = (shape.name, path, value)
        if known in self._none:
            return []
        try:
            (whole,) = self._db.execute(shape.find(path), (value, limit)).fetchone()
        except UnicodeEncodeError:  # no stored text holds half a surrogate pair
            return []
        if whole is None:
            if limit != 0:  # asked for no row at all, the file says nothing
                self._none.add(known)
            return []
        rows = kept_rows(self._cache, shape, whole)
        if limit == -1:
            self._cache.remember(shape, path, value, rows)
        return rows

    def check(self, journal: Sequence[Before]) -> None:
        """Raise `StoreError` when a row of the change with this journal takes a unique value that another row holds
        after it."""
        for before in journal:
            table = before.staged.table
            if not table.unique:
                continue
            now = before.staged.columns[before.key]
            for path in table.unique:
                place = table.places[path]
                # What a row has had is taken from it only by a row that is checked itself.
                if now and (value := now[place]) is not None and value != self._had(before, place):
                    self._check_free(SHAPES[table.row], path, value)

    def _had(self, before: Before, place: int) -> str | None:
        """A column of the row before the change, as far as it is known."""
        table = before.staged.table
        if before.row is not UNSTAGED:
            return before.columns[place] if before.columns else None
        kept = self._cache.rows(table.name).get(before.key)
        if kept is None or kept.row is None:
            return None
        if kept.values is not None:
            had: str | None = kept.values[SHAPES[table.row].first + place]
            return had
        return table.values(kept.row)[place]

    def _check_free(self, shape: Shape[Any], path: str, value: str) -> None:
        if len(self.find(shape, path, value, None)) > 1:
            raise StoreError(f"two {shape.name} have the same {path}; nothing was saved")

    def take_back(self, journal: Sequence[Before]) -> None:
        """Undo all that the change with this journal has staged."""
        for before in reversed(journal):
            before.staged.restore(before)

    def write(self) -> None:
        """Write everything, at the group's end."""
        for row_type, staged in self.staged.items():
            shape = SHAPES[row_type]
            writes: list[Write] = []
            for key, row in staged.rows.items():
                old = self._old(shape, key)
                if row is None:
                    writes.append(Write(key, None, None, old, shape.everything))
                    continue
                values = shape.around(row, staged.columns[key])
                writes.append(writing(shape, key, staged.documents[key], values, old))
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
