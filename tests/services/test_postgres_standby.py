"""A server with a synchronous standby that is away: what no standby has is acknowledged to nobody."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest
from tests.services.postgres import Server, own_server

from signoff.clock import SystemClock
from signoff.errors import SaveUnknown
from signoff.model import Change, Note
from signoff.ports import Store
from signoff.stores import postgres_writer
from signoff.stores.open import open_store
from signoff.testing.rows import make_event, putting

pytestmark = pytest.mark.heavy

_WAITERS = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with own_server({"wal_level": "replica", "max_wal_senders": "1"}) as ours:
        yield ours


def _standby(server: Server, name: str) -> None:
    """From now on a commit waits for the standby of this name; for none if it is empty."""
    server.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
    server.execute("SELECT pg_reload_conf()")
    until = time.monotonic() + 60
    while server.execute("SHOW synchronous_standby_names") != [(name,)]:
        assert time.monotonic() < until, name
        time.sleep(0.01)


async def _waits(server: Server, waiters: int = 1) -> None:
    """Return once so many commits wait for the standby."""
    async with asyncio.timeout(60):
        while server.execute(f"SELECT count(*) {_WAITERS}") != [(waiters,)]:  # noqa: ASYNC110  # the server does it
            await asyncio.sleep(0.01)


def _cancel(server: Server) -> None:
    server.execute(f"SELECT pg_cancel_backend(pid) {_WAITERS}")


def _terminate(server: Server) -> None:
    server.execute(f"SELECT pg_terminate_backend(pid) {_WAITERS}")


def _restart(server: Server) -> None:
    server.stop()
    server.start()


@pytest.fixture
async def store(server: Server, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(postgres_writer, "DOUBT_S", 1.0)
    _standby(server, "")
    server.execute("DROP SCHEMA IF EXISTS signoff CASCADE")
    return open_store(server.tcp_url("postgres"), SystemClock())


async def test_a_commit_that_waits_too_long_is_not_known_and_goes_on_waiting(
    server: Server, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_writer, "COMMIT_S", 0.3)
    heard: list[Change] = []
    store.subscribe(heard.extend)
    _standby(server, "nobody")
    changes = [putting(Note(name=name, value="1"), events=[make_event()]) for name in ("n", "m")]
    told = await asyncio.gather(*map(store.transact, changes), return_exceptions=True)
    assert [type(error) for error in told] == [SaveUnknown, SaveUnknown]
    await _waits(server)
    assert await store.get(Note, "n") is None
    _standby(server, "")
    async with asyncio.timeout(60):
        while len(heard) < 2:  # noqa: ASYNC110  # the feed reads the log by itself
            await asyncio.sleep(0.01)
    assert await store.get(Note, "n") == Note(name="n", value="1")
    await store.transact(putting(events=[make_event()]))
    assert [change.event.seq for change in heard] == [1, 2, 3]
    await store.aclose()


async def test_a_standby_that_took_over_is_not_asked_what_became_of_it(server: Server, store: Store) -> None:
    """By the same number it may know another transaction."""
    await store.transact(putting(Note(name="n", value="0")))
    _standby(server, "nobody")
    saving = asyncio.ensure_future(store.transact(putting(Note(name="n", value="1"))))
    await _waits(server)
    server.execute("ALTER SYSTEM SET synchronous_standby_names = ''")  # read when it starts
    await asyncio.to_thread(server.stop)
    await asyncio.to_thread(server.promote)
    with pytest.raises(SaveUnknown):
        await saving
    await store.transact(putting(Note(name="n", value="2")))
    await store.aclose()


@pytest.mark.parametrize("breaking", [_cancel, _terminate, _restart])
@pytest.mark.parametrize("returns", [False, True])
async def test_a_wait_that_was_broken_off_counts_only_once_the_standby_is_back(
    server: Server, store: Store, breaking: Callable[[Server], None], returns: bool
) -> None:
    """The server calls the commit done, and shows it to everybody."""
    _standby(server, "nobody")
    saving = asyncio.ensure_future(store.transact(putting(Note(name="n", value="1"))))
    await _waits(server)
    await asyncio.to_thread(breaking, server)
    if returns:
        await _waits(server)  # the proof
        assert not saving.done()
        _standby(server, "")
        await saving
    else:
        with pytest.raises(SaveUnknown, match="not known whether it was saved"):
            await saving
    assert await store.get(Note, "n") == Note(name="n", value="1")
    _standby(server, "")
    await store.transact(putting(Note(name="n", value="2")))
    await store.aclose()
