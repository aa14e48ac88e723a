"""Settings, tokens that do not work, and what is logged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.contract.test_slack import ANA, APP_TOKEN, BOT_TOKEN, GROUP, SECRET, SlackStage, slack_stage

from signoff.errors import AdapterFatal, ConfigError
from signoff.testing.adapter_stage import RecordingInbox, card, pass_time, running
from signoff.testing.clock import FakeClock
from signoff_adapters.slack import SlackAdapter, SlackConfig


@pytest.fixture(params=["socket", "http"])
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[SlackStage]:
    async with slack_stage(request.param) as stage:
        yield stage


@pytest.fixture
async def sockets() -> AsyncIterator[SlackStage]:
    async with slack_stage("socket") as stage:
        yield stage


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"app_token": None}, "platforms.slack.app_token"),
        ({"mode": "http", "signing_secret": None}, "platforms.slack.signing_secret"),
    ],
)
async def test_a_mode_without_what_it_needs_is_a_wrong_setting(changes: dict[str, Any], named: str) -> None:
    given: dict[str, Any] = {"bot_token": BOT_TOKEN, "app_token": APP_TOKEN, "signing_secret": SECRET}
    with pytest.raises(ConfigError, match=named):
        SlackAdapter(SlackConfig(**(given | changes)), clock=FakeClock(), profile="ops")


def test_settings_are_checked_and_hide_their_secrets() -> None:
    with pytest.raises(ValueError, match="bot_token is empty"):
        SlackConfig(bot_token="")
    with pytest.raises(ValueError, match="api_base_url"):
        SlackConfig(bot_token="x", api_base_url="slack.com")
    assert BOT_TOKEN not in repr(SlackConfig(bot_token=BOT_TOKEN, app_token=APP_TOKEN, signing_secret=SECRET))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"bot_token": "xoxb-wrong"}, "platforms.slack.bot_token"),
        ({"app_token": "xapp-wrong"}, "platforms.slack.app_token"),
    ],
)
async def test_a_wrong_token_ends_the_run_and_names_the_setting(
    sockets: SlackStage, changes: dict[str, str], named: str
) -> None:
    adapter = sockets.adapter(**changes)
    task = asyncio.create_task(adapter.run(RecordingInbox()))
    await pass_time(sockets.clock, task.done, within_s=60, what="the run has ended")
    with pytest.raises(AdapterFatal, match=named):
        task.result()
    assert adapter.health().state == "stopped"
    assert any(named in line for line in adapter.health().history)
    await adapter.aclose()


async def test_a_token_that_is_taken_back_is_noticed(stage: SlackStage) -> None:
    adapter = stage.adapter()
    async with stage.serve(adapter.hooks()):
        task = asyncio.create_task(adapter.run(RecordingInbox()))
        await adapter.ready()
        await stage.slack.revoke_token(BOT_TOKEN)
        await pass_time(stage.clock, task.done, within_s=60, what="the run has ended")
        with pytest.raises(AdapterFatal, match="account_inactive"):
            task.result()
        await adapter.aclose()


async def test_no_secret_is_logged(stage: SlackStage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with running(stage, RecordingInbox()) as adapter:
        posted = await adapter.post(stage.group, card())
        await stage.slack.answer_of(await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve"))
        await stage.slack.fault("error", method="chat.postMessage", error="invalid_auth")
        with pytest.raises(Exception, match="bot_token"):
            await adapter.post(stage.group, card())
    mine = "\n".join(record.getMessage() for record in caplog.records if "slack" in record.name)
    for secret in (BOT_TOKEN, APP_TOKEN, SECRET, "ticket=", "/actions/"):
        assert secret not in mine
