"""Group commit: whatever changes are queued share one transaction, and all transactions follow each other.

A transaction first locks the one row of `signoff.head`, as every gateway on this database does. From then on nothing
it reads can move, nor can what it did not find appear, until it commits. Its changes run on the event loop over what
was read; what they lack is fetched in one round trip, and they run again. Changes that may touch thousands of rows run
in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import psycopg
from psycopg import errors

from signoff.clock import SystemClock
from signoff.errors import SaveUnknown, StoreCorrupt, StoreError, StoreUnavailable
from signoff.ports import Clock, Tx
from signoff.stores.postgres_errors import explain, is_forbidden, is_locked_out, is_lost, is_missing, may_go_well
from signoff.stores.postgres_feed import PostgresFeed
from signoff.stores.postgres_lines import COMMIT_S, Connection, ask, commit, connect
from signoff.stores.postgres_place import Place
from signoff.stores.postgres_shapes import Statement
from signoff.stores.postgres_tx import Group, Job
from signoff.stores.postgres_write import writes

log = logging.getLogger("signoff.store")

MAX_GROUP = 256
"""Changes in one transaction."""
SLICE_S = 0.005
"""So long changes run on the event loop before others get their turn."""
TRIES = 10
"""Attempts at one transaction that the server gave up for another's sake, or whose connection was lost before its
commit was sent."""
RECONNECTS = 2
MAX_ROUNDS = 200
"""Rounds of reading after which a change is taken for one that asks for something else each time it runs."""
DOUBT_S = 15.0
"""How long it is tried to find out whether a commit that was not confirmed happened."""
STILL_S = 6.0
"""A transaction that waits for its gateway for so long, while others wait for it, belongs to a process that stands
still or to a machine that is gone. It is cut off; its change was not acknowledged. Those who wait look after each of
the server's lock timeouts (4 s), so they stand still for 10 s at most."""
LOCKED_OUT_S = 20.0
"""So long the lock is waited for that others hold who do not stand still."""
_ONE_TRIP = 16
"""Up to so many statements are written together with the commit; more are sent one by one."""
_BEGIN: Statement = ("BEGIN ISOLATION LEVEL READ COMMITTED", ())
# The time is told of the row that the lock gave, so after the lock is held.
_LOCKED = (
    "WITH head AS MATERIALIZED (SELECT pos FROM signoff.head FOR UPDATE)"
    " SELECT pos, clock_timestamp(), pg_current_xact_id()::text, (SELECT max(schema) FROM signoff.about) FROM head"
)
_LOCK: Statement = (_LOCKED, ())
_COMMIT: Statement = ("COMMIT", ())
_ROLLBACK: Statement = ("ROLLBACK", ())
_CUT_OFF = (
    # The server hides what other users' connections do, unless ours has the right pg_read_all_stats.
    "SELECT CASE WHEN a.state IS NOT NULL THEN pg_terminate_backend(a.pid) END"
    " FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid"
    " WHERE a.datname = current_database() AND l.relation = 'signoff.head'::regclass AND l.mode = 'RowShareLock'"
    # Idle, or in the middle of rows that nobody takes or of a statement whose rest does not come.
    " AND a.pid <> pg_backend_pid() AND (a.state IS NULL OR (a.state_change < clock_timestamp() - %s::float8 * interval"
    " '1 second' AND (a.state LIKE 'idle in transaction%%' OR (a.state = 'active' AND a.wait_event_type = 'Client'))))"
)
_STATUS = "SELECT pg_xact_status(%s::text::xid8)"
# A promoted standby begins a new timeline, and gives the numbers of transactions that it never had to others.
_TIMELINE: Statement = ("SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)", ())
# It writes to the log of the server and nowhere else. What only asked for a number would not be waited for.
_MARK: Statement = ("SELECT pg_logical_emit_message(true, 'signoff', '')", ())


class Writer:
    """Owns the writing connection."""

    def __init__(self, place: Place, clock: Clock | None, feed: PostgresFeed, schema: int) -> None:
        """Without a clock the time of a transaction is the database's. `schema` was found at opening."""
        self._place = place
        self._schema = schema
        self._clock = clock
        self._feed = feed
        self._jobs: deque[Job] = deque()
        self._thread = ThreadPoolExecutor(1, "signoff-store-changes")
        self._connection: Connection | None = None
        self._timeline = ""
        """Of the server, as its connection began; empty where it does not say."""
        self._task: asyncio.Task[None] | None = None
        self._told_forbidden = False
        self.failure: StoreError | None = None
        """Why the last group failed, until one succeeds."""

    @property
    def queued(self) -> int:
        """Changes that wait for the next group."""
        return len(self._jobs)

    def run(self, change: Callable[[Tx], Any], *, bulk: bool) -> asyncio.Future[Any]:
        """Queue a change; the future is done once it is durable. It commits also if the future is cancelled."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._jobs.append(Job(change, future, bulk=bulk))
        if self._task is None:
            self._task = loop.create_task(self._work())
        return future

    async def close(self) -> None:
        """Finish what is queued, then close the connection and end the thread."""
        while self._task is not None:
            await asyncio.wait([self._task])
        await self._drop()
        self._thread.shutdown()

    async def _work(self) -> None:
        """Commit groups until nothing is queued."""
        try:
            while self._jobs:
                jobs = self._next_jobs()
                try:
                    await self._serve(jobs)
                except Exception as error:  # a defect fails these changes, and those that wait are served
                    log.exception("store.writer_failed: %d changes", len(jobs))
                    self.failure = _interrupted(error)
                    _answer(jobs, self.failure, error)
                except BaseException as error:
                    _answer([*jobs, *self._jobs], _interrupted(error), error)
                    self._jobs.clear()
                    raise
        finally:
            self._task = None

    def _next_jobs(self) -> list[Job]:
        jobs = [self._jobs.popleft()]
        while not jobs[0].alone and self._jobs and not self._jobs[0].alone and len(jobs) < MAX_GROUP:
            jobs.append(self._jobs.popleft())
        return jobs

    async def _serve(self, jobs: list[Job]) -> None:
        """Commit these changes and answer their callers."""
        lost = 0
        until = time.monotonic() + LOCKED_OUT_S
        for attempt in range(1, TRIES + 1):
            try:
                await self._attempt(jobs)
            except (psycopg.Error, TimeoutError, StoreError) as error:
                was_lost = self._connection is not None and is_lost(error, self._connection)
                await self._drop()
                lost += was_lost
                again = may_go_well(error) or (was_lost and lost <= RECONNECTS)
                if is_locked_out(error):
                    again = await self._cut_off() or time.monotonic() < until
                if attempt < TRIES and again:
                    continue
                self._fail(jobs, error)
            except BaseException:
                await self._drop()
                raise
            else:
                self.failure = None
                _answer(jobs, None, None)
            return

    def _fail(self, jobs: list[Job], error: BaseException) -> None:
        told = explain(error, self._place.shown)
        refused = self._refused(error)
        if (refused or is_missing(error)) and len(jobs) > 1:
            # The server refuses something in one of them. Each has its own transaction now, so that it fails alone.
            for job in reversed(jobs):
                job.alone = True
                self._jobs.appendleft(job)
            return
        if not refused or not jobs[0].blank:
            self.failure = told
        _answer(jobs, told, error)

    @staticmethod
    def _refused(error: BaseException) -> bool:
        """Whether what was asked is refused, rather than the way to the server cut."""
        if isinstance(error, psycopg.Error):
            return error.sqlstate is not None and error.sqlstate[:2] in ("22", "23", "54")
        return isinstance(error, StoreError) and not isinstance(error, StoreUnavailable)

    # --- one transaction ---

    async def _attempt(self, jobs: list[Job]) -> None:
        group = Group(jobs)
        if self._connection is None:
            self._connection = await connect(self._place)
            self._timeline = await _timeline(self._connection)
        connection = self._connection
        # What they ask for first comes along with the lock.
        await self._pass(group, (self._clock or SystemClock()).now(), count=False)
        now, xid = await self._begin(connection, group)
        rounds = 0
        while True:
            await self._pass(group, now)
            if group.settled:
                break
            rounds += 1
            if rounds > MAX_ROUNDS:
                raise StoreError("a change asks for other rows each time it runs; it must be pure")
            await self._fetch(connection, group, [])
        if group.wrote:
            await self._commit(connection, group, xid)
        else:
            await ask(connection, [_ROLLBACK])

    async def _begin(self, connection: Connection, group: Group) -> tuple[datetime, str]:
        _, head = await self._fetch(connection, group, [_BEGIN, _LOCK])
        if not head:
            raise StoreCorrupt(f"{self._place.shown}: the row of signoff.head is gone. Restore a backup.")
        pos, now, xid, schema = head[0]
        if schema != self._schema:
            # What this version writes may lack what the other one needs.
            raise StoreUnavailable(
                f"{self._place.shown}: its schema was {self._schema} when this gateway started and is {schema} now, so"
                " another version of Signoff serves it. Start this gateway again in that version. Nothing was saved."
            )
        group.begin(pos)
        return now if self._clock is None else self._clock.now(), xid

    async def _fetch(self, connection: Connection, group: Group, first: Sequence[Statement]) -> list[Any]:
        """Run `first` and fetch what the changes lack, in one round trip; the rows of `first`."""
        question = group.layers.answers.question()
        if question is None:
            return await ask(connection, first)
        statement, take = question
        *rows, answer = await ask(connection, [*first, statement])
        await self._aside(group, lambda: take(answer))
        return rows

    async def _pass(self, group: Group, now: datetime, *, count: bool = True) -> None:
        large = group.jobs[0].bulk
        run = group.passes(now, math.inf if large else SLICE_S, count=count)
        while not await self._aside(group, run):  # noqa: ASYNC110  # there is work to do, not to wait for
            await asyncio.sleep(0)

    async def _aside(self, group: Group, work: Callable[[], Any]) -> Any:
        """Do this for a group: large ones in the thread."""
        if not group.jobs[0].bulk:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _commit(self, connection: Connection, group: Group, xid: str) -> None:
        statements: list[Statement] = await self._aside(group, lambda: list(writes(group)))
        if len(statements) > _ONE_TRIP:
            for statement in statements:
                await ask(connection, [statement])
            statements = []
        async with self._feed.telling:
            try:
                happened = await commit(connection, [*statements, _COMMIT], COMMIT_S) or await self._happened(xid)
            except (psycopg.Error, TimeoutError) as error:
                if not is_lost(error, connection) or not await self._happened(xid):
                    raise
                await self._drop()
            else:
                if not happened:
                    raise self._not_known()
            if group.events:
                changes = [change for job in group.jobs if job.error is None for change in job.changes]
                await self._feed.committed(changes, group.first_pos, group.pos)

    async def _happened(self, xid: str) -> bool:
        """Whether the transaction that was not confirmed committed, at the synchronous standby too where the server
        has one. Raises `SaveUnknown` when nobody can tell.

        Where the wait for the standby was broken off, by an administrator or by a restart, the server calls the
        transaction committed though no standby has it. A later commit that the server confirms proves that it has:
        the standby takes them in their order.
        """
        until = time.monotonic() + DOUBT_S
        while True:
            try:
                async with await connect(self._place) as other:
                    ((status,),) = (await ask(other, [(_STATUS, (xid,))], DOUBT_S))[0]
                    if await _timeline(other) != self._timeline:
                        status = None
                    if status == "committed" and not await commit(other, [_MARK], max(until - time.monotonic(), 0)):
                        status = "in progress"
            except (psycopg.Error, TimeoutError):
                status = "in progress"
            if status in ("committed", "aborted"):
                return bool(status == "committed")
            if status is None or time.monotonic() > until:
                raise self._not_known()
            await asyncio.sleep(0.1)

    def _not_known(self) -> SaveUnknown:
        return SaveUnknown(
            f"{self._place.shown}: the server did not confirm a commit in time, nor its synchronous standby where it"
            " has one. It is not known whether it was saved; look before you ask for it again."
        )

    async def _cut_off(self) -> bool:
        """End the transactions that hold the lock and stand still; whether there were any."""
        try:
            async with await connect(self._place) as other:
                rows = (await ask(other, [(_CUT_OFF, (STILL_S,))]))[0]
        except (psycopg.Error, TimeoutError) as error:
            if is_forbidden(error):
                self._tell_forbidden(error)
            return False
        ended = sum(ended is not None for (ended,) in rows)
        if ended:
            log.warning("store.holder_cut_off: %d transactions held the lock and stood still", ended)
        elif rows:
            self._tell_forbidden("other users' transactions may hold the lock, and the server does not show them")
        return bool(ended)

    def _tell_forbidden(self, why: object) -> None:
        """Tell once that a gateway under another user cannot be cut off."""
        if not self._told_forbidden:
            self._told_forbidden = True
            log.warning("store.may_not_cut_off: %s", " ".join(str(why).split()))

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


async def _timeline(connection: Connection) -> str:
    """The timeline of the server; empty where one that is not quite PostgreSQL has none, or tells nobody."""
    try:
        ((timeline,),) = (await ask(connection, [_TIMELINE]))[0]
    except (errors.FeatureNotSupported, errors.InsufficientPrivilege, errors.UndefinedFunction):
        return ""
    return str(timeline)


def _interrupted(error: BaseException) -> SaveUnknown:
    return SaveUnknown(
        f"the commit was interrupted by {type(error).__name__}. It is not known whether it was saved; look before you"
        " ask for it again."
    )


def _answer(jobs: list[Job], told: StoreError | None, why: BaseException | None) -> None:
    """Answer the callers; `told` is why none of it was saved."""
    for job in jobs:
        if job.future.done():  # its caller was cancelled
            continue
        if told is not None:
            error = type(told)(told.message, **told.facts)
            error.__cause__ = why
            job.future.set_exception(error)
        elif job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)
