"""`signoff init` as a process: by options, and as a dialogue on a terminal, against each platform."""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.platforms.discord import DiscordPlatform, DiscordServer
from tests.platforms.slack import SlackPlatform, SlackServer
from tests.platforms.telegram import TelegramPlatform, TelegramServer
from tests.unit.cli.test_cli import Shell, one_line
from tests.unit.init.terminal import Terminal, on_terminal

from signoff.config import load_config

pytestmark = pytest.mark.skipif(os.name != "posix", reason="terminals and file modes")

TOKEN = "123456:TEST"
ANA, GROUP = 81234567, -1001
CODE = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{8}\b")
HELLO = 'Hello Ana R. You would be the first approver of profile "default" (id 81234567). Confirm in the terminal.'
MAY = "You may decide now. /help shows how. A drill comes next."
WRONG = "This code is not valid (any more); nothing changed. Get a new one: signoff init"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    (tmp_path / "signoff.toml").unlink()
    shell.environ["BOT_TOKEN"] = TOKEN
    return shell


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramPlatform]:
    async with TelegramServer() as server:
        place = server.platform
        await place.add_bot(TOKEN, "ops_signoff_bot")
        await place.add_user(ANA, "Ana", last_name="R")
        await place.add_user(666, "Mallory")
        await place.add_group(GROUP, "ops", members=[ANA, 666])
        yield place


async def origin(place: TelegramPlatform | SlackPlatform | DiscordPlatform) -> str:
    return f"--api-base-url={(await place.where()).url}"


async def code_on(terminal: Terminal) -> str:
    """The code that the terminal shows."""
    line = await terminal.expect("(10 min, one use)", timeout_s=40)
    found = CODE.findall(line)
    assert found, line
    return str(found[-1])


def settings(shell: Shell) -> str:
    file: Path = shell.folder / "signoff.toml"
    return file.read_text()


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- by options ------------------------------------------------------------------------------------


@pytest.mark.quick
async def test_by_options_alone_the_file_is_complete_private_and_without_the_secret(
    shell: Shell, telegram: TelegramPlatform
) -> None:
    done = await shell(
        "init", "--platform", "telegram", "--token-env", "BOT_TOKEN", "--approver", f"telegram:{ANA}", "--fallback",
        f"telegram:{GROUP}", "--yes", "--json", await origin(telegram),
    )  # fmt: skip
    assert done.code == 0, done
    told = json.loads(done.out)
    assert told["platforms"]["telegram"]["bot"] == "@ops_signoff_bot"
    assert told["platforms"]["telegram"]["approvers"] == [str(ANA)]
    file = shell.folder / "signoff.toml"
    assert mode_of(file) == 0o600
    text = settings(shell)
    assert TOKEN not in text + done.out + done.err
    assert 'token_env = "BOT_TOKEN"' in text
    assert "# Who may decide on Telegram" in text
    config = load_config(file, {"BOT_TOKEN": TOKEN})
    assert str(config.profile("default").approvals.fallback_destination) == f"telegram:{GROUP}"
    assert config.profile("default").approvers == {"telegram": (str(ANA),)}


async def test_a_file_that_is_there_stays_without_force(shell: Shell, telegram: TelegramPlatform) -> None:
    (shell.folder / "signoff.toml").write_text("# mine\n")
    given = ["init", "--platform", "telegram", "--token-env", "BOT_TOKEN", "--no-bind", "--yes", await origin(telegram)]
    done = await shell(*given)
    assert (done.code, settings(shell)) == (2, "# mine\n")
    assert "--force replaces it" in one_line(done)
    assert (await shell(*given, "--force")).code == 0
    assert "BOT_TOKEN" in settings(shell)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "name a --platform, or --console, or run it in a terminal"),
        (["--platform", "matrix"], 2, "there is no platform 'matrix'; there are: discord, slack, telegram"),
        (["--platform", "telegram"], 2, "Bot token is missing; give --token-env or -file"),
        (["--platform", "telegram", "--token-env", "NO_SUCH"], 2, "NO_SUCH is not set"),
        (["--platform", "telegram", "--token-file", "nowhere"], 2, "there is no file"),
        (["--platform", "telegram", "--token-env", "WRONG_TOKEN"], 1, "Telegram rejects the bot's token"),
        (["--platform", "telegram", "--token-env", "PATH"], 2, "in PATH is not this token of Telegram"),
        (["--platform", "telegram", "--token-env", "BOT_TOKEN", "--approver", "telegram:@ana"], 2, "write the id"),
        (["--platform", "telegram", "--token-env", "BOT_TOKEN", "--approver", "ana"], 2, "write it as PLATFORM:ID"),
        (
            ["--platform", "telegram", "--token-env", "BOT_TOKEN", "--no-bind", "--approver", "slack:U11"],
            2,
            "add --platform",
        ),
        (["--platform", "telegram", "--token-env", "BOT_TOKEN", "--no-bind", "--fallback", "ops"], 2, "no place"),
        (["--platform", "telegram", "--token-env", "BOT_TOKEN", "--no-bind", "--fallback", "slack:C1"], 2, "not among"),
        (
            ["--platform", "telegram", "--token-env", "BOT_TOKEN", "--no-bind", "--fallback", "telegram:-5"],
            2,
            "Add the bot to the group",
        ),
    ],
)
async def test_a_wrong_answer_is_one_line_with_the_mend_and_nothing_is_written(
    shell: Shell, telegram: TelegramPlatform, arguments: list[str], code: int, said: str
) -> None:
    shell.environ["WRONG_TOKEN"] = "123456:WRONG"
    place = [await origin(telegram)] if "telegram" in arguments else []
    done = await shell("init", "--yes", *arguments, *place)
    assert done.code == code, done
    assert said in done.err.splitlines()[-1]
    assert "123456:WRONG" not in done.err
    assert not (shell.folder / "signoff.toml").exists()


async def test_a_script_may_bind_whoever_sends_the_code(shell: Shell, telegram: TelegramPlatform) -> None:
    given = ["--platform", "telegram", "--token-env", "BOT_TOKEN", "--yes", "--json"]
    process = await shell.start("init", *given, await origin(telegram))
    assert process.stderr is not None
    async with asyncio.timeout(60):
        while not (found := CODE.findall((await process.stderr.readline()).decode())):
            pass
    await telegram.say(ANA, ANA, f"/start {found[-1]}")
    done = await shell.end(process)
    assert done.code == 0, done
    told = json.loads(done.out)
    assert told["platforms"]["telegram"]["approvers"] == [str(ANA)]
    assert told["fallback_destination"] == f"telegram:{ANA}"


async def test_several_platforms_at_once(shell: Shell, telegram: TelegramPlatform) -> None:
    async with SlackServer() as server:
        await server.platform.add_bot("xoxb-1", "xapp-1")
        shell.environ |= {"SLACK_BOT": "xoxb-1", "SLACK_APP": "xapp-1"}
        done = await shell(
            "init", "--platform", "telegram", "--platform", "slack", "--no-bind", "--yes",
            "--token-env", "telegram=BOT_TOKEN", "--token-env", "slack=SLACK_BOT", "--app-token-env", "SLACK_APP",
            f"--api-base-url=telegram={(await telegram.where()).url}",
            f"--api-base-url=slack={(await server.platform.where()).url}",
        )  # fmt: skip
    assert done.code == 0, done
    config = load_config(shell.folder / "signoff.toml", shell.environ)
    assert set(config.profile("default").platforms) == {"telegram", "slack"}
    refused = await shell(
        "init", "--platform", "telegram", "--platform", "slack", "--token-env", "X", "--yes", "--force"
    )
    assert "write it as PLATFORM=VALUE" in one_line(refused)


async def test_an_unreachable_platform_is_told(shell: Shell) -> None:
    done = await shell(
        "init", "--platform", "telegram", "--token-env", "BOT_TOKEN", "--yes", "--api-base-url=http://127.0.0.1:9"
    )
    assert done.code == 1
    assert one_line(done) == "Telegram could not be reached: ConnectError."


async def test_a_second_poller_stops_it_before_anything_is_written(shell: Shell, telegram: TelegramPlatform) -> None:
    await telegram.fault("409", method="getUpdates", times=20)
    given = ["--platform", "telegram", "--token-env", "BOT_TOKEN", "--no-bind", "--yes"]
    done = await shell("init", *given, await origin(telegram))
    assert done.code == 1
    assert "Another program polls this bot's updates" in done.err.splitlines()[-1]


async def test_the_slack_manifest_names_everything_that_is_used(shell: Shell) -> None:
    done = await shell("init", "--show", "slack")
    assert done.code == 0
    for wanted in (
        "socket_mode_enabled: true",
        "is_enabled: true",
        "command: /signoff",
        "- chat:write",
        "- files:write",
        "- users:read",
        "- usergroups:read",
        "- im:write",
        "- app_mention\n",
        "- message.im\n",
        "- message.channels\n",
        "messages_tab_read_only_enabled: false",
    ):
        assert wanted in done.out, wanted
    assert "/newbot\n" in (await shell("init", "--show", "telegram")).out


# --- the dialogue ----------------------------------------------------------------------------------


@pytest.mark.quick
async def test_the_dialogue_binds_whoever_sends_the_code(shell: Shell, telegram: TelegramPlatform) -> None:
    async with on_terminal(shell, "init", await origin(telegram), "--platform", "telegram") as terminal:
        await terminal.expect("@BotFather")
        await terminal.expect("Bot token")
        await terminal.type_hidden("telegram")
        await terminal.expect("What stands there is not this token of Telegram: it is a number, a colon and letters")
        await terminal.expect("Bot token")
        await terminal.type_hidden("123456:MISTYPED")
        await terminal.expect("Telegram rejects the bot's token")
        await terminal.expect("Bot token")
        # What would be in the way at the end is told before anybody is bound.
        secret = shell.folder / "telegram.token"
        secret.write_text("left over")
        await terminal.type_hidden(TOKEN)
        await terminal.expect("is there already and stays as it is; --force replaces it.")
        await terminal.expect("to take what stands in it.")
        await terminal.expect("Bot token")
        secret.unlink()
        await terminal.type_hidden(TOKEN)
        await terminal.expect("Telegram knows the bot as @ops_signoff_bot")
        await terminal.expect("Bind yourself as the first approver now? [Y/n]")
        terminal.type("perhaps")
        await terminal.expect("Answer y or n.")
        await terminal.expect("[Y/n]")
        terminal.type("y")
        code = await code_on(terminal)
        assert f"https://t.me/ops_signoff_bot?start={code}" in terminal.screen
        await telegram.say(666, 666, "/start 00000000")
        assert (await telegram.wait_for_message(666, lambda m: m.text == WRONG)).text == WRONG
        await telegram.say(ANA, ANA, f"/start {code.lower()}")
        await telegram.wait_for_message(ANA, lambda m: m.text == HELLO)
        await terminal.expect("Telegram: “Ana R”, id 81234567, direct chat. Is that you? [y/N]")
        terminal.type("y")
        await terminal.expect("Where do questions go")
        await telegram.wait_for_message(ANA, lambda m: m.text == MAY)
        terminal.type("")
        assert await terminal.ended() == 0, terminal.screen
    assert TOKEN not in terminal.screen
    assert f'approvers = ["{ANA}"]' in settings(shell)
    assert f'fallback_destination = "telegram:{ANA}"' in settings(shell)
    assert 'token_file = "telegram.token"' in settings(shell)
    assert (secret.read_text().strip(), mode_of(secret)) == (TOKEN, 0o600)
    load_config(shell.folder / "signoff.toml", {})
    # The command was taken, so the gateway does not see it again.
    assert await telegram.pending_count() == 0


async def begun(terminal: Terminal) -> str:
    """Up to the code, with the token from the environment."""
    await terminal.expect("Bind yourself as the first approver now?")
    terminal.type("y")
    return await code_on(terminal)


GIVEN = ("init", "--platform", "telegram", "--token-env", "BOT_TOKEN")


async def test_a_code_in_a_group_is_void(shell: Shell, telegram: TelegramPlatform) -> None:
    async with on_terminal(shell, *GIVEN, await origin(telegram)) as terminal:
        code = await begun(terminal)
        await telegram.say(ANA, GROUP, f"/start {code}")
        seen = await telegram.wait_for_message(GROUP, lambda m: "Others here could read the code" in m.text)
        assert seen.text.endswith("Get a new one and send it in a direct chat.")
        await terminal.expect("so it is void now.")
        await terminal.expect("Get a new code?")
        terminal.type("y")
        fresh = await code_on(terminal)
        assert fresh != code
        await telegram.say(ANA, ANA, f"/start {code}")
        await telegram.wait_for_message(ANA, lambda m: m.text == WRONG)
        await telegram.say(ANA, ANA, f"/start {fresh}")
        await terminal.expect("Is that you?")


async def test_five_wrong_codes_void_it(shell: Shell, telegram: TelegramPlatform) -> None:
    async with on_terminal(shell, *GIVEN, await origin(telegram)) as terminal:
        code = await begun(terminal)
        for number in range(5):
            await telegram.say(666, 666, f"/start 0000000{number}")
        await telegram.wait_for(666, lambda seen: sum(m.text == WRONG for m in seen) == 5)
        await terminal.expect("Wrong codes came 5 times, so it is void now.")
        await terminal.expect("Get a new code?")
        terminal.type("n")
        await terminal.expect("Where do questions go")
        terminal.type("-")
        assert await terminal.ended() == 0
    assert "approvers = []" in settings(shell)
    assert code not in settings(shell)


async def test_who_is_not_confirmed_is_not_bound(shell: Shell, telegram: TelegramPlatform) -> None:
    async with on_terminal(shell, *GIVEN, await origin(telegram)) as terminal:
        code = await begun(terminal)
        await telegram.say(666, 666, f"/start {code}")
        await terminal.expect("“Mallory”, id 666, direct chat. Is that you?")
        terminal.type("")
        await telegram.wait_for_message(666, lambda m: m.text == "Not confirmed in the terminal; nothing changed.")
        await terminal.expect("Get a new code?")
        terminal.type("n")
        await terminal.expect("Where do questions go")
        terminal.type("-")
        assert await terminal.ended() == 0
    assert "666" not in settings(shell)


async def test_ctrl_c_leaves_nothing(shell: Shell, telegram: TelegramPlatform) -> None:
    async with on_terminal(shell, *GIVEN, await origin(telegram)) as terminal:
        await begun(terminal)
        terminal.process.send_signal(2)
        assert await terminal.ended() == 130, terminal.screen
    assert "Traceback" not in terminal.screen
    assert list(shell.folder.iterdir()) == []


async def test_discord_binds_in_a_direct_chat(shell: Shell) -> None:
    async with DiscordServer() as server:
        place = server.platform
        application = await place.add_bot("DISCORD_TOKEN", "signoff")
        await place.add_user(111, "ana", display_name="Ana")
        await place.add_guild(10, "Ops", members=[111])
        shell.environ["BOT_TOKEN"] = "DISCORD_TOKEN"
        given = ["--platform", "discord", "--token-env", "BOT_TOKEN", f"--gateway-url={await place.gateway_url()}"]
        async with on_terminal(shell, "init", *given, await origin(place)) as terminal:
            await terminal.expect(f"client_id={application}&scope=bot%20applications.commands&permissions=274878024704")
            code = await begun(terminal)
            chat = await place.dm(111)
            await place.say(111, chat, code)
            await terminal.expect("Discord: “Ana”, id 111, direct chat. Is that you?")
            terminal.type("y")
            await terminal.expect("Where do questions go")
            terminal.type("")
            assert await terminal.ended() == 0, terminal.screen
        said = [message.content for message in await place.messages(chat)]
        assert any("You would be the first approver" in text for text in said), said
        assert said[-1].startswith("You may decide now.")
    assert f'fallback_destination = "discord:{chat}"' in settings(shell)
    assert 'approvers = ["111"]' in settings(shell)


async def test_discord_presses_that_go_elsewhere_are_told(shell: Shell) -> None:
    async with DiscordServer() as server:
        place = server.platform
        await place.add_bot("DISCORD_TOKEN", "signoff")
        await place.set_interactions_url("https://elsewhere.example.org/secret-path", validate=False)
        shell.environ["BOT_TOKEN"] = "DISCORD_TOKEN"
        done = await shell("init", "--platform", "discord", "--token-env", "BOT_TOKEN", "--yes", await origin(place))
    assert done.code == 1
    assert "Discord posts presses to elsewhere.example.org" in done.err.splitlines()[-1]
    assert "secret-path" not in done.err + done.out


async def test_slack_binds_in_a_direct_chat(shell: Shell) -> None:
    async with SlackServer() as server:
        place = server.platform
        await place.add_bot("xoxb-1", "xapp-1")
        await place.add_user("U111", "Ana")
        chat = await place.add_dm("U111")
        shell.environ |= {"BOT_TOKEN": "xoxb-1", "APP_TOKEN": "xapp-1"}
        given = ["--platform", "slack", "--token-env", "BOT_TOKEN", "--app-token-env", "APP_TOKEN"]
        async with on_terminal(shell, "init", *given, await origin(place)) as terminal:
            await terminal.expect("socket_mode_enabled: true")
            code = await begun(terminal)
            await place.say("U111", chat, code)
            await terminal.expect("id U111, direct chat. Is that you?")
            terminal.type("y")
            await terminal.expect("Where do questions go")
            terminal.type("")
            assert await terminal.ended() == 0, terminal.screen
    assert 'approvers = ["U111"]' in settings(shell)
    assert 'app_token_env = "APP_TOKEN"' in settings(shell)
    assert f'fallback_destination = "slack:{chat}"' in settings(shell)


async def test_slack_takes_the_code_by_slash_command_and_voids_it_in_a_channel(shell: Shell) -> None:
    async with SlackServer() as server:
        place = server.platform
        await place.add_bot("xoxb-1", "xapp-1")
        await place.add_user("U111", "Ana")
        await place.add_channel("C111", "ops", members=["U111"])
        chat = await place.add_dm("U111")
        shell.environ |= {"BOT_TOKEN": "xoxb-1", "APP_TOKEN": "xapp-1"}
        given = ["--platform", "slack", "--token-env", "BOT_TOKEN", "--app-token-env", "APP_TOKEN"]
        async with on_terminal(shell, "init", *given, await origin(place)) as terminal:
            code = await begun(terminal)
            shown = await place.answer_of(await place.slash("U111", "C111", code))
            assert "Others here could read the code" in shown.text
            await terminal.expect("Get a new code?")
            terminal.type("y")
            code = await code_on(terminal)
            shown = await place.answer_of(await place.slash("U111", chat, code))
            assert "You would be the first approver" in shown.text
            await terminal.expect("id U111, direct chat. Is that you?")


async def test_what_somebody_else_wrote_binds_nobody(shell: Shell, telegram: TelegramPlatform) -> None:
    async with on_terminal(shell, *GIVEN, await origin(telegram)) as terminal:
        code = await begun(terminal)
        await telegram.say(666, 666, f"/start {code}", forward=True)
        await telegram.wait_for_message(666, lambda m: m.text == WRONG)
        await telegram.say(ANA, ANA, f"/start {code}")
        await terminal.expect("“Ana R”, id 81234567")
