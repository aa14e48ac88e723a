"""Gateways of one store that sign their buttons with keys of their own are told of it; those that rotate are not."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from signoff.changes import token_keys
from signoff.key_marks import KeyMarks
from signoff.keyring import load_signer, marks, rotate
from signoff.model import Note
from signoff.stores.memory import MemoryStore
from signoff.testing.clock import FakeClock
from signoff.testing.rows import T0

DAY_S = 86_400


class Machine:
    """A gateway's key file, and what its starts log."""

    def __init__(self, path: Path, store: MemoryStore, clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
        self.path, self._store, self._clock, self._caplog = path, store, clock, caplog
        load_signer(path, clock.now())

    async def starts(self) -> list[str]:
        """Start it once; what it told an operator."""
        self._caplog.clear()
        await KeyMarks(self._store, self._clock, marks(self.path, self._clock.now())).tell()
        return [record.getMessage() for record in self._caplog.records if record.levelno == logging.ERROR]

    def takes_the_file_of(self, other: Machine) -> None:
        """Copy the key file."""
        self.path.write_bytes(other.path.read_bytes())


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(T0)


@pytest.fixture
def store(clock: FakeClock) -> MemoryStore:
    return MemoryStore(clock)


@pytest.fixture
def two(
    tmp_path: Path, store: MemoryStore, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> tuple[Machine, Machine]:
    one, other = (Machine(tmp_path / name, store, clock, caplog) for name in ("one", "other"))
    return one, other


async def test_two_files_are_told_at_both_until_they_are_one(two: tuple[Machine, Machine], store: MemoryStore) -> None:
    one, other = two
    assert await one.starts() == []
    (told,) = await other.starts()
    assert "refused here. Give every gateway the same key file" in told
    assert len(await one.starts()) == 1
    note = await store.get(Note, token_keys.NOTE)
    assert note is not None
    assert not any(secret in note.value + told for secret in _secrets(one.path, other.path))
    other.takes_the_file_of(one)
    assert len(await other.starts()) == 1  # its old cards are open for a while
    assert len(await one.starts()) == 1


async def test_a_key_that_nobody_tells_of_is_forgotten(two: tuple[Machine, Machine], clock: FakeClock) -> None:
    one, other = two
    await other.starts()
    assert len(await one.starts()) == 1
    await clock.advance(30 * DAY_S)
    assert await one.starts() == []


async def test_rotating_is_no_trouble_where_the_file_is_carried_on(
    two: tuple[Machine, Machine], clock: FakeClock
) -> None:
    one, other = two
    other.takes_the_file_of(one)
    assert await one.starts() == await other.starts() == []
    rotate(one.path, clock.now())
    assert await one.starts() == []
    assert len(await other.starts()) == 1  # its file is the older one
    other.takes_the_file_of(one)
    assert await other.starts() == await one.starts() == []
    await clock.advance(40 * DAY_S)
    assert await one.starts() == await other.starts() == []


async def test_what_was_told_is_not_told_each_hour(
    two: tuple[Machine, Machine], store: MemoryStore, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = two
    await one.starts()
    watch = KeyMarks(store, clock, marks(other.path, clock.now()))
    caplog.clear()
    for _ in range(3):
        await watch.tell()
        await clock.advance(token_keys.TELL_EVERY.total_seconds())
    assert len(caplog.records) == 1


def _secrets(*paths: Path) -> list[str]:
    return [line.split('"')[3] for path in paths for line in path.read_text().splitlines() if '"secret"' in line]
