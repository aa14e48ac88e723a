"""Rows in plain dictionaries: for tests and rehearsals. Nothing outlives the process."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar, cast
from urllib.parse import parse_qs, urlsplit

import msgspec
from msgspec import Struct

from signoff.errors import ConfigError, StoreError, StoreUnavailable
from signoff.model import ApprovalRequest, Change, Event, replace
from signoff.ports import Clock, Tx
from signoff.rows import TABLES, Table, request_key, table_of
from signoff.stores.feed import Feed
from signoff.stores.packing import due_of, instant, order_of, pack, require_column, unknown_place, urgency_of
from signoff.stores.staged import Staged

R = TypeVar("R", bound=Struct)
T = TypeVar("T")
Place = tuple[float, str]
"""A row's order and key."""


class _Rows(Generic[R]):
    """One table's committed rows with their indexes, each a sorted list of places."""

    def __init__(self, table: Table[R]) -> None:
        self.table = table
        self.rows: dict[str, R] = {}
        self.columns: dict[tuple[str, str], list[Place]] = {}
        self.due: dict[int, list[Place]] = {}
        self._decode = cast("Callable[[bytes], R]", msgspec.json.Decoder(table.row).decode)

    def found(self, path: str, value: str) -> list[R]:
        return [self.rows[key] for _, key in self.columns.get((path, value), ())]

    def set(self, key: str, document: bytes | None) -> None:
        """Give `key` a row, or remove it. What is kept is what reads back from JSON, as with every engine."""
        before = self.rows.pop(key, None)
        if before is not None:
            self._index(key, before, _remove)
        if document is not None:
            self.rows[key] = kept = self._decode(document)
            self._index(key, kept, insort)

    def _index(self, key: str, row: R, change: Callable[[list[Any], Any], None]) -> None:
        place = (order_of(self.table, row), key)
        for path, column in self.table.columns.items():
            if (value := column(row)) is not None:
                change(self.columns.setdefault((path, value), []), place)
        if (due := due_of(self.table, row)) is not None:
            change(self.due.setdefault(urgency_of(self.table, row), []), (due, key))


def _remove(places: list[Place], place: Place) -> None:
    del places[bisect_left(places, place)]


class _MemoryTx:
    """One run of a change over the committed rows."""

    def __init__(self, store: MemoryStore, now: datetime) -> None:
        self._store = store
        self._over = False
        self.now = now
        self.staged: dict[str, Staged[Any]] = {}
        self.events: list[Event] = []

    def get(self, row: type[R], key: str) -> R | None:
        self._check()
        table = table_of(row)
        staged = self.staged.get(table.name)
        if staged is not None and key in staged.rows:
            return cast("R | None", staged.rows[key])
        return self._store.rows(table).rows.get(key)

    def find(self, row: type[R], path: str, value: str, *, limit: int | None = None) -> list[R]:
        self._check()
        table = table_of(row)
        require_column(table, path)
        found = self._store.rows(table).found(path, value)
        staged = self.staged.get(table.name)
        return found[:limit] if staged is None else staged.over(found, path, value, limit)

    def put(self, row: Struct) -> None:
        self._check()
        self._of(table_of(type(row))).put(row)

    def delete(self, row: Struct) -> None:
        self._check()
        self._of(table_of(type(row))).delete(row)

    def emit(self, event: Event) -> None:
        self._check()
        pack(event)
        self.events.append(event)

    def end(self) -> None:
        """No further use: a change that kept the transaction must not write into the next one."""
        self._over = True

    def _of(self, table: Table[Any]) -> Staged[Any]:
        staged = self.staged.get(table.name)
        if staged is None:
            staged = self.staged[table.name] = Staged(table)
        return staged

    def _check(self) -> None:
        if self._over:
            raise StoreError("this transaction is over; a change must not keep it")


class MemoryStore:
    """The `Store` port over dictionaries.

    `replay` runs every change that many times, each on a fresh transaction, and keeps the last: a change that is not
    pure shows itself.
    """

    shared = False

    def __init__(self, clock: Clock, *, replay: int = 1) -> None:
        if replay < 1:
            raise ValueError("a change runs at least once")
        self._clock = clock
        self._replay = replay
        self._tables: dict[str, _Rows[Any]] = {table.name: _Rows(table) for table in TABLES}
        self._events: dict[str, list[Event]] = {}
        self._feed = Feed()
        self._closed = False

    def rows(self, table: Table[R]) -> _Rows[R]:
        """The committed rows of a table."""
        return self._tables[table.name]

    async def transact(self, change: Callable[[Tx], T], *, bulk: bool = False) -> T:
        """Run `change` and commit. There is no await in it, so nothing comes between."""
        self._check()
        now = self._clock.now()
        for _ in range(self._replay):
            tx = _MemoryTx(self, now)
            try:
                value = change(tx)
            finally:
                tx.end()
        self._check_unique(tx)
        changes = self._commit(tx)
        self._feed.publish(changes)
        return value

    async def get(self, row: type[R], key: str) -> R | None:
        """The committed row, or None."""
        self._check()
        return self.rows(table_of(row)).rows.get(key)

    async def find(
        self, row: type[R], path: str, value: str, *, limit: int | None = None, after: str | None = None
    ) -> list[R]:
        """Committed rows by an indexed column."""
        self._check()
        table = table_of(row)
        require_column(table, path)
        rows = self.rows(table)
        places = rows.columns.get((path, value), [])
        start = 0
        if after is not None:
            if (last := rows.rows.get(after)) is None:
                raise unknown_place(table)
            start = bisect_right(places, (order_of(table, last), after))
        stop = None if limit is None else start + limit
        return [rows.rows[key] for _, key in places[start:stop]]

    async def due(self, row: type[R], now: datetime, *, limit: int) -> list[R]:
        """Rows whose due time has come, most urgent first, then earliest first."""
        self._check()
        rows = self.rows(table_of(row))
        keys: list[str] = []
        for urgency in sorted(rows.due):
            places = rows.due[urgency]
            ended = bisect_right(places, now.timestamp(), key=lambda place: place[0])
            keys.extend(key for _, key in places[: min(ended, limit - len(keys))])
        return [rows.rows[key] for key in keys]

    async def next_due(self, row: type[Struct]) -> datetime | None:
        """The earliest due time of that table, or None."""
        self._check()
        earliest = [places[0][0] for places in self.rows(table_of(row)).due.values() if places]
        return instant(min(earliest)) if earliest else None

    async def events(self, profile: str, after: int, *, limit: int, session_id: str | None = None) -> list[Event]:
        """Committed events of a profile with `seq > after`."""
        self._check()
        later = self._events.get(profile, [])[max(after, 0) :]
        return [event for event in later if session_id is None or event.session_id == session_id][:limit]

    async def last_seq(self, profile: str) -> int:
        """The highest committed `seq` of a profile."""
        self._check()
        return len(self._events.get(profile, ()))

    def subscribe(self, listener: Callable[[Sequence[Change]], None]) -> Callable[[], None]:
        """Call `listener` with each commit's changes, before `transact` returns."""
        return self._feed.subscribe(listener)

    async def check(self) -> dict[str, Any]:
        """Facts for `health/detailed`."""
        self._check()
        return {"engine": "memory", "rows": {name: len(rows.rows) for name, rows in self._tables.items()}}

    async def aclose(self) -> None:
        """Refuse everything from now on."""
        self._closed = True
        self._feed.clear()

    def _check(self) -> None:
        if self._closed:
            raise StoreUnavailable("the store is closed; nothing was saved")

    def _check_unique(self, tx: _MemoryTx) -> None:
        for staged in tx.staged.values():
            table = staged.table
            for path in table.unique:
                column = table.columns[path]
                for row in staged.rows.values():
                    value = None if row is None else column(row)
                    if value is None:
                        continue
                    if len(staged.over(self.rows(table).found(path, value), path, value, None)) > 1:
                        raise StoreError(f"two {table.name} have the same {path}; nothing was saved")

    def _commit(self, tx: _MemoryTx) -> list[Change]:
        for name, staged in tx.staged.items():
            for key, row in staged.rows.items():
                self._tables[name].set(key, None if row is None else staged.documents[key])
        changes: list[Change] = []
        for event in tx.events:
            log = self._events.setdefault(event.profile, [])
            kept = msgspec.json.decode(pack(replace(event, seq=len(log) + 1)), type=Event)
            log.append(kept)
            request = None
            if kept.request_id is not None:
                request = self.rows(table_of(ApprovalRequest)).rows.get(request_key(kept.profile, kept.request_id))
            changes.append(Change(kept, request))
        return changes


def open_memory(url: str, clock: Clock) -> MemoryStore:
    """Open `memory://`, or `memory://?replay=2` to run every change twice."""
    parts = urlsplit(url)
    options = parse_qs(parts.query, keep_blank_values=True)
    replay = options.pop("replay", ["1"])[-1]
    if options or parts.netloc or parts.path not in ("", "/") or not replay.isdecimal() or int(replay) < 1:
        raise ConfigError(f"gateway.store: {url!r} should be memory:// or memory://?replay=N with N from 1")
    return MemoryStore(clock, replay=int(replay))
