"""The settings of the tool gate, of kept actions and of their executors."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.config.test_config import problem, write

from signoff.config import load_config, load_policy
from signoff.gating import executor_for
from signoff.model import Tool
from signoff.settings import ToolGateSettings

WHSEC = "whsec_RVhBTVBMRSBFWEFNUExFIEVYQU1QTEUgRVhBTVBMRQ=="


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('[approvals.tool_gate]\ndefault_mode = "later"\n', 'must be "inline" or "deferred", not "later"'),
        ("[approvals.tool_gate]\npending_ttl_hours = 0\n", "must be 0.017 to 8760 hours"),
        ('[approvals.tool_gate]\nrequire_approval = "send_*"\n', "must be a list in brackets"),
        ('[executors.x]\ntools = ["a"]\n', "executors.x needs command or url"),
        ('[executors.x]\ntools = ["a"]\ncommand = "mail $1"\n', "must be a list: the program and each argument"),
        ('[executors.x]\ntools = ["a"]\ncommand = []\n', "names no program"),
        ('[executors.x]\ncommand = ["mail"]\n', "executors.x runs nothing; name tools or kinds"),
        ('[executors.x]\nkinds = ["tool"]\ncommand = ["mail"]\n', 'must be "command", "code" or "file_write"'),
        ('[executors.x]\ntools = ["a"]\nurl = "http://127.0.0.1:1"\n', "executors.x.secret is missing"),
        ('[executors.x]\ntools = ["a"]\nurl = "http://example.org"\n', "must begin with https://"),
        (
            f'[executors.x]\ntools = ["a"]\ncommand = ["m"]\nurl = "https://e.org"\nsecret = "{WHSEC}"\n',
            "has both command and url",
        ),
        (
            '[executors.x]\ntools = ["a"]\ncommand = ["m"]\n[executors.y]\ntools = ["a"]\ncommand = ["m"]\n',
            "'a' is run by executors.x and by executors.y",
        ),
        ('[approvals]\nstaged_destination = "telegram:1"\n', "names the platform 'telegram'"),
    ],
)
def test_each_mistake_is_one_line_with_the_mend(tmp_path: Path, content: str, told: str) -> None:
    message = problem(tmp_path, content)
    assert told in message
    assert "\n" not in message
    assert WHSEC not in message


def test_kept_actions_and_their_executors(tmp_path: Path) -> None:
    config = load_config(
        write(
            tmp_path,
            '[approvals]\ncron_mode = "defer"\nunattended_mode = "defer"\nsingle_query_mode = "defer"\n'
            "[approvals.tool_gate]\n"
            'require_approval = ["send_*", "delete"]\ndefault_mode = "deferred"\nforce_deferred = ["delete"]\n'
            'allow_inline = ["send_note"]\npending_ttl_hours = 1.5\n'
            '[executors.mailer]\ntools = ["send_*"]\ncommand = ["/usr/bin/mail", "a b"]\ntimeout_s = 9\n'
            '[executors.hook]\ntools = ["delete"]\nkinds = ["command"]\nurl = "https://e.org/run"\n'
            f'secret = "{WHSEC}"\n',
        ),
        {},
    )
    profile = config.profile("default")
    assert profile.approvals.cron_mode == "defer"
    assert profile.approvals.tool_gate == ToolGateSettings(
        require_approval=("send_*", "delete"),
        default_mode="deferred",
        force_deferred=("delete",),
        allow_inline=("send_note",),
        pending_ttl_hours=1.5,
    )
    assert profile.executors["mailer"].command == ("/usr/bin/mail", "a b")
    assert profile.executors["mailer"].timeout_s == 9
    assert profile.executors["hook"].kinds == ("command",)
    assert WHSEC not in repr(config)
    judging = load_policy(tmp_path / "signoff.toml", {}).profile("default")
    assert executor_for(judging, Tool(name="send_email")) == "mailer"
    assert judging.executors["hook"].secret == ""
