"""The operator's file is watched: no question looks at the disk for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from signoff.allowlist_file import AllowlistFile, Entries, Mark, allowlist_path
from signoff.allowlisting import LOOK_EVERY
from signoff.broker import Ask
from signoff.config import load_config
from signoff.gateway import Gateway
from signoff.model import Command
from signoff.testing.clock import FakeClock
from signoff.testing.fake_adapter import FakeAdapter

QUESTIONS = 30
LIMIT_S = 20.0


async def test_questions_look_at_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    mark, read = AllowlistFile.mark, AllowlistFile.read

    def marked(file: AllowlistFile) -> Mark:
        looked.append("mark")
        return mark(file)

    def reading(file: AllowlistFile) -> Entries:
        looked.append("read")
        return read(file)

    settings = tmp_path / "signoff.toml"
    settings.write_text("")
    path = allowlist_path(tmp_path / "state", "default")
    path.parent.mkdir(parents=True)
    path.write_text('commands = ["rm -rf build"]\n')
    config = load_config(settings, {"SIGNOFF_GATEWAY__STATE_DIR": str(tmp_path / "state")})
    clock = FakeClock()
    async with Gateway(config, adapters={("default", "fake"): FakeAdapter("fake")}, clock=clock) as made:
        await made.session("s", kind="chat", destination="fake:1")
        # What watches the file sleeps by this clock, which stands still.
        monkeypatch.setattr(AllowlistFile, "mark", marked)
        monkeypatch.setattr(AllowlistFile, "read", reading)
        for number in range(QUESTIONS):
            admitted = await made.broker.submit("default", Ask(action=Command(command="rm -rf build"), session_id="s"))
            assert admitted.row.rung == "allowlist"
            await made.broker.submit("default", Ask(action=Command(command=f"rm -rf {number}"), session_id="s"))
            await made.check(Command(command="rm -rf build"), session_id="s")
        assert looked == []
        async with asyncio.timeout(LIMIT_S):
            while "mark" not in looked:  # it is watched all the same
                await clock.advance(LOOK_EVERY.total_seconds())
                await asyncio.sleep(0)
