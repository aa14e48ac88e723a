"""A database that fails in the middle: what was acknowledged is there, once, and what was not is told truly."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from datetime import datetime, timedelta

import psycopg
import pytest
from tests.services.paths import Path
from tests.services.postgres import PASSWORD, Database, database, own_server

from signoff.clock import SystemClock
from signoff.errors import InvalidInput, SaveUnknown, StoreError, StoreUnavailable
from signoff.ids import new_short, repeatable, row_id, seed
from signoff.model import Change, Grant, Note, Turn, replace
from signoff.ports import Store, Tx
from signoff.rows import key_of, table_of
from signoff.stores import postgres_lines, postgres_writer
from signoff.stores.open import open_store
from signoff.stores.postgres_shapes import LONG_VALUE
from signoff.testing.clock import FakeClock
from signoff.testing.rows import EVERY_ROW, make_event, putting

__all__ = ["database"]


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    opened = open_store(database.url, SystemClock())
    yield opened
    await opened.aclose()


def counting(meanwhile: Callable[[int], None] = lambda run: None) -> Callable[[Tx], int]:
    """Count one up and tell it; `meanwhile` is called in each run with its number."""
    runs = 0

    def change(tx: Tx) -> int:
        nonlocal runs
        runs += 1
        meanwhile(runs)
        row = tx.get(Note, "count")
        count = int(row.value) + 1 if row else 1
        tx.put(Note(name="count", value=str(count)))
        tx.emit(make_event(data={"n": count}))
        return count

    return change


async def test_a_connection_that_is_lost_before_the_commit_costs_nothing(store: Store, database: Database) -> None:
    cut: list[int] = []

    def meanwhile(run: int) -> None:
        if run == 2:  # the first run only finds out what is asked for; this one is inside of the transaction
            cut.append(database.break_connections())

    heard: list[Change] = []
    store.subscribe(heard.extend)
    assert await store.transact(counting()) == 1
    assert await store.transact(counting(meanwhile)) == 2
    assert cut[0] >= 1
    assert await store.transact(counting()) == 3
    assert [change.event.data["n"] for change in heard] == [1, 2, 3]
    assert [event.data["n"] for event in await store.events("default", 0, limit=9)] == [1, 2, 3]


async def test_idle_connections_that_the_server_closed_are_replaced(store: Store, database: Database) -> None:
    await store.transact(counting())
    assert await store.get(Note, "count") is not None
    database.break_connections()
    assert await store.get(Note, "count") is not None
    database.break_connections()
    assert await store.transact(counting()) == 2
    assert "engine" in await store.check()


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_commit_whose_answer_is_lost_happens_once(database: Database, arrives: bool) -> None:
    cuts: list[bytes] = []

    def watch(path: Path, sent: bytes) -> None:
        if armed and not cuts and b"COMMIT\x00" in sent:
            cuts.append(sent)
            if arrives:
                path.deaf, path.unheard = True, lose  # the answer does not come back, and then the connection is gone
            else:
                path.cut()

    def lose(path: Path) -> None:
        path.cut()
        path.forward_new()

    armed: list[bool] = []
    async with Path(database.server.port, watch) as path:
        store = await path.opened(database)
        heard: list[Change] = []
        store.subscribe(heard.extend)
        assert await store.transact(counting()) == 1
        armed.append(True)
        assert await store.transact(counting()) == 2
        assert cuts
        assert await store.transact(counting()) == 3
        assert [event.data["n"] for event in await store.events("default", 0, limit=9)] == [1, 2, 3]
        assert [change.event.data["n"] for change in heard] == [1, 2, 3]
        await store.aclose()


async def test_when_nobody_can_tell_it_says_so(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_writer, "DOUBT_S", 0.2)
    shut: list[bytes] = []

    def watch(path: Path, sent: bytes) -> None:
        if shut or (armed and b"COMMIT\x00" in sent):  # and from then on nobody is let in
            shut.append(sent)
            path.cut()

    armed: list[bool] = []
    async with Path(database.server.port, watch) as path:
        store = await path.opened(database)
        assert await store.transact(counting()) == 1
        armed.append(True)
        with pytest.raises(SaveUnknown, match="not known whether it was saved"):
            await store.transact(counting())
        await store.aclose()


async def test_a_deadlock_is_tried_again(database: Database) -> None:
    database.execute(f"ALTER DATABASE {database.name} SET deadlock_timeout = '50ms'")
    store = open_store(database.url, SystemClock())
    assert await store.transact(counting()) == 1
    stood = threading.Event()
    with psycopg.connect(database.url, autocommit=True) as other:
        other.execute("SET deadlock_timeout = '1min'")
        other.execute("BEGIN")
        other.execute("SELECT 1 FROM signoff.notes WHERE key = 'count' FOR UPDATE")

        def cross() -> None:
            stood.wait(10)
            other.execute("SELECT 1 FROM signoff.head FOR UPDATE")  # held by the change, which waits for our row
            other.execute("ROLLBACK")

        runs: list[int] = []

        def meanwhile(run: int) -> None:
            runs.append(run)
            if run == 2:
                stood.set()

        crossing = asyncio.create_task(asyncio.to_thread(cross))
        assert await store.transact(counting(meanwhile)) == 2
        await crossing
    assert len(runs) > 3
    assert await store.last_seq("default") == 2
    await store.aclose()


async def test_a_lock_that_is_held_too_long_is_told_and_heals(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_lines, "_SESSION", postgres_lines._SESSION.replace("'4s'", "'50ms'"))
    store = open_store(database.url, SystemClock())
    with psycopg.connect(database.url) as other:
        other.execute("SELECT 1 FROM signoff.head FOR UPDATE")
        with pytest.raises(StoreUnavailable, match=r"held the lock too long.*Nothing was saved"):
            await store.transact(counting())
        with pytest.raises(StoreUnavailable):
            await store.check()
    assert "engine" in await store.check()
    assert await store.transact(counting()) == 1
    await store.aclose()


async def test_a_holder_that_does_not_take_its_rows_is_cut_off(
    store: Store, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway that was stopped while rows came in: the server counts its transaction as active."""
    await store.transact(counting())
    monkeypatch.setattr(postgres_lines, "_SESSION", postgres_lines._SESSION.replace("'4s'", "'50ms'"))
    monkeypatch.setattr(postgres_writer, "STILL_S", 0.2)
    database.break_connections()
    with closing(psycopg.connect(database.url)) as other:
        other.execute("SELECT 1 FROM signoff.head FOR UPDATE")
        other.pgconn.send_query(b"SELECT repeat('x', 1000000) FROM generate_series(1, 100)")
        stuck = "wait_event = 'ClientWrite' AND datname = current_database()"
        await asyncio.to_thread(database.wait_for, f"EXISTS (SELECT 1 FROM pg_stat_activity WHERE {stuck})")
        async with asyncio.timeout(60):
            assert await store.transact(counting()) == 2


@pytest.mark.parametrize("sees", [False, True])
async def test_a_user_who_may_not_cut_off_a_holder_is_told_of_once(
    database: Database, sees: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The gateways of a database may have users of their own."""
    monkeypatch.setattr(postgres_lines, "_SESSION", postgres_lines._SESSION.replace("'4s'", "'50ms'"))
    monkeypatch.setattr(postgres_writer, "STILL_S", 0.0)
    monkeypatch.setattr(postgres_writer, "LOCKED_OUT_S", 0.2)
    own = f"own_{database.name}"
    await open_store(database.url, SystemClock()).aclose()
    database.execute(f"CREATE ROLE {own} LOGIN")
    database.execute(f"GRANT USAGE ON SCHEMA signoff TO {own}")
    database.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA signoff TO {own}")
    if sees:
        database.execute(f"GRANT pg_read_all_stats TO {own}")
    try:
        store = open_store(database.server.url(database.name, user=own), SystemClock())
        with psycopg.connect(database.url) as other:
            other.execute("SELECT 1 FROM signoff.head FOR UPDATE")
            for _ in range(2):
                with pytest.raises(StoreUnavailable, match="held the lock too long"):
                    await store.transact(counting())
        (told,) = [record.getMessage() for record in caplog.records]
        assert told.startswith("store.may_not_cut_off: ")
        assert await store.transact(counting()) == 1
        await store.aclose()
    finally:
        database.execute(f"DROP OWNED BY {own}")
        database.execute(f"DROP ROLE {own}")


class _Breaking(FakeClock):
    """A clock that breaks once."""

    broken: BaseException | None = None

    def now(self) -> datetime:
        if self.broken is not None:
            error, self.broken = self.broken, None
            raise error
        return super().now()


@pytest.mark.parametrize(("defect", "served"), [(RuntimeError("clock"), 3), (asyncio.CancelledError(), 0)])
async def test_a_defect_leaves_nobody_waiting(database: Database, defect: BaseException, served: int) -> None:
    clock = _Breaking()
    store = open_store(database.url, clock)
    clock.broken = defect
    # Bulk changes have a transaction each, so only the first meets the defect.
    changes = [store.transact(counting(), bulk=True) for _ in range(4)]
    async with asyncio.timeout(60):
        first, *others = await asyncio.gather(*changes, return_exceptions=True)
    assert isinstance(first, SaveUnknown)
    assert [other for other in others if isinstance(other, int)] == list(range(1, served + 1))
    assert all(isinstance(other, int | StoreUnavailable) for other in others)
    assert await store.transact(counting()) == served + 1
    await store.aclose()


async def test_what_the_server_refuses_fails_alone(database: Database, store: Store) -> None:
    database.execute("ALTER TABLE signoff.notes ADD CONSTRAINT odd CHECK (key <> 'odd')")
    try:
        names = ["a", "b", "odd", "c"]
        changes = [store.transact(putting(Note(name=name, value="1"), events=[make_event()])) for name in names]
        answers = await asyncio.gather(*changes, return_exceptions=True)
    finally:
        database.execute("ALTER TABLE signoff.notes DROP CONSTRAINT odd")
    assert [isinstance(answer, StoreError) for answer in answers] == [False, False, True, False]
    assert [event.seq for event in await store.events("default", 0, limit=9)] == [1, 2, 3]


async def test_a_table_that_is_gone_fails_what_needs_it_alone(database: Database, store: Store) -> None:
    grant = next(row for row in EVERY_ROW if isinstance(row, Grant))
    database.execute("ALTER TABLE signoff.grants RENAME TO grants_gone")
    try:
        rows = [Note(name="a", value="1"), grant, Note(name="b", value="1")]
        answers = await asyncio.gather(*(store.transact(putting(row)) for row in rows), return_exceptions=True)
        with pytest.raises(StoreUnavailable, match=r"a table of the schema signoff is gone\. Restore a backup"):
            await store.get(Grant, key_of(grant))
        with pytest.raises(StoreUnavailable, match=r"are gone: grants\. Restore a backup"):
            await store.check()
    finally:
        database.execute("ALTER TABLE signoff.grants_gone RENAME TO grants")
    assert [isinstance(answer, StoreUnavailable) for answer in answers] == [False, True, False]
    await store.transact(putting(grant))
    assert "engine" in await store.check()


async def test_a_newer_version_that_brought_the_schema_up_is_not_written_over(database: Database, store: Store) -> None:
    await store.transact(counting())
    database.execute("UPDATE signoff.about SET schema = schema + 1")
    try:
        with pytest.raises(StoreUnavailable, match=r"another version of Signoff serves it.*Nothing was saved"):
            await store.transact(counting())
        with pytest.raises(StoreUnavailable, match="another version"):
            await store.check()
    finally:
        database.execute("UPDATE signoff.about SET schema = schema - 1")
    assert await store.transact(counting()) == 2


class _Drifting(SystemClock):
    """The system's clock, which goes wrong after the start."""

    ahead = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.ahead


@pytest.mark.parametrize("ahead_s", [-60, 60])
async def test_a_clock_that_drifts_after_the_start_finds_due_what_the_database_calls_due(
    database: Database, caplog: pytest.LogCaptureFixture, ahead_s: int
) -> None:
    clock = _Drifting()
    store = open_store(database.url, clock)
    turn = next(row for row in EVERY_ROW if isinstance(row, Turn) and row.ended_at is None)
    soon, later = SystemClock().now() - timedelta(seconds=1), SystemClock().now() + timedelta(seconds=30)
    rows = [replace(turn, turn_id=name, lease_until=when) for name, when in (("soon", soon), ("later", later))]
    await store.transact(putting(*rows))
    clock.ahead = timedelta(seconds=ahead_s)
    for _ in range(2):
        await store.check()
    assert [row.turn_id for row in await store.due(Turn, clock.now(), limit=9)] == ["soon"]
    due = await store.next_due(Turn)
    assert due is not None
    assert abs((due - soon).total_seconds() - ahead_s) < 1
    told = [record.getMessage() for record in caplog.records if record.name == "signoff.store"]
    assert len(told) == 1
    assert told[0].startswith("store.clocks_differ: ")
    await store.aclose()


async def test_what_an_index_cannot_hold_is_found_all_the_same(store: Store) -> None:
    grant = next(row for row in EVERY_ROW if isinstance(row, Grant))
    long = replace(grant, grant_id="long", coverage=("ü" * 10 * LONG_VALUE,), revoked_at=None)
    await store.transact(putting(long))
    covers = table_of(Grant).columns["covers"](long)
    assert covers is not None
    assert len(covers) > LONG_VALUE
    assert await store.find(Grant, "covers", covers) == [long]
    assert await store.transact(lambda tx: tx.find(Grant, "covers", covers)) == [long]
    assert await store.get(Grant, key_of(long)) == long


async def test_names_that_postgresql_cannot_hold_are_refused_alone(store: Store) -> None:
    answers = await asyncio.gather(
        store.transact(putting(Note(name="good", value="a\x00b"))),
        store.transact(putting(Note(name="zero\x00", value="1"))),
        store.transact(putting(Note(name="long" * 200, value="1"))),
        return_exceptions=True,
    )
    assert [type(answer) for answer in answers] == [type(None), InvalidInput, InvalidInput]
    assert await store.get(Note, "good") == Note(name="good", value="a\x00b")


async def test_a_change_that_asks_for_something_else_each_time_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_writer, "MAX_ROUNDS", 5)
    runs: list[int] = []

    def impure(tx: Tx) -> None:
        runs.append(1)
        tx.get(Note, f"n{len(runs)}")

    answers = await asyncio.gather(store.transact(counting()), store.transact(impure), return_exceptions=True)
    assert answers[0] == 1
    assert isinstance(answers[1], StoreError)
    assert "pure" in str(answers[1])


async def test_ids_that_a_change_draws_are_the_same_in_each_run(store: Store) -> None:
    drawn: list[tuple[str, str, str]] = []

    def change(tx: Tx) -> tuple[str, str, str]:
        ids = new_short(), new_short(), row_id()
        drawn.append(ids)
        assert all(tx.get(Note, name) is None for name in ids)
        tx.put(Note(name=ids[2], value="1"))
        return ids

    first, second = await asyncio.gather(store.transact(change), store.transact(change))
    assert len(drawn) > 2
    assert set(drawn) == {first, second}
    assert len({*first, *second}) == 6


def test_a_seed_draws_once() -> None:
    mine, other = seed(), seed()
    with repeatable(mine):
        first = [row_id() for _ in range(3)]
    with repeatable(other):
        assert not {row_id() for _ in range(3)} & set(first)
    with repeatable(mine):
        assert [row_id() for _ in range(3)] == first
    assert row_id() not in first


@pytest.mark.heavy
async def test_a_server_that_is_stopped_and_started_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with own_server() as server:
        own = Database(server, "postgres")
        store = open_store(server.tcp_url("postgres"), SystemClock())
        heard: list[Change] = []
        store.subscribe(heard.extend)
        assert await store.transact(counting()) == 1
        for mode in ("fast", "immediate"):
            server.stop(mode)
            with pytest.raises(StoreUnavailable, match=r"postgres at 127\.0\.0\.1.*Nothing was saved"):
                await store.transact(counting())
            with pytest.raises(StoreUnavailable):
                await store.get(Note, "count")
            with pytest.raises(StoreUnavailable):
                await store.check()
            server.start()
            assert (await store.check())["engine"] == "postgresql"
        assert await store.transact(counting()) == 2
        other = open_store(own.url, SystemClock())
        assert await other.transact(counting()) == 3
        async with asyncio.timeout(60):
            while len(heard) < 3:  # noqa: ASYNC110  # the listener comes back by itself
                await asyncio.sleep(0.01)
        assert [change.event.data["n"] for change in heard] == [1, 2, 3]
        await other.aclose()
        await store.aclose()
    assert PASSWORD not in caplog.text
