"""An unmodified discord.py against the loopback Discord."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator

import discord
import pytest
from aiohttp import ClientError
from discord.http import Route

from tests.platforms.discord import DiscordPlatform, DiscordServer
from tests.platforms.discord.switches import Malformed
from tests.platforms.discord.trying import ANA, BO, CHANNEL, GUILD, THREAD, bot, last, settle

pytestmark = pytest.mark.filterwarnings("ignore:'audioop' is deprecated:DeprecationWarning")


@pytest.fixture
async def platform() -> AsyncIterator[DiscordPlatform]:
    async with DiscordServer() as server:
        await settle(server.platform)
        yield server.platform


def view() -> discord.ui.View:
    """Two buttons without a handler."""
    buttons = discord.ui.View(timeout=None)
    buttons.add_item(discord.ui.Button(label="Approve once", custom_id="t-approve", style=discord.ButtonStyle.success))
    buttons.add_item(discord.ui.Button(label="Deny", custom_id="t-deny", style=discord.ButtonStyle.danger))
    return buttons


async def send(client: discord.Client, channel_id: int = CHANNEL) -> discord.Message:
    return await client.get_partial_messageable(channel_id).send(
        "Low: lists files", view=view(), nonce=f"n{channel_id}"
    )


async def test_press_and_edit_in_one_call(platform: DiscordPlatform) -> None:
    async with bot(platform) as client:
        message = await send(client)
        press = await platform.press(ANA, CHANNEL, message.id, "Approve once")
        interaction = await client.next()
        assert interaction.user.id == ANA and interaction.guild_id == GUILD
        await interaction.response.edit_message(content="Approved once by Ana", view=None)
        answer = await platform.answer_of(press)
    assert (answer.kind, answer.text, answer.private) == ("update", "Approved once by Ana", False)
    seen = last(await platform.messages(CHANNEL))
    assert seen.text == "Approved once by Ana" and seen.buttons == [] and seen.edits == 1


async def test_defer_then_edit_and_private_follow_up(platform: DiscordPlatform) -> None:
    async with bot(platform) as client:
        message = await send(client)
        press = await platform.press(BO, CHANNEL, message.id, "t-deny")
        interaction = await client.next()
        await interaction.response.defer()
        await interaction.edit_original_response(content="Denied by Bo", view=None)
        await interaction.followup.send("Denied.", ephemeral=True)
        private = await platform.private_answer_of(press)
    assert private.text == "Denied."
    assert [each.kind for each in await platform.answers(press)] == ["deferred_update", "update", "message"]
    assert len(await platform.messages(CHANNEL, viewer=ANA)) == 1
    assert last(await platform.messages(CHANNEL, viewer=BO)).viewer == BO


async def test_private_answer_in_a_thread_and_in_a_direct_chat(platform: DiscordPlatform) -> None:
    async with bot(platform) as client:
        direct = await (await client.fetch_user(ANA)).create_dm()
        for channel_id in (THREAD, direct.id):
            message = await send(client, channel_id)
            press = await platform.press(ANA, channel_id, message.id, "Deny")
            interaction = await client.next()
            assert isinstance(interaction.user, discord.Member if channel_id == THREAD else discord.User)
            await interaction.response.send_message("You may not decide here.", ephemeral=True)
            assert (await platform.private_answer_of(press)).text == "You may not decide here."
    assert direct.id == await platform.dm(ANA)


async def test_modal_and_what_is_typed_into_it(platform: DiscordPlatform) -> None:
    class Reason(discord.ui.Modal, title="Deny 7Q2MK"):
        reason: discord.ui.TextInput[Reason] = discord.ui.TextInput(label="Why not?", custom_id="why", max_length=280)

        async def on_submit(self, interaction: discord.Interaction) -> None:
            await interaction.response.send_message(f"Denied: {self.reason.value}", ephemeral=True)

    async with bot(platform) as client:
        message = await send(client)
        press = await platform.press(ANA, CHANNEL, message.id, "Deny")
        await (await client.next()).response.send_modal(Reason())
        modal = await platform.modal_of(press)
        assert (modal.title, [field.label for field in modal.fields]) == ("Deny 7Q2MK", ["Why not?"])
        with pytest.raises(ValueError, match="281"):
            await platform.submit_modal(press, {"why": "x" * 281})
        sent = await platform.submit_modal(press, {"why": "wrong target"})
        assert (await platform.private_answer_of(sent)).text == "Denied: wrong target"


async def test_slash_command_with_completion(platform: DiscordPlatform) -> None:
    async with bot(platform) as client:
        tree = discord.app_commands.CommandTree(client)

        @tree.command(name="approve", description="Approve a request")
        async def approve(interaction: discord.Interaction, request: str) -> None:
            await interaction.response.send_message(f"{request} approved once.", ephemeral=True)

        @approve.autocomplete("request")
        async def pending(interaction: discord.Interaction, typed: str) -> list[discord.app_commands.Choice[str]]:
            return [discord.app_commands.Choice(name=f"{typed}2MK", value=f"{typed}2MK")]

        await tree.sync()
        assert [each["name"] for each in await platform.commands()] == ["approve"]
        completed = await platform.autocomplete(ANA, CHANNEL, "approve", {"request": "7Q"}, "request")
        assert await platform.choices_of(completed) == [{"name": "7Q2MK", "value": "7Q2MK"}]
        used = await platform.slash(ANA, CHANNEL, "approve", {"request": "7Q2MK"})
        assert (await platform.private_answer_of(used)).text == "7Q2MK approved once."


async def test_file_and_reply(platform: DiscordPlatform) -> None:
    async with bot(platform) as client:
        message = await send(client)
        place = client.get_partial_messageable(CHANNEL)
        attached = discord.File(io.BytesIO(b"whole text"), filename="7Q2MK.txt")
        await place.send("More…", file=attached, reference=message, nonce="n2")
    seen = last(await platform.messages(CHANNEL))
    assert (seen.files[0].file_name, seen.files[0].content) == ("7Q2MK.txt", b"whole text")
    assert seen.reply_to == message.id and seen.pings == []


async def test_same_nonce_gives_the_same_message(platform: DiscordPlatform) -> None:
    async with bot(platform) as client:
        await platform.fault("drop_after", call="create_message")
        with pytest.raises(ClientError):
            await send(client)
        again = await send(client)
    assert [each.message_id for each in await platform.messages(CHANNEL)] == [again.id]


async def test_resume_replays_what_was_missed(platform: DiscordPlatform) -> None:
    async with bot(platform) as client:
        message = await send(client)
        await platform.hold_gateway()
        await platform.drop_gateway()
        await platform.until(platform.sessions, lambda seen: not any(each.connected for each in seen))
        press = await platform.press(ANA, CHANNEL, message.id, "Deny")
        assert await platform.pending_count() == 2
        await platform.advance_clock(4)
        await platform.hold_gateway(held=False)
        interaction = await client.next()
        with pytest.raises(discord.NotFound) as late:
            await interaction.response.send_message("Denied.", ephemeral=True)
        await asyncio.wait_for(client.resumed.wait(), 15)
    assert late.value.code == 10062
    assert (await platform.press_state(press)).failed
    assert [each.refused for each in await platform.answers(press)] == [10062]
    assert [each.resumes for each in await platform.sessions()] == [1]


async def test_reconnect_and_invalid_session(platform: DiscordPlatform) -> None:
    async with bot(platform) as client:
        await platform.reconnect()
        await asyncio.wait_for(client.resumed.wait(), 15)
        await platform.invalidate_session(resumable=False)
        sessions = await platform.until(platform.sessions, lambda seen: len(seen) == 2 and seen[1].connected)
    assert [each.alive for each in sessions] == [False, True]


@pytest.mark.parametrize("kind", ["thread_null", "channel_null", "token_missing"])
async def test_malformed_dispatch_ends_the_loop_of_discord_py(platform: DiscordPlatform, kind: Malformed) -> None:
    async with bot(platform) as client:
        message = await send(client)
        await platform.malform_next(kind)
        await platform.press(ANA, CHANNEL, message.id, "Deny")
        assert client.loop_task is not None
        await asyncio.wait([client.loop_task], timeout=60)
        assert isinstance(client.loop_task.exception(), (TypeError, KeyError, AttributeError))
        assert client.is_ready() and not client.is_closed()
        await client.ws.socket.close(code=4000)  # the library leaves it open and unread
        client.loop_task = asyncio.create_task(client.connect())
        await platform.until(platform.sessions, lambda seen: len(seen) == 2 and seen[1].sequence > 1)
        press = await platform.press(ANA, CHANNEL, message.id, "Deny")
        interaction = await client.next()
    assert interaction.id == press


async def test_wrong_token_is_refused(platform: DiscordPlatform) -> None:
    async with bot(platform):
        assert await platform.api_base_url() == Route.BASE
        other = discord.Client(intents=discord.Intents.none())
        with pytest.raises(discord.LoginFailure):
            await other.login("wrong")
        await other.close()


async def test_wrong_content_type_breaks_login(platform: DiscordPlatform) -> None:
    await platform.fault("wrong_content_type", call="get_me")
    with pytest.raises(TypeError):
        async with bot(platform):
            pass


async def test_rate_limit_with_and_without_via(platform: DiscordPlatform) -> None:
    async with bot(platform) as client:
        await platform.fault("429", call="create_message", retry_after_s=0.05)
        message = await send(client)
        await platform.fault("429", call="edit_message", via=False)
        with pytest.raises(discord.HTTPException) as banned:
            await message.edit(content="x")
    assert banned.value.status == 429
    assert [each.status for each in await platform.log(call="create_message")] == [429, 200]
