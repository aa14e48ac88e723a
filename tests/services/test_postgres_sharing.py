"""Several stores on one database: each race has one winner, and every commit is heard once, in order."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import psycopg
import pytest
from tests.services.paths import Path as Proxy
from tests.services.postgres import Database, database, fresh_database

from signoff.clock import SystemClock
from signoff.model import Actor, ApprovalRequest, Change, Event, Note, replace
from signoff.ports import Store, Tx
from signoff.rows import request_key
from signoff.stores import postgres_feed, postgres_lines, postgres_writer
from signoff.stores.open import open_store
from signoff.testing.rows import make_event, make_request, putting

__all__ = ["database"]


@pytest.fixture
async def two(database: Database) -> AsyncIterator[tuple[Store, Store]]:
    stores = open_store(database.url, SystemClock()), open_store(database.url, SystemClock())
    yield stores
    for store in stores:
        await store.aclose()


async def heard_up_to(heard: list[Change], number: int) -> None:
    """Return once so many changes were told."""
    async with asyncio.timeout(60):
        while len(heard) < number:  # noqa: ASYNC110  # the store looks for others' commits on its own
            await asyncio.sleep(0.01)


def decide(request_id: str, name: str) -> Callable[[Tx], str]:
    def run(tx: Tx) -> str:
        row = tx.get(ApprovalRequest, request_key("default", request_id))
        assert row is not None
        if row.outcome is not None:
            return str(row.decided_by[0].name)
        tx.put(replace(row, outcome="approved", decided_by=(Actor(type="person", name=name),)))
        tx.emit(make_event("approval.resolved", request_id=request_id))
        return name

    return run


async def test_each_race_has_one_winner(two: tuple[Store, Store]) -> None:
    await two[0].transact(putting(*(make_request(f"r{n}") for n in range(20))))
    winners = []
    for number in range(20):
        taps = [two[n % 2].transact(decide(f"r{number}", f"p{n}")) for n in range(8)]
        told = await asyncio.gather(*taps)
        row = await two[0].get(ApprovalRequest, request_key("default", f"r{number}"))
        assert row is not None
        assert set(told) == {row.decided_by[0].name}
        winners.append(told[0])
    assert await two[1].last_seq("default") == 20


async def test_what_one_did_not_find_the_other_cannot_have_added(two: tuple[Store, Store]) -> None:
    def join(name: str) -> Callable[[Tx], str]:
        def run(tx: Tx) -> str:
            found = tx.find(ApprovalRequest, "leader_key", f"default\x1f{'same'}")
            if found:
                return found[0].request_id
            tx.put(make_request(name, coalesce_key="same"))
            return name

        return run

    leaders = await asyncio.gather(*(two[n % 2].transact(join(f"r{n}")) for n in range(40)))
    assert len(set(leaders)) == 1
    assert len(await two[0].find(ApprovalRequest, "profile", "default")) == 1


async def test_counting_in_two_stores_loses_nothing(two: tuple[Store, Store]) -> None:
    def count(tx: Tx) -> int:
        row = tx.get(Note, "count")
        value = int(row.value) + 1 if row else 1
        tx.put(Note(name="count", value=str(value)))
        return value

    async def many(store: Store) -> list[int]:
        return [await store.transact(count) for _ in range(25)]

    told = await asyncio.gather(*(many(store) for store in two))
    assert sorted(told[0] + told[1]) == list(range(1, 51))


async def test_changes_that_share_a_transaction_keep_their_order(two: tuple[Store, Store]) -> None:
    await two[0].transact(putting(Note(name="first", value="second"), Note(name="second", value="third")))

    def follow(tx: Tx) -> str:
        name = "first"
        while (row := tx.get(Note, name)) is not None:
            name = row.value
        return told(tx, name)

    def told(tx: Tx, word: str) -> str:
        row = tx.get(Note, "told")
        tx.put(Note(name="told", value=f"{row.value if row else ''} {word}"))
        return word

    answers = await asyncio.gather(
        two[0].transact(lambda tx: told(tx, "before")),
        two[0].transact(follow),  # takes four rounds of reading, the others take one
        two[0].transact(lambda tx: told(tx, "after")),
    )
    assert list(answers) == ["before", "third", "after"]
    assert await two[0].get(Note, "told") == Note(name="told", value=" before third after")


async def test_two_stores_hear_each_other(two: tuple[Store, Store]) -> None:
    mine, other = two
    heard: list[Change] = []
    theirs: list[Change] = []
    mine.subscribe(heard.extend)
    other.subscribe(theirs.extend)

    async def emit(store: Store, number: int) -> None:
        row = make_request(f"r{number}")
        await store.transact(putting(row, events=[make_event(request_id=row.request_id, data={"n": number})]))
        assert number in [change.event.data["n"] for change in (heard if store is mine else theirs)]

    for start in range(0, 120, 12):
        await asyncio.gather(*(emit(two[n % 2], n) for n in range(start, start + 12)))
    await heard_up_to(heard, 120)
    await heard_up_to(theirs, 120)
    log = await mine.events("default", 0, limit=1000)
    assert [event.seq for event in log] == list(range(1, 121))
    assert [change.event for change in heard] == log
    assert [change.event for change in theirs] == log
    for change in heard:
        assert change.request is not None
        assert change.request.request_id == change.event.request_id


async def test_a_lost_listener_misses_nothing(two: tuple[Store, Store], database: Database) -> None:
    mine, other = two
    heard: list[Change] = []
    mine.subscribe(heard.extend)
    for number in range(30):
        await other.transact(putting(events=[make_event(data={"n": number})]))
        if number % 10 == 5:
            database.break_connections()
    await heard_up_to(heard, 30)
    assert [change.event.data["n"] for change in heard] == list(range(30))


async def test_a_commit_does_not_wait_for_a_long_backlog(
    two: tuple[Store, Store], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits with the lock that every gateway needs."""
    monkeypatch.setattr(postgres_feed, "_PAGE", 2)
    mine, other = two
    await other.transact(putting(events=[make_event(data={"n": n}) for n in range(400)]))
    heard: list[Change] = []
    saved_after: list[int] = []
    tasks: list[asyncio.Task[None]] = []
    with psycopg.connect(database.url, autocommit=True) as beside:

        def listen(changes: Sequence[Change]) -> None:
            heard.extend(changes)
            if not tasks:
                tasks.append(asyncio.create_task(mine.transact(putting(Note(name="mine", value="1")))))
            if beside.execute("SELECT count(*) FROM signoff.notes WHERE key = 'mine'").fetchone() == (1,):
                saved_after.append(len(heard))

        mine.subscribe(listen)
        await heard_up_to(heard, 400)
        await tasks[0]
    assert [change.event.data["n"] for change in heard] == list(range(400))
    assert saved_after


async def test_without_a_notification_the_log_is_read_all_the_same(
    two: tuple[Store, Store], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_feed, "POLL_S", 0.05)
    mine, other = two
    heard: list[Change] = []
    mine.subscribe(heard.extend)
    await other.transact(putting(events=[make_event()]))
    await heard_up_to(heard, 1)
    # Without the trigger's row no notification goes out: whoever writes it by hand sends none.
    database.execute(
        "WITH head AS (UPDATE signoff.head SET pos = pos + 1 RETURNING pos) INSERT INTO signoff.events"
        " SELECT head.pos, profile, seq + 1, session, request, event FROM head, signoff.events"
    )
    await heard_up_to(heard, 2)


@pytest.mark.heavy
async def test_a_path_that_stops_without_a_word_is_noticed(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(postgres_feed, "POLL_S", 0.05)
    monkeypatch.setattr(postgres_feed, "ALIVE_S", 0.2)
    async with Proxy(database.server.port) as path:
        mine = await path.opened(database)
        other = open_store(database.url, SystemClock())
        heard: list[Change] = []
        mine.subscribe(heard.extend)
        await other.transact(putting(events=[make_event(data={"n": 0})]))
        await heard_up_to(heard, 1)
        path.swallow()
        await other.transact(putting(events=[make_event(data={"n": 1})]))
        path.forward_new()
        await heard_up_to(heard, 2)
        assert any(record.getMessage().startswith("store.listener_lost: the database") for record in caplog.records)
        await mine.aclose()
        await other.aclose()


_WRITER = """
import asyncio, sys
from signoff.clock import SystemClock
from signoff.stores.open import open_store
from signoff.testing.rows import make_event, make_request, putting

async def main():
    store = open_store(sys.argv[1], SystemClock())
    async def write(start):
        for number in range(start, 1_000_000, 20):
            name = f"{sys.argv[2]}-{number}"
            row = make_request(name)
            await store.transact(putting(row, events=[make_event(request_id=name)]), bulk=number % 50 == 0)
            print(name, flush=True)
    await asyncio.gather(*(write(n) for n in range(20)))

asyncio.run(main())
"""


@pytest.mark.heavy
async def test_a_killed_process_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    database = fresh_database()
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", _WRITER, database.url, f"w{n}", stdout=asyncio.subprocess.PIPE, cwd=tmp_path
        )
        for n in range(2)
    ]
    acknowledged: set[str] = set()

    async def listen(process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        lines = 0
        async for line in process.stdout:
            if line.endswith(b"\n"):
                acknowledged.add(line.decode().strip())
            lines += 1
            if lines == 400:
                process.send_signal(signal.SIGKILL)
        assert await process.wait() == -signal.SIGKILL

    await asyncio.gather(*(listen(process) for process in processes))
    assert len(acknowledged) >= 800
    store = open_store(database.url, SystemClock())
    found = {row.request_id for row in await store.find(ApprovalRequest, "profile", "default")}
    assert acknowledged <= found
    events: list[Event] = await store.events("default", 0, limit=1_000_000)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert {event.request_id for event in events} == found
    await store.transact(putting(Note(name="still", value="writable")))
    await store.aclose()


@pytest.mark.heavy
async def test_a_process_that_stands_still_holding_the_lock_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(postgres_lines, "_SESSION", postgres_lines._SESSION.replace("'4s'", "'200ms'"))
    monkeypatch.setattr(postgres_writer, "STILL_S", 0.2)
    database = fresh_database()
    store = open_store(database.url, SystemClock())
    held = """
import asyncio, sys, os, signal
from signoff.clock import SystemClock
from signoff.model import Note
from signoff.stores.open import open_store
async def main():
    store = open_store(sys.argv[1], SystemClock())
    runs = []
    def change(tx):
        runs.append(1)
        if len(runs) == 2:
            os.kill(os.getpid(), signal.SIGSTOP)
        tx.put(Note(name="n", value="1"))
    await store.transact(change)
    print("committed", flush=True)
    await store.aclose()
asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", held, database.url, stdout=asyncio.subprocess.PIPE, cwd=tmp_path
    )
    standing = "state = 'idle in transaction' AND datname = current_database() AND now() - state_change > '300ms'"
    await asyncio.to_thread(database.wait_for, f"EXISTS (SELECT 1 FROM pg_stat_activity WHERE {standing})")
    async with asyncio.timeout(60):
        await store.transact(putting(Note(name="other", value="1")))
    process.send_signal(signal.SIGCONT)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"committed\n"
    assert await process.wait() == 0
    assert await store.get(Note, "n") is not None
    await store.aclose()
