"""One file on this machine: the default store. Durable at every commit, shared safely with other processes."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote

from msgspec import Struct

from signoff.errors import StoreCorrupt, StoreError, StoreUnavailable
from signoff.model import Change, Event, Note
from signoff.ports import Clock, Tx
from signoff.stores.feed import Feed
from signoff.stores.migrate import identify, migrate
from signoff.stores.sqlite_errors import explain, is_locked
from signoff.stores.sqlite_place import Anchor, make_folder, sqlite_path
from signoff.stores.sqlite_reads import Reads
from signoff.stores.sqlite_writer import Writer

log = logging.getLogger("signoff.store")

R = TypeVar("R", bound=Struct)
T = TypeVar("T")

POLL_S = 0.15
"""How often another process's commits are looked for, while somebody listens: one read of a shared counter."""
_ANCHOR_S = 1.0
"""How often it is looked whether the file is still there; a look at each commit would cost every one a system call."""
_PAGE = 256
"""Events of other processes read at a time."""
_PROBE_BYTES = 64 * 1024
"""What `check` writes after a failure: as much as a long request, since a nearly full disk still takes a short one."""
_OPEN_WAIT_S = 5.0
"""How long opening waits for another process that is opening or migrating the same file."""
_NEAR_WAIT_S = 0.25
"""How long a read on the loop waits for a lock, which readers meet only while a crashed file is recovered."""
_CHECKPOINT_PAGES = 4096
"""The write-ahead log is written back into the file once it has so many pages (16 MiB). SQLite's 1,000 write hot pages
back four times as often, at half the throughput of a busy minute."""
_WAL_KEPT_BYTES = 32 * 1024 * 1024
"""A log that grew beyond this behind a long read is cut back."""
_CACHE_KIB = 16 * 1024
"""Pages of the file that the writer keeps; each reader a quarter. The operating system has the file in memory as well,
and hands a page over in a microsecond: four times as much saves four of 28 such pages for a tap among 20,000 pending,
nothing elsewhere, and takes 48 MB."""


class SqliteStore:
    """The `Store` port over one SQLite file. Use `open_sqlite`."""

    shared = False

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._db = _open_for_writing(path)
        self._anchor = Anchor(path)
        self._anchor_seen = time.monotonic()
        self._lost: StoreUnavailable | None = None
        near: sqlite3.Connection | None = None
        try:
            with _explained(path):
                self._schema = migrate(self._db, path)
                self._db.execute("PRAGMA busy_timeout = 0")  # from here on it is used on the loop, which must not wait
                near = _open_for_reading(path, _NEAR_WAIT_S)
                far = _open_for_reading(path, _OPEN_WAIT_S)
        except BaseException:
            if near is not None:
                near.close()
            self._db.close()
            raise
        self._reads = Reads(near, far, path)
        self._writer = Writer(self._db, path, clock, self._committed)
        self._clock = clock
        self._feed = Feed()
        self._heard = 0
        """The `pos` up to which the feed has told everything."""
        self._version = -1
        self._poll: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    async def transact(self, change: Callable[[Tx], T], *, bulk: bool = False) -> T:
        """Run `change` and commit; return its value once it is on the disk."""
        self._check()
        if self._lost is not None:
            raise StoreUnavailable(self._lost.message, **self._lost.facts)
        return cast("T", await self._writer.run(change, bulk=bulk))

    async def get(self, row: type[R], key: str) -> R | None:
        """The committed row, or None."""
        self._check()
        return self._reads.get(row, key)

    async def find(
        self, row: type[R], path: str, value: str, *, limit: int | None = None, after: str | None = None
    ) -> list[R]:
        """Committed rows by an indexed column."""
        self._check()
        return await self._reads.find(row, path, value, limit=limit, after=after)

    async def due(self, row: type[R], now: datetime, *, limit: int) -> list[R]:
        """Rows whose due time has come, most urgent first, then earliest first."""
        self._check()
        return await self._reads.due(row, now, limit=limit)

    async def next_due(self, row: type[Struct]) -> datetime | None:
        """The earliest due time of that table, or None."""
        self._check()
        return self._reads.next_due(row)

    async def events(self, profile: str, after: int, *, limit: int, session_id: str | None = None) -> list[Event]:
        """Committed events of a profile with `seq > after`."""
        self._check()
        return await self._reads.events(profile, after, limit=limit, session_id=session_id)

    async def last_seq(self, profile: str) -> int:
        """The highest committed `seq` of a profile."""
        self._check()
        return self._reads.last_seq(profile)

    def subscribe(self, listener: Callable[[Sequence[Change]], None]) -> Callable[[], None]:
        """Call `listener` with each commit's changes, before `transact` returns to its caller; several times, in order,
        when there are a great many.

        The request beside an event of this process is as its change left it; beside another process's event it is as
        it was when the event was read, which may be newer.
        """
        self._check()
        if not self._feed:
            self._heard = max(self._heard, self._reads.last_pos())
        unsubscribe = self._feed.subscribe(listener)
        if self._poll is None:
            self._poll = asyncio.get_running_loop().call_later(POLL_S, self._look)
        return unsubscribe

    async def check(self) -> dict[str, Any]:
        """Facts for `health/detailed`. After a failed commit it tries one more, so that it tells the present."""
        self._check()
        self._lost = self._anchor.lost()
        if self._lost is not None:
            raise StoreUnavailable(self._lost.message, **self._lost.facts)
        self._reads.last_pos()
        if self._writer.failure is not None:
            probe = Note(name="store.probe", value="." * _PROBE_BYTES)
            await self.transact(lambda tx: tx.put(probe))
            await self.transact(lambda tx: tx.delete(probe))
        return {"engine": "sqlite", "schema": self._schema, "queued": self._writer.queued, **_sizes(self.path)}

    async def aclose(self) -> None:
        """Finish what is queued and what is being read, write everything into the file, close."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())
        await asyncio.shield(self._closing)

    # --- the feed ---

    def _committed(self, changes: Sequence[Change], first_pos: int, last_pos: int) -> None:
        """A group of ours is durable. What other processes committed before it is told before it."""
        if self._feed:
            try:
                self._tell_others(before=first_pos)
            except StoreError:
                # Our own changes must not wait; the others' events stay in the log, and clients resume by `seq`.
                log.exception("store.feed_gap", extra={"after": self._heard, "before": first_pos})
        self._heard = max(self._heard, last_pos)
        self._feed.publish(changes)

    def _look(self) -> None:
        """Tell of other processes' commits. While a group of ours is in flight its end does that."""
        self._poll = None
        if not self._feed or self._closing is not None:
            return
        if time.monotonic() - self._anchor_seen >= _ANCHOR_S:
            self._anchor_seen = time.monotonic()
            self._lost = self._anchor.lost()
        try:
            if not self._writer.busy and (version := self._reads.version()) != self._version:
                self._tell_others(before=self._reads.last_pos() + 1)
                self._version = version
        except StoreError:
            log.exception("store.poll_failed")
        self._poll = asyncio.get_running_loop().call_later(POLL_S, self._look)

    def _tell_others(self, *, before: int) -> None:
        while self._heard + 1 < before:
            found = self._reads.log(self._heard, before, limit=_PAGE)
            if not found:
                self._heard = before - 1
                return
            self._heard = found[-1][0]
            self._feed.publish([change for _, change in found])

    # --- the end ---

    async def _close(self) -> None:
        await self._writer.drain()
        if self._poll is not None:
            self._poll.cancel()
        self._feed.clear()
        # The readers go first: the last connection to close empties and removes the write-ahead log.
        await self._reads.close()
        await self._writer.close(self._db.close)

    def _check(self) -> None:
        if self._closing is not None:
            raise StoreUnavailable(f"{self.path} is closed; nothing was saved")


def _sizes(path: Path) -> dict[str, Any]:
    """The file's name and bytes, and what is free beside it."""
    try:
        wal = Path(f"{path}-wal")
        return {
            "file": str(path),
            "file_bytes": path.stat().st_size,
            "wal_bytes": wal.stat().st_size if wal.exists() else 0,
            "free_bytes": shutil.disk_usage(path.parent).free,
        }
    except OSError as error:
        raise StoreUnavailable(f"{path}: {error.strerror}. Put the store's file back.", file=str(path)) from error


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn `sqlite3.Error` into the one line an operator can act on."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(error, path) from error


def _open_for_writing(path: Path) -> sqlite3.Connection:
    _make(path)
    with _explained(path):
        db = _connect(path, "rw", _OPEN_WAIT_S)
        try:
            identify(db, path)  # first, since the log's mode is written into the file's header
            mode = _enter_wal(db)
            if mode != "wal":
                raise StoreUnavailable(
                    f"{path} is on a file system without shared memory (journal mode {mode}),"
                    " such as a network share. Point gateway.store at a local disk."
                )
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA fullfsync = 1")  # macOS: a plain fsync does not reach the medium there
            db.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT_BYTES}")
            db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            db.execute("PRAGMA temp_store = MEMORY")
            db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        except BaseException:
            db.close()
            raise
    return db


def _enter_wal(db: sqlite3.Connection) -> str:
    """Switch the file to a write-ahead log; SQLite does not wait by itself while another process is doing the same."""
    until = time.monotonic() + _OPEN_WAIT_S
    while True:
        try:
            mode: str = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            return mode
        except sqlite3.OperationalError as error:
            if not is_locked(error) or time.monotonic() > until:
                raise
        time.sleep(0.01)


def _open_for_reading(path: Path, wait_s: float) -> sqlite3.Connection:
    db = _connect(path, "ro", wait_s)
    db.execute(f"PRAGMA cache_size = -{_CACHE_KIB // 4}")
    return db


def _connect(path: Path, mode: str, wait_s: float) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        timeout=wait_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=512,
    )


def _make(path: Path) -> None:
    """Make the folder (0700) and the file (0600) where missing; refuse to start over a log without its file."""
    make_folder(path)
    try:
        wal = Path(f"{path}-wal")
        if (not path.exists() or path.stat().st_size == 0) and wal.exists() and wal.stat().st_size > 0:
            raise StoreCorrupt(
                f"{path} is missing or empty, but its write-ahead log {wal.name} is there and holds saved rows."
                " Put the file back from where it went or from a backup, or move the log away to start empty."
            )
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreUnavailable(
            f"{path} cannot be opened for writing: {error.strerror}."
            " Make the folder writable for the gateway's user, or point gateway.store elsewhere.",
            file=str(path),
        ) from error


def open_sqlite(url: str, clock: Clock) -> SqliteStore:
    """Open `sqlite:///absolute/path.db`; call it inside the event loop that will use the store.

    Raises `StoreUnavailable`, `StoreCorrupt` or `StoreTooNew`, each in one line with the mend, and `ConfigError`.
    """
    return SqliteStore(sqlite_path(url), clock)
