"""One user's folder, one gateway on a store, and a store's file that goes away under it."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import pytest

from signoff.clock import SystemClock
from signoff.config import Config, load_config
from signoff.errors import ConfigError, StoreError, StoreUnavailable
from signoff.folder import private_folder, user_name
from signoff.gateway import Gateway
from signoff.model import Note
from signoff.pulse import CALM, FAILING_FOR
from signoff.server import serve
from signoff.stores.open import open_store, serving
from signoff.testing.clock import FakeClock
from signoff.testing.fake_adapter import FakeAdapter

NOBODY = 65534
LIMIT_S = 20.0


def config(folder: Path, store: Path | None = None) -> Config:
    environ = {"SIGNOFF_GATEWAY__STATE_DIR": str(folder)}
    if store is not None:
        environ["SIGNOFF_GATEWAY__STORE"] = f"sqlite://{store}"
    return load_config(None, environ)


def gateway(settings: Config) -> Gateway:
    return Gateway(settings, adapters={("default", "fake"): FakeAdapter()})


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while True:
            if true():
                return
            await asyncio.sleep(0.01)


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with gateway(config(tmp_path / "state")) as made:
        yield made


# --- the folder ----------------------------------------------------------------------------------


async def test_the_folder_is_private_before_anything_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o755)
    async with gateway(config(folder)):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {p.name for p in folder.iterdir()} >= {"signoff.db", "signoff.db.lock", "token.key"}
        for file in folder.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
async def test_another_users_folder_is_refused(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, NOBODY, -1)
    with pytest.raises(
        ConfigError, match=rf"gateway\.state_dir.*user {user_name(NOBODY)}.*sudo -u {user_name(NOBODY)} signoff"
    ):
        await gateway(config(theirs)).open()
    with pytest.raises(ConfigError, match=rf"gateway\.store.*user {user_name(NOBODY)}"):
        await gateway(config(tmp_path / "ours", theirs / "signoff.db")).open()
    assert not list(theirs.iterdir())


def test_a_file_in_the_folders_place(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(ConfigError, match=r"gateway\.state_dir"):
        private_folder(tmp_path / "state")


# --- one gateway on a store ----------------------------------------------------------------------


async def test_a_second_gateway_on_the_store_is_one_clear_line(running: Gateway, tmp_path: Path) -> None:
    store = tmp_path / "state" / "signoff.db"
    with pytest.raises(ConfigError) as error:
        await gateway(config(tmp_path / "other", store)).open()
    assert str(store) in str(error.value) and "already runs" in str(error.value)
    assert "\n" not in str(error.value)


async def test_the_store_is_free_again_once_the_gateway_ended(tmp_path: Path) -> None:
    for _ in range(2):
        async with gateway(config(tmp_path / "state")):
            pass
    damaged = tmp_path / "state" / "token.key"
    damaged.write_text("no key")
    for _ in range(2):
        with pytest.raises(ConfigError, match="damaged"):
            await gateway(config(tmp_path / "state")).open()


async def test_keys_are_made_beside_a_running_gateway(running: Gateway, tmp_path: Path) -> None:
    beside = open_store(f"sqlite://{tmp_path}/state/signoff.db", SystemClock())
    try:
        await beside.transact(lambda tx: tx.put(Note(name="beside", value="1")))
    finally:
        await beside.aclose()
    assert await running.store.get(Note, "beside") is not None


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/signoff.db"
    code = f"import os\nfrom signoff.stores.open import serving\nwith serving({url!r}):\n    os._exit(9)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    with serving(url), pytest.raises(ConfigError), serving(url):
        pass


def test_a_link_in_the_locks_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "signoff.db.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="lock file"), serving(f"sqlite://{tmp_path}/signoff.db"):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_what_is_no_file_is_not_locked() -> None:
    with serving("memory://"), serving("memory://"):
        pass


# --- the file goes away --------------------------------------------------------------------------


@pytest.mark.parametrize("replaced", [True, False])
async def test_a_store_whose_file_is_gone_saves_nothing(running: Gateway, tmp_path: Path, replaced: bool) -> None:
    file = tmp_path / "state" / "signoff.db"
    aside = file.with_name("aside")
    assert running.ready
    async with serve(running) as bound, aiohttp.ClientSession() as http:
        file.rename(aside)
        if replaced:
            file.write_bytes(aside.read_bytes())
        await until(lambda: not running.ready)
        async with http.get(f"{bound.api}/health/ready") as answer:
            assert answer.status == 503
        with pytest.raises(StoreUnavailable, match="replaced" if replaced else "removed"):
            await running.store.transact(lambda tx: tx.put(Note(name="lost", value="1")))
        assert (await running.health())["store"]["status"] == "failed"

        file.unlink(missing_ok=True)
        aside.rename(file)
        await until(lambda: running.ready)
        await running.store.transact(lambda tx: tx.put(Note(name="kept", value="1")))
        async with http.get(f"{bound.api}/health/ready") as answer:
            assert answer.status == 200


async def test_writes_are_refused_also_without_the_gateway_looking(tmp_path: Path) -> None:
    store = open_store(f"sqlite://{tmp_path}/signoff.db", SystemClock())
    store.subscribe(lambda changes: None)
    (tmp_path / "signoff.db").unlink()
    refused: list[StoreError] = []

    async def write() -> None:
        while not refused:
            try:
                await store.transact(lambda tx: tx.put(Note(name="n", value="1")))
            except StoreError as error:
                refused.append(error)
            await asyncio.sleep(0.02)

    try:
        async with asyncio.timeout(LIMIT_S):
            await write()
    finally:
        await store.aclose()
    assert isinstance(refused[0], StoreUnavailable)


# --- loops ---------------------------------------------------------------------------------------


async def test_a_loop_that_keeps_failing_makes_the_gateway_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    adapters = {("default", "fake"): FakeAdapter()}
    # In memory, since a moved clock waits for no thread.
    made = Gateway(config(tmp_path / "state"), adapters=adapters, clock=clock, store=open_store("memory://", clock))
    await made.open()

    async def broken() -> bool:
        raise ValueError("a defect")

    monkeypatch.setattr(made.sweeper, "sweep", broken)
    try:
        await made.connect(None)
        assert made.ready
        await clock.advance(FAILING_FOR.total_seconds() - 1)
        assert made.ready
        await clock.advance(3)
        assert not made.ready
        told = await made.health()
        assert "a defect" in told["failing"]["Sweeper.run"]
        assert list(told["unasked"]) == ["default"], "no platform, and no place in the console"
        monkeypatch.undo()
        await clock.advance(CALM.total_seconds() + 2)
        assert made.ready
    finally:
        await made.aclose()
