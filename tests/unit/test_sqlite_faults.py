"""The SQLite store when the disk, the file or another process gets in its way. The conditions are real."""

from __future__ import annotations

# ruff: noqa: ASYNC240  # a test may look at a file without a thread
import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from signoff.errors import StoreCorrupt, StoreError, StoreTooNew, StoreUnavailable
from signoff.model import ApprovalRequest, Change, Copy, Note
from signoff.ports import Tx
from signoff.rows import TABLES
from signoff.stores import sqlite_writer
from signoff.stores.migrate import migrations
from signoff.stores.sqlite import SqliteStore, open_sqlite
from signoff.stores.sqlite_shapes import SHAPES
from signoff.testing.clock import FakeClock
from signoff.testing.rows import at, make_copy, make_event, make_request, putting


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "signoff.db"


def open_file(path: Path) -> SqliteStore:
    return open_sqlite(f"sqlite://{quote(str(path))}", FakeClock())


async def fill(path: Path) -> None:
    """A store of 50 requests, closed."""
    store = open_file(path)
    await store.transact(putting(*(make_request(f"r{n}", created_at=at(n)) for n in range(50))))
    await store.aclose()


def refused(path: Path, error: type[StoreError], *words: str) -> None:
    """Opening fails with one line that names the file and says `words`, and leaves the file as it was."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(error) as caught:
        open_file(path)
    text = str(caught.value)
    assert type(caught.value) is error
    assert "\n" not in text
    for word in (str(path), *words):
        assert word in text
    assert (path.read_bytes() if path.is_file() else None) == before


# --- at open ---


async def test_a_missing_folder_is_made_for_the_owner_alone(tmp_path: Path) -> None:
    store = open_file(tmp_path / "new" / "deep er" / "what?#%41.db")
    await store.transact(putting(Note(name="n", value="1")))
    await store.aclose()
    folder = tmp_path / "new" / "deep er"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in folder.iterdir()] == ["what?#%41.db"]
    assert (folder / "what?#%41.db").stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_no_database(path: Path) -> None:
    path.write_text("Dear diary, " * 1000)
    refused(path, StoreCorrupt, "no Signoff store", "move the file away")


def test_another_programs_database(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE bookmarks (url TEXT)")
    other.close()
    refused(path, StoreCorrupt, "another program")


async def test_a_newer_schema(path: Path) -> None:
    await fill(path)
    later = sqlite3.connect(path)
    later.execute("PRAGMA user_version = 99")
    later.close()
    refused(path, StoreTooNew, "99", "Install that version")


@pytest.mark.parametrize("offset", [0, 16, 100])
async def test_a_damaged_header(path: Path, offset: int) -> None:
    await fill(path)
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(b"\xff" * 40)
    refused(path, StoreCorrupt, "damaged", "backup")


async def test_a_truncated_file(path: Path) -> None:
    await fill(path)
    os.truncate(path, path.stat().st_size // 2)
    refused(path, StoreCorrupt, "damaged", "backup")


async def test_a_log_without_its_file(path: Path) -> None:
    store = open_file(path)
    await store.transact(putting(Note(name="n", value="precious")))
    log = Path(f"{path}-wal")
    saved = log.read_bytes()
    file = path.read_bytes()
    await store.aclose()
    path.unlink()
    log.write_bytes(saved)
    refused(path, StoreCorrupt, "write-ahead log")
    assert log.read_bytes() == saved
    path.write_bytes(file)
    store = open_file(path)
    assert await store.get(Note, "n") == Note(name="n", value="precious")
    await store.aclose()


def test_a_folder_in_its_place(path: Path) -> None:
    path.mkdir()
    refused(path, StoreUnavailable, "gateway.store")


async def test_many_processes_may_make_the_file_at_once(path: Path) -> None:
    script = (
        "import asyncio, sys\n"
        "from signoff.clock import SystemClock\n"
        "from signoff.stores.sqlite import open_sqlite\n"
        "from signoff.testing.rows import make_event, putting\n"
        "async def main():\n"
        "    store = open_sqlite(sys.argv[1], SystemClock())\n"
        "    await store.transact(putting(events=[make_event()]))\n"
        "    await store.aclose()\n"
        "asyncio.run(main())\n"
    )
    children = [
        await asyncio.create_subprocess_exec(sys.executable, "-W", "error", "-c", script, f"sqlite://{path}")
        for _ in range(5)
    ]
    assert [await child.wait() for child in children] == [0] * 5
    store = open_file(path)
    assert await store.last_seq("default") == 5
    await store.aclose()


# --- while it runs ---

_CHILD = """
import asyncio, json, os, resource, subprocess, sys
from signoff.clock import SystemClock
from signoff.errors import StoreError
from signoff.model import ApprovalRequest
from signoff.stores.sqlite import open_sqlite
from signoff.testing.rows import make_event, make_request, putting

path, condition = sys.argv[1:]
padding = "x" * 4000

def begin():
    if condition == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))

def end():
    if condition == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    else:
        subprocess.run(["mount", "-o", "remount,size=64m", os.path.dirname(path)], check=True)

async def main():
    store = open_sqlite(f"sqlite://{path}", SystemClock())
    heard, saved, errors = [], [], []
    store.subscribe(heard.extend)

    async def write(name):
        row = make_request(name, description=padding)
        try:
            await store.transact(putting(row, events=[make_event(request_id=name)]), bulk=name.endswith("7"))
        except StoreError as error:
            errors.append([type(error).__name__, str(error)])
        else:
            saved.append(name)

    await write("first")
    begin()
    for start in range(0, 600, 30):
        await asyncio.gather(*(write(f"r{n}") for n in range(start, start + 30)))
    try:
        await store.check()
        unwell = None
    except StoreError as error:
        unwell = str(error)
    failed = len(errors)
    end()
    await store.check()
    await asyncio.gather(*(write(f"after{n}") for n in range(30)))
    seqs = [event.seq for event in await store.events("default", 0, limit=10_000)]
    told = [change.event.request_id for change in heard]
    await store.aclose()
    store = open_sqlite(f"sqlite://{path}", SystemClock())
    found = [row.request_id for row in await store.find(ApprovalRequest, "profile", "default")]
    await store.aclose()
    print(json.dumps({"saved": saved, "errors": errors, "failed": failed, "unwell": unwell, "seqs": seqs,
                      "told": told, "found": found}))

asyncio.run(main())
"""


def _on_a_disk_of_its_own(folder: Path, size: str, command: list[str]) -> list[str]:
    """The command in a mount namespace: the small disk is seen by it alone and goes with it."""
    inside = f'mount -t tmpfs -o size={size} none "{folder}" && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", inside, "sh", *command]


def _run_child(path: Path, condition: str) -> None:
    command = [sys.executable, "-c", _CHILD, str(path), condition]
    if condition == "full":
        command = _on_a_disk_of_its_own(path.parent, "400k", command)
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["failed"] > 0
    assert len(told["errors"]) == told["failed"], "it goes on by itself"
    for kind, text in told["errors"]:
        assert kind == "StoreUnavailable"
        assert str(path) in text
        assert "\n" not in text
    assert told["unwell"]
    if condition == "full":
        assert "disk is full" in told["errors"][0][1]
    assert sorted(told["found"]) == sorted(told["saved"]), "what was acknowledged is there, and nothing else"
    assert sorted(told["told"]) == sorted(told["saved"])
    assert told["seqs"] == list(range(1, len(told["saved"]) + 1))


def test_a_file_size_limit(path: Path) -> None:
    _run_child(path, "limit")


@pytest.fixture
def can_mount(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("needs Linux namespaces")
    probe = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", str(tmp_path)]
    if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs the right to mount")


@pytest.mark.usefixtures("can_mount")
def test_a_full_disk(path: Path) -> None:
    _run_child(path, "full")


_READ_ONLY_CHILD = """
import asyncio, os, subprocess, sys
from signoff.clock import SystemClock
from signoff.errors import StoreUnavailable
from signoff.stores.sqlite import open_sqlite
from signoff.testing.rows import make_event, putting

async def use():
    store = open_sqlite(f"sqlite://{sys.argv[1]}", SystemClock())
    await store.transact(putting(events=[make_event()]))
    await store.aclose()

def remount(mode):
    subprocess.run(["mount", "-o", f"remount,{mode}", os.path.dirname(sys.argv[1])], check=True)

asyncio.run(use())
remount("ro")
try:
    asyncio.run(use())
except StoreUnavailable as error:
    print(error)
remount("rw")
asyncio.run(use())
"""


@pytest.mark.usefixtures("can_mount")
def test_a_read_only_disk(path: Path) -> None:
    command = _on_a_disk_of_its_own(path.parent, "8m", [sys.executable, "-c", _READ_ONLY_CHILD, str(path)])
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert str(path) in line
    assert "Read-only file system" in line


@pytest.fixture
def as_nobody(tmp_path: Path) -> Iterator[None]:
    """File modes hold nothing against root, so root steps down for a moment."""
    if os.geteuid() != 0:
        yield
        return
    folder = tmp_path
    opened = []
    while folder != folder.parent and folder.stat().st_uid == 0:
        mode = folder.stat().st_mode
        if not mode & 0o001:
            opened.append((folder, mode))
            folder.chmod(mode | 0o011)
        folder = folder.parent
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        for folder, mode in opened:
            folder.chmod(mode)


def test_a_read_only_folder(tmp_path: Path, as_nobody: None) -> None:
    if os.geteuid() != 65534:
        tmp_path.chmod(0o500)
    refused(tmp_path / "signoff.db", StoreUnavailable, "folder writable")
    refused(tmp_path / "more" / "signoff.db", StoreUnavailable, "folder writable")


async def test_another_process_holds_the_lock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_file(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = [asyncio.ensure_future(store.transact(putting(Note(name=f"n{n}", value="1")))) for n in range(5)]
    lags = []
    loop = asyncio.get_running_loop()
    until = loop.time() + 0.3
    while loop.time() < until:
        began = loop.time()
        await asyncio.sleep(0.001)
        lags.append(loop.time() - began)
    # One that waited for the lock would stand until `LOCK_WAIT_S` has passed: only this loop lets go of the lock.
    assert sorted(lags)[len(lags) // 2] < 0.1, "the loop never waits for the lock"
    assert max(lags) < 0.9 * sqlite_writer.LOCK_WAIT_S
    assert not any(task.done() for task in waiting)
    assert await store.get(Note, "n0") is None
    other.execute("ROLLBACK")
    await asyncio.gather(*waiting)
    assert await store.get(Note, "n4") is not None

    monkeypatch.setattr(sqlite_writer, "LOCK_WAIT_S", 0.05)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="another process holds its lock"):
        await store.transact(putting(Note(name="late", value="1")))
    other.execute("ROLLBACK")
    other.close()
    await store.transact(putting(Note(name="late", value="2")))
    await store.aclose()


async def test_another_process_moves_the_numbers_on(path: Path) -> None:
    store, other = open_file(path), open_file(path)
    for _ in range(3):
        await store.transact(putting(events=[make_event()]))
        await other.transact(putting(events=[make_event(), make_event()]))
    assert [event.seq for event in await store.events("default", 0, limit=99)] == list(range(1, 10))
    await store.aclose()
    await other.aclose()


@pytest.mark.parametrize("bulk", [False, True])
def test_an_interrupted_change_holds_nothing_open(path: Path, bulk: bool) -> None:
    def interrupted(tx: Tx) -> None:
        tx.put(Note(name="n", value="half"))
        raise KeyboardInterrupt

    with asyncio.Runner() as runner:
        store = open_file(path)
        loop = runner.get_loop()
        caller = loop.create_task(store.transact(interrupted, bulk=bulk))
        if not bulk:  # on the loop it ends the loop, as an interrupt must
            with pytest.raises(KeyboardInterrupt):
                loop.run_until_complete(caller)
        with pytest.raises(StoreUnavailable, match="interrupted by KeyboardInterrupt"):
            loop.run_until_complete(caller)
        assert loop.run_until_complete(store.get(Note, "n")) is None
        loop.run_until_complete(store.transact(putting(Note(name="n", value="whole"))))
        loop.run_until_complete(store.aclose())


async def test_the_log_stays_small(path: Path) -> None:
    store = open_file(path)
    for start in range(0, 8000, 500):
        notes = [Note(name=f"n{n % 3000}", value="x" * 8000) for n in range(start, start + 500)]
        await asyncio.gather(*(store.transact(putting(*notes[n : n + 20])) for n in range(0, 500, 20)))
    facts = await store.check()
    assert facts["file_bytes"] + facts["wal_bytes"] > 16_000_000
    assert facts["wal_bytes"] < 40_000_000
    await store.aclose()
    assert not Path(f"{path}-wal").exists()


async def test_a_document_that_cannot_be_read_is_told(path: Path) -> None:
    store = open_file(path)
    await store.transact(putting(Note(name="n", value="1")))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("UPDATE notes SET row = '{\"name\": 5}'")
    other.close()
    with pytest.raises(StoreCorrupt, match="notes"):
        await store.get(Note, "n")
    with pytest.raises(StoreCorrupt, match="notes"):
        await store.transact(lambda tx: tx.get(Note, "n"))
    await store.transact(putting(Note(name="n", value="2")))
    assert await store.get(Note, "n") == Note(name="n", value="2")
    await store.aclose()


# --- the schema ---


async def test_the_schema_has_a_column_for_every_look_up(path: Path) -> None:
    await fill(path)
    db = sqlite3.connect(path)
    for table in TABLES:
        columns = {name for _, name, *_ in db.execute(f"PRAGMA table_info({table.name})")}
        wanted = {"key", "row", *SHAPES[table.row].columns}
        assert columns == wanted, f"{table.name}: a migration is missing"
    assert db.execute("PRAGMA user_version").fetchone()[0] == max(migrations())
    assert list(migrations()) == list(range(1, len(migrations()) + 1))
    db.close()


async def test_nothing_scans(path: Path) -> None:
    await fill(path)
    db = sqlite3.connect(path)
    statements = [
        sql
        for shape in SHAPES.values()
        for sql in (
            shape.select,
            shape.delete,
            shape.place,
            *((shape.due, shape.first_due) if shape.table.due else ()),
            *((shape.next_urgency,) if shape.table.urgency else ()),
            *(shape.find(path, after=after) for path in shape.table.columns for after in (False, True)),
        )
    ]
    assert len(statements) > 50
    for sql in statements:
        plan = [step for *_, step in db.execute(f"EXPLAIN QUERY PLAN {sql}", ("1",) * sql.count("?"))]
        steps = [step for step in plan if step.startswith(("SCAN", "SEARCH", "USE TEMP"))]
        for step in steps:
            ours = step.startswith("SEARCH") and "USING" in step
            outer = step.startswith(("SCAN (subquery", "SCAN SUBQUERY"))
            # Rows of one instant are sorted by key; they are few.
            ties = step.startswith("USE TEMP B-TREE FOR") and ("RIGHT PART" in step or "LAST TERM" in step)
            assert ours or outer or ties, (sql, plan)
        if "(ord, key) >" in sql and "leader_key" not in sql:
            assert any("ord>?" in step for step in steps), "a later page does not read the earlier ones"
    db.close()


async def test_own_and_others_changes_are_told_in_order(path: Path) -> None:
    mine, other = open_file(path), open_file(path)
    heard: list[Change] = []
    mine.subscribe(heard.extend)
    for number in range(20):
        store = other if number % 3 else mine
        await store.transact(putting(events=[make_event(data={"n": number})]))
    await mine.transact(putting(events=[make_event(data={"n": 20})]))
    # The commit above tells of all before it, without waiting for the next look.
    assert [change.event.data["n"] for change in heard] == list(range(21))
    await mine.aclose()
    await other.aclose()


async def test_many_rows_due_in_one_instant_are_not_sorted_each_time(path: Path) -> None:
    store = open_file(path)
    await store.transact(putting(*(make_copy(f"c{n}", due_at=at(1)) for n in range(200))), bulk=True)
    db = sqlite3.connect(path)
    plan = " ".join(step for *_, step in db.execute(f"EXPLAIN QUERY PLAN {SHAPES[Copy].due}", (2, 1.0, 32)))
    db.close()
    assert "TEMP B-TREE" not in plan
    assert len(await store.due(Copy, at(1), limit=32)) == 32
    assert await store.due(ApprovalRequest, at(1), limit=32) == []
    await store.aclose()
