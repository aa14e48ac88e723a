"""The parts of an examination that no loopback platform can show: clocks, permissions, scopes, disks, secrets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web

from signoff import loopback
from signoff.allowlist_file import allowlist_path
from signoff.askable import why_nobody
from signoff.config import Config, GatewaySettings, Secret
from signoff.doctoring import Row, without_secrets
from signoff.doctoring.beside import Beside, running_findings
from signoff.doctoring.clocks import clock_finding, judged
from signoff.doctoring.examining import _no_platform
from signoff.doctoring.files import file_findings
from signoff.doctoring.listening import port_findings, reachable_findings
from signoff.doctoring.people import principal_findings
from signoff.doctoring.programs import program_findings
from signoff.doctoring.storing import disk_finding, serving_findings, store_findings
from signoff.folder import user_name
from signoff.model import Destination, replace
from signoff.settings import AgentSettings, ApprovalSettings, ExecutorSettings, PrincipalSettings, Profile
from signoff_adapters.discord.rights import ADMINISTRATOR, NEEDED, Guild, Member, Overwrite, Role, invite_url, missing
from signoff_adapters.slack.checkup import open_checkup
from signoff_adapters.slack.config import SlackConfig
from signoff_adapters.slack.manifest import SCOPES

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ahead_s", "level"), [(0, "ok"), (-5, "ok"), (6, "warning"), (-59, "warning"), (61, "problem"), (-3600, "problem")]
)
def test_a_clock_is_judged_by_how_far_it_is_off(ahead_s: int, level: str) -> None:
    found = judged(NOW + timedelta(seconds=ahead_s), NOW, "Telegram")
    assert found.level == level
    assert (("ahead of" if ahead_s > 0 else "behind") in found.text) is (level != "ok")


@asynccontextmanager
async def answering(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """A server on loopback that answers everything by `handler`; its origin."""
    app = web.Application()
    app.router.add_route("*", "/{any:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_the_date_of_an_answer_is_what_we_compare_with() -> None:
    async def yesterday(_request: web.Request) -> web.Response:
        return web.Response(status=404, headers={"Date": "Mon, 05 Jan 2026 09:00:00 GMT"})

    async def nonsense(_request: web.Request) -> web.Response:
        return web.Response(headers={"Date": "soon"})

    async with answering(yesterday) as url:
        found = await clock_finding(url, "Slack")
        assert found is not None
        assert found.level == "problem"
        assert "NTP" in found.mend
    async with answering(nonsense) as url:
        assert await clock_finding(url, "Slack") is None
    assert await clock_finding("http://127.0.0.1:9", "Slack") is None


def test_a_filling_disk_is_told_in_time() -> None:
    levels = [disk_finding(size, Path("/x")).level for size in (50 * 1024**2, 500 * 1024**2, 50 * 1024**3)]
    assert levels == ["problem", "warning", "ok"]


def test_a_gateway_that_can_ask_nobody() -> None:
    beside = Beside(store={"status": "ok"}, platforms={}, unasked={"ops": "telegram is degraded"})
    first, *_ = running_findings(beside)
    assert (first.level, first.about) == ("warning", "asking")
    assert first.text == "No place of profile ops can ask anybody now: telegram is degraded."


@pytest.mark.parametrize("platform_state", ["ready", "degraded"])
@pytest.mark.parametrize("approvers", [(), ("1",)])
def test_who_can_ask(platform_state: str, approvers: tuple[str, ...]) -> None:
    chat = Profile(approvers={"telegram": approvers})
    why = why_nobody(chat, {"telegram": platform_state}, console=True)
    assert bool(why) is not (platform_state == "ready" and bool(approvers))
    assert ("approvers is empty" in why) is not bool(approvers)
    sent_there = replace(chat, approvals=ApprovalSettings(fallback_destination=Destination("console", "main")))
    assert not why_nobody(sent_there, {"telegram": platform_state}, console=True)
    assert bool(why_nobody(sent_there, {"telegram": platform_state}, console=False)) is bool(why)
    assert why_nobody(Profile(), {}, console=True)
    assert not why_nobody(Profile(approvals=ApprovalSettings(mode="off")), {}, console=True)


async def test_what_holds_a_port_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback, "ANSWERS_WITHIN_S", 60.0)

    async def document(_request: web.Request) -> web.Response:
        return web.Response(text='{"openapi": "3.1.0", "info": {"title": "Signoff"}}')

    async def other(_request: web.Request) -> web.Response:
        return web.Response(text='{"status":"ok"}')

    for handler, told in ((document, "Another Signoff gateway"), (other, "Another program")):
        async with answering(handler) as url:
            port = int(url.rpartition(":")[2])
            settings = GatewaySettings(
                state_dir=Path("/x"), token_key_file=Path("/x/k"), store=Secret("memory://"), port=port
            )
            config = Config(gateway=settings, profiles={"default": Profile()})
            [found] = await asyncio.to_thread(list, port_findings(config))
            assert found.level == "problem"
            assert found.text.startswith(told)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="only there is a folder without any room of its own")
def test_a_folder_on_no_disk_takes_no_store() -> None:
    place = Path("/proc/signoff")
    settings = GatewaySettings(
        state_dir=place, token_key_file=place / "token.key", store=Secret(f"sqlite://{place}/signoff.db")
    )
    config = Config(gateway=settings, profiles={"default": Profile()})
    [found] = store_findings(config)
    assert (found.level, found.about) == ("problem", "store")
    assert "/proc takes nothing of ours" in found.text
    folder = next(each for each in file_findings(config) if each.about == "state folder")
    assert folder.level == "problem"


def test_loops_of_a_running_gateway_that_keep_failing() -> None:
    beside = Beside(
        store={"status": "ok"},
        platforms={},
        failing={"Sweeper.run": "failing for 31 s: ValueError: no", "Dispatcher.run": "failing for 40 s: OSError: no"},
    )
    assert [(found.level, found.text) for found in running_findings(beside)] == [
        ("problem", "Sweeper.run of the running gateway keeps failing (failing for 31 s: ValueError: no)."),
        ("problem", "Dispatcher.run of the running gateway keeps failing (failing for 40 s: OSError: no)."),
    ]
    away = replace(beside, store={"status": "failed", "error": "the disk is full. Make room."})
    assert [found.level for found in running_findings(away)] == ["ok"]


def test_a_running_gateway_that_cannot_save() -> None:
    found = next(serving_findings({"status": "failed", "error": "disk full"}))
    assert (found.level, "disk full" in found.text) == ("problem", True)


def test_no_secret_of_the_settings_is_left_in_a_report() -> None:
    gateway = GatewaySettings(
        state_dir=Path("/s"), token_key_file=Path("/s/k"), store=Secret("postgresql://u:pw-1234@db/x")
    )
    profile = Profile(platforms={"telegram": {"token": Secret("123456:abcdef"), "mode": "polling"}})
    config = Config(gateway=gateway, profiles={"default": profile})
    row = Row(
        part="telegram",
        level="problem",
        about="x",
        text="asked https://t/bot123456:abcdef/getMe (polling)",
        mend="see postgresql://u:pw-1234@db/x",
    )
    hidden = without_secrets([row], config)[0]
    assert (hidden.text, hidden.mend) == ("asked https://t/bot…/getMe (polling)", "see …")


# --- Discord's permissions -------------------------------------------------------------------------

ALL = str(sum(NEEDED.values()))
ATTACH = str(NEEDED["Attach Files"])
SEND = str(NEEDED["Send Messages"])
ME = "900"


def lacks(*overwrites: Overwrite, roles: str = ALL, thread: bool = False) -> tuple[str, ...]:
    guild = Guild(id="10", owner_id="1", roles=(Role(id="10", permissions="0"), Role(id="77", permissions=roles)))
    return missing(guild, Member(roles=("77",)), ME, overwrites, thread=thread)


def test_roles_give_permissions() -> None:
    assert lacks() == ()
    assert lacks(roles="0") == tuple(NEEDED)
    assert lacks(roles=str(ADMINISTRATOR)) == ()
    assert lacks(thread=True) == ("Send Messages in Threads",)


def test_a_channel_takes_and_gives_them_in_discords_order() -> None:
    everybody = Overwrite(id="10", deny=ATTACH)
    role = Overwrite(id="77", allow=ATTACH)
    own = Overwrite(id=ME, deny=SEND)
    assert lacks(everybody) == ("Attach Files",)
    assert lacks(everybody, role) == ()
    assert lacks(role, everybody) == ()
    assert lacks(everybody, role, own) == ("Send Messages",)
    assert lacks(Overwrite(id="78", deny=ALL)) == ()
    assert lacks(Overwrite(id="10", deny=ALL), roles=str(ADMINISTRATOR)) == ()


def test_the_invite_asks_for_exactly_that() -> None:
    # 1024 view, 2048 send, 16384 embed, 32768 attach, 65536 history, 274877906944 send in threads.
    assert invite_url("5").endswith("client_id=5&scope=bot%20applications.commands&permissions=274878024704")


# --- Slack's scopes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "level", "said"),
    [
        (",".join(SCOPES), "ok", "every scope"),
        (",".join(scope for scope in SCOPES if scope != "files:write"), "problem", "lacks the scopes files:write."),
        (",".join(scope for scope in SCOPES if scope != "usergroups:read"), "ok", "every scope"),
        (None, "warning", "did not name"),
    ],
)
async def test_scopes_are_read_beside_the_answer(named: str | None, level: str, said: str) -> None:
    async def answer(_request: web.Request) -> web.Response:
        body = {"ok": True, "user_id": "U1", "user": "signoff", "team": "Ops", "url": "wss://x"}
        return web.json_response(body, headers={"X-OAuth-Scopes": named} if named is not None else {})

    async with answering(answer) as url:
        checkup = open_checkup(SlackConfig(bot_token="xoxb-1", app_token="xapp-1", api_base_url=url))
        found = {each.about: each for each in await checkup.account(serving=False)}
        await checkup.aclose()
    assert found["scopes"].level == level
    assert said in found["scopes"].text


@pytest.mark.parametrize(
    ("text", "mode", "level", "told"),
    [
        ('commands = ["git push *"]', 0o600, "ok", "admits 1 command."),
        ('commands = ["a", 1]', 0o600, "warning", "entry 2 is not a text"),
        ("commands = [", 0o600, "problem", "nothing in it counts"),
        ('commands = ["a"]', 0o606, "problem", "Everybody on this machine may change"),
    ],
)
def test_the_allowlist_is_looked_at(tmp_path: Path, text: str, mode: int, level: str, told: str) -> None:
    tmp_path.chmod(0o700)
    path = allowlist_path(tmp_path, "default")
    path.write_text(text)
    path.chmod(mode)
    config = Config(
        file=None,
        gateway=GatewaySettings(state_dir=tmp_path, token_key_file=tmp_path / "token.key", store=Secret("memory://")),
        profiles={"default": Profile()},
    )
    found = next(each for each in file_findings(config) if each.about == "allowlist")
    assert found.level == level
    assert told in found.text


@pytest.mark.parametrize(
    ("approvals", "level"),
    [(ApprovalSettings(fallback_destination=Destination("console", "main")), "ok"), (ApprovalSettings(), "warning")],
)
def test_the_console_may_be_the_only_place(tmp_path: Path, approvals: ApprovalSettings, level: str) -> None:
    config = Config(
        file=None,
        gateway=GatewaySettings(
            state_dir=tmp_path, token_key_file=tmp_path / "token.key", store=Secret("memory://"), console=True
        ),
        profiles={"default": Profile(approvals=approvals)},
    )
    found = _no_platform(config)
    assert found.level == level
    assert "--force" not in found.mend


def test_what_the_mend_for_a_missing_chat_says_loses_no_setting() -> None:
    settings = GatewaySettings(state_dir=Path("/x"), token_key_file=Path("/x/k"), store=Secret("memory://"))
    profiles = {"default": Profile()}
    found = _no_platform(Config(gateway=settings, profiles=profiles, file=Path("/x/signoff.toml")))
    assert "init --force" not in found.mend
    assert 'approvals.fallback_destination = "console:main"' in found.mend
    off = Config(gateway=replace(settings, console=False), profiles=profiles, file=Path("/x/signoff.toml"))
    assert "console:main" not in _no_platform(off).mend


def test_names_of_people_that_mean_nobody() -> None:
    ana = PrincipalSettings(accounts=("telegram:1", "slack:U0ANA", "console:ana"))
    sound = Profile(
        agents={"bot": AgentSettings(acts_for="ana"), "free": AgentSettings()},
        principals={"ana": ana},
        platforms={"telegram": {}, "slack": {}},
    )
    assert list(principal_findings(sound)) == []
    agents = {"bot": AgentSettings(acts_for="anna")}
    found = list(principal_findings(Profile(agents=agents, principals={"ana": ana}, platforms={"slack": {}})))
    assert [(each.level, each.about) for each in found] == [
        ("warning", "agents.bot.acts_for"),
        ("warning", "principals.ana.accounts"),
    ]
    assert "'anna', which is no principal of the settings (there are: ana)" in found[0].text
    assert "telegram:1 is on a platform that is not set up" in found[1].text


@pytest.mark.parametrize(("host", "told"), [("127.0.0.1", 0), ("::1", 0), ("0.0.0.0", 1), ("10.0.0.5", 1)])
def test_an_api_that_other_machines_can_call_is_told(host: str, told: int) -> None:
    settings = GatewaySettings(state_dir=Path("/x"), token_key_file=Path("/x/k"), store=Secret("memory://"), host=host)
    found = list(reachable_findings(Config(gateway=settings, profiles={"default": Profile()})))
    assert [each.level for each in found] == ["warning"] * told


def test_a_program_of_an_executor_that_does_not_exist(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    there = {"sh": ExecutorSettings(command=("sh", "-c", "true")), "far": ExecutorSettings(url="http://127.0.0.1:1")}
    lost = {"mailer": ExecutorSettings(command=("/nowhere/send",)), "text": ExecutorSettings(command=(str(plain),))}
    assert list(program_findings(Profile(executors=there))) == []
    found = list(program_findings(Profile(executors={**there, **lost})))
    assert [(each.level, each.about) for each in found] == [
        ("problem", "executors.mailer.command"),
        ("problem", "executors.text.command"),
    ]
    assert "/nowhere/send" in found[0].text


def test_users_are_named_as_sudo_takes_them() -> None:
    pwd = pytest.importorskip("pwd")
    someone = pwd.getpwall()[0]
    assert user_name(someone.pw_uid) == pwd.getpwuid(someone.pw_uid).pw_name
    assert user_name(2_147_483_000) == "#2147483000"
