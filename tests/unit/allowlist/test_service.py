"""The file, the grants and the judgement of a whole gateway, with people who answer and operators who edit."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from signoff.allowlist_file import AllowlistFile, allowlist_path
from signoff.allowlisting import BY_HAND
from signoff.broker import Ask
from signoff.config import load_config
from signoff.errors import StoreUnavailable
from signoff.gateway import Gateway
from signoff.model import Actor, Command, Grant
from signoff.testing.fake_adapter import FakeAdapter

ANN = Actor(type="person", principal="ann", name="ann", via="api")
PUSH = "git push --force origin main"
CLEAN = "rm -rf build"
LIMIT_S = 20.0
PLACE = "fake:1"


@asynccontextmanager
async def gateway(folder: Path, text: str = "") -> AsyncIterator[Gateway]:
    """A gateway over the SQLite store of that folder, with one session."""
    file = folder / "signoff.toml"
    file.write_text(text)
    config = load_config(file, {"SIGNOFF_GATEWAY__STATE_DIR": str(folder / "state")})
    adapters = {(name, "fake"): FakeAdapter("fake") for name in config.profiles}
    async with Gateway(config, adapters=adapters) as made:
        for name in config.profiles:
            await made.session("s", kind="chat", destination=PLACE, profile=name)
        yield made


async def soon(true: Callable[[], Awaitable[bool]]) -> None:
    """Return once it holds."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            if await true():
                return
            await asyncio.sleep(0.01)


async def until(fact: Callable[[], bool]) -> None:
    """Return once it holds."""

    async def true() -> bool:
        return fact()

    await soon(true)


async def asked(made: Gateway, command: str, session: str = "s", profile: str = "default") -> str | None:
    """Whether a person is asked: the outcome it was born with, None when it waits (it is then withdrawn)."""
    row = (await made.broker.submit(profile, Ask(action=Command(command=command), session_id=session))).row
    if row.outcome is None:
        await made.cancel(row.request_id, profile=profile)
    return row.outcome


async def always(made: Gateway, command: str, profile: str = "default") -> Grant:
    """Answer a question "always"; the permanent grant."""
    row = (await made.broker.submit(profile, Ask(action=Command(command=command), session_id="s"))).row
    await made.decide(row.request_id, "always", ANN, profile=profile)
    return next(grant for grant in await made.grants(profile=profile) if grant.scope == "always")


def lines(folder: Path, profile: str = "default") -> str:
    """The file's text; empty where there is none."""
    path = allowlist_path(folder / "state", profile)
    return path.read_text() if path.exists() else ""


async def filed(made: Gateway) -> bool:
    """Whether every permanent grant has its line."""
    return all(grant.filed for grant in await made.grants() if grant.scope == "always")


async def gone(made: Gateway) -> bool:
    """Whether no permanent grant lives."""
    return "always" not in await live(made)


async def live(made: Gateway, profile: str = "default") -> list[str]:
    return [grant.scope for grant in await made.grants(profile=profile)]


async def test_always_is_written_down_and_its_line_taken_out_ends_it(tmp_path: Path) -> None:  # 7.5
    async with gateway(tmp_path) as made:
        grant = await always(made, CLEAN)
        await until(lambda: CLEAN in lines(tmp_path))
        await made.session("other", kind="chat", destination=PLACE)
        assert await asked(made, CLEAN, "other") == "approved"
        path = allowlist_path(tmp_path / "state", "default")
        path.write_text(re.sub(rf'"{CLEAN}",?', "", path.read_text()))
        await soon(lambda: gone(made))
        assert await asked(made, CLEAN, "other") is None
        ended = await made.store.get(Grant, f"default\x1f{grant.grant_id}")
        assert ended is not None
        assert (ended.revoked_by, ended.filed) == (BY_HAND, False)


async def test_a_line_taken_out_while_no_gateway_was_up_ends_it_too(tmp_path: Path) -> None:
    async with gateway(tmp_path) as made:
        await always(made, CLEAN)
        await soon(lambda: filed(made))
        await until(lambda: CLEAN in lines(tmp_path))
    allowlist_path(tmp_path / "state", "default").write_text("commands = []\n")
    async with gateway(tmp_path) as made:
        assert "always" not in await live(made)
        assert await asked(made, CLEAN) == "approved", "what the same answer allowed for its session lives on"
        await made.session("other", kind="chat", destination=PLACE)
        assert await asked(made, CLEAN, "other") is None


async def test_a_revoked_grant_takes_its_line_with_it(tmp_path: Path) -> None:
    async with gateway(tmp_path) as made:
        grant = await always(made, CLEAN)
        await until(lambda: CLEAN in lines(tmp_path))
        path = allowlist_path(tmp_path / "state", "default")
        path.write_text(path.read_text() + "# ours\n")
        await made.revoke(grant.grant_id, ANN)
        assert await asked(made, CLEAN) is None, "at once, whenever the file follows"
        await until(lambda: CLEAN not in lines(tmp_path))
        assert "# ours" in lines(tmp_path)


async def test_a_revocation_whose_line_could_not_be_removed_is_made_up_for_at_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with gateway(tmp_path) as made:
        grant = await always(made, CLEAN)
        await soon(lambda: filed(made))
        await until(lambda: CLEAN in lines(tmp_path))
        path = allowlist_path(tmp_path / "state", "default")
        good = path.read_text()
        path.write_text("commands = [")
        await until(lambda: "is not TOML" in caplog.text)
        await made.revoke(grant.grant_id, ANN)
    path.write_text(good)
    async with gateway(tmp_path) as made:
        assert CLEAN not in lines(tmp_path)
        assert await asked(made, CLEAN) is None


async def test_an_operators_entries_allow_and_cease_to(tmp_path: Path) -> None:  # 7.5 #101741 #110811
    path = allowlist_path(tmp_path / "state", "default")
    async with gateway(tmp_path) as made:
        assert await asked(made, PUSH) is None
        path.write_text('commands = ["git push *"]\n')
        await until(lambda: made.profiles["default"].allowlist.commands == ("git push *",))
        assert await asked(made, PUSH) == "approved"
        assert await asked(made, f"{PUSH}; {CLEAN}") is None
        path.write_text("")
        await until(lambda: made.profiles["default"].allowlist.commands == ())
        assert await asked(made, PUSH) is None


async def test_a_line_taken_out_admits_nothing_though_the_store_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = allowlist_path(tmp_path / "state", "default")
    async with gateway(tmp_path) as made:
        path.write_text(f'commands = ["{PUSH}", "{CLEAN}"]\n')
        await until(lambda: made.profiles["default"].allowlist.commands == (PUSH, CLEAN))

        async def fails(*_arguments: object, **_options: object) -> None:
            raise StoreUnavailable("no answer")

        with monkeypatch.context() as broken:
            broken.setattr(made.store, "find", fails)
            path.write_text(f'commands = ["{CLEAN}", "git fetch"]\n')
            await until(lambda: made.profiles["default"].allowlist.commands == (CLEAN,))


async def test_a_file_that_cannot_be_read_admits_nothing_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = allowlist_path(tmp_path / "state", "default")
    async with gateway(tmp_path) as made:
        path.write_text(f'commands = ["{PUSH}"]\n')
        await until(lambda: made.profiles["default"].allowlist.commands == (PUSH,))
        path.write_text(f'commands = ["{PUSH}"\n')
        await until(lambda: made.profiles["default"].allowlist.commands == ())
        assert await asked(made, PUSH) is None
        await always(made, CLEAN)
        await until(lambda: "Could not save allowlist" in caplog.text or CLEAN in lines(tmp_path))
        assert CLEAN not in lines(tmp_path)
        assert await asked(made, CLEAN) == "approved", "the answer itself holds"
        path.write_text("")
        await until(lambda: CLEAN in lines(tmp_path))
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1


async def test_one_profiles_always_is_not_anothers(tmp_path: Path) -> None:  # 7.6
    text = "[profiles.a]\n[profiles.b]\n"
    async with gateway(tmp_path, text) as made:
        await always(made, CLEAN, "a")
        await until(lambda: CLEAN in lines(tmp_path, "a"))
        assert not allowlist_path(tmp_path / "state", "b").exists()
        assert await asked(made, CLEAN, profile="b") is None


async def test_other_edits_stay_when_an_answer_is_written_down(tmp_path: Path) -> None:
    path = allowlist_path(tmp_path / "state", "default")
    async with gateway(tmp_path) as made:
        path.write_text('commands = ["A", "B"]\n')
        await until(lambda: made.profiles["default"].allowlist.commands == ("A", "B"))
        path.write_text('commands = ["B", "C"]\n')
        await always(made, CLEAN)
        await until(lambda: CLEAN in lines(tmp_path))
        assert made.profiles["default"].allowlist.commands == ("B", "C")
        assert AllowlistFile(path).read().commands == ("B", "C", CLEAN)


async def test_a_full_disk_is_logged_and_the_line_comes_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:  # 7.3
    async with gateway(tmp_path) as made:
        sync = os.fsync

        def full(descriptor: int) -> None:
            if os.readlink(f"/proc/self/fd/{descriptor}").rpartition("/")[2].startswith(".allowlist.toml."):
                raise OSError(28, "No space left on device")
            sync(descriptor)

        monkeypatch.setattr(os, "fsync", full)
        await always(made, CLEAN)
        await until(lambda: "Could not save allowlist" in caplog.text)
        assert "No space left on device" in caplog.text
        assert await asked(made, CLEAN) == "approved"
        monkeypatch.setattr(os, "fsync", sync)
        allowlist_path(tmp_path / "state", "default").write_text("# room again\n")
        await until(lambda: CLEAN in lines(tmp_path))
        assert "# room again" in lines(tmp_path)


async def test_a_grant_that_is_revoked_while_its_line_is_written_leaves_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, go_on = threading.Event(), threading.Event()
    add = AllowlistFile.add

    def slowly(file: AllowlistFile, commands: list[str]) -> bool:
        done = add(file, commands)
        written.set()
        go_on.wait(LIMIT_S)
        return done

    monkeypatch.setattr(AllowlistFile, "add", slowly)
    async with gateway(tmp_path) as made:
        grant = await always(made, CLEAN)
        await until(written.is_set)
        await made.revoke(grant.grant_id, ANN)
        assert await asked(made, CLEAN) is None
        go_on.set()
        await until(lambda: CLEAN not in lines(tmp_path))
        assert await asked(made, CLEAN) is None
    async with gateway(tmp_path) as made:
        assert await asked(made, CLEAN) is None
