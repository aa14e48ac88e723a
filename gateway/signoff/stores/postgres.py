"""A PostgreSQL database, which several processes and machines may share. Durable at every commit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from msgspec import Struct

from signoff.clock import SystemClock
from signoff.errors import StoreError, StoreUnavailable
from signoff.model import Change, Event, Note
from signoff.ports import Clock, Tx
from signoff.stores.packing import decode_event, instant, require_column, unknown_place
from signoff.stores.postgres_feed import PostgresFeed
from signoff.stores.postgres_lines import Lines
from signoff.stores.postgres_migrate import prepare
from signoff.stores.postgres_place import Place
from signoff.stores.postgres_shapes import SHAPES, Shape, can_be_kept, kept_value
from signoff.stores.postgres_writer import Writer

log = logging.getLogger("signoff.store")

R = TypeVar("R", bound=Struct)
T = TypeVar("T")

MOST_AHEAD_S = 5.0
"""The gateway looks for what is due by its own clock and the database decides by its: between two clocks further apart
it would ask in vain over and over, and cards would tell wrong times."""
MOST_AHEAD = timedelta(seconds=MOST_AHEAD_S)
INLINE_ROWS = 64
"""Up to so many rows are decoded on the event loop: about 0.5 ms."""

_EVENTS = "SELECT event FROM signoff.events WHERE profile = %s::text AND seq > %s::int8{} ORDER BY seq LIMIT %s::int8"
_ALL_EVENTS = _EVENTS.format("")
_SESSION_EVENTS = _EVENTS.format(" AND session = %s::text")
_LAST_SEQ = "SELECT max(seq) FROM signoff.events WHERE profile = %s::text"
_FACTS = (
    "SELECT clock_timestamp(), pg_database_size(current_database()), pg_is_in_recovery(),"
    " ARRAY(SELECT t FROM unnest(%s::text[]) AS t WHERE to_regclass('signoff.' || t) IS NULL)"
)
_NAMES = ["about", "events", "head", *(shape.name for shape in SHAPES.values())]


class PostgresStore:
    """The `Store` port over one database. Use `open_postgres`."""

    shared = True
    """Several gateways may serve the database."""

    def __init__(self, url: str, clock: Clock) -> None:
        """Beside the system's clock the database's own time decides, else `clock`. Raises `ConfigError` and
        `StoreError`."""
        self.place = Place(url)
        self._opened = prepare(self.place)
        self._clock = clock
        self._decides = not isinstance(clock, SystemClock)
        self._ahead = timedelta(0)
        """How far the database's time is ahead of ours, as far as it decides."""
        if not self._decides and abs(self._opened.ahead_s) > MOST_AHEAD_S:
            raise StoreError(
                f"{self.place.shown}: the clock of the server and the clock of this machine differ by"
                f" {abs(self._opened.ahead_s):.1f} s. Set both by NTP."
            )
        self._lines = Lines(self.place)
        self._feed = PostgresFeed(self.place, self._lines, self._opened.pos)
        self._writer = Writer(self.place, clock if self._decides else None, self._feed, self._opened.schema)
        self._decoding = ThreadPoolExecutor(1, "signoff-store-reader")
        self._closing: asyncio.Task[None] | None = None

    async def transact(self, change: Callable[[Tx], T], *, bulk: bool = False) -> T:
        """Run `change` and commit; return its value once the server has it on its disk."""
        self._check()
        return cast("T", await self._writer.run(change, bulk=bulk))

    async def get(self, row: type[R], key: str) -> R | None:
        """The committed row, or None."""
        self._check()
        if not can_be_kept(key):
            return None
        shape: Shape[R] = SHAPES[row]
        found = await self._ask(shape.rows, [key])
        return shape.read(found[0][1]) if found else None

    async def find(
        self, row: type[R], path: str, value: str, *, limit: int | None = None, after: str | None = None
    ) -> list[R]:
        """Committed rows by an indexed column."""
        self._check()
        shape: Shape[R] = SHAPES[row]
        require_column(shape.table, path)
        if not can_be_kept(value):
            return []
        if after is None:
            return await self._rows(shape, shape.page(path, after=False), kept_value(value), limit)
        place = await self._ask(shape.place, after) if can_be_kept(after) else []
        if not place:
            raise unknown_place(shape.table)
        return await self._rows(shape, shape.page(path, after=True), kept_value(value), place[0][0], after, limit)

    async def due(self, row: type[R], now: datetime, *, limit: int) -> list[R]:
        """Rows whose due time has come, most urgent first, then earliest first."""
        self._check()
        shape: Shape[R] = SHAPES[row]
        until = (now + self._ahead).timestamp()
        return await self._rows(shape, shape.due, until, limit) if shape.table.due else []

    async def next_due(self, row: type[Struct]) -> datetime | None:
        """The earliest due time of that table, or None."""
        self._check()
        shape: Shape[Any] = SHAPES[row]
        if not shape.table.due:
            return None
        earliest = (await self._ask(shape.next_due))[0][0]
        return None if earliest is None else instant(earliest) - self._ahead

    async def events(self, profile: str, after: int, *, limit: int, session_id: str | None = None) -> list[Event]:
        """Committed events of a profile with `seq > after`."""
        self._check()
        if not can_be_kept(profile) or not can_be_kept(session_id or ""):
            return []
        if session_id is None:
            rows = await self._ask(_ALL_EVENTS, profile, after, limit)
        else:
            rows = await self._ask(_SESSION_EVENTS, profile, after, session_id, limit)
        return await self._decoded(rows, decode_event)

    async def last_seq(self, profile: str) -> int:
        """The highest committed `seq` of a profile."""
        self._check()
        return (await self._ask(_LAST_SEQ, profile))[0][0] or 0 if can_be_kept(profile) else 0

    def subscribe(self, listener: Callable[[Sequence[Change]], None]) -> Callable[[], None]:
        """Call `listener` with each commit's changes, before `transact` returns to its caller.

        The first listener is also told of what other processes committed since the store was opened. The request
        beside an event of this process is as its change left it; beside another process's event it is as it was when
        the event was read, which may be newer.
        """
        self._check()
        return self._feed.subscribe(listener)

    async def check(self) -> dict[str, Any]:
        """Facts for `health/detailed`. After a failed commit it tries one more, so that it tells the present."""
        self._check()
        now, size, standby, missing = (await self._ask(_FACTS, _NAMES))[0]
        self._compare(now)
        if standby:
            raise StoreUnavailable(f"{self.place.shown} is a standby. Point gateway.store at the primary.")
        if missing:
            gone = ", ".join(missing)
            raise StoreUnavailable(f"{self.place.shown}: of the schema signoff are gone: {gone}. Restore a backup.")
        if self._writer.failure is not None:
            probe = Note(name="store.probe", value="1")
            await self.transact(lambda tx: tx.put(probe))
            await self.transact(lambda tx: tx.delete(probe))
        return {
            "engine": "postgresql",
            "server": self._opened.server,
            "schema": self._opened.schema,
            "queued": self._writer.queued,
            "listening": self._feed.live,
            "database_bytes": size,
            "clock_ahead_s": round((now - self._clock.now()).total_seconds(), 3),
        }

    def _compare(self, theirs: datetime) -> None:
        """Look for what is due by the database's time from now on, however ours may have drifted since the start."""
        if self._decides:
            return
        before, self._ahead = self._ahead, theirs - self._clock.now()
        if abs(self._ahead) > MOST_AHEAD >= abs(before):
            log.warning("store.clocks_differ: the database's is ahead by %.1f s", self._ahead.total_seconds())

    async def aclose(self) -> None:
        """Finish what is queued and what is being read, then close."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._writer.close()
        await self._feed.close()
        await self._lines.close()
        self._decoding.shutdown()

    async def _ask(self, sql: str, *values: Any) -> list[Any]:
        rows: list[Any] = (await self._lines.ask([(sql, values)]))[0]
        return rows

    async def _rows(self, shape: Shape[R], sql: str, *values: Any) -> list[R]:
        return await self._decoded(await self._ask(sql, *values), shape.read)

    async def _decoded(self, rows: list[Any], decode: Callable[[bytes], T]) -> list[T]:
        """What the first column of the rows says; much of it is decoded in a thread."""
        if len(rows) <= INLINE_ROWS:
            return [decode(row[0]) for row in rows]
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._decoding, lambda: [decode(row[0]) for row in rows])

    def _check(self) -> None:
        if self._closing is not None:
            raise StoreUnavailable(f"{self.place.shown}: the store is closed; nothing was saved")


def open_postgres(url: str, clock: Clock) -> PostgresStore:
    """Open `postgresql://user:password@host:5432/database`; call it inside the event loop that will use the store.

    The time of a change is the database's, so that one clock decides for every gateway on it; a clock other than the
    system's, as tests have, decides instead. Raises `StoreUnavailable`, `StoreCorrupt`, `StoreTooNew`, `StoreError`,
    each in one line with the mend, and `ConfigError`.
    """
    return PostgresStore(url, clock)


open_postgres.shared = True  # type: ignore[attr-defined]  # `stores.open` reads it without opening
