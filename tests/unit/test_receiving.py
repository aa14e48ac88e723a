"""What an adapter raises that it may not is logged, and neither the others nor the store suffer from it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from signoff import receiving
from signoff.config import Config, load_config
from signoff.errors import StoreError
from signoff.gateway import Gateway
from signoff.ports import Inbox
from signoff.testing.fake_adapter import FakeAdapter


class Faulty(FakeAdapter):
    """Raises what no adapter may, where a test wants it."""

    def __init__(self, *, closing: bool = False, first: bool = False, runs: int = 0) -> None:
        super().__init__("faulty")
        self.closing, self.first, self.failing_runs = closing, first, runs
        self.ran = 0
        self.well = asyncio.Event()

    async def run(self, inbox: Inbox) -> None:
        self.ran += 1
        if self.ran <= self.failing_runs:
            raise KeyError("a defect in run")
        self.well.set()
        await super().run(inbox)

    async def ready(self) -> None:
        if self.first:
            raise ValueError("a defect in ready")

    async def aclose(self) -> None:
        if self.closing:
            raise RuntimeError("a defect in aclose")


class Closed(FakeAdapter):
    """Knows that it was closed."""

    closed = False

    async def aclose(self) -> None:
        self.closed = True


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return load_config(None, {"SIGNOFF_GATEWAY__STATE_DIR": str(tmp_path)})


async def test_an_adapter_that_does_not_close_keeps_nothing_open(
    config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    other = Closed("other")
    gateway = Gateway(config, adapters={("default", "faulty"): Faulty(closing=True), ("default", "other"): other})
    async with gateway:
        pass
    assert other.closed
    with pytest.raises(StoreError):
        await gateway.store.check()
    assert "platforms.faulty: closing ended in an error" in caplog.text


async def test_a_first_try_that_raises_anything_is_told_and_the_gateway_starts(
    config: Config, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(receiving, "FIRST_TRY_S", 0.05)
    adapter = Faulty(first=True, runs=1)
    adapters = {("default", "faulty"): adapter, ("default", "other"): FakeAdapter("other")}
    async with Gateway(config, adapters=adapters) as gateway:
        assert set((await gateway.health())["platforms"]) == {"default/faulty", "default/other"}
        await asyncio.gather(*gateway._receiving._telling)
    told = "platforms.faulty (profile default) is not connected: a defect of the adapter (ValueError)"
    assert any(told in record.getMessage() for record in caplog.records if record.levelno == logging.ERROR)


async def test_receiving_goes_on_after_many_errors(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it failed before, one that was well for a while begins with the first pause again."""
    monkeypatch.setattr(receiving, "RESTART_S", (0.0, 3600.0))
    monkeypatch.setattr(receiving, "WELL_AFTER_S", 0.0)
    adapter = Faulty(runs=20)
    async with Gateway(config, adapters={("default", "faulty"): adapter}):
        async with asyncio.timeout(10):
            await adapter.well.wait()
    assert adapter.ran == 21
