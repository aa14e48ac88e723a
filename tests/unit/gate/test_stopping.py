"""A stop that has used its time on presses waits for no executor on top of that."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit.core.harness import BY_ANN
from tests.unit.gate.test_gateway import SETTINGS

from signoff import gateway as root
from signoff.config import load_config
from signoff.executors import Call
from signoff.testing.fake_adapter import FakeAdapter


async def test_executors_share_the_time_of_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root, "STOP_WITHIN_S", 0.1)
    loop, begun = asyncio.get_running_loop(), asyncio.Event()

    async def hang(call: Call) -> None:
        begun.set()
        await asyncio.Event().wait()

    file = tmp_path / "signoff.toml"
    file.write_text(
        f'[gateway]\nstate_dir = "{tmp_path}"\nstore = "memory://"\n{SETTINGS.replace("fake:900", "console:900")}'
    )
    made = root.Gateway(load_config(file, {}), adapters={("default", "fake"): FakeAdapter()})
    made.executor("hanging", tools=("send_*",), run=hang)
    async with made:
        await made.session("job", kind="cron")
        await made.gate.call("send_slow", {}, session_id="job")
        (action,) = await made.actions()
        await made.approve_action(action.short_id, BY_ANN)
        async with asyncio.timeout(20):
            await begun.wait()
        before = loop.time()
    assert loop.time() - before < root.RUNS_WITHIN_S
