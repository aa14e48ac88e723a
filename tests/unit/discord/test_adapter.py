"""What is Discord's own on the sending side: idempotency, places, threads, old messages."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.contract.test_discord import ANA, EVE, GROUP, GUILD, THREAD, DiscordStage, discord_stage

from signoff.errors import AdapterUnavailable, ChatMoved, MessageGone, RateLimited, SendAmbiguous, SendRefused
from signoff.model import Attachment, Block, Button, Card, Destination, Span
from signoff.testing.adapter_stage import RecordingInbox, card, running, until_shown
from signoff.testing.clock import settle

FRESH = 987654321
"""Somebody with whom there is no direct chat yet."""


@pytest.fixture
async def stage() -> AsyncIterator[DiscordStage]:
    async with discord_stage("gateway") as stage:
        yield stage


async def nonces(stage: DiscordStage) -> list[str]:
    """The keys of the posts so far; each post has one and asks for it to count."""
    posts = [entry.body for entry in await stage.discord.log(call="create_message")]
    assert all(post["enforce_nonce"] is True for post in posts)
    assert all(1 <= len(post["nonce"]) <= 25 for post in posts)
    return [post["nonce"] for post in posts]


async def test_a_card_keeps_its_key_over_a_restart_and_stands_once(stage: DiscordStage) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        first = await adapter.post(stage.group, card())
    async with running(stage, RecordingInbox()) as adapter:
        again = await adapter.post(stage.group, card())
        elsewhere = await adapter.post(stage.other_group, card())
        other = Card(blocks=card().blocks, rows=((Button("Deny", "t-other"),),))
        await adapter.post(stage.group, other)
        assert len(await stage.seen(stage.group)) == 2
    assert again == first
    assert elsewhere.message_id != first.message_id
    keys = await nonces(stage)
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


async def test_a_note_may_be_said_twice(stage: DiscordStage) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        for _ in "12":
            await adapter.post(stage.group, Card(blocks=(Block("text", (Span("Nothing waits here."),)),)))
        assert len(await stage.seen(stage.group)) == 2
    assert len(set(await nonces(stage))) == 2


@pytest.mark.parametrize("fault", ["drop_after", "error_after", "bad_json", "500", "502", "503", "drop_before"])
async def test_a_post_in_doubt_is_settled_by_its_key(stage: DiscordStage, fault: str) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        await stage.discord.fault(fault, call="create_message", times=2)  # type: ignore[arg-type]  # one of its kinds
        posted = await adapter.post(stage.group, Card(blocks=card().blocks, attachment=Attachment("a.txt", b"whole")))
        assert [each.message_id for each in await stage.seen(stage.group)] == [posted.message_id]
    assert len(set(await nonces(stage))) == 1


async def test_what_cannot_be_settled_in_time_stays_doubtful(stage: DiscordStage) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        await stage.discord.fault("drop_after", call="create_message")
        await stage.discord.fault("429", call="create_message", times=9, retry_after_s=60)
        with pytest.raises(SendAmbiguous):
            await adapter.post(stage.group, card())
        await stage.discord.clear_faults()
        await stage.discord.fault("stall", call="create_message", times=9)
        with pytest.raises(SendAmbiguous):
            await adapter.post(stage.group, card("other"))


async def test_a_person_is_reached_in_the_direct_chat(stage: DiscordStage) -> None:
    await stage.discord.add_user(FRESH, "fresh")
    await stage.discord.add_member(GUILD, FRESH)
    to_person = Destination("discord", str(FRESH))
    async with running(stage, RecordingInbox()) as adapter:
        with pytest.raises(ChatMoved) as moved:
            await adapter.post(to_person, card())
        direct = Destination("discord", moved.value.new_chat_id)
        assert int(direct.chat_id) == await stage.discord.dm(FRESH)
        await adapter.post(direct, card())
        assert not adapter.is_group(direct)
        await stage.discord.clear_log()
        with pytest.raises(ChatMoved):
            await adapter.post(to_person, card())
        assert await stage.discord.log() == []  # known by now


async def test_nobody_and_a_person_who_takes_no_messages(stage: DiscordStage) -> None:
    await stage.discord.close_dms(ANA)
    async with running(stage, RecordingInbox()) as adapter:
        with pytest.raises(SendRefused) as blocked:
            await adapter.post(stage.direct, card())
        assert blocked.value.facts["reason"] == "blocked"
        for nowhere in ("12345", "ops", "../20", "20?x"):
            with pytest.raises(SendRefused) as unknown:
                await adapter.post(Destination("discord", nowhere), card())
            assert unknown.value.facts["reason"] == "chat_not_found"


async def test_a_thread_named_as_a_channel_is_refused_with_the_mend(stage: DiscordStage) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        with pytest.raises(SendRefused, match=f"write discord:{GROUP}/{THREAD}") as refused:
            await adapter.post(Destination("discord", str(THREAD)), card())
        with pytest.raises(SendRefused):
            await adapter.post(Destination("discord", str(GROUP + 1), str(THREAD)), card())
        assert refused.value.facts["reason"] == "wrong_place"
        assert await stage.discord.messages(THREAD) == []


async def test_a_card_in_an_archived_thread_is_edited_all_the_same(stage: DiscordStage) -> None:
    assert stage.thread is not None
    async with running(stage, RecordingInbox()) as adapter:
        posted = await adapter.post(stage.thread, card())
        await stage.discord.set_thread(THREAD, archived=True)
        await adapter.update(stage.thread, posted.message_id, card("Approved once by Ana", rows=()))
        (seen,) = await stage.seen(stage.thread)
        assert "Approved once by Ana" in seen.text


async def test_an_archived_thread_that_may_not_be_opened_is_told(stage: DiscordStage) -> None:
    assert stage.thread is not None
    async with running(stage, RecordingInbox()) as adapter:
        posted = await adapter.post(stage.thread, card())
        await stage.discord.set_thread(THREAD, archived=True)
        await stage.discord.fault("403", call="edit_channel", code=50013)
        with pytest.raises(SendRefused) as refused:
            await adapter.update(stage.thread, posted.message_id, card("Denied"))
        assert refused.value.facts["reason"] == "no_rights"


@pytest.mark.parametrize("gone", [True, False])
async def test_a_thread_that_is_gone_leaves_its_channel_alone(stage: DiscordStage, gone: bool) -> None:
    """Deleted, or private and without the bot: nothing of that is said about the channel that it hangs on."""
    assert stage.thread is not None
    async with running(stage, RecordingInbox()) as adapter:
        if gone:
            await stage.discord.delete_channel(THREAD)
        else:
            posted = await adapter.post(stage.thread, card())
            await stage.discord.set_access(THREAD, view=False)
            for late in (
                adapter.update(stage.thread, posted.message_id, card("Denied")),
                adapter.delete(stage.thread, posted.message_id),
            ):
                with pytest.raises(SendRefused) as refused:
                    await late
                assert refused.value.facts["reason"] == "no_access"
        with pytest.raises(SendRefused) as refused:
            await adapter.post(stage.thread, card("Another"))
        assert refused.value.facts["reason"] == ("thread_not_found" if gone else "no_access")
        await adapter.post(stage.group, card())


async def test_too_many_edits_of_an_old_message_hold_up_this_card_alone(stage: DiscordStage) -> None:
    """Each refusal counts towards a ban, so the card is not tried again before the time that Discord named."""
    async with running(stage, RecordingInbox()) as adapter:
        old, other = [await adapter.post(stage.group, card(which, rows=())) for which in ("old", "other")]
        await stage.discord.fault("429", call="edit_message", code=30046, retry_after_s=600)
        for _ in "12":
            with pytest.raises(AdapterUnavailable, match="old message"):
                await adapter.update(stage.group, old.message_id, card("Denied"))
        assert len(await stage.discord.log(call="edit_message")) == 1
        await adapter.update(stage.group, other.message_id, card("Denied"))
        await adapter.delete(stage.group, old.message_id)


async def test_an_old_message_is_edited_once_its_time_has_come(stage: DiscordStage) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        posted = await adapter.post(stage.group, card())
        await stage.discord.fault("429", call="edit_message", code=30046, retry_after_s=0.1)

        async def edited() -> bool:
            with contextlib.suppress(AdapterUnavailable):
                await adapter.update(stage.group, posted.message_id, card("Denied"))
                return True
            return False

        await until_shown(edited, what="it is edited")
        assert len(await stage.discord.log(call="edit_message")) == 2


@pytest.mark.parametrize("via", [True, False])
async def test_a_wait_for_all_holds_up_all(stage: DiscordStage, via: bool) -> None:
    """A limit over the whole bot, and a ban of its address, which the proxy before Discord announces."""
    async with running(stage, RecordingInbox()) as adapter:
        await stage.discord.fault("429", call="create_message", via=via, is_global=True, retry_after_s=30)
        for place in (stage.group, stage.other_group, stage.group):
            with pytest.raises(RateLimited) as held:
                await adapter.post(place, card())
            assert 25 < held.value.retry_after_s <= 30
        assert len(await stage.discord.log(call="create_message")) == 1


async def test_a_wait_of_the_sending_side_is_no_trouble_of_the_receiving_one(stage: DiscordStage) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        await stage.discord.fault("429", call="create_message", is_global=True, retry_after_s=20)
        with pytest.raises(RateLimited):
            await adapter.post(stage.group, card())
        looks = len(await stage.discord.log(call="get_application"))
        await stage.clock.advance(31)
        await settle()
        assert (adapter.health().state, adapter.health().detail) == ("ready", "")
        assert len(await stage.discord.log(call="get_application")) == looks


@pytest.mark.parametrize(("view", "send", "reason"), [(False, True, "no_access"), (True, False, "no_rights")])
async def test_missing_permissions_are_refused_for_good(
    stage: DiscordStage, view: bool, send: bool, reason: str
) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        await stage.discord.set_access(GROUP, view=view, send=send)
        with pytest.raises(SendRefused) as refused:
            await adapter.post(stage.group, card())
        assert refused.value.facts["reason"] == reason


async def test_a_channel_that_is_gone_took_its_cards_along(stage: DiscordStage) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        posted = await adapter.post(stage.group, card())
        await stage.discord.delete_channel(GROUP)
    async with running(stage, RecordingInbox()) as adapter:  # a restart knows no more of it than its ids
        with pytest.raises(MessageGone):
            await adapter.update(stage.group, posted.message_id, card("Denied"))
        await adapter.delete(stage.group, posted.message_id)
        await adapter.delete(stage.other_group, "no-id")


async def test_an_edit_keeps_the_file_and_previews_stay_off(stage: DiscordStage) -> None:
    whole = Attachment("7Q2MK.txt", "ganz ⟨U+202E⟩".encode())
    async with running(stage, RecordingInbox()) as adapter:
        posted = await adapter.post(stage.group, Card(blocks=card().blocks, rows=card().rows, attachment=whole))
        await adapter.update(stage.group, posted.message_id, card("Denied by Ana", rows=()))
        (message,) = await stage.discord.messages(GROUP)
    assert [(each.file_name, each.content) for each in message.files] == [("7Q2MK.txt", whole.content)]
    assert message.embeds_suppressed
    assert message.pings == []


async def test_the_one_live_mention_wakes_only_whom_it_names(stage: DiscordStage) -> None:
    spans = (Span(f"@everyone <@{EVE}> "), Span("Ana", "mention", href=str(ANA)))
    async with running(stage, RecordingInbox()) as adapter:
        await adapter.post(stage.group, Card(blocks=(Block("text", spans),)))
        (message,) = await stage.discord.messages(GROUP)
    assert message.pings == [f"user:{ANA}"]
