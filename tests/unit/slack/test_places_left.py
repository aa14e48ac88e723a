"""A channel that the app was removed from, or that is gone: the gateway is told, so that its cards go elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.contract.test_slack import GROUP, SlackStage, slack_stage

from signoff.model import Destination
from signoff.testing.adapter_stage import RecordingInbox, running, until
from signoff_adapters.slack.manifest import EVENTS

HERE = Destination("slack", GROUP)


@pytest.fixture
async def stage() -> AsyncIterator[SlackStage]:
    async with slack_stage("socket") as stage:
        yield stage


async def test_a_channel_that_is_gone_is_told_once(stage: SlackStage) -> None:
    """Slack delivers an event again whose acknowledgement it missed."""
    inbox = RecordingInbox()
    async with running(stage, inbox):
        gone = {"type": "channel_archive", "channel": GROUP, "event_ts": "1700.1"}
        for event in (gone, gone, gone | {"type": "channel_deleted"}, gone | {"type": "group_left"}):
            await stage.slack.raw_event(event)
        await until(lambda: len(inbox.places_left) == 3, what="the gateway was told")
    assert inbox.places_left == [
        (HERE, "the channel was archived"),
        (HERE, "the channel was deleted"),
        (HERE, "the app was removed from the channel"),
    ]


def test_the_app_asks_for_these_events() -> None:
    assert {"channel_left", "group_left", "channel_archive", "group_deleted"} <= set(EVENTS)
