"""`signoff doctor` as a process: before a gateway, beside one, and against each platform."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.forked import Forked
from tests.platforms.discord import DiscordPlatform, DiscordServer
from tests.platforms.slack import SlackPlatform, SlackServer
from tests.platforms.telegram import TelegramPlatform, TelegramServer
from tests.unit.cli.test_cli import Done, Shell

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the gateway runs on POSIX")

DISCORD_TOKEN = "DISCORD-secret"
TOKEN, ANA, GROUP = "123456:TEST-secret", 81, -1001
Rows = dict[tuple[str, str], dict[str, str]]


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramPlatform]:
    async with TelegramServer() as server:
        place = server.platform
        await place.add_bot(TOKEN, "ops_signoff_bot")
        await place.add_user(ANA, "Ana")
        await place.add_user(82, "Ben", started=False)
        await place.add_group(GROUP, "ops", members=[ANA])
        await place.add_group(-1002, "other", members=[ANA], bots=[])
        yield place


@pytest.fixture
async def discord() -> AsyncIterator[DiscordPlatform]:
    async with DiscordServer() as server:
        place = server.platform
        await place.add_bot("DISCORD-secret", "signoff")
        await place.add_user(111, "ana")
        await place.add_guild(10, "Ops", members=[111])
        await place.add_channel(10, 20, "deploys")
        await place.add_channel(10, 21, "hidden")
        await place.set_access(21, view=False)
        await place.add_thread(20, 30, "talk")
        await place.add_thread(20, 31, "over", locked=True)
        yield place


@pytest.fixture
async def slack() -> AsyncIterator[SlackPlatform]:
    async with SlackServer() as server:
        place = server.platform
        await place.add_bot("xoxb-secret", "xapp-secret")
        await place.add_user("U111", "Ana")
        await place.add_channel("C111", "ops", members=["U111"])
        await place.add_channel("C112", "elsewhere", members=["U111"], bots=[])
        await place.add_channel("C113", "old", members=["U111"])
        await place.archive("C113")
        yield place


class Patient:
    """A configuration and its examination."""

    def __init__(self, folder: Path) -> None:
        self.shell = Shell(folder)
        self.file = folder / "signoff.toml"

    def configure(self, sections: str, places: tuple[str, ...] = (), port: int = 0) -> None:
        """Write the file, private, with these places."""
        listed = json.dumps(list(places))
        head = f'[gateway]\nstate_dir = "state"\nport = {port}\nhooks_port = 0\n[approvals]\nalso_to = {listed}\n'
        self.file.write_text(head + sections)
        self.file.chmod(0o600)

    async def examined(self, code: int) -> Rows:
        """The report's rows by part and subject."""
        done = await self.shell("doctor", "--json")
        assert done.code == code, done
        self.no_secret(done)
        report: dict[str, Any] = json.loads(done.out)
        rows = report["data"]
        assert report["problems"] == sum(row["level"] == "problem" for row in rows)
        assert all(bool(row["mend"]) is (row["level"] != "ok") for row in rows), rows
        return {(row["part"], row["about"]): row for row in rows}

    def no_secret(self, done: Done) -> None:
        assert "secret" not in done.out + done.err


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    return Patient(tmp_path)


async def telegram_section(place: TelegramPlatform, token: str = TOKEN, more: str = 'approvers = ["81"]\n') -> str:
    return f'[platforms.telegram]\ntoken = "{token}"\napi_base_url = "{(await place.where()).url}"\n{more}'


async def discord_section(place: DiscordPlatform, token: str = DISCORD_TOKEN, more: str = "") -> str:
    where = f'api_base_url = "{(await place.where()).url}"\ngateway_url = "{await place.gateway_url()}"\n'
    return f'[platforms.discord]\ntoken = "{token}"\napprovers = ["111"]\n{where}{more}'


async def slack_section(
    place: SlackPlatform, bot: str = "xoxb-secret", app: str = "xapp-secret", groups: tuple[str, ...] = ()
) -> str:
    where = f'api_base_url = "{(await place.where()).url}"\napprovers = {json.dumps(["U111", *groups])}\n'
    return f'[platforms.slack]\nbot_token = "{bot}"\napp_token = "{app}"\n{where}'


# --- Telegram, and the gateway itself --------------------------------------------------------------


async def test_a_sound_set_up_has_no_problem_and_is_left_as_it_is(patient: Patient, telegram: TelegramPlatform) -> None:
    patient.configure(await telegram_section(telegram), (f"telegram:{ANA}", f"telegram:{GROUP}"))
    await telegram.say(ANA, ANA, "/pending")
    before = sorted(patient.shell.folder.iterdir())
    rows = await patient.examined(0)
    assert all(row["level"] == "ok" for row in rows.values()), rows
    for subject in ("token", "webhook", "second poller", "clock", "approvers", f"place telegram:{GROUP}"):
        assert ("telegram", subject) in rows
    assert sorted(patient.shell.folder.iterdir()) == before
    # What waits for the gateway was not taken away.
    assert await telegram.pending_count() == 1
    people = await patient.shell("doctor")
    assert people.out.endswith("no problems, no warnings.\n")
    assert "ok       telegram, token: Telegram knows the bot as @ops_signoff_bot.\n" in people.out


async def test_places_that_cannot_be_reached(patient: Patient, telegram: TelegramPlatform) -> None:
    places = ("telegram:-1002", "telegram:-9", "telegram:82", f"telegram:{GROUP}/7")
    patient.configure(await telegram_section(telegram), places)
    rows = await patient.examined(1)
    for place in places:
        assert rows["telegram", f"place {place}"]["level"] == "problem", place
    assert "press Start" in rows["telegram", "place telegram:82"]["mend"]
    assert "no topics" in rows["telegram", f"place telegram:{GROUP}/7"]["text"]


async def test_a_refused_token_is_one_finding(patient: Patient, telegram: TelegramPlatform) -> None:
    patient.configure(await telegram_section(telegram, token="123456:wrong-secret"), (f"telegram:{ANA}",))
    rows = await patient.examined(1)
    assert rows["telegram", "token"]["text"] == "Telegram rejects the bot's token."
    assert ("telegram", f"place telegram:{ANA}") not in rows


async def test_an_unreachable_platform(patient: Patient) -> None:
    patient.configure(f'[platforms.telegram]\ntoken = "{TOKEN}"\napi_base_url = "http://127.0.0.1:9"\n')
    rows = await patient.examined(1)
    assert "could not be reached" in rows["telegram", "connection"]["text"]


async def test_nobody_who_may_decide_is_a_problem(patient: Patient, telegram: TelegramPlatform) -> None:
    patient.configure(await telegram_section(telegram, more=""))
    rows = await patient.examined(1)
    assert "nobody can decide there" in rows["telegram", "approvers"]["text"]


async def test_an_approver_without_an_account_there(patient: Patient, telegram: TelegramPlatform) -> None:
    more = 'approvers = ["ana"]\n[principals.ana]\naccounts = ["slack:U111"]\n'
    patient.configure(await telegram_section(telegram, more=more))
    rows = await patient.examined(0)
    assert 'Add "telegram:ID" to principals.ana.accounts.' in rows["telegram", "approvers"]["mend"]


@asynccontextmanager
async def polling(place: TelegramPlatform) -> AsyncIterator[None]:
    """Another program that polls for the same bot, and comes again whenever it is thrown out."""
    url = f"{await place.base_url()}{TOKEN}/getUpdates"

    async def poll() -> None:
        async with httpx.AsyncClient(timeout=30) as client:
            while True:
                await client.get(url, params={"timeout": 20})

    task = asyncio.create_task(poll())
    try:
        await place.wait_for_log(bool, method="getUpdates")
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_second_poller_is_met(patient: Patient, telegram: TelegramPlatform) -> None:
    patient.configure(await telegram_section(telegram))
    async with polling(telegram):
        rows = await patient.examined(1)
    assert rows["telegram", "second poller"]["level"] == "problem"


async def test_a_foreign_webhook(patient: Patient, telegram: TelegramPlatform) -> None:
    patient.configure(await telegram_section(telegram))
    hook = {"url": "http://127.0.0.1:9/path-of-a-secret"}
    async with httpx.AsyncClient() as client:
        await client.post(f"{await telegram.base_url()}{TOKEN}/setWebhook", json=hook)
    rows = await patient.examined(1)
    assert "Updates go to a webhook on 127.0.0.1:9" in rows["telegram", "webhook"]["text"]


@asynccontextmanager
async def serving(shell: Shell) -> AsyncIterator[Forked]:
    process = await shell.start("serve", "--config", "signoff.toml")
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            assert (await process.stdout.readline()).startswith(b"listening on")
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        await shell.end(process)


async def test_beside_a_running_gateway_it_asks_that_and_disturbs_nothing(
    patient: Patient, telegram: TelegramPlatform
) -> None:
    patient.configure(await telegram_section(telegram), (f"telegram:{GROUP}",))
    async with serving(patient.shell):
        rows = await patient.examined(0)
        assert rows["gateway", "running"]["text"] == "A gateway runs and answers on its local socket."
        assert rows["store", "store"]["text"] == "The running gateway reads and writes it."
        assert rows["telegram", "connection"]["text"] == "The running gateway is connected."
        assert ("telegram", "second poller") not in rows
        assert ("gateway", "port") not in rows
        assert [entry for entry in await telegram.log(method="getUpdates") if entry.status == 409] == []


async def test_a_running_gateway_that_lost_its_platform_says_why(patient: Patient, telegram: TelegramPlatform) -> None:
    patient.configure(await telegram_section(telegram))
    async with serving(patient.shell), polling(telegram):
        async with asyncio.timeout(60):
            while True:
                done = await patient.shell("doctor", "--json")
                rows = {(row["part"], row["about"]): row for row in json.loads(done.out)["data"]}
                if rows["telegram", "connection"]["level"] == "problem":
                    break
    assert "another program polls this bot's updates" in rows["telegram", "connection"]["text"]


async def test_files_that_others_may_read(patient: Patient, telegram: TelegramPlatform) -> None:
    patient.configure(await telegram_section(telegram))
    patient.file.chmod(0o644)
    (patient.shell.folder / "state").mkdir()
    (patient.shell.folder / "state").chmod(0o755)
    rows = await patient.examined(1)
    assert rows["gateway", "configuration"]["mend"].startswith("Run: chmod 600")
    assert "platforms.telegram.token" in rows["gateway", "configuration"]["text"]
    assert rows["gateway", "state folder"]["mend"].startswith("Run: chmod 700")
    assert stat.S_IMODE(patient.file.stat().st_mode) == 0o644


async def test_without_a_file_it_says_how_to_make_one(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (tmp_path / "signoff.toml").unlink()
    done = await shell("doctor")
    assert "signoff init" in done.out


# --- Discord ---------------------------------------------------------------------------------------


async def test_discord(patient: Patient, discord: DiscordPlatform) -> None:
    good, bad = (
        ("discord:20", "discord:20/30", "discord:111"),
        ("discord:21", "discord:30", "discord:9", "discord:20/31"),
    )
    patient.configure(await discord_section(discord), (*good, *bad))
    rows = await patient.examined(1)
    assert {place: rows["discord", f"place {place}"]["level"] for place in (*good, *bad)} == {
        **dict.fromkeys(good, "ok"),
        **dict.fromkeys(bad, "problem"),
    }
    assert rows["discord", "place discord:30"]["mend"] == "Write discord:20/30 instead."
    for subject in ("token", "interactions URL", "sessions", "intents", "clock"):
        assert rows["discord", subject]["level"] == "ok"


async def test_discord_interactions_url_beside_the_gateway(patient: Patient, discord: DiscordPlatform) -> None:
    patient.configure(await discord_section(discord))
    await discord.set_interactions_url("https://elsewhere.example.org/secret", validate=False)
    rows = await patient.examined(1)
    assert "Discord posts presses to elsewhere.example.org" in rows["discord", "interactions URL"]["text"]


async def test_discord_public_key_of_another_application(patient: Patient, discord: DiscordPlatform) -> None:
    patient.configure(await discord_section(discord, more=f'mode = "http"\npublic_key = "{"ab" * 32}"\n'))
    rows = await patient.examined(1)
    assert "another application's" in rows["discord", "public key"]["text"]
    assert rows["discord", "hooks address"]["level"] == "warning"


async def test_discord_refuses_the_token(patient: Patient, discord: DiscordPlatform) -> None:
    patient.configure(await discord_section(discord, token="wrong-secret"))
    rows = await patient.examined(1)
    assert rows["discord", "token"]["text"] == "Discord rejects the bot's token."


# --- Slack -----------------------------------------------------------------------------------------


async def test_slack(patient: Patient, slack: SlackPlatform) -> None:
    good, bad = ("slack:C111", "slack:U111"), ("slack:C112", "slack:C113", "slack:C9", "slack:U9")
    patient.configure(await slack_section(slack), (*good, *bad))
    rows = await patient.examined(1)
    assert {place: rows["slack", f"place {place}"]["level"] for place in (*good, *bad)} == {
        **dict.fromkeys(good, "ok"),
        **dict.fromkeys(bad, "problem"),
    }
    assert rows["slack", "place slack:C112"]["mend"] == "Write /invite @signoff in #elsewhere."
    for subject in ("token", "members", "socket mode", "clock"):
        assert rows["slack", subject]["level"] == "ok"


async def test_slack_refuses_the_tokens(patient: Patient, slack: SlackPlatform) -> None:
    patient.configure(await slack_section(slack, app="xapp-wrong-secret"))
    rows = await patient.examined(1)
    assert "xapp-" in rows["slack", "app token"]["mend"]
    patient.configure(await slack_section(slack, bot="xoxb-wrong-secret"))
    rows = await patient.examined(1)
    assert rows["slack", "token"]["text"] == "Slack rejects the bot's token (invalid_auth)."


async def test_slack_without_the_right_to_read_members(patient: Patient, slack: SlackPlatform) -> None:
    await slack.add_bot("xoxb-poor-secret", "xapp-poor-secret", scopes=["chat:write"])
    patient.configure(await slack_section(slack, bot="xoxb-poor-secret", app="xapp-poor-secret"))
    rows = await patient.examined(1)
    assert "users:read" in rows["slack", "members"]["mend"]


async def test_slack_user_groups(patient: Patient, slack: SlackPlatform) -> None:
    for group, users in (("S0OPS", ["U111"]), ("S0EMPTY", []), ("S0OFF", ["U111"])):
        await slack.add_usergroup(group, group.lower(), users=users)
    await slack.change_usergroup("S0OFF", disabled=True)
    listed = ("group:S0OPS", "group:S0EMPTY", "group:S0OFF", "group:S0NONE")
    patient.configure(await slack_section(slack, groups=listed))
    rows = await patient.examined(1)
    assert [rows["slack", f"approver {group}"]["level"] for group in listed] == ["ok", "warning", "problem", "problem"]
    assert rows["slack", "approver group:S0OPS"]["text"] == "1 in this user group."
    assert "group:S0OFF in platforms.slack.approvers" in rows["slack", "approver group:S0OFF"]["mend"]


async def test_slack_without_the_right_to_read_user_groups(patient: Patient, slack: SlackPlatform) -> None:
    await slack.add_bot("xoxb-poor-secret", "xapp-poor-secret", scopes=["chat:write", "users:read"])
    bot, app = "xoxb-poor-secret", "xapp-poor-secret"
    patient.configure(await slack_section(slack, bot, app, groups=("group:S0OPS",)))
    row = (await patient.examined(1))["slack", "approver group:S0OPS"]
    assert row["level"] == "problem"
    assert row["text"].startswith("The app lacks the scope usergroups:read")
    assert row["mend"] == "Add usergroups:read under OAuth & Permissions of the app and install it again."
    patient.configure(await slack_section(slack, bot, app))
    assert "lacks the scope" not in json.dumps(list((await patient.examined(0)).values()))
