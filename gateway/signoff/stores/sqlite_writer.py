"""Group commit: whatever changes are queued share one transaction and one flush to the disk.

The statements of small changes run on the event loop, a few microseconds each, because a thread would have to take
the interpreter lock back from the busy loop after every statement. Only the commit, which waits for the disk, runs in
the one writer thread, and the changes that arrive meanwhile make the next group. Changes that may touch thousands of
rows, and groups that find the file locked by another process, run in the thread as a whole. Whoever runs a group owns
the connection until it ends.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from signoff.errors import StoreError, StoreUnavailable
from signoff.model import Change
from signoff.ports import Clock, Tx
from signoff.stores.sqlite_ahead import ReadAhead
from signoff.stores.sqlite_cache import Cache
from signoff.stores.sqlite_errors import explain, is_locked
from signoff.stores.sqlite_layers import Layers
from signoff.stores.sqlite_tx import EventRow, SqliteTx
from signoff.stores.sqlite_write import write_events

MAX_GROUP = 256
"""Changes in one transaction."""
MAX_INLINE_S = 0.005
"""A group takes no further change after so long on the event loop: what a tap or a heartbeat waits at most behind it.
Also the interpreter's own switch interval."""
TOLD_AT_ONCE = 512
"""Changes that the feed tells in one step of the loop: with some 8 µs each, others wait 4 ms for them."""
LOCK_WAIT_S = 10.0
"""How long the writer thread waits for another process's lock."""


class Job:
    """One queued change and what came of it."""

    __slots__ = ("bulk", "change", "changes", "error", "future", "result")

    def __init__(self, change: Callable[[Tx], Any], future: asyncio.Future[Any], *, bulk: bool) -> None:
        self.change = change
        self.future = future
        self.bulk = bulk
        self.result: Any = None
        self.error: BaseException | None = None
        self.changes: list[Change] = []


class Group:
    """One transaction's changes, in order."""

    __slots__ = ("events", "first_pos", "jobs", "last_pos", "layers", "wrote")

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        self.jobs: list[Job] = []
        self.events: list[EventRow] = []
        self.first_pos = self.last_pos = 0
        self.wrote = False


class Writer:
    """Owns the writing connection. `committed` hears of each durable group on the loop, before its callers do."""

    def __init__(
        self, db: sqlite3.Connection, path: Path, clock: Clock, committed: Callable[[Sequence[Change], int, int], None]
    ) -> None:
        self._db = db
        self._path = path
        self._clock = clock
        self._committed = committed
        self._jobs: deque[Job] = deque()
        self._thread = ThreadPoolExecutor(1, "signoff-store-writer")
        self._scheduled = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._busy = False
        self._settling: Layers | None = None
        """The rows of the last durable group, until the cache has taken them over."""
        self._cache = Cache()
        self._log = _EventNumbers(db)
        self.failure: StoreError | None = None
        """Why the last group failed, until one succeeds."""

    @property
    def busy(self) -> bool:
        """A commit is in flight, or a group runs in the thread."""
        return self._busy

    @property
    def queued(self) -> int:
        """Changes that wait for the next group."""
        return len(self._jobs)

    def run(self, change: Callable[[Tx], Any], *, bulk: bool) -> asyncio.Future[Any]:
        """Queue a change; the future is done once it is durable. It commits also if the future is cancelled."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._jobs.append(Job(change, future, bulk=bulk))
        self._schedule(loop)
        return future

    async def drain(self) -> None:
        """Return once nothing is queued or in flight."""
        await self._idle.wait()

    async def close(self, last: Callable[[], None]) -> None:
        """Run `last` in the writer thread, then end the thread. Nothing may be queued."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, last)
        finally:
            self._thread.shutdown()

    # --- on the loop ---

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        self._idle.clear()
        if not self._scheduled and not self._busy:
            self._scheduled = True
            loop.call_soon(self._next_group, loop)

    def _next_group(self, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduled = False
        try:
            self._settle()
        except BaseException:  # the process is told to end, or is out of memory
            self._schedule(loop)
            raise
        if not self._jobs:
            self._idle.set()
            return
        group = Group(Layers(self._db, self._cache))
        if self._jobs[0].bulk:
            group.jobs.append(self._jobs.popleft())
            self._hand_over(loop, self._run_whole, group)
            return
        try:
            self._begin()
        except sqlite3.Error as error:
            self._take_small(group)
            if is_locked(error):
                self._hand_over(loop, self._run_whole, group)
            else:
                self._finish(loop, group, error)
            return
        self._run_inline(loop, group)

    def _run_inline(self, loop: asyncio.AbstractEventLoop, group: Group) -> None:
        until = time.perf_counter() + MAX_INLINE_S
        try:
            while self._jobs and not self._jobs[0].bulk and len(group.jobs) < MAX_GROUP:
                group.jobs.append(self._jobs.popleft())
                self._run_job(group, group.jobs[-1])
                if time.perf_counter() >= until:
                    break
            self._close_group(group)
            if not group.wrote:
                self._db.execute("COMMIT")  # nothing to flush, so nothing to wait for
                self._finish(loop, group, None)
                return
        except sqlite3.Error as error:
            self._roll_back()
            self._finish(loop, group, error)
            return
        except BaseException as error:  # the process is told to end in the middle of a change
            self._roll_back()
            self._finish(loop, group, error)
            raise
        self._hand_over(loop, self._commit, group)

    def _take_small(self, group: Group) -> None:
        while self._jobs and not self._jobs[0].bulk and len(group.jobs) < MAX_GROUP:
            group.jobs.append(self._jobs.popleft())

    def _hand_over(
        self, loop: asyncio.AbstractEventLoop, work: Callable[[Group], sqlite3.Error | None], group: Group
    ) -> None:
        self._busy = True

        def in_thread() -> None:
            error: BaseException | None
            try:
                error = work(group)
            except BaseException as unexpected:  # carried to the loop: a caller must never wait for ever
                error = unexpected
            loop.call_soon_threadsafe(self._finish, loop, group, error)

        self._thread.submit(in_thread)

    def _finish(self, loop: asyncio.AbstractEventLoop, group: Group, error: BaseException | None) -> None:
        """Tell the feed, then the callers; callers run in a later step of the loop."""
        if error is not None:
            self._fail(group, error)
            self._end(loop, group, None)
            return
        self.failure = None
        self._tell(loop, group, [change for job in group.jobs for change in job.changes])

    def _tell(self, loop: asyncio.AbstractEventLoop, group: Group, changes: list[Change]) -> None:
        """Tell the feed what is durable, a great many changes in several steps of the loop. Until the last no other
        group begins, so that the feed keeps its order."""
        if changes:
            self._committed(changes[:TOLD_AT_ONCE], group.first_pos, group.last_pos)
        if len(changes) > TOLD_AT_ONCE:
            self._busy = True
            loop.call_soon(self._tell, loop, group, changes[TOLD_AT_ONCE:])
        else:
            self._end(loop, group, group.layers)

    def _end(self, loop: asyncio.AbstractEventLoop, group: Group, durable: Layers | None) -> None:
        """Wake the callers, and go on with the next group."""
        self._busy = False
        for job in group.jobs:
            if job.future.done():  # its caller was cancelled
                continue
            if job.error is None:
                job.future.set_result(job.result)
            else:
                job.future.set_exception(job.error)
        self._settling = durable
        # The callers woken above come first, so that what they ask for next is in the next group.
        self._schedule(loop)

    def _settle(self) -> None:
        """Let the cache take over what is durable. It is done after the callers were woken, who would wait for it."""
        layers, self._settling = self._settling, None
        if layers is not None:
            layers.settle()

    def _fail(self, group: Group, error: BaseException) -> None:
        self._log.forget()
        if isinstance(error, sqlite3.Error):
            told = explain(error, self._path)
        else:  # the process is told to end, or is out of memory
            told = StoreUnavailable(f"the commit was interrupted by {type(error).__name__}; nothing was saved")
        self.failure = told
        for job in group.jobs:
            job.changes = []
            job.error = type(told)(told.message, **told.facts)
            job.error.__cause__ = error

    # --- on the loop or in the thread, whoever runs the group ---

    def _begin(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            if self._log.refresh():
                self._cache.clear()
            self._cache.trim()
        except sqlite3.Error:
            self._roll_back()
            raise

    def _run_job(self, group: Group, job: Job) -> None:
        """Run one change. Raises only `sqlite3.Error`, which fails the whole group."""
        ahead = ReadAhead(self._db, self._cache) if job.bulk else None
        tx = SqliteTx(group.layers, self._clock.now(), ahead)
        mark = self._log.mark()
        try:
            job.result = job.change(tx)
            group.layers.check(tx.journal)
            events, job.changes = tx.numbered(self._log.number)
        except sqlite3.Error:
            raise
        except StopIteration as error:  # a future cannot carry it
            self._take_back(group, tx, mark)
            job.error = RuntimeError("the change raised StopIteration")
            job.error.__cause__ = error
        except Exception as error:  # whatever a change raises is its caller's
            self._take_back(group, tx, mark)
            job.error = error
        else:
            group.events.extend(events)
            group.wrote = group.wrote or tx.wrote
        finally:
            tx.end()

    def _take_back(self, group: Group, tx: SqliteTx, mark: int) -> None:
        group.layers.take_back(tx.journal)
        self._log.rewind(mark)

    def _close_group(self, group: Group) -> None:
        group.layers.write()
        if group.events:
            group.first_pos, group.last_pos = group.events[0][0], group.events[-1][0]
            write_events(self._db, group.events)
            group.wrote = True

    def _roll_back(self) -> None:
        self._log.forget()
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error:
            # SQLite has rolled back by itself already; the error that led here is the one to tell.
            return

    # --- in the thread ---

    def _commit(self, group: Group) -> sqlite3.Error | None:
        try:
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            return error
        return None

    def _run_whole(self, group: Group) -> sqlite3.Error | None:
        try:
            self._begin_waiting()
            for job in group.jobs:
                self._run_job(group, job)
            self._close_group(group)
        except sqlite3.Error as error:
            self._roll_back()
            return error
        except BaseException:
            self._roll_back()
            raise
        return self._commit(group)

    def _begin_waiting(self) -> None:
        self._db.execute(f"PRAGMA busy_timeout = {int(LOCK_WAIT_S * 1000)}")
        try:
            self._begin()
        finally:
            self._db.execute("PRAGMA busy_timeout = 0")


class _EventNumbers:
    """The next `pos` of the log and `seq` of each profile, kept from group to group while no other process wrote."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._version: int | None = None
        self._pos = 0
        self._seqs: dict[str, int] = {}
        self._given: list[str] = []

    def refresh(self) -> bool:
        """At the start of a transaction: forget what another process may have moved on; True if one may have."""
        version = self._db.execute("PRAGMA data_version").fetchone()[0]
        foreign: bool = version != self._version
        if foreign:
            self._seqs.clear()
            found = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
            self._pos = found[0] if found else 0
            self._version = version
        self._given.clear()
        return foreign

    def forget(self) -> None:
        """After a failed group."""
        self._version = None

    def number(self, profile: str) -> tuple[int, int]:
        """The `pos` and `seq` of that profile's next event."""
        seq = self._seqs.get(profile)
        if seq is None:
            seq = self._db.execute("SELECT max(seq) FROM events WHERE profile = ?", (profile,)).fetchone()[0] or 0
        self._seqs[profile] = seq + 1
        self._pos += 1
        self._given.append(profile)
        return self._pos, seq + 1

    def mark(self) -> int:
        """How many numbers this group has given out."""
        return len(self._given)

    def rewind(self, mark: int) -> None:
        """Take back the numbers given out since `mark`: their change raised."""
        for profile in self._given[mark:]:
            self._seqs[profile] -= 1
        self._pos -= len(self._given) - mark
        del self._given[mark:]
