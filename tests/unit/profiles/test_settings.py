"""What the settings of several profiles may be together, and what stays apart where names are alike."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from tests.unit.server.world import until

from signoff.checking import alone
from signoff.clock import SystemClock
from signoff.config import Config, load_config
from signoff.errors import AdapterFatal, ConfigError
from signoff.gateway import Gateway
from signoff.model import Command, FileWrite
from signoff.testing.fake_adapter import FakeAdapter

SLACK = 'bot_token = "xoxb-{bot}"\napp_token = "xapp-{app}"\n'


def loaded(folder: Path, text: str, environ: dict[str, str] | None = None) -> Config:
    file = folder / "signoff.toml"
    file.write_text(f'[gateway]\nstate_dir = "state"\nstore = "memory://"\n{text}')
    return load_config(file, environ or {})


def bots(section: str, one: str, other: str) -> str:
    return f"[profiles.one.platforms.{section}]\n{one}[profiles.two.platforms.{section}]\n{other}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (bots("telegram", 'token = "1:A"\n', 'token = "1:A"\n'), "the same platforms.telegram.token"),
        (bots("discord", 'token = "A"\n', 'token = "A"\n'), "the same platforms.discord.token"),
        (bots("slack", SLACK.format(bot=1, app=1), SLACK.format(bot=1, app=2)), "the same platforms.slack.bot_token"),
        (bots("slack", SLACK.format(bot=1, app=1), SLACK.format(bot=2, app=1)), "the same platforms.slack.app_token"),
    ],
)
def test_a_bot_belongs_to_one_profile(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        loaded(tmp_path, text)
    assert "profiles 'one' and 'two'" in str(caught.value)
    assert "1:A" not in str(caught.value)


def test_each_with_a_bot_of_its_own_is_fine(tmp_path: Path) -> None:
    config = loaded(tmp_path, bots("telegram", 'token = "1:A"\n', 'token = "1:B"\n'))
    assert set(config.profiles) == {"default", "one", "two"}


@pytest.mark.parametrize(("one", "other"), [("lab", "Lab"), ("lab-a", "lab_a"), ('"lab.a"', "lab-a"), ("lab", "LAB")])
def test_names_that_a_variable_or_a_folder_cannot_tell_apart_are_refused(tmp_path: Path, one: str, other: str) -> None:
    with pytest.raises(ConfigError, match="too much like that of profile"):
        loaded(tmp_path, f'[profiles.{one}.approvals]\nmode = "off"\n[profiles.{other}.approvals]\nmode = "manual"\n')


def test_default_is_one_profile_however_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="too much like that of profile 'default'"):
        loaded(tmp_path, '[profiles.Default.approvals]\nmode = "off"\n')


def test_a_variable_reaches_the_profile_it_names(tmp_path: Path) -> None:
    text = (
        '[profiles.red.agents.Build-Bot]\nkinds = ["api"]\n[profiles.blue.agents."build.bot"]\nkinds = ["api"]\n'
        "[profiles.blue.approvals]\ntimeout_s = 10\n"
    )
    environ = {
        "SIGNOFF_PROFILES__RED__AGENTS__BUILD_BOT__ACTS_FOR": "ana",
        "SIGNOFF_PROFILES__BLUE__AGENTS__BUILD_BOT__ACTS_FOR": "ben",
        "SIGNOFF_PROFILES__RED__APPROVALS__TIMEOUT_S": "20",
    }
    config = loaded(tmp_path, text, environ)
    assert {name: agent.acts_for for name, agent in config.profile("red").agents.items()} == {"Build-Bot": "ana"}
    assert {name: agent.acts_for for name, agent in config.profile("blue").agents.items()} == {"build.bot": "ben"}
    times = {name: config.profile(name).approvals.timeout_s for name in ("default", "red", "blue")}
    assert times == {"default": 300, "red": 20, "blue": 10}


def test_a_profile_inherits_nothing(tmp_path: Path) -> None:
    top = '[approvals]\nmode = "off"\ndeny = ["ls"]\n[platforms.telegram]\ntoken = "1:A"\napprovers = ["5"]\n'
    config = loaded(tmp_path, f"{top}[profiles.red.approvals]\ntimeout_s = 10\n")
    red = config.profile("red")
    assert (red.approvals.mode, red.approvals.deny, red.platforms, red.approvers) == ("manual", (), {}, {})


async def test_each_has_a_folder_of_its_own_which_no_agent_may_touch(tmp_path: Path) -> None:
    config = loaded(tmp_path, '[profiles.red.approvals]\nmode = "off"\n[profiles.blue.approvals]\nmode = "off"\n')
    elsewhere = tmp_path / "elsewhere.toml"
    elsewhere.write_text("")
    folder = tmp_path / "state" / "profiles" / "blue"
    folder.mkdir(parents=True)
    (folder / "allowlist.toml").symlink_to(elsewhere)
    async with Gateway(config, adapters={("red", "fake"): FakeAdapter()}) as gateway:
        for path in (tmp_path / "state", folder.parent, folder, folder.parent / "red"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700, path
        now = SystemClock().now()
        red = gateway.profiles["red"]
        for path in (folder / "allowlist.toml", elsewhere, tmp_path / "state" / "allowlist.toml"):
            for action in (FileWrite(path=str(path)), Command(command=f"echo x >> {path}")):
                assert alone(action, red, now).verdict.verdict == "block", action


async def test_the_log_names_the_profile_of_a_platform(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = loaded(tmp_path, '[profiles.red.approvals]\nmode = "off"\n')
    chats = {name: FakeAdapter() for name in ("default", "red")}
    async with Gateway(config, adapters={(name, "fake"): chat for name, chat in chats.items()}):
        for chat in chats.values():
            chat.die(AdapterFatal("The platform rejects the token."))
        await until(lambda: len(caplog.records) >= 2)
    told = {record.getMessage() for record in caplog.records}
    assert told >= {
        "platforms.fake stopped: The platform rejects the token.",
        "profiles.red.platforms.fake stopped: The platform rejects the token.",
    }
