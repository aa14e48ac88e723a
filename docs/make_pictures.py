"""Draws the pictures of cards for the documentation from real messages.

    python docs/make_pictures.py

A gateway asks in a group of each platform, all of them servers on loopback; Ana approves, and the result is reported.
Both states of the card are drawn as SVG from what those servers received: text, formatting and buttons. Nothing is
typed in by hand.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from docs.picture_svg import THEMES, picture  # noqa: E402  # the same
from docs.picture_text import Shown, of_discord, of_slack, of_telegram  # noqa: E402  # the same
from tests.platforms.discord import DiscordServer  # noqa: E402  # the path comes first
from tests.platforms.slack import SlackServer  # noqa: E402  # the same
from tests.platforms.telegram import TelegramServer  # noqa: E402  # the same

from signoff import Client, Command, Gateway, load_config  # noqa: E402  # the same
from signoff.server.serve import serve  # noqa: E402  # the same

FOLDER = Path(__file__).resolve().parent / "pictures"
ACTION = Command(command="git push --force origin main", cwd="/home/ci/app")
REASON = "main was rebased"
BOTH = tuple[Shown, Shown]
M = TypeVar("M")
"""A message as a platform's server shows it."""


async def on_telegram() -> BOTH:
    """The card in a group while it waits, and after it was approved and run."""
    token, ana, group = "123456:EXAMPLE", 81234567, -1001234567890
    async with TelegramServer() as server:
        telegram = server.platform
        await telegram.add_bot(token, "ops_signoff_bot")
        await telegram.add_user(ana, "Ana")
        await telegram.add_group(group, "ops", members=[ana])
        waiting, done = await _played(
            "telegram",
            f'token = "{token}"\napi_base_url = "{(await telegram.where()).url}"',
            account=str(ana),
            place=str(group),
            card=lambda: telegram.wait_for_message(group, lambda seen: bool(seen.buttons)),
            tap=lambda seen: telegram.press(ana, group, seen.message_id, "Approve once"),
            end=lambda: telegram.wait_for_message(group, lambda seen: "Succeeded" in seen.text),
        )
    return of_telegram(waiting), of_telegram(done)


async def on_discord() -> BOTH:
    """The same in a channel of a Discord server."""
    token, ana, guild, channel = "MTIz.EXAMPLE.abc", 81234567, 10, 20
    async with DiscordServer() as server:
        place = server.platform
        await place.add_bot(token, "signoff")
        await place.add_user(ana, "ana", display_name="Ana")
        await place.add_guild(guild, "Ops", members=[ana])
        await place.add_channel(guild, channel, "ops")
        where = await place.where()
        waiting, done = await _played(
            "discord",
            f'token = "{token}"\napi_base_url = "{where.url}"\ngateway_url = "{where.gateway_url}"',
            account=str(ana),
            place=str(channel),
            card=lambda: place.wait_for_message(channel, lambda seen: bool(seen.buttons)),
            tap=lambda seen: place.press(ana, channel, seen.message_id, "Approve once"),
            end=lambda: place.wait_for_message(channel, lambda seen: "Succeeded" in seen.text),
        )
    names = {str(ana): "Ana"}
    return of_discord(waiting, names), of_discord(done, names)


async def on_slack() -> BOTH:
    """The same in a channel of a Slack workspace."""
    bot, app, ana, channel = "xoxb-EXAMPLE", "xapp-EXAMPLE", "U0ANA", "C0OPS"
    async with SlackServer() as server:
        slack = server.platform
        await slack.add_bot(bot, app)
        await slack.add_user(ana, "ana", display_name="Ana")
        await slack.add_channel(channel, "ops", members=[ana])
        waiting, done = await _played(
            "slack",
            f'bot_token = "{bot}"\napp_token = "{app}"\napi_base_url = "{(await slack.where()).url}"',
            account=ana,
            place=channel,
            card=lambda: slack.wait_for_message(channel, lambda seen: bool(seen.buttons)),
            tap=lambda seen: slack.press(ana, channel, seen.ts, "Approve once"),
            end=lambda: slack.wait_for_message(channel, lambda seen: "Succeeded" in seen.text),
        )
    names = {ana: "Ana"}
    return of_slack(waiting, names), of_slack(done, names)


PLATFORMS: dict[str, Callable[[], Awaitable[BOTH]]] = {
    "telegram": on_telegram,
    "discord": on_discord,
    "slack": on_slack,
}


async def _played(
    platform: str,
    settings: str,
    *,
    account: str,
    place: str,
    card: Callable[[], Awaitable[M]],
    tap: Callable[[M], Awaitable[object]],
    end: Callable[[], Awaitable[M]],
) -> tuple[M, M]:
    """Ask there, let Ana approve, report the result: the card as it waited, and at the end."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "signoff.toml"
        file.write_text(
            f'[gateway]\nstate_dir = "{folder}/state"\nstore = "memory://"\n'
            '[agents.deploy-bot]\nacts_for = "Ana"\n'
            f'[principals.Ana]\naccounts = ["{platform}:{account}"]\n'
            f'[platforms.{platform}]\napprovers = ["Ana"]\n{settings}\n'
        )
        async with Gateway(load_config(file, {})) as gateway, serve(gateway) as bound:
            key = await gateway.keys.create("default", "agent", agent="deploy-bot")
            async with Client(bound.api, key.text, environ={}) as agent:
                await agent.session("nightly-fix", kind="chat", destination=f"{platform}:{place}")
                asked = asyncio.create_task(agent.request(ACTION, session_id="nightly-fix", reason=REASON, host="ci-3"))
                waiting = await card()
                await tap(waiting)
                await agent.result((await asked).request_id, "succeeded", 0)
                return waiting, await end()


def main() -> None:
    """Draw them all."""
    FOLDER.mkdir(exist_ok=True)
    for platform, play in PLATFORMS.items():
        shown = asyncio.run(_whole(play))
        for theme in THEMES:
            (FOLDER / f"card-{platform}-{theme}.svg").write_text(picture(shown, theme), "utf-8")


async def _whole(play: Callable[[], Awaitable[BOTH]]) -> BOTH:
    return await play()


if __name__ == "__main__":
    main()
