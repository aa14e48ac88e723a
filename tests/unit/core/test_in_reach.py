"""Whatever the digest binds can be read by who agrees: on the card, in its file, or in the console."""

from __future__ import annotations

import pytest

from signoff.actions import plain_text, whole_text
from signoff.model import Action, Command, Elicitation, FileWrite, Tool

LONG = "/srv/app/" + "very-" * 12 + "long/../../../etc/cron.d/job"


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (Command(command="deploy test", env={"LD_PRELOAD": "/tmp/evil.so"}), "env LD_PRELOAD=/tmp/evil.so"),
        (Command(command="deploy test", shell="/tmp/not-bash"), "shell: /tmp/not-bash"),  # noqa: S604  # a record
        (FileWrite(path=LONG, diff="+ * * * * * root sh /tmp/x"), LONG),
        (FileWrite(path=LONG), LONG),
        (Elicitation(server="jira", message="Which?", schema={"properties": {"password": {}}}), '"password"'),
        (Tool(name="send_" + "very_" * 12 + "long_name", arguments={"to": "a"}), "very_long_name"),
    ],
)
def test_nothing_is_out_of_reach(action: Action, said: str) -> None:
    assert said in plain_text(action)


def test_what_stands_around_a_command_comes_before_it() -> None:
    action = Command(command="x" * 50_000, shell="zsh", env={"B": "2", "A": "1"})  # noqa: S604  # a record
    assert plain_text(action).startswith("shell: zsh\nenv A=1\nenv B=2\nxxx")


@pytest.mark.parametrize("shell", [None, "bash", "sh"])
def test_a_usual_shell_needs_no_line(shell: str | None) -> None:
    assert plain_text(Command(command="deploy test", shell=shell)) == "deploy test"


def test_a_secret_in_the_environment_is_masked() -> None:
    text = whole_text(Command(command="deploy test", env={"API_TOKEN": "hunter2hunter2hunter2"}))
    assert "hunter2hunter2hunter2" not in text
    assert "API_TOKEN" in text
