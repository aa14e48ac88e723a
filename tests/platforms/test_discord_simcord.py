"""`simcord`, somebody else's Discord, and ours agree on what is documented."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import discord
import pytest
import simcord

from tests.platforms.discord import DiscordServer
from tests.platforms.discord.trying import ANA, CHANNEL, bot, settle

pytestmark = pytest.mark.filterwarnings("ignore:'audioop' is deprecated:DeprecationWarning")

Send = Callable[..., Awaitable[Any]]


def buttons(*given: tuple[str, str]) -> discord.ui.View:
    view = discord.ui.View(timeout=None)
    for label, custom_id in given:
        view.add_item(discord.ui.Button(label=label, custom_id=custom_id))
    return view


FITS, REFUSED = (None, None), (50035, 50035)
CARDS: dict[str, tuple[Callable[[], dict[str, Any]], tuple[int | None, int | None]]] = {
    "content fits": (lambda: {"content": "😀" * 2000}, FITS),
    "content too long": (lambda: {"content": "x" * 2001}, REFUSED),
    "empty": (lambda: {"content": ""}, (50006, 50035)),
    "custom id fits": (lambda: {"content": "x", "view": buttons(("a", "y" * 100))}, FITS),
    "custom id too long": (lambda: {"content": "x", "view": buttons(("a", "y" * 101))}, REFUSED),
    "label fits": (lambda: {"content": "x", "view": buttons(("a" * 80, "y"))}, FITS),
    "label too long": (lambda: {"content": "x", "view": buttons(("a" * 81, "y"))}, REFUSED),
    "same id twice": (lambda: {"content": "x", "view": buttons(("a", "y"), ("b", "y"))}, REFUSED),
    "description too long": (lambda: {"embed": discord.Embed(description="x" * 4097)}, REFUSED),
    "embeds too long": (
        lambda: {"embeds": [discord.Embed(description="x" * 3001), discord.Embed(description="x" * 3000)]},
        REFUSED,
    ),
}
"""What is sent, and the error codes of ours and theirs. Discord's list of codes has 50006 for an empty message."""


async def acknowledge(interaction: discord.Interaction[Any], times: int) -> list[int]:
    """Acknowledge without what discord.py remembers of it; the error code, or 0, of each attempt."""
    route = discord.http.Route(
        "POST",
        "/interactions/{webhook_id}/{webhook_token}/callback",
        webhook_id=interaction.id,
        webhook_token=interaction.token,
    )
    codes = []
    for _ in range(times):
        try:
            await interaction.client.http.request(route, json={"type": 6}, params={"with_response": "1"})
            codes.append(0)
        except discord.HTTPException as refused:
            codes.append(refused.code)
    return codes


class Client(discord.Client):
    """Keeps its interactions."""

    def __init__(self) -> None:
        super().__init__(intents=discord.Intents.default())
        self.got: list[discord.Interaction[Any]] = []

    async def on_interaction(self, interaction: discord.Interaction[Any]) -> None:
        """Keep it."""
        self.got.append(interaction)


async def outcome(send: Send, given: dict[str, Any]) -> int | None:
    """The error code of a send; none when it went through."""
    try:
        await send(**given)
    except discord.HTTPException as refused:
        return refused.code
    return None


@pytest.mark.parametrize("name", CARDS)
async def test_both_take_and_refuse_the_same_cards(name: str) -> None:
    made, expected = CARDS[name]
    async with simcord.run(Client()) as env:
        channel = env.create_guild().create_text_channel("deploys")
        theirs = await outcome(env.bot.get_partial_messageable(channel.id).send, made())
    async with DiscordServer() as server:
        await settle(server.platform)
        async with bot(server.platform) as client:
            ours = await outcome(client.get_partial_messageable(CHANNEL).send, made())
    assert (ours, theirs) == expected


@pytest.mark.parametrize(
    ("wait_s", "times", "codes"),
    [(0.0, 1, [0]), (2.9, 2, [0, 40060]), (3.5, 1, [10062])],
    ids=["in time", "twice", "late"],
)
async def test_both_take_one_acknowledgement_within_three_seconds(wait_s: float, times: int, codes: list[int]) -> None:
    client = Client()
    async with simcord.run(client) as env:
        guild = env.create_guild()
        channel = guild.create_text_channel("deploys")
        person = guild.add_member(env.create_user("ana"))
        message = await client.get_partial_messageable(channel.id).send("x", view=buttons(("a", "y")))
        await person.click(message, custom_id="y")
        await env.advance_time(wait_s)
        theirs = await acknowledge(client.got[0], times)
    async with DiscordServer() as server:
        await server.platform.freeze_clock()
        await settle(server.platform)
        async with bot(server.platform) as ours:
            sent = await ours.get_partial_messageable(CHANNEL).send("x", view=buttons(("a", "y")))
            await server.platform.press(ANA, CHANNEL, sent.id, "y")
            interaction = await ours.next()
            await server.platform.advance_clock(wait_s)
            assert await acknowledge(interaction, times) == theirs == codes
