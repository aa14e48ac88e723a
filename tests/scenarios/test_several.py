"""One gateway on three platforms: one answer for all of them, and one that does not work holds up no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.platforms.discord import DiscordPlatform
from tests.platforms.slack import SlackPlatform
from tests.platforms.telegram import TelegramPlatform
from tests.scenarios import on_discord, on_slack, on_telegram, several
from tests.scenarios.gateways import soon
from tests.scenarios.several import HOOKS, STREAMS, TITLES
from tests.scenarios.stage import Stage
from tests.scenarios.transport import Transport

BACK_WITHIN_S = 30.0
LIBRARIES = {"telegram": "telegram", "discord": "discord", "slack": "slack_sdk"}
TOKENS = {
    "telegram.token": on_telegram.TOKEN,
    "discord.token": on_discord.TOKEN,
    "slack.bot_token": on_slack.BOT_TOKEN,
    "slack.app_token": on_slack.APP_TOKEN,
}
"""Each setting that a platform may reject, with the value that it takes."""


def one_quick(names: Iterable[str], quick: str) -> list[Any]:
    """A case for each name; all but one are left to the heavy run."""
    return [pytest.param(name, marks=[] if name == quick else [pytest.mark.heavy]) for name in names]


@pytest.mark.parametrize(
    "kinds", [pytest.param(STREAMS, id="connections", marks=pytest.mark.quick), pytest.param(HOOKS, id="hooks")]
)
async def test_one_answer_ends_the_cards_in_three_places(kinds: tuple[type[Transport], ...], tmp_path: Path) -> None:
    async with several.opened(kinds) as chats:
        places = await several.groups(chats)
        async with several.staged(chats, tmp_path, settings=several.also_to(places)) as stage:
            session = await stage.session("everywhere", places["telegram"])
            for here, chat in chats.items():
                asked = stage.work(f"deploy ./{here}", session)
                cards = {name: await each.card(places[name], f"./{here}") for name, each in chats.items()}
                assert len({card.short_id for card in cards.values()}) == 1
                assert await chat.tapped("ana", cards[here], "Approve once") == "Approved once. The agent is told."
                assert (await asked).may_run
                ended = {
                    name: (await each.becomes(cards[name], "Succeeded: exit code 0")).text
                    for name, each in chats.items()
                }
                verdicts = {name: text.partition(" · ")[0] for name, text in ended.items()}
                elsewhere = f"{verdicts[here]} on {TITLES[here]}"
                assert verdicts[here].startswith("✅ Approved once by “Ana”")
                assert verdicts == {name: verdicts[here] if name == here else elsewhere for name in chats}
            assert stage.ran == [f"deploy ./{name}" for name in chats]
            assert await stage.metric() == {("approved", "none"): len(chats)}


# --- one does not work ------------------------------------------------------------------------------


async def serves(stage: Stage, chat: Transport) -> None:
    """A question is asked and answered there."""
    platform = several.platform_of(chat)
    place = await chat.group()
    asked = stage.work(f"deploy ./on-{platform}", await stage.session(f"on-{platform}", place))
    await chat.tapped("ana", await chat.card(place, f"./on-{platform}"), "Approve once")
    assert (await asked).may_run


async def one_line(stage: Stage, platform: str, *words: str) -> None:
    """Exactly one line of the log is about the platform, and it has these words."""

    async def said() -> bool:
        return bool(several.told(stage, platform))

    await soon(said)
    lines = several.told(stage, platform)
    assert len(lines) == 1, lines
    assert " ERROR " in lines[0]
    assert [word for word in words if word not in lines[0]] == [], lines[0]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("platform", one_quick(TITLES, "discord"))
async def test_one_that_is_down_at_the_start_comes_by_itself(platform: str, tmp_path: Path) -> None:
    async with several.opened(STREAMS) as chats:
        await chats[platform].down()
        async with several.staged(chats, tmp_path) as stage:
            others = [chat for name, chat in chats.items() if name != platform]
            await asyncio.gather(*(serves(stage, chat) for chat in others))
            await one_line(stage, platform, f"platforms.{platform} ", "is not connected", "it is tried again")
            facts = await several.health(stage, platform)
            assert facts["state"] == "degraded"
            assert TITLES[platform] in facts["detail"]
            await chats[platform].up()

            async def back() -> bool:
                return bool((await several.health(stage, platform))["state"] == "ready")

            await soon(back, BACK_WITHIN_S)
            await serves(stage, chats[platform])
            history = (await several.health(stage, platform))["history"]
            assert any("degraded: " in line and TITLES[platform] in line for line in history)
            assert history[-1].endswith(" ready")
            assert await stage.gateway.stop() == 0


def with_wrong(setting: str) -> Callable[[str], str]:
    """What puts a token that nobody gave out into a configuration."""
    token = TOKENS[setting]
    return lambda config: config.replace(f'"{token}"', f'"{token}-of-another"')


@pytest.mark.timeout(120)
@pytest.mark.parametrize("setting", one_quick(TOKENS, "slack.bot_token"))
async def test_a_wrong_token_is_one_line_that_names_the_setting(setting: str, tmp_path: Path) -> None:
    platform = setting.partition(".")[0]
    async with several.opened(STREAMS) as chats, several.staged(chats, tmp_path, spoil=with_wrong(setting)) as stage:
        await asyncio.gather(*(serves(stage, chat) for name, chat in chats.items() if name != platform))
        await one_line(stage, platform, f"platforms.{setting}", "Put the right one")
        facts = await several.health(stage, platform)
        assert facts["state"] == "stopped"
        assert f"platforms.{setting}" in facts["detail"]
        assert await stage.gateway.stop() == 0


@pytest.mark.timeout(120)
@pytest.mark.parametrize("platform", one_quick(LIBRARIES, "telegram"))
async def test_a_missing_library_is_one_line_that_names_the_extra(platform: str, tmp_path: Path) -> None:
    without = several.without_library(tmp_path, LIBRARIES[platform])
    async with several.opened(STREAMS) as chats, several.staged(chats, tmp_path, python_path=without) as stage:
        await asyncio.gather(*(serves(stage, chat) for name, chat in chats.items() if name != platform))
        extra = f"pip install 'signoff[{platform}]'"
        await one_line(stage, platform, extra)
        facts = await several.health(stage, platform)
        assert (facts["state"], extra in facts["detail"]) == ("stopped", True)
        assert await stage.gateway.stop() == 0


# --- the place is gone ------------------------------------------------------------------------------


async def leave(chat: Transport, place: str) -> None:
    """Somebody removes the bot from a group, or on Slack, where an app may write to any open one, closes it."""
    group = place.partition(":")[2]
    if isinstance(chat.server, DiscordPlatform):
        await chat.server.remove_bot(on_discord.GUILD)
    elif isinstance(chat.server, SlackPlatform):
        await chat.server.archive(group)
    elif isinstance(chat.server, TelegramPlatform):
        await chat.server.set_member(int(group), int(on_telegram.TOKEN.partition(":")[0]), "kicked")


@pytest.mark.parametrize(("gone", "instead"), [("telegram", "discord"), ("discord", "slack"), ("slack", "telegram")])
async def test_the_card_of_a_place_that_is_gone_falls_to_another_platform(
    gone: str, instead: str, tmp_path: Path
) -> None:
    async with several.opened(STREAMS) as chats:
        own, other = await chats[gone].group(), await chats[instead].group()
        settings = f'[approvals]\nfallback_destination = "{other}"\n'
        async with several.staged(chats, tmp_path, settings=settings) as stage:
            session = await stage.session("gone", own)
            await leave(chats[gone], own)
            asked = stage.work("deploy ./build", session)
            card = await chats[instead].card(other, "./build")
            assert "Asked here because" in card.text
            assert await chats[instead].tapped("bo", card, "Approve once") == "Approved once. The agent is told."
            record = await asked
            assert record.may_run
            assert record.delivered_to == (other,)
            await chats[instead].becomes(card, "Succeeded: exit code 0")
            assert not any(each.by_bot for each in await chats[gone].seen(own))


@pytest.mark.parametrize(("gone", "instead"), [("telegram", "discord"), ("discord", "slack"), ("slack", "telegram")])
async def test_what_stood_in_a_place_that_goes_away_falls_to_another_platform(
    gone: str, instead: str, tmp_path: Path
) -> None:
    """Where the platform tells nothing, the next card that it refuses does."""
    async with several.opened(STREAMS) as chats:
        own, other = await chats[gone].group(), await chats[instead].group()
        settings = f'[approvals]\nfallback_destination = "{other}"\n'
        async with several.staged(chats, tmp_path, settings=settings) as stage:
            session = await stage.session("gone", own)
            asked = [stage.work("deploy ./stood", session)]
            await chats[gone].card(own, "./stood")
            await leave(chats[gone], own)
            asked.append(stage.work("deploy ./next", session))
            for text in ("./stood", "./next"):
                card = await chats[instead].card(other, text)
                assert await chats[instead].tapped("bo", card, "Approve once") == "Approved once. The agent is told."
            assert all(record.may_run for record in await asyncio.gather(*asked))
