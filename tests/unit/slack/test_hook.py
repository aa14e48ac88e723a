"""Signed requests: who may post, what is answered, and when."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from slack_sdk.signature import SignatureVerifier
from tests.contract.test_slack import ANA, GROUP, SECRET, SlackStage, slack_stage

from signoff.testing.adapter_stage import RecordingInbox, card, pass_time, running, until
from signoff_adapters.slack.hook import signed, sort


@pytest.fixture
async def stage() -> AsyncIterator[SlackStage]:
    async with slack_stage("http") as stage:
        yield stage


def press(value: str = "t-approve") -> dict[str, Any]:
    return {
        "type": "block_actions",
        "user": {"id": ANA, "name": "ana"},
        "trigger_id": f"forged.{value}",
        "container": {"message_ts": "1700000000.000100", "channel_id": GROUP},
        "actions": [{"action_id": "signoff_0_0", "block_id": "signoff_0", "value": value}],
    }


async def test_only_slack_may_post(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox):
        forged = stage.slack.post_forged
        assert await forged(press("t-1"), secret="wrong", form=True) == 401
        assert await forged(press("t-2"), secret="", form=True) == 401
        assert await forged(press("t-3"), form=True, age_s=301) == 401
        assert await forged(press("t-4"), form=True, age_s=-310) == 401
        assert await forged(press("t-5"), form=True, age_s=290) == 200
    assert [tap.token for tap in inbox.taps] == ["t-5"]


async def test_the_request_url_is_verified(stage: SlackStage) -> None:
    async with running(stage, RecordingInbox()):
        await stage.slack.set_request_url(stage.hooks_url, verify=True)


async def test_what_cannot_be_read_is_refused_or_left_out(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        assert await stage.slack.post_forged({"type": "block_actions", "user": 7}, form=True) == 200
        assert await stage.slack.post_forged({"type": "event_callback", "event": {"type": 7}}) == 200
        assert await stage.slack.post_forged({"type": "app_rate_limited"}) == 200
        assert adapter.health().state == "ready"
    assert (inbox.taps, inbox.messages) == ([], [])


async def test_a_message_is_not_acknowledged_before_it_is_stored(stage: SlackStage) -> None:
    adapter = stage.adapter(slow_event_s=0.2)
    inbox = RecordingInbox()
    inbox.held.add(GROUP)

    async with stage.serve(adapter.hooks()):
        task = asyncio.create_task(adapter.run(inbox))
        await adapter.ready()
        await stage.slack.say(ANA, GROUP, "!deny 7Q2MK")
        await until(lambda: bool(inbox.messages), what="it is in hand")
        found = await stage.slack.until(
            lambda: stage.slack.envelopes(kind="events_api"),
            lambda seen: (seen[-1].attempts, seen[-1].state) == (2, "waiting"),
        )
        assert found[-1].acknowledged_at is None
        inbox.release()
        await stage.slack.advance_clock(61)
        await stage.slack.until(
            lambda: stage.slack.envelopes(kind="events_api"), lambda found: found[-1].state == "acknowledged"
        )
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await adapter.aclose()
    assert [message.text for message in inbox.messages].count("!deny 7Q2MK") == 1


async def test_while_it_does_not_run_slack_is_told_to_come_again(stage: SlackStage) -> None:
    adapter = stage.adapter()
    async with stage.serve(adapter.hooks()):
        assert await stage.slack.post_forged(press(), form=True) == 503
    await adapter.aclose()


async def test_a_request_url_that_slack_does_not_reach_is_noticed(stage: SlackStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        await adapter.post(stage.group, card("heard"))
        await stage.slack.until(stage.slack.pending_count, lambda pending: pending == 0)
        await stage.slack.set_request_url("http://127.0.0.1:9/nowhere")
        await adapter.post(stage.group, card("not reported back"))
        await pass_time(stage.clock, lambda: adapter.health().state == "degraded", within_s=30, what="it is noticed")
        assert stage.hooks_url in adapter.health().detail
        await stage.clock.advance(60)
        assert adapter.health().state == "degraded"
        await stage.slack.set_request_url(stage.hooks_url)
        await adapter.post(stage.group, card("reported"))
        await until(lambda: adapter.health().state == "ready", what="it is healed")


async def test_a_wrong_signing_secret_is_named(stage: SlackStage, caplog: pytest.LogCaptureFixture) -> None:
    """Slack's own requests are refused with it, and nothing else would tell."""
    adapter = stage.adapter(signing_secret="another-secret")
    async with stage.serve(adapter.hooks()):
        task = asyncio.create_task(adapter.run(RecordingInbox()))
        await adapter.ready()
        posted = await adapter.post(stage.group, card())
        await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve")
        await until(lambda: adapter.health().state == "degraded", what="it is noticed")
        assert "platforms.slack.signing_secret" in adapter.health().detail
        await stage.slack.press(ANA, GROUP, posted.message_id, "t-approve")
        await stage.clock.advance(60)
        assert adapter.health().state == "degraded"
        assert await stage.slack.post_forged(press(), secret="another-secret", form=True) == 200
        assert adapter.health().state == "ready"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await adapter.aclose()
    warned = [each for each in caplog.records if each.levelname == "WARNING" and "signing_secret" in each.getMessage()]
    assert len(warned) == 1


async def test_strangers_do_not_spoil_the_health_of_what_slack_was_heard_by(
    stage: SlackStage, caplog: pytest.LogCaptureFixture
) -> None:
    forged = stage.slack.post_forged
    async with running(stage, RecordingInbox()) as adapter:
        assert await forged(press("t-1"), secret="wrong", form=True, age_s=400) == 401
        assert adapter.health().state == "ready"
        assert await forged(press("t-2"), form=True) == 200
        assert [await forged(press(), secret="wrong", form=True) for _ in range(3)] == [401] * 3
        assert adapter.health().state == "ready"
        told = [line for line in adapter.health().history if "signing_secret" in line]
        assert len(told) == 1
    assert len([each for each in caplog.records if "signing_secret" in each.getMessage()]) == 1


@pytest.mark.parametrize(
    ("body", "stamp", "signature"),
    [
        (b"x", "", "v0=1"),
        (b"x", "now", "v0=1"),
        (b"x", "１２", "v0=1"),
        (b"x", "9" * 40, "v0=1"),
        (b"\xff", "1700000000", "v0=1"),
        (b"x", "1700000000", "v0=é"),
        (b"x", "-1", "v0=1"),
    ],
)
def test_no_header_breaks_the_check(body: bytes, stamp: str, signature: str) -> None:
    assert not signed(SignatureVerifier(SECRET), body, stamp, signature)


def test_requests_are_sorted() -> None:
    payload = json.dumps({"type": "block_actions"})
    assert sort(urlencode({"payload": payload}).encode()) == ("interactive", payload.encode())
    kind, raw = sort(urlencode({"command": "/signoff", "text": "", "user_id": "U1"}).encode())
    assert (kind, msgspec.json.decode(raw)) == ("slash_commands", {"command": "/signoff", "text": "", "user_id": "U1"})
    assert sort(b'{"type":"event_callback"}')[0] == "events_api"
    assert sort(b"ssl_check=1&token=x") == (None, b"")
    with pytest.raises(msgspec.DecodeError):
        sort(b"a=b")
