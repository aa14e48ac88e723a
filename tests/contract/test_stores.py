"""The contract over every engine, and what only a file can be asked: to survive the process."""

from __future__ import annotations

# ruff: noqa: ASYNC240  # a test may look at a file without a thread
import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.services.postgres import worker_database

from signoff.errors import ConfigError
from signoff.model import ApprovalRequest, Change, Note
from signoff.ports import Store
from signoff.rows import key_of
from signoff.stores.memory import open_memory
from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock
from signoff.testing.rows import EVERY_ROW, at, make_copy, make_event, make_request, putting
from signoff.testing.store_contract import StoreContract

ENGINES = ("memory", "memory-replay", "sqlite", "postgresql")


def open_engine(engine: str, folder: Path) -> Store:
    """Open one of `ENGINES`, empty; the file in `folder`."""
    urls = {"memory": "memory://", "memory-replay": "memory://?replay=2", "sqlite": f"sqlite://{folder}/signoff.db"}
    return open_store(worker_database().url if engine == "postgresql" else urls[engine], FakeClock())


class TestStores(StoreContract):
    """Every engine keeps the contract."""

    @pytest.fixture(params=ENGINES)
    async def store(self, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
        """An open store."""
        store = open_engine(request.param, tmp_path)
        yield store
        await store.aclose()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/signoff.db"


def test_an_unknown_scheme_is_a_setting_to_mend() -> None:
    with pytest.raises(ConfigError, match=r"gateway\.store names mongodb://.*sqlite://"):
        open_store("mongodb://user:secret@host/db", FakeClock())
    with pytest.raises(ConfigError) as caught:
        open_store("mongodb://user:secret@host/db", FakeClock())
    assert "secret" not in str(caught.value)
    for wrong in (
        "memory://host",
        "memory://?replay=0",
        "memory://?replays=2",
        "signoff.db",
        "sqlite://",
        "sqlite:///",
    ):
        with pytest.raises(ConfigError, match=r"gateway\.store"):
            open_store(wrong, FakeClock())


async def test_replay_shows_a_change_that_is_not_pure() -> None:
    store = open_memory("memory://?replay=3", FakeClock())
    runs: list[int] = []

    def impure(tx: object) -> int:
        runs.append(1)
        return len(runs)

    assert await store.transact(impure) == 3
    await store.transact(putting(events=[make_event()]))
    assert await store.last_seq("default") == 1


async def test_reopening_keeps_everything(url: str, tmp_path: Path) -> None:
    store = open_store(url, FakeClock())
    await store.transact(putting(*EVERY_ROW, make_copy("due", due_at=at(5)), events=[make_event(), make_event()]))
    await store.aclose()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["signoff.db"]
    assert (tmp_path / "signoff.db").stat().st_mode & 0o777 == 0o600
    store = open_store(url, FakeClock())
    for row in EVERY_ROW:
        assert await store.get(type(row), key_of(row)) == row
    assert [event.seq for event in await store.events("default", 0, limit=9)] == [1, 2]
    await store.transact(putting(events=[make_event()]))
    assert await store.last_seq("default") == 3
    assert [copy.copy_id for copy in await store.due(type(make_copy()), at(5), limit=9)] == ["due"]
    await store.aclose()


async def test_closing_leaves_no_thread_and_no_handle(url: str) -> None:
    store = open_store(url, FakeClock())
    stop = store.subscribe(lambda changes: None)
    await store.transact(putting(*(make_request(f"r{n}") for n in range(100))))
    await store.find(ApprovalRequest, "profile", "default")
    assert any(thread.name.startswith("signoff-store") for thread in threading.enumerate())
    await store.aclose()
    stop()
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("signoff-store")]
    handles = Path(f"/proc/{os.getpid()}/fd")
    if handles.exists():
        open_files = [os.readlink(handle) for handle in handles.iterdir() if handle.is_symlink()]
        assert not [name for name in open_files if "signoff.db" in name]


async def test_two_stores_on_one_file_hear_each_other(url: str) -> None:
    mine, other = open_store(url, FakeClock()), open_store(url, FakeClock())
    heard: list[Change] = []
    theirs: list[Change] = []
    await other.transact(putting(events=[make_event(data={"n": -1})]))
    mine.subscribe(heard.extend)
    other.subscribe(theirs.extend)

    async def emit(store: Store, number: int) -> None:
        row = make_request(f"r{number}")
        await store.transact(putting(row, events=[make_event(request_id=row.request_id, data={"n": number})]))

    await asyncio.gather(*(emit((mine, other)[n % 2], n) for n in range(300)))
    async with asyncio.timeout(60):
        while len(heard) < 300 or len(theirs) < 300:  # noqa: ASYNC110  # the store looks for others' commits on its own
            await asyncio.sleep(0.01)
    log = await mine.events("default", 1, limit=1000)
    assert [event.seq for event in log] == list(range(2, 302))
    assert [change.event for change in heard] == log
    assert [change.event for change in theirs] == log
    for change in heard:
        assert change.request is not None
        assert change.request.request_id == change.event.request_id
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


@pytest.mark.parametrize("children", [1, 2])
async def test_a_killed_process_loses_nothing_it_acknowledged(url: str, tmp_path: Path, children: int) -> None:
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", _WRITER, url, f"w{n}", stdout=asyncio.subprocess.PIPE, cwd=tmp_path
        )
        for n in range(children)
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
    assert len(acknowledged) >= 400 * children
    store = open_store(url, FakeClock())
    found = {row.request_id for row in await store.find(ApprovalRequest, "profile", "default")}
    assert acknowledged <= found
    events = await store.events("default", 0, limit=1_000_000)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert {event.request_id for event in events} == found
    await store.transact(putting(Note(name="still", value="writable")))
    await store.aclose()
