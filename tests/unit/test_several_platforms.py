"""One platform that does not work is told once, and is no trouble to the others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from importlib.metadata import EntryPoint
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import pytest

from signoff import gateway as root
from signoff import receiving
from signoff.budget import Budget
from signoff.config import Config, load_config
from signoff.errors import AdapterError, AdapterFatal, AdapterUnavailable
from signoff.gateway import Gateway
from signoff.model import Destination, Health
from signoff.ports import Inbox
from signoff.testing.clock import FakeClock
from signoff.testing.fake_adapter import FakeAdapter
from signoff_adapters.discord.adapter import DiscordAdapter
from signoff_adapters.slack import watch as slack_watch
from signoff_adapters.watching import Watch

GONE = AdapterUnavailable("Nobody is there.")
WRONG = AdapterFatal("The platform rejects the token.")


class Failing(FakeAdapter):
    """An adapter whose first round fails, and that may end or come back afterwards."""

    def __init__(self, *, then: str = "") -> None:
        """`then`: `ended` or `back`, soon after the first round."""
        super().__init__("poor")
        self.then = then
        self.running = asyncio.Event()

    async def run(self, inbox: Inbox) -> None:
        """Fail, and be what it is to be then."""
        self.running.set()
        if self.then == "ended":
            raise WRONG
        await super().run(inbox)

    async def ready(self) -> None:
        """The first round's failure."""
        await self.running.wait()
        raise GONE

    def health(self) -> Health:
        """Degraded, unless it is back."""
        if self.then == "ended":
            return Health(state="stopped")
        return Health(state="ready") if self.then == "back" else Health(state="degraded", detail=GONE.message)


def config(folder: Path, text: str = "") -> Config:
    file = folder / "signoff.toml"
    file.write_text(f'[gateway]\nstate_dir = "{folder}"\nstore = "memory://"\n{text}')
    return load_config(file, {})


async def lines(folder: Path, adapter: FakeAdapter, caplog: pytest.LogCaptureFixture) -> list[str]:
    """What is told of it, beside another that works."""
    adapters = {("default", "poor"): adapter, ("default", "fake"): FakeAdapter()}
    async with Gateway(config(folder), adapters=adapters) as gateway:
        assert gateway.ready
        await asyncio.gather(*gateway._receiving._telling)
        platforms = (await gateway.health())["platforms"]
        assert platforms["default/fake"]["state"] == "ready"
        if adapter.health().state == "stopped":
            assert platforms["default/poor"]["detail"] == WRONG.message
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize(
    ("then", "told"),
    [
        ("", ["platforms.poor (profile default) is not connected: Nobody is there; it is tried again"]),
        ("ended", ["platforms.poor stopped: The platform rejects the token."]),
        ("back", []),
    ],
)
async def test_a_failed_start_is_one_line(
    then: str, told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(receiving, "FIRST_TRY_S", 0.5)
    assert await lines(tmp_path, Failing(then=then), caplog) == told


async def test_a_missing_library_is_one_line_and_in_health(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Missing(EntryPoint):
        def load(self) -> Any:
            raise ModuleNotFoundError("No module named 'discord'", name="discord")

    def points(group: str, name: str) -> list[EntryPoint]:
        return [Missing(name, "nowhere", group)]

    monkeypatch.setattr(root, "entry_points", points)
    text = '[platforms.discord]\ntoken = "x"\napprovers = ["1"]\n'
    async with Gateway(config(tmp_path, text)) as gateway:
        found = (await gateway.health())["platforms"]["default/discord"]
        assert gateway.ready
    why = "its library is missing (discord). Mend: pip install 'signoff[discord]'"
    assert found == {"state": "stopped", "last_heard_at": None, "detail": why, "history": []}
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING] == [f"platforms.discord: {why}"]


class Watched(Protocol):
    """The adapters' record of their connection, as far as it is alike."""

    def health(self) -> Health:
        """What it tells."""


Fail = Callable[[Any, AdapterError], None]
Hear = Callable[[Any], None]


def _slack_hears(watch: slack_watch.Watch) -> None:
    watch.works(slack_watch.WEB)
    watch.works("socket 1")


@pytest.mark.parametrize(
    ("made", "fail", "hear"),
    [
        (partial(Watch, platform="Telegram"), Watch.failed, Watch.heard),
        (slack_watch.Watch, lambda watch, error: watch.fails(slack_watch.WEB, error), _slack_hears),
    ],
    ids=["one connection", "several"],
)
def test_a_failure_is_loud_once_it_has_worked(
    made: Callable[..., Watched], fail: Fail, hear: Hear, caplog: pytest.LogCaptureFixture
) -> None:
    """Before that the gateway tells it, and all its lines together are one."""
    watch = made(FakeClock(), deaf_after_s=45)
    fail(watch, GONE)
    assert watch.health().state == "degraded"
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    hear(watch)
    fail(watch, GONE)
    [line] = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert "Nobody is there." in line


async def test_discord_takes_no_more_than_five_messages_in_five_seconds_in_a_channel() -> None:
    """With most of a second to spare, since the first of them may be longer on its way than the last."""
    clock, budget, place = FakeClock(), Budget(DiscordAdapter.info), Destination("discord", "1", None)
    times = []
    for _ in range(40):
        await clock.advance(budget.wait(place, "post", clock.now(), group=True, priority=0))
        budget.take(place, "post", clock.now(), group=True)
        times.append(clock.now())
    spans = [later - earlier for earlier, later in zip(times, times[5:], strict=False)]
    assert timedelta(seconds=5.9) < min(spans)
    assert max(b - a for a, b in pairwise(times)) < timedelta(seconds=7)
