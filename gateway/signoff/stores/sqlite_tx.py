"""One change's transaction on the writing connection: reads through it, stages, and writes at its end."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar, cast

from msgspec import Struct

from signoff.errors import StoreError
from signoff.model import ApprovalRequest, Change, Event, replace
from signoff.rows import request_key
from signoff.stores.packing import pack, require_column
from signoff.stores.sqlite_ahead import FROM_ROWS, ReadAhead
from signoff.stores.sqlite_shapes import SHAPES, Shape, decoded
from signoff.stores.sqlite_write import Write, write_rows
from signoff.stores.staged import Staged

R = TypeVar("R", bound=Struct)

_UNREAD: Any = object()

EventRow = tuple[int, str, int, str | None, bytes]
"""pos, profile, seq, session, event: a row of the event log."""


class SqliteTx:
    """The `Tx` port. Nothing is written before `finish`, so a change that raises has nothing to take back."""

    __slots__ = ("_ahead", "_db", "_events", "_over", "_read", "_staged", "now")

    def __init__(self, db: sqlite3.Connection, now: datetime, *, bulk: bool = False) -> None:
        self.now = now
        self._db = db
        self._ahead = ReadAhead(db) if bulk else None
        self._over = False
        self._read: dict[tuple[str, str], Any] = {}
        self._staged: dict[str, tuple[Shape[Any], Staged[Any]]] = {}
        self._events: list[Event] = []

    def get(self, row: type[R], key: str) -> R | None:
        """The row as this change sees it, or None."""
        if self._over:
            raise _ended()
        shape: Shape[R] = SHAPES[row]
        staged = self._staged.get(shape.name)
        if staged is not None and (found := staged[1].rows.get(key, _UNREAD)) is not _UNREAD:
            return cast("R | None", found)
        return self._committed(shape, key)

    def find(self, row: type[R], path: str, value: str, *, limit: int | None = None) -> list[R]:
        """The rows as this change sees them, in the table's order."""
        if self._over:
            raise _ended()
        shape: Shape[R] = SHAPES[row]
        require_column(shape.table, path)
        pair = self._staged.get(shape.name)
        staged = pair[1] if pair else None
        found = None if self._ahead is None else self._ahead.found(shape.name, path, value)
        if found is None:
            found = self._look_up(
                shape, path, value, -1 if limit is None else limit + (len(staged.rows) if staged else 0)
            )
        return found[:limit] if staged is None else staged.over(found, path, value, limit)

    def put(self, row: Struct) -> None:
        """Stage a row."""
        self._of(type(row)).put(row)

    def delete(self, row: Struct) -> None:
        """Stage a removal."""
        self._of(type(row)).delete(row)

    def emit(self, event: Event) -> None:
        """Stage an event."""
        if self._over:
            raise _ended()
        self._events.append(event)

    @property
    def wrote(self) -> bool:
        """Something of it has to be made durable."""
        return bool(self._staged or self._events)

    def end(self) -> None:
        """No further use: a change that kept the transaction must not write into the next one."""
        self._over = True

    def finish(self, number: Callable[[str], tuple[int, int]]) -> tuple[list[EventRow], list[Change]]:
        """Write the rows; returns the event rows, still to be written, and what the feed will tell.

        `number` gives a profile's next event its `pos` and `seq`. Raises `sqlite3.IntegrityError` for a value of a
        unique column that another row holds; what this change wrote is then taken back.
        """
        log: list[EventRow] = []
        changes: list[Change] = []
        for event in self._events:
            pos, seq = number(event.profile)
            numbered = replace(event, seq=seq)
            log.append((pos, event.profile, seq, event.session_id, pack(numbered)))
            request = None
            if event.request_id is not None:
                request = self.get(ApprovalRequest, request_key(event.profile, event.request_id))
            changes.append(Change(numbered, request))
        if self._staged:
            self._write()
        return log, changes

    def _write(self) -> None:
        batches = [
            (shape, writes) for shape, staged in self._staged.values() if (writes := self._writes(shape, staged))
        ]
        self._db.execute("SAVEPOINT change")
        try:
            for shape, writes in batches:
                write_rows(self._db, shape, writes)
        except sqlite3.IntegrityError:
            self._db.execute("ROLLBACK TO change")
            raise
        finally:
            if self._db.in_transaction:
                self._db.execute("RELEASE change")

    def _writes(self, shape: Shape[R], staged: Staged[R]) -> list[Write]:
        writes: list[Write] = []
        for key, row in staged.rows.items():
            before = self._read.get((shape.name, key), _UNREAD)
            if before is _UNREAD and shape.table.unique:
                before = self._committed(shape, key)
            old = None if before is _UNREAD or before is None else shape.values(before)
            if row is not None:
                writes.append(Write(key, staged.documents[key], shape.values(row), old))
            elif before is not None:
                writes.append(Write(key, None, None, old))
        return writes

    def _committed(self, shape: Shape[R], key: str) -> R | None:
        """The row as the transaction found it."""
        place = (shape.name, key)
        row = self._read.get(place, _UNREAD)
        if row is _UNREAD:
            try:
                found = self._db.execute(shape.select, (key,)).fetchone()
            except UnicodeEncodeError:  # no key holds half a surrogate pair
                return None
            row = self._read[place] = None if found is None else decoded(shape.decode, found[0], shape.name)
        return cast("R | None", row)

    def _look_up(self, shape: Shape[R], path: str, value: str, limit: int) -> list[R]:
        """The matches that the transaction found; a limit of -1 is none."""
        try:
            (whole,) = self._db.execute(shape.find(path), (value, limit)).fetchone()
        except UnicodeEncodeError:  # no stored text holds half a surrogate pair
            return []
        if whole is None:
            return []
        rows = decoded(shape.decode_list, whole, shape.name)
        key_of = shape.table.key
        for row in rows:
            self._read.setdefault((shape.name, key_of(row)), row)
        if self._ahead is not None and len(rows) >= FROM_ROWS:
            self._ahead.follow(shape, rows, self._read)
        return rows

    def _of(self, row: type[Struct]) -> Staged[Any]:
        if self._over:
            raise _ended()
        shape = SHAPES[row]
        pair = self._staged.get(shape.name)
        if pair is None:
            pair = self._staged[shape.name] = (shape, Staged(shape.table))
        return pair[1]


def _ended() -> StoreError:
    return StoreError("this transaction is over; a change must not keep it")
