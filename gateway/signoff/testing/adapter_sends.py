"""The part of the adapter contract about posts, edits and deletions, and what their failures mean."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from signoff.errors import (
    AdapterUnavailable,
    ChatMoved,
    MessageGone,
    RateLimited,
    SendAmbiguous,
    SendRefused,
)
from signoff.model import Attachment, Block, Button, Card, Destination, Span
from signoff.testing.adapter_stage import RecordingInbox, Stage, card, running, until

HOSTILE = (
    'echo `a_b` [x](y) *z* <b>&amp; "q" ``` @channel <@123> <!here> @everyone @alice_ops /stop #tag $TAG '
    "https://evil.example/x ~~s~~ ||p|| \\_ {{x}} 🏳️‍🌈 e\u0301 \u05d0\u05d1 𝔘𝔫𝔦 \u200b end"
)
"""Text that is markup, a mention, a command or an address somewhere; shown, it must stay what it is and wake nobody."""


class Sends:
    """Posting, editing and deleting."""

    async def test_a_post_shows_the_whole_card(self, stage: Stage) -> None:
        async with running(stage, RecordingInbox()) as adapter:
            posted = await adapter.post(stage.direct, card())
            (seen,) = await stage.seen(stage.direct)
        assert seen.message_id == posted.message_id
        assert "Low: lists files" in seen.text
        assert "ls -la" in seen.text
        assert [(button.label, button.token) for button in seen.buttons] == [
            ("Approve once", "t-approve"),
            ("Deny", "t-deny"),
        ]
        if stage.traits.has_styles:
            assert [button.style for button in seen.buttons] == ["success", "danger"]
        assert not seen.silent

    async def test_order_rises_within_a_chat(self, stage: Stage) -> None:
        async with running(stage, RecordingInbox()) as adapter:
            orders = [(await adapter.post(stage.group, numbered(n))).order for n in range(3)]
        assert orders == sorted(set(orders))

    async def test_an_update_rewrites_and_without_rows_takes_the_buttons(self, stage: Stage) -> None:
        async with running(stage, RecordingInbox()) as adapter:
            posted = await adapter.post(stage.direct, card())
            await adapter.update(stage.direct, posted.message_id, card("Approved by Ana", rows=()))
            (seen,) = await stage.seen(stage.direct)
        assert "Approved by Ana" in seen.text
        assert "lists files" not in seen.text
        assert seen.buttons == ()

    async def test_an_update_can_change_only_the_buttons(self, stage: Stage) -> None:
        async with running(stage, RecordingInbox()) as adapter:
            posted = await adapter.post(stage.direct, card())
            await adapter.update(stage.direct, posted.message_id, card(rows=((Button("Deny", "t-other"),),)))
            (seen,) = await stage.seen(stage.direct)
        assert [button.token for button in seen.buttons] == ["t-other"]

    async def test_an_update_without_change_is_success(self, stage: Stage) -> None:
        async with running(stage, RecordingInbox()) as adapter:
            posted = await adapter.post(stage.direct, card())
            await adapter.update(stage.direct, posted.message_id, card())
            assert len(await stage.seen(stage.direct)) == 1

    async def test_an_update_of_a_deleted_message_says_so(self, stage: Stage) -> None:
        async with running(stage, RecordingInbox()) as adapter:
            posted = await adapter.post(stage.group, card())
            await stage.remove(stage.group, posted.message_id)
            with pytest.raises(MessageGone):
                await adapter.update(stage.group, posted.message_id, card("Denied"))

    async def test_deleting_twice_is_success(self, stage: Stage) -> None:
        async with running(stage, RecordingInbox()) as adapter:
            posted = await adapter.post(stage.group, card())
            await adapter.delete(stage.group, posted.message_id)
            assert await stage.seen(stage.group) == []
            await adapter.delete(stage.group, posted.message_id)

    async def test_hostile_text_is_shown_as_it_is_and_wakes_nobody(self, stage: Stage) -> None:
        hostile = Card(
            blocks=(
                Block("text", (Span(f"High: {HOSTILE}", "bold"), Span(HOSTILE, "code"))),
                Block("code", (Span(HOSTILE),), language="diff"),
                Block("quote", (Span(f"Agent says (not checked): {HOSTILE}"),)),
                Block("text", (Span(HOSTILE),)),
                Block("small", (Span(HOSTILE),)),
            ),
            rows=((Button(HOSTILE[:30], "t-1"),),),
        )
        async with running(stage, RecordingInbox()) as adapter:
            posted = await adapter.post(stage.group, hostile)
            (first,) = await stage.seen(stage.group)
            await adapter.update(stage.group, posted.message_id, Card(blocks=hostile.blocks[::-1]))
            (second,) = await stage.seen(stage.group)
        assert first.text.count(HOSTILE) == second.text.count(HOSTILE) == 6
        assert first.links == second.links == ()
        assert first.buttons[0].label == HOSTILE[:30]

    async def test_only_a_mention_span_mentions(self, stage: Stage) -> None:
        on_call = Card(blocks=(Block("text", (Span("On call: "), stage.mention)),))
        async with running(stage, RecordingInbox()) as adapter:
            await adapter.post(stage.group, on_call)
            (seen,) = await stage.seen(stage.group)
        assert len(seen.links) == 1

    async def test_a_text_at_the_limit_is_whole_and_one_over_it_is_refused(self, stage: Stage) -> None:
        async with running(stage, RecordingInbox()) as adapter:
            limit = adapter.info.max_text_units
            longest = "🛑" * (limit // 2)
            await adapter.post(stage.direct, Card(blocks=(Block("text", (Span(longest),)),)))
            with pytest.raises(SendRefused):
                await adapter.post(stage.direct, Card(blocks=(Block("text", (Span(longest + "!"),)),)))
            (seen,) = await stage.seen(stage.direct)
        assert seen.text == longest

    async def test_clocks_read_as_a_true_sentence(self, stage: Stage) -> None:
        when = datetime(2026, 1, 5, 9, 5, tzinfo=UTC)
        spans = (Span("Expires "), Span("in 5 minutes", "relative_time", at=when), Span(" at "))
        timed = Card(blocks=(Block("text", (*spans, Span("09:05 UTC", "clock", at=when), Span("."))),))
        async with running(stage, RecordingInbox()) as adapter:
            await adapter.post(stage.direct, timed)
            await stage.spoil("refuse_formatting", "post")
            await adapter.post(stage.direct, timed)
            seen = await stage.seen(stage.direct)
        expected = f"Expires in 5 minutes at {stage.traits.clock_shown}."
        assert [each.text for each in seen] == [expected] * 2

    async def test_a_silent_card_makes_no_sound(self, stage: Stage) -> None:
        if not stage.traits.has_silence:
            pytest.skip("every message sounds the same here")
        async with running(stage, RecordingInbox()) as adapter:
            quiet = Card(blocks=card().blocks, silent=True)
            await adapter.post(stage.direct, quiet)
            (seen,) = await stage.seen(stage.direct)
        assert seen.silent

    async def test_a_prompt_asks_for_a_typed_reply(self, stage: Stage) -> None:
        if not stage.traits.has_prompts:
            pytest.skip("typed reasons are asked in a dialog here")
        async with running(stage, RecordingInbox()) as adapter:
            await adapter.post(stage.direct, Card(blocks=(Block("text", (Span("Why?"),)),), prompt="Why not?"))
            (seen,) = await stage.seen(stage.direct)
        assert seen.prompt == "Why not?"

    async def test_a_reply_hangs_on_its_message(self, stage: Stage) -> None:
        async with running(stage, RecordingInbox()) as adapter:
            first = await adapter.post(stage.group, card())
            await adapter.post(stage.group, numbered(2), reply_to=first.message_id)
            _, panel = await stage.seen(stage.group)
        assert panel.reply_to == first.message_id

    async def test_the_file_is_there_before_the_card(self, stage: Stage) -> None:
        whole = Attachment("7Q2MK.txt", "for f in 1 2; do ⟨U+202E⟩; done\n".encode() * 1000)
        clipped = Card(blocks=card().blocks, rows=card().rows, attachment=whole)
        async with running(stage, RecordingInbox()) as adapter:
            posted = await adapter.post(stage.group, clipped)
            seen = await stage.seen(stage.group)
        assert seen[-1].message_id == posted.message_id
        assert [each.file for each in seen if each.file is not None] == [whole]
        if stage.traits.has_files_in_replies:
            assert [each.message_id for each in seen] == [posted.file_id, posted.message_id]
            assert seen[-1].reply_to == posted.file_id

    async def test_a_card_that_failed_after_its_file_does_not_send_the_file_twice(self, stage: Stage) -> None:
        whole = Attachment("7Q2MK.txt", b"whole text")
        clipped = Card(blocks=card().blocks, rows=card().rows, attachment=whole)
        async with running(stage, RecordingInbox()) as adapter:
            await stage.spoil("rate_limit", "post")
            with pytest.raises(RateLimited):
                await adapter.post(stage.group, clipped)
            await adapter.post(stage.group, clipped)
            seen = await stage.seen(stage.group)
        assert [each.file for each in seen if each.file is not None] == [whole]

    async def test_without_its_file_a_card_is_not_sent(self, stage: Stage) -> None:
        empty = Card(blocks=card().blocks, rows=card().rows, attachment=Attachment("7Q2MK.txt", b""))
        async with running(stage, RecordingInbox()) as adapter:
            with pytest.raises(SendRefused) as refused:
                await adapter.post(stage.group, empty)
            assert await stage.seen(stage.group) == []
        assert refused.value.facts["reason"] == "attachment"

    async def test_a_thread_is_a_place_of_its_own(self, stage: Stage) -> None:
        if stage.thread is None:
            pytest.skip("no threads here")
        async with running(stage, RecordingInbox()) as adapter:
            await adapter.post(stage.thread, card("in the thread"))
            main = Destination(stage.thread.platform, stage.thread.chat_id)
            await adapter.post(main, card("in the main part"))
            assert ["in the thread" in each.text for each in await stage.seen(stage.thread)] == [True]
            assert ["in the main part" in each.text for each in await stage.seen(main)] == [True]

    async def test_what_a_lost_thread_should_have_shown_appears_nowhere(self, stage: Stage) -> None:
        if stage.thread is None:
            pytest.skip("no threads here")
        async with running(stage, RecordingInbox()) as adapter:
            await stage.close_thread()
            with pytest.raises(SendRefused):
                await adapter.post(stage.thread, card())
            assert await stage.seen(Destination(stage.thread.platform, stage.thread.chat_id)) == []

    async def test_groups_and_direct_chats_are_told_apart(self, stage: Stage) -> None:
        async with running(stage, RecordingInbox()) as adapter:
            for place in (stage.group, stage.direct):  # where ids do not tell, a place must have been met
                await adapter.post(place, card())
            assert adapter.is_group(stage.group)
            assert not adapter.is_group(stage.direct)


class Failures:
    """What went wrong is told by what may have happened."""

    async def test_a_rate_limit_names_the_wait(self, stage: Stage) -> None:
        async with running(stage, RecordingInbox()) as adapter:
            posted = await adapter.post(stage.group, card())
            await stage.spoil("rate_limit", "post", retry_after_s=7)
            with pytest.raises(RateLimited) as limited:
                await adapter.post(stage.group, card())
            await stage.spoil("rate_limit", "update", retry_after_s=3)
            with pytest.raises(RateLimited) as edit:
                await adapter.update(stage.group, posted.message_id, card("new"))
            assert len(await stage.seen(stage.group)) == 1
        assert (limited.value.retry_after_s, edit.value.retry_after_s) == (7, 3)

    async def test_a_server_error(self, stage: Stage) -> None:
        async with running(stage, RecordingInbox()) as adapter:
            posted = await adapter.post(stage.group, card())
            await stage.spoil("server_error", "post")
            if stage.traits.settles_doubt:
                settled = await adapter.post(stage.group, Card(blocks=card().blocks))
                assert (await stage.seen(stage.group))[-1].message_id == settled.message_id
            else:
                with pytest.raises(stage.traits.server_error_on_post):
                    await adapter.post(stage.group, card())
            await stage.spoil("server_error", "update")
            with pytest.raises(AdapterUnavailable):
                await adapter.update(stage.group, posted.message_id, card("new"))

    async def test_a_lost_answer_never_leaves_two_messages(self, stage: Stage) -> None:
        async with running(stage, RecordingInbox()) as adapter:
            await stage.spoil("lost_answer", "post")
            if stage.traits.settles_doubt:
                settled = await adapter.post(stage.group, card())
                assert [each.message_id for each in await stage.seen(stage.group)] == [settled.message_id]
            else:
                with pytest.raises(SendAmbiguous):
                    await adapter.post(stage.group, card())
            seen = await stage.seen(stage.group)
            assert len(seen) == 1
            await stage.spoil("lost_answer", "update")
            with pytest.raises(AdapterUnavailable):
                await adapter.update(stage.group, seen[0].message_id, card("new"))

    async def test_a_refused_connection_means_surely_not_sent(self, stage: Stage) -> None:
        async with running(stage, RecordingInbox()) as adapter:
            await stage.network(up=False)
            with pytest.raises(AdapterUnavailable):
                await adapter.post(stage.group, card())
            await stage.network(up=True)
            assert await stage.seen(stage.group) == []

    async def test_an_unknown_chat_is_refused_for_good(self, stage: Stage) -> None:
        nowhere = Destination(stage.group.platform, stage.group.chat_id + "9")
        async with running(stage, RecordingInbox()) as adapter:
            with pytest.raises(SendRefused):
                await adapter.post(nowhere, card())

    async def test_a_chat_that_moved_names_its_new_id(self, stage: Stage) -> None:
        inbox = RecordingInbox()
        async with running(stage, inbox) as adapter:
            new = await stage.move_group()
            if new is None:
                pytest.skip("chats keep their ids here")
            with pytest.raises(ChatMoved) as moved:
                await adapter.post(stage.other_group, card())
            assert moved.value.new_chat_id == new.chat_id
            await adapter.post(new, card())
            expected = (new.platform, stage.other_group.chat_id, new.chat_id)
            await until(lambda: expected in inbox.moves, what="the inbox was told of the move")


def numbered(number: int) -> Card:
    """A card with a button of its own: no two cards bear the same token, and a platform may tell them apart by it."""
    return card(f"number {number}", rows=((Button("Approve once", f"t-{number}"),),))
