"""Committed rows, read beside the writer: small answers on the event loop, long lists in a thread."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from signoff.model import ApprovalRequest, Change, Event
from signoff.rows import request_key
from signoff.stores.packing import decode_event, decode_events, instant, require_column, unknown_place
from signoff.stores.sqlite_errors import explain
from signoff.stores.sqlite_shapes import SHAPES, Shape, decoded

R = TypeVar("R", bound=Struct)
T = TypeVar("T")

INLINE_ROWS = 32
"""Up to so many rows are read on the event loop: about 0.2 ms."""

_EVENTS = (
    "SELECT CAST('[' || group_concat(event, ',') || ']' AS BLOB) FROM"
    " (SELECT event FROM events WHERE profile = ? AND seq > ?{} ORDER BY seq LIMIT ?)"
)
_ALL_EVENTS = _EVENTS.format("")
_SESSION_EVENTS = _EVENTS.format(" AND session = ?")
_LAST_SEQ = "SELECT max(seq) FROM events WHERE profile = ?"
_LAST_POS = "SELECT seq FROM sqlite_sequence WHERE name = 'events'"
_LOG = "SELECT pos, event FROM events WHERE pos > ? AND pos < ? ORDER BY pos LIMIT ?"


class Reads:
    """Two read-only connections. `near` belongs to the loop, `far` to the reader thread."""

    def __init__(self, near: sqlite3.Connection, far: sqlite3.Connection, path: Path) -> None:
        self._near = near
        self._far = far
        self._path = path
        self._thread = ThreadPoolExecutor(1, "signoff-store-reader")

    def get(self, row: type[R], key: str) -> R | None:
        """The committed row, or None."""
        shape: Shape[R] = SHAPES[row]
        found = self._one(self._near, shape.select, key)
        return None if found is None else decoded(shape.decode, found, shape.name)

    async def find(self, row: type[R], path: str, value: str, *, limit: int | None, after: str | None) -> list[R]:
        """Committed rows by an indexed column, in the table's order."""
        shape: Shape[R] = SHAPES[row]
        require_column(shape.table, path)
        place: tuple[Any, ...] = ()
        if after is not None:
            order = self._one(self._near, shape.place, after)
            if order is None:
                raise unknown_place(shape.table)
            place = (order, after)
        sql = shape.find(path, after=after is not None)
        if limit is None:
            # Most look-ups have few answers; only one that has more is asked again, as a whole, in the thread.
            rows = self._rows(self._near, shape, sql, value, *place, INLINE_ROWS + 1)
            if len(rows) <= INLINE_ROWS:
                return rows
            return await self._far_away(lambda db: self._rows(db, shape, sql, value, *place, -1))
        if limit <= INLINE_ROWS:
            return self._rows(self._near, shape, sql, value, *place, limit)
        return await self._far_away(lambda db: self._rows(db, shape, sql, value, *place, limit))

    async def due(self, row: type[R], now: datetime, *, limit: int) -> list[R]:
        """Rows whose due time has come."""
        shape: Shape[R] = SHAPES[row]
        # Mostly few are due; only where there are more, they are read in the thread.
        rows = self._due(self._near, shape, now, min(limit, INLINE_ROWS))
        if limit <= INLINE_ROWS or len(rows) < INLINE_ROWS:
            return rows
        return await self._far_away(lambda db: self._due(db, shape, now, limit))

    def next_due(self, row: type[Struct]) -> datetime | None:
        """The earliest due time, or None."""
        shape: Shape[Any] = SHAPES[row]
        if not shape.table.due:
            return None
        if not shape.table.urgency:
            earliest = self._one(self._near, shape.first_due)
        else:
            times = [self._one(self._near, shape.first_due, urgency) for urgency in self._urgencies(self._near, shape)]
            # A commit between two of these reads may have settled the last row of an urgency.
            earliest = min((time for time in times if time is not None), default=None)
        return None if earliest is None else instant(earliest)

    async def events(self, profile: str, after: int, *, limit: int, session_id: str | None) -> list[Event]:
        """Events of a profile with `seq > after`."""
        sql, values = (_ALL_EVENTS, ()) if session_id is None else (_SESSION_EVENTS, (session_id,))

        def read(db: sqlite3.Connection) -> list[Event]:
            whole = self._one(db, sql, profile, after, *values, limit)
            return [] if whole is None else decoded(decode_events, whole, "events")

        return read(self._near) if limit <= INLINE_ROWS else await self._far_away(read)

    def last_seq(self, profile: str) -> int:
        """The highest `seq` of a profile, 0 before the first."""
        return self._one(self._near, _LAST_SEQ, profile) or 0

    # --- the log of all profiles, for the feed ---

    def version(self) -> int:
        """A number that changes with every commit of another connection or process."""
        version: int = self._one(self._near, "PRAGMA data_version")
        return version

    def last_pos(self) -> int:
        """The highest `pos` in the log, 0 before the first."""
        return self._one(self._near, _LAST_POS) or 0

    def log(self, after: int, before: int, *, limit: int) -> list[tuple[int, Change]]:
        """Events with `after < pos < before` and their places, each with its request as it is now."""
        try:
            rows = self._near.execute(_LOG, (after, before, limit)).fetchall()
        except sqlite3.Error as error:
            raise explain(error, self._path) from error
        found: list[tuple[int, Change]] = []
        for pos, document in rows:
            event = decoded(decode_event, document, "events")
            request = None
            if event.request_id is not None:
                request = self.get(ApprovalRequest, request_key(event.profile, event.request_id))
            found.append((pos, Change(event, request)))
        return found

    async def close(self) -> None:
        """Finish what the thread is reading, then close both."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._far.close)
        self._thread.shutdown()
        self._near.close()

    def _due(self, db: sqlite3.Connection, shape: Shape[R], now: datetime, limit: int) -> list[R]:
        if not shape.table.due:
            return []
        when = now.timestamp()
        if not shape.table.urgency:
            return self._rows(db, shape, shape.due, when, limit)
        rows: list[R] = []
        for urgency in self._urgencies(db, shape):
            if len(rows) < limit:
                rows.extend(self._rows(db, shape, shape.due, urgency, when, limit - len(rows)))
        return rows

    def _urgencies(self, db: sqlite3.Connection, shape: Shape[Any]) -> list[int]:
        """The urgencies there are, by a seek each: there are four, and an index scan would pass every due row."""
        found: list[int] = []
        urgency = self._one(db, shape.next_urgency, -1)
        while urgency is not None:
            found.append(urgency)
            urgency = self._one(db, shape.next_urgency, urgency)
        return found

    def _rows(self, db: sqlite3.Connection, shape: Shape[R], sql: str, *values: Any) -> list[R]:
        whole = self._one(db, sql, *values)
        return [] if whole is None else decoded(shape.decode_list, whole, shape.name)

    def _one(self, db: sqlite3.Connection, sql: str, *values: Any) -> Any:
        """The first column of the first row, or None."""
        try:
            found = db.execute(sql, values).fetchone()
        except UnicodeEncodeError:  # no stored text holds half a surrogate pair
            return None
        except sqlite3.Error as error:
            raise explain(error, self._path) from error
        return None if found is None else found[0]

    async def _far_away(self, read: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, read, self._far)
