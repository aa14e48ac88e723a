"""What is Slack's own about posts: direct chats, files, threads, refusals, budgets."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.contract.test_slack import ANA, GROUP, SlackStage, slack_stage

from signoff.errors import ChatMoved, RateLimited, SendRefused
from signoff.model import Attachment, Block, Card, Destination, Span
from signoff.testing.adapter_stage import RecordingInbox, card, running

LIST = Card(blocks=(Block("text", (Span("2 wait here"),)),))


@pytest.fixture
async def stage() -> AsyncIterator[SlackStage]:
    async with slack_stage("socket") as stage:
        yield stage


async def test_a_person_as_the_place_is_moved_to_the_direct_chat(stage: SlackStage) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        for _ in range(2):
            with pytest.raises(ChatMoved) as moved:
                await adapter.post(Destination("slack", ANA), card())
            assert moved.value.new_chat_id == stage.direct.chat_id
        assert len(await stage.slack.log(method="conversations.open")) == 1
        with pytest.raises(SendRefused) as refused:
            await adapter.post(Destination("slack", "U0NOBODY"), card())
        assert refused.value.facts["reason"] == "chat_not_found"
        assert await stage.seen(stage.direct) == []


async def test_a_post_links_nothing_and_unfurls_nothing(stage: SlackStage) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        await adapter.post(stage.group, card("see https://evil.example/x"))
        (sent,) = await stage.slack.log(method="chat.postMessage")
        (seen,) = await stage.slack.messages(GROUP)
    given = {name: sent.parameters[name] for name in ("parse", "link_names", "unfurl_links", "unfurl_media", "mrkdwn")}
    assert given == {
        "parse": "none",
        "link_names": False,
        "unfurl_links": False,
        "unfurl_media": False,
        "mrkdwn": False,
    }
    assert not seen.unfurls


async def test_a_file_stands_before_its_card_in_the_same_place(stage: SlackStage) -> None:
    whole = Attachment("7Q2MK.txt", "whole ⟨U+202E⟩".encode())
    assert stage.thread is not None
    clipped = Card(blocks=card().blocks, rows=card().rows, attachment=whole)
    async with running(stage, RecordingInbox()) as adapter:
        for place in (stage.group, stage.thread, stage.direct):
            posted = await adapter.post(place, clipped)
            file, shown = await stage.seen(place)
            assert (file.message_id, shown.message_id) == (posted.file_id, posted.message_id)
            assert (file.file, file.reply_to, shown.reply_to) == (whole, place.thread_id, place.thread_id)


async def test_a_file_that_shows_late_is_waited_for(stage: SlackStage) -> None:
    clipped = Card(blocks=card().blocks, attachment=Attachment("a.txt", b"whole"))
    async with running(stage, RecordingInbox()) as adapter:
        await stage.slack.fault("no_shares", times=2)
        posted = await adapter.post(stage.group, clipped)
        assert posted.file_id is not None
        await stage.slack.fault("no_shares", times=100)
        assert (await adapter.post(stage.other_group, clipped)).file_id is None


@pytest.mark.parametrize(
    ("method", "error"),
    [("files.getUploadURLExternal", "missing_scope"), ("files.completeUploadExternal", "posting_to_channel_denied")],
)
async def test_a_refused_file_is_told_of_the_card(stage: SlackStage, method: str, error: str) -> None:
    clipped = Card(blocks=card().blocks, attachment=Attachment("a.txt", b"whole"))
    async with running(stage, RecordingInbox()) as adapter:
        await stage.slack.fault("error", method=method, error=error)
        with pytest.raises(SendRefused) as refused:
            await adapter.post(stage.group, clipped)
        assert await stage.seen(stage.group) == []
    assert refused.value.facts["reason"] == "attachment"


async def test_a_reply_to_a_message_that_is_gone_stands_in_the_channel(stage: SlackStage) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        posted = await adapter.post(stage.group, LIST, reply_to="1700000000.000001")
        (seen,) = await stage.seen(stage.group)
        assert (seen.message_id, seen.reply_to) == (posted.message_id, None)
        await adapter.post(stage.direct, LIST, reply_to="1700000000.000001")
        assert len(await stage.seen(stage.direct)) == 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("is_archived", "chat_closed"),
        ("not_in_channel", "bot_removed"),
        ("restricted_action", "no_rights"),
        ("missing_scope", "no_rights"),
        ("msg_blocks_too_long", "too_long"),
        ("brand_new_error", "refused"),
    ],
)
async def test_refusals_have_a_stable_word(stage: SlackStage, error: str, reason: str) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        await stage.slack.fault("error", method="chat.postMessage", error=error)
        with pytest.raises(SendRefused) as refused:
            await adapter.post(stage.group, card())
    assert refused.value.facts["reason"] == reason


async def test_edits_keep_to_the_budget_of_their_method(stage: SlackStage) -> None:
    await stage.slack.set_limits(mode="enforce")
    async with running(stage, RecordingInbox()) as adapter:
        posted = await adapter.post(stage.group, card())
        with pytest.raises(RateLimited) as limited:
            for number in range(60):
                await adapter.update(stage.group, posted.message_id, card(f"number {number}"))
        assert 30 < limited.value.retry_after_s <= 60
        assert (await stage.slack.limit_report()).total == 0
