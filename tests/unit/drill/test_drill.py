"""`signoff drill` as a process, through a running gateway, on each platform."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from tests.forked import Forked
from tests.platforms.discord import DiscordServer
from tests.platforms.slack import SlackServer
from tests.platforms.telegram import SeenMessage, TelegramPlatform, TelegramServer
from tests.unit.cli.test_cli import Done, Shell, one_line
from tests.unit.console.world import Person

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the gateway runs on POSIX")

TOKEN, ANA, MALLORY, GROUP = "123456:TEST", 81, 666, -1001
STATE = '[gateway]\nstate_dir = "state"\nport = 0\nhooks_port = 0\n'
TITLE = "Drill: nothing will run"


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramPlatform]:
    async with TelegramServer() as server:
        place = server.platform
        await place.add_bot(TOKEN, "ops_signoff_bot")
        await place.add_user(ANA, "Ana")
        await place.add_user(MALLORY, "Mallory")
        await place.add_group(GROUP, "ops", members=[ANA, MALLORY])
        yield place


@pytest.fixture
async def shell(tmp_path: Any, telegram: TelegramPlatform) -> Shell:
    shell = Shell(tmp_path)
    url = (await telegram.where()).url
    (tmp_path / "signoff.toml").write_text(
        f'{STATE}[approvals]\nfallback_destination = "telegram:{ANA}"\nalso_to = ["telegram:{GROUP}"]\n'
        f'[platforms.telegram]\ntoken = "{TOKEN}"\napi_base_url = "{url}"\napprovers = ["{ANA}"]\n'
    )
    return shell


@asynccontextmanager
async def serving(shell: Shell) -> AsyncIterator[Forked]:
    process = await shell.start("serve", "--config", "signoff.toml")
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            assert (await process.stdout.readline()).startswith(b"listening on")
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await shell.end(process)


@asynccontextmanager
async def drilling(shell: Shell, *arguments: str) -> AsyncIterator[asyncio.Task[Done]]:
    process = await shell.start("drill", "--json", *arguments)
    task = asyncio.create_task(shell.end(process))
    yield task
    await task


def placed(done: Done) -> dict[str, dict[str, Any]]:
    return {each["destination"]: each for each in json.loads(done.out)["places"]}


async def card_in(place: TelegramPlatform, chat: int) -> SeenMessage:
    return await place.wait_for_message(chat, lambda m: m.text.startswith(TITLE), timeout_s=15)


@pytest.mark.quick
async def test_every_named_place_gets_a_card_and_a_tap_is_told(shell: Shell, telegram: TelegramPlatform) -> None:
    async with serving(shell), drilling(shell, "--wait", "60") as done:
        for chat in (ANA, GROUP):
            card = await card_in(telegram, chat)
            assert "approve" not in card.text.lower()
            assert card.text.splitlines()[1].endswith("rehearses that questions reach people here.")
            assert card.text.splitlines()[2] == "Tap to show that you would have seen it."
            assert [button.label for button in card.buttons] == ["I see it"]
            answer = await telegram.answer_of(await telegram.press(ANA, chat, card.message_id, "I see it"))
            assert answer.text.startswith("Drill: seen by Ana after ")
            seen = await telegram.wait_for_message(chat, lambda m: m.text.startswith("Drill: seen by Ana after "))
            assert seen.text == answer.text
            assert seen.buttons == []
        found = await done
    assert found.code == 0
    places = placed(found)
    assert set(places) == {f"telegram:{ANA}", f"telegram:{GROUP}"}
    assert all(each["state"] == "seen" and each["by"] == "Ana" for each in places.values())
    assert all(0 <= each["after_s"] < 60 for each in places.values())


async def test_it_rehearses_on_the_console_alone(shell: Shell) -> None:
    (shell.folder / "signoff.toml").write_text(f'{STATE}[approvals]\nfallback_destination = "console:main"\n')
    async with serving(shell), aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        base, _, link = (await shell("console", "--principal", "ana")).out.strip().partition("/console/link/")
        ana = Person(base, http)
        link = f"/console/link/{link}"
        assert (await ana.post(link, (await ana.get(link)).fields(link))).status == 303
        process = await shell.start("drill", "--wait", "1m")
        assert process.stderr is not None
        said = (await process.stderr.readline()).decode()
        assert said == "signoff: a card goes to console:main. Waiting up to 60 s for a tap.\n"
        said = (await process.stderr.readline()).decode()
        assert "`signoff console --principal NAME` prints a link that logs NAME in." in said
        page = (await ana.get("/console")).text
        seen = page.partition('action="/console/drills/')[2].partition('"')[0]
        action = f"/console/drills/{seen}"
        assert (await ana.post(action, (await ana.get("/console")).fields(action))).status == 303
        done = await shell.end(process)
    assert done.code == 0, done
    assert done.out.splitlines()[1].split()[:3] == ["console:main", "seen", "ana"]


async def test_that_nobody_tapped_is_told_in_the_terminal_and_on_the_card(
    shell: Shell, telegram: TelegramPlatform
) -> None:
    async with serving(shell):
        done = await shell("drill", "--wait", "5", "--to", f"telegram:{GROUP}", "--to", "console:main")
        assert done.code == 1
        assert done.out.count("nobody tapped") == done.out.count("nobody who may decide pressed it") == 2
        *_, console, chat = done.err.splitlines()
        assert console.startswith("signoff: nobody pressed 'I see it' in the console. ")
        assert console.endswith("`signoff console --principal NAME` prints a link that logs NAME in.")
        assert chat.startswith(f"signoff: nobody who may decide pressed 'I see it' in telegram:{GROUP}. Look whether ")
        ended = await telegram.wait_for_message(GROUP, lambda m: m.text == "Drill: nobody tapped within 5 s.")
        assert ended.buttons == []
        assert await telegram.messages(ANA) == []


async def test_who_may_not_decide_does_not_count(shell: Shell, telegram: TelegramPlatform) -> None:
    async with serving(shell), drilling(shell, "--wait", "60", "--to", f"telegram:{GROUP}") as done:
        card = await card_in(telegram, GROUP)
        answer = await telegram.answer_of(await telegram.press(MALLORY, GROUP, card.message_id, "I see it"))
        assert "may not" in answer.text
        await telegram.press(ANA, GROUP, card.message_id, "I see it")
        found = await done
    assert placed(found)[f"telegram:{GROUP}"]["by"] == "Ana"


async def test_a_second_tap_is_told_of_the_first(shell: Shell, telegram: TelegramPlatform) -> None:
    async with serving(shell), drilling(shell, "--wait", "60", "--to", f"telegram:{GROUP}") as done:
        card = await card_in(telegram, GROUP)
        data = card.buttons[0].callback_data
        assert data is not None
        first = await telegram.answer_of(await telegram.press(ANA, GROUP, card.message_id, "I see it"))
        await done
        again = await telegram.press_forged(ANA, GROUP, card.message_id, data)
        assert (await telegram.answer_of(again)).text == first.text
        elsewhere = await telegram.press_forged(ANA, ANA, card.message_id, data)
        assert "seen by" not in (await telegram.answer_of(elsewhere)).text


async def test_a_place_that_refuses_the_card_is_told_why(shell: Shell, telegram: TelegramPlatform) -> None:
    async with serving(shell):
        done = await shell("drill", "--wait", "30", "--json", "--to", "telegram:-999")
    assert done.code == 1
    only = placed(done)["telegram:-999"]
    assert only["state"] == "not_sent"
    assert "not found" in only["error"]


async def test_a_card_outlives_the_gateway(shell: Shell, telegram: TelegramPlatform) -> None:
    async with serving(shell) as first, drilling(shell, "--wait", "120", "--to", f"telegram:{GROUP}"):
        card = await card_in(telegram, GROUP)
        first.kill()
        await first.wait()
        async with serving(shell):
            answer = await telegram.answer_of(
                await telegram.press(ANA, GROUP, card.message_id, "I see it"), timeout_s=15
            )
            assert answer.text.startswith("Drill: seen by Ana after ")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--to", "nowhere"], 2, "platform:chat"),
        (["--to", "slack:C1"], 2, "does not serve slack"),
        (["--wait", "1"], 2, "--wait: 1 is out of bounds: it must be 5 to 3,600 seconds"),
        (["--wait", "soon"], 2, "--wait: 'soon' is no length of time. Write seconds, or such as 90s, 5m, 2h or 1d."),
    ],
)
async def test_wrong_use(shell: Shell, arguments: list[str], code: int, said: str) -> None:
    async with serving(shell):
        done = await shell("drill", *arguments)
    assert done.code == code
    assert said in one_line(done)


async def test_without_a_gateway_or_a_place(shell: Shell) -> None:
    assert (await shell("drill")).code == 75
    (shell.folder / "signoff.toml").write_text(STATE)
    async with serving(shell):
        done = await shell("drill")
    assert done.code == 2
    assert "Set approvals.fallback_destination" in one_line(done)


async def test_discord(shell: Shell) -> None:
    async with DiscordServer() as server:
        place = server.platform
        await place.add_bot("DTOKEN", "signoff")
        await place.add_user(111, "ana", display_name="Ana")
        await place.add_guild(10, "Ops", members=[111])
        await place.add_channel(10, 20, "deploys")
        (shell.folder / "signoff.toml").write_text(
            f'{STATE}[platforms.discord]\ntoken = "DTOKEN"\napprovers = ["111"]\n'
            f'api_base_url = "{(await place.where()).url}"\ngateway_url = "{await place.gateway_url()}"\n'
        )
        # A person as the destination: the card goes to the direct chat, which has another id.
        async with serving(shell), drilling(shell, "--wait", "60", "--to", "discord:20", "--to", "discord:111") as done:
            for chat in (20, await place.dm(111)):
                card = await place.wait_for_message(chat, lambda m: TITLE in m.text, timeout_s=15)
                answer = await place.answer_of(await place.press(111, chat, card.message_id, "I see it"), 5)
                assert answer.kind == "message"
                await place.wait_for_message(chat, lambda m: m.text.startswith("Drill: seen by Ana after "))
            found = await done
    assert found.code == 0, found


async def test_slack(shell: Shell) -> None:
    async with SlackServer() as server:
        place = server.platform
        await place.add_bot("xoxb-1", "xapp-1")
        await place.add_user("U111", "Ana")
        await place.add_channel("C111", "ops", members=["U111"])
        (shell.folder / "signoff.toml").write_text(
            f'{STATE}[platforms.slack]\nbot_token = "xoxb-1"\napp_token = "xapp-1"\napprovers = ["U111"]\n'
            f'api_base_url = "{(await place.where()).url}"\n'
        )
        async with serving(shell), drilling(shell, "--wait", "60", "--to", "slack:C111", "--to", "slack:U111") as done:
            for chat in ("C111", await place.add_dm("U111")):
                card = await place.wait_for_message(chat, lambda m: TITLE in m.text, timeout_s=15)
                await place.press("U111", chat, card.ts, "I see it")
                await place.wait_for_message(chat, lambda m: m.text.startswith("Drill: seen by Ana after "))
            found = await done
    assert found.code == 0, found
