"""What the SQLite writer keeps of the committed rows: never stale, never of a change that did not commit."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from signoff.errors import StoreError, StoreUnavailable
from signoff.model import ApprovalRequest, Command, Copy, Destination, Note, Tool, replace
from signoff.ports import Tx
from signoff.rows import TABLES, joined, key_of, message_key, place_key, request_key, table_of
from signoff.runtime import settle_memory
from signoff.stores import sqlite_cache, sqlite_writer
from signoff.stores.sqlite import SqliteStore, open_sqlite
from signoff.testing.clock import FakeClock
from signoff.testing.rows import EVERY_ROW, at, make_copy, make_event, make_request, putting

REQUEST = joined("default", "r1")


class Refused(Exception):
    """A change that gives up."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "signoff.db"


@pytest.fixture
async def store(path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteStore]:
    monkeypatch.setattr(sqlite_writer, "MAX_INLINE_S", 60.0)  # so that a busy machine does not end a group early
    store = open_sqlite(f"sqlite://{path}", FakeClock())
    yield store
    await store.aclose()


def getting(row: type[Any], key: str) -> Callable[[Tx], Any]:
    return lambda tx: tx.get(row, key)


def finding(row: type[Any], path: str, value: str) -> Callable[[Tx], list[Any]]:
    return lambda tx: tx.find(row, path, value)


def traced(store: SqliteStore) -> list[str]:
    """The statements that the writing connection runs from now on."""
    statements: list[str] = []
    store._db.set_trace_callback(statements.append)
    return statements


async def test_a_known_row_is_read_without_sql(store: SqliteStore) -> None:
    copy = make_copy("c1")
    await store.transact(putting(copy, make_request()))
    await store.transact(finding(Copy, "request", REQUEST))
    statements = traced(store)
    assert await store.transact(getting(Copy, "c1")) == copy
    assert await store.transact(finding(Copy, "request", REQUEST)) == [copy]
    assert not [sql for sql in statements if sql.startswith("SELECT row") or "group_concat" in sql]


async def test_a_group_writes_each_row_once(store: SqliteStore) -> None:
    def count(tx: Tx) -> None:
        row = tx.get(Note, "n")
        tx.put(Note(name="n", value=str(int(row.value) + 1 if row else 1)))

    statements = traced(store)
    await asyncio.gather(*(store.transact(count) for _ in range(20)))
    assert await store.get(Note, "n") == Note(name="n", value="20")
    assert len([sql for sql in statements if "notes" in sql and not sql.startswith("SELECT")]) == 1


@pytest.mark.parametrize("bulk", [False, True])
async def test_another_process_is_noticed(path: Path, store: SqliteStore, bulk: bool) -> None:
    other = open_sqlite(f"sqlite://{path}", FakeClock())
    await store.transact(putting(make_request(), make_copy("c1"), make_copy("c2", request_id="r2")))
    assert len(await store.transact(finding(Copy, "request", REQUEST))) == 1
    assert await store.transact(getting(Note, "n")) is None
    await other.transact(putting(make_request(outcome="denied"), make_copy("c2"), Note(name="n", value="theirs")))
    row = await store.transact(getting(ApprovalRequest, REQUEST), bulk=bulk)
    assert row.outcome == "denied"
    assert len(await store.transact(finding(Copy, "request", REQUEST), bulk=bulk)) == 2
    assert await store.transact(getting(Note, "n"), bulk=bulk) == Note(name="n", value="theirs")
    await other.transact(lambda tx: tx.delete(make_copy("c1")))
    assert [c.copy_id for c in await store.transact(finding(Copy, "request", REQUEST), bulk=bulk)] == ["c2"]
    # What is written next is compared with what the other process left.
    await store.transact(putting(make_request(outcome=None)))
    assert len(await store.find(ApprovalRequest, "pending_profile", "default")) == 1
    await other.aclose()


async def test_a_commit_that_fails_is_not_remembered(store: SqliteStore) -> None:
    old = make_request()
    await store.transact(putting(old, make_copy("c1"), Note(name="n", value="old")))
    await store.transact(finding(Copy, "request", REQUEST))
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreUnavailable, match="disk is full"):
        await store.transact(
            putting(
                replace(old, outcome="denied"),
                make_copy("c9"),
                Note(name="n", value="x" * 100_000),
                events=[make_event(request_id="r1")],
            )
        )
    store._db.execute(f"PRAGMA max_page_count = {2**30}")
    assert await store.transact(getting(ApprovalRequest, REQUEST)) == old
    assert await store.transact(getting(Copy, "c9")) is None
    assert [c.copy_id for c in await store.transact(finding(Copy, "request", REQUEST))] == ["c1"]
    assert await store.transact(getting(Note, "n")) == Note(name="n", value="old")
    await store.transact(putting(events=[make_event()]))
    assert await store.last_seq("default") == 1


async def test_one_that_raises_leaves_no_trace_in_its_group(store: SqliteStore) -> None:
    seen: list[Any] = []

    def raising(tx: Tx) -> None:
        tx.put(Note(name="n", value="never"))
        tx.put(make_copy("c9"))
        tx.emit(make_event())
        raise Refused

    def look(tx: Tx) -> None:
        seen.append((tx.get(Note, "n"), tx.find(Copy, "request", REQUEST)))

    statements = traced(store)
    first, second = Note(name="n", value="1"), make_copy("c1")
    await asyncio.gather(
        *(store.transact(change) for change in (putting(first, second), raising, look, raising, look)),
        return_exceptions=True,
    )
    assert statements.count("COMMIT") == 1, "all in one group"
    assert not [sql for sql in statements if "never" in sql or "SAVEPOINT" in sql]
    assert seen == [(first, [second])] * 2
    assert await store.last_seq("default") == 0


async def test_one_that_raises_gives_back_what_others_of_its_group_left(store: SqliteStore) -> None:
    kept, gone = make_copy("c1"), make_copy("c2")
    await store.transact(putting(Note(name="old", value="1"), gone))
    seen: list[Any] = []

    def look(tx: Tx) -> None:
        notes = [tx.get(Note, name) for name in ("old", "new")]
        copies = [tx.find(Copy, "request", joined("default", name)) for name in ("r1", "r2")]
        seen.append((notes, copies, tx.get(Copy, "c2")))

    def raising(tx: Tx) -> None:
        look(tx)
        for value in ("2", "3"):
            tx.put(Note(name="old", value=value))
        tx.delete(Note(name="new", value="1"))
        tx.put(replace(kept, request_id="r2"))
        tx.delete(kept)
        tx.put(gone)
        tx.put(replace(gone, request_id="r2"))
        assert [copy.copy_id for copy in tx.find(Copy, "request", joined("default", "r2"))] == ["c2"]
        raise Refused

    def staging(tx: Tx) -> None:
        tx.put(Note(name="new", value="1"))
        tx.put(kept)
        tx.delete(gone)

    await asyncio.gather(
        *(store.transact(change) for change in (staging, look, raising, look, raising, look)), return_exceptions=True
    )
    before = ([Note(name="old", value="1"), Note(name="new", value="1")], [[kept], []], None)
    assert seen == [before] * 5
    assert await store.get(Copy, "c2") is None
    assert await store.find(Copy, "request", REQUEST) == [kept]
    assert await store.get(Note, "old") == Note(name="old", value="1")


async def test_many_rows_set_only_the_columns_that_changed(store: SqliteStore) -> None:
    rows = [make_copy(f"c{n:03}", created_at=at(n), priority=n % 4) for n in range(300)]
    await store.transact(putting(*rows))
    statements = traced(store)
    await store.transact(putting(*(replace(row, request_id="r2") for row in rows)))
    assert any("excluded.request" in sql for sql in statements), "as one statement"
    assert not [sql for sql in statements if "excluded.ord" in sql or "excluded.urgency" in sql]
    found = await store.find(Copy, "request", joined("default", "r2"))
    assert [row.copy_id for row in found] == [row.copy_id for row in rows]


async def test_all_that_is_due_is_read_however_much(store: SqliteStore) -> None:
    rows = [make_copy(f"c{n:03}", created_at=at(n), due_at=at(n), priority=n % 4) for n in range(90)]
    await store.transact(putting(*rows))
    urgent_first = [row.copy_id for row in sorted(rows, key=lambda row: (row.priority, row.due_at))]
    for limit in (1, 31, 32, 33, 60, 90, 200):
        assert [row.copy_id for row in await store.due(Copy, at(100), limit=limit)] == urgent_first[:limit]


async def test_a_taken_unique_value_fails_its_own_change_alone(store: SqliteStore) -> None:
    holder, rival, heir = (make_request(name, coalesce_key="k") for name in ("a", "b", "c"))
    statements = traced(store)
    answers = await asyncio.gather(
        store.transact(putting(Note(name="before", value="1"))),
        store.transact(putting(holder)),
        store.transact(putting(Note(name="with rival", value="1"), rival, events=[make_event()])),
        store.transact(putting(replace(holder, outcome="denied"))),
        store.transact(putting(heir, events=[make_event()])),
        store.transact(putting(rival)),
        return_exceptions=True,
    )
    assert [isinstance(answer, StoreError) for answer in answers] == [False, False, True, False, False, True]
    assert statements.count("COMMIT") == 1, "all in one group"
    found = await store.find(ApprovalRequest, "leader_key", joined("default", "k"))
    assert [row.request_id for row in found] == ["c"]
    assert await store.get(Note, "with rival") is None
    assert await store.last_seq("default") == 1


async def test_what_is_kept_reads_as_it_would_from_the_file(store: SqliteStore) -> None:
    arguments: dict[str, Any] = {"pair": (1, 2), "deep": {"n": 1}}
    env = {"A": "1"}
    await store.transact(
        putting(
            make_request("tool", action=Tool(name="t", arguments=arguments)),
            make_request("command", action=Command(command="x", env=env)),
        )
    )
    arguments["deep"]["n"] = 2
    env["A"] = "2"
    for name in ("tool", "command"):
        key = request_key("default", name)
        kept = await store.transact(getting(ApprovalRequest, key))
        assert kept == await store.get(ApprovalRequest, key)
        assert "(1, 2)" not in repr(kept)
        assert "2'" not in repr(kept.action).replace("[1, 2]", "")


async def test_answers_follow_their_rows(store: SqliteStore) -> None:
    rows = {f"c{n}": make_copy(f"c{n}", created_at=at(n)) for n in range(4)}
    await store.transact(putting(*rows.values()))

    async def agrees() -> list[str]:
        told = await store.transact(finding(Copy, "request", REQUEST))
        assert told == await store.find(Copy, "request", REQUEST)
        return [copy.copy_id for copy in told]

    assert await agrees() == ["c0", "c1", "c2", "c3"]
    await store.transact(putting(replace(rows["c1"], request_id="r2")))
    await store.transact(lambda tx: tx.delete(rows["c2"]))
    await store.transact(putting(make_copy("c9", created_at=at(0.5))))
    assert await agrees() == ["c0", "c9", "c3"]
    await store.transact(putting(rows["c1"], replace(rows["c0"], created_at=at(9))))
    assert await agrees() == ["c9", "c1", "c3", "c0"]
    await store.transact(putting(*(make_copy(f"d{n}", created_at=at(20)) for n in range(40))))
    assert len(await agrees()) == 44


@pytest.mark.parametrize(("limit", "most"), [("MAX_ROWS", 40), ("MAX_BYTES", 20_000)])
async def test_it_is_bounded(store: SqliteStore, monkeypatch: pytest.MonkeyPatch, limit: str, most: int) -> None:
    monkeypatch.setattr(sqlite_cache, limit, most)
    for number in range(300):
        await store.transact(putting(make_request(f"r{number}"), Note(name=f"n{number}", value="x" * 100)))
        assert await store.transact(getting(Note, f"n{number // 2}")) is not None
        assert len(store._writer._cache.rows("requests")) <= 100
    assert len(await store.find(ApprovalRequest, "profile", "default")) == 300


# --- columns and the collector ---


@pytest.mark.parametrize("row", EVERY_ROW, ids=lambda row: type(row).__name__)
def test_every_column_has_a_value_of_its_own(row: Any) -> None:
    table = table_of(type(row))
    values = table.values(row)
    assert len(values) == len(table.columns)
    assert [column(row) for column in table.columns.values()] == list(values)
    assert set(table.unique) <= set(table.columns)


def test_columns_agree_with_the_keys_that_changes_look_up() -> None:
    place = Destination("telegram", "100", "7")
    copy = make_copy("c1", destination=place, state="sent", message_id="55")
    requests, copies = table_of(ApprovalRequest).columns, table_of(Copy).columns
    assert copies["place"](copy) == place_key("default", place)
    assert copies["message"](copy) == message_key("default", place, "55")
    assert copies["request"](copy) == request_key("default", "r1") == key_of(make_request("r1"))
    assert copies["open_chat"](copy) == joined("default", "telegram", "100")
    assert copies["place"](replace(copy, state="queued")) is None
    assert copies["open_chat"](replace(copy, state="final")) is None
    follower = make_request("r2", leader_id="r1", turn_id="t", digest="d", action=Tool(name="x"))
    assert requests["follower_of"](follower) == request_key("default", "r1")
    assert requests["leader_key"](follower) is None
    assert requests["live_turn"](follower) == joined("default", "t")
    assert requests["pending_action"](follower) == joined("default", "tool", "d")
    ended = replace(follower, outcome="approved")
    assert [path for path in requests if requests[path](ended) is not None] == [
        "short",
        "profile",
        "session",
        "live_session",
        "live_turn",
    ]
    denied = replace(follower, outcome="denied")
    assert [path for path in requests if requests[path](denied) is not None] == ["short", "profile", "session"]


def test_the_earliest_time_is_due() -> None:
    due = table_of(ApprovalRequest).due
    assert due is not None
    row = make_request(expires_at=at(5), notify_by=at(3), window_by=at(4), claim_by=at(1))
    assert due(row) == at(3)
    assert due(replace(row, notify_by=None)) == at(4)
    assert due(replace(row, notify_by=None, window_by=None)) == at(5)
    assert due(replace(row, outcome="approved")) == at(1)
    assert due(replace(row, outcome="denied")) is None
    assert due(make_request()) is None
    assert len({table.name for table in TABLES}) == len(TABLES)


def test_memory_is_settled_for_serving() -> None:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)  # as Python starts
    try:
        settle_memory()
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] > 700
        assert gc.isenabled()
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


async def test_asking_for_no_row_says_nothing_of_a_unique_value(store: SqliteStore) -> None:
    row = make_request("a", coalesce_key="same")
    await store.transact(putting(row))
    key = joined("default", "same")

    def change(tx: Tx) -> list[ApprovalRequest]:
        assert tx.find(ApprovalRequest, "leader_key", key, limit=0) == []
        return tx.find(ApprovalRequest, "leader_key", key)

    assert await store.transact(change) == [row]
