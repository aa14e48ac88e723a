"""Which calls the gate is for, and when a person is asked: names, patterns and modes."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.gating import GateMode, executor_for, gate_mode, named
from signoff.model import Code, Command, Elicitation, FileWrite, Rule, Tool
from signoff.settings import ExecutorSettings, Profile, ToolGateSettings

NAMES = st.text(string.ascii_lowercase + "_.-/", min_size=1, max_size=12)


def test_the_gate_is_off_by_default() -> None:  # 1.4, #56811 1.4
    assert gate_mode(ToolGateSettings(), "send_email") == ""


@pytest.mark.parametrize(
    ("patterns", "tool", "expected"),
    [
        (("send_email",), "send_email", True),
        (("send_email",), "send_email2", False),
        (("send_email",), "SEND_EMAIL", False),
        (("send_*",), "send_email", True),
        (("send_*",), "resend_email", False),
        (("*",), "anything", True),
        (("mail.?",), "mail.a", True),
        (("mail.?",), "mail.ab", False),
        (("[sd]end",), "send", True),
        (("[!s]end",), "send", False),
        (("a[b",), "a[b", True),
        (("send_*",), "send_\nemail", True),
        ((), "send_email", False),
    ],
)
def test_names_and_patterns(patterns: tuple[str, ...], tool: str, expected: bool) -> None:
    assert named(patterns, tool) is expected


@given(tool=NAMES, others=st.lists(NAMES, max_size=4))
def test_an_exact_name_always_names_itself(tool: str, others: list[str]) -> None:
    assert named((*others, tool), tool)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (ToolGateSettings(require_approval=("send_*",)), "inline"),
        (ToolGateSettings(require_approval=("send_*",), default_mode="deferred"), "deferred"),
        (ToolGateSettings(require_approval=("send_*",), force_deferred=("send_email",)), "deferred"),
        (
            ToolGateSettings(require_approval=("send_*",), default_mode="deferred", allow_inline=("send_email",)),
            "inline",
        ),
        (
            ToolGateSettings(require_approval=("*",), force_deferred=("send_*",), allow_inline=("send_email",)),
            "deferred",
        ),
        (ToolGateSettings(require_approval=("other",), force_deferred=("send_email",)), ""),
    ],
)
def test_the_mode_of_a_call(settings: ToolGateSettings, expected: GateMode) -> None:  # 1.4.2
    assert gate_mode(settings, "send_email") == expected


def test_who_would_run_what() -> None:
    profile = Profile(
        executors={
            "mailer": ExecutorSettings(tools=("send_*",)),
            "shell": ExecutorSettings(kinds=("command", "file_write")),
        }
    )
    assert executor_for(profile, Tool(name="send_email")) == "mailer"
    assert executor_for(profile, Tool(name="command")) is None
    assert executor_for(profile, Command(command="true")) == "shell"
    assert executor_for(profile, FileWrite(path="a")) == "shell"
    assert executor_for(profile, Code(language="python", code="1")) is None
    assert executor_for(profile, Elicitation(server="command", message="m")) is None
    assert executor_for(profile, Rule(tool="send_email", rule_key="k", reason="r")) is None
