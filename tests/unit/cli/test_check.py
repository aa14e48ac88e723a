"""`signoff check`: the verdict of every kind of action, without a gateway."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest
from tests.unit.cli.front import Front

TELEGRAM = '\n[platforms.telegram]\ntoken_env = "A_VARIABLE_THAT_IS_NOT_SET"\napprovers = ["1"]\n'


def test_the_verdict_object(front: Front) -> None:
    found = front.json("check", "rm -rf build")
    assert found["verdict"] == "ask"
    assert found["rule_keys"] == ["delete.recursive"]
    assert found["rung"] == "person"
    assert "explanation" not in found
    assert front.json("check", "ls")["verdict"] == "allow"
    assert front.json("check", "rm -rf /")["verdict"] == "block"


def test_the_tree_comes_with_explain(front: Front) -> None:
    found = front.json("check", "--explain", "sudo rm -rf build")
    assert [each["words"] for each in found["explanation"]["commands"]] == [["sudo"], ["rm", "-rf", "build"]]
    assert found["explanation"]["rungs"][-1]["rung"] == "person"


def test_people_read_the_sentence_the_tree_and_the_rung(front: Front) -> None:
    lines = front("check", "sudo rm -rf build").splitlines()
    assert lines[0] == "ask (high): Runs with the administrator's rights, and deletes folders and everything in them."
    assert lines[1:5] == [
        "1 sudo",
        "  ask privilege.root: runs with the administrator's rights",
        "  1.1 rm -rf build",
        "    ask delete.recursive: deletes folders and everything in them",
    ]
    assert lines[-1] == "Decided by the rung person: a person is asked."
    assert "\x1b" not in "".join(lines)


def test_each_rung_is_told_with_explain(front: Front) -> None:
    out = front("check", "--explain", "ls")
    for rung in ("deny", "isolated", "floor", "protected", "bypass", "allowlist"):
        assert f"{rung:<10} passed on" in out
    assert "person     not reached" in out


@pytest.mark.parametrize(
    ("arguments", "verdict", "rung"),
    [
        (("--kind", "cron", "rm -rf build"), "block", "nobody"),
        (("--isolation", "docker", "rm -rf build"), "allow", "isolated"),
        (("--tool", "send_mail"), "ask", "person"),
        (("--file", "AGENTS.md"), "ask", "protected"),
        (("--code", "python", "import shutil; shutil.rmtree('x')"), "ask", "person"),
        (("--shell", "powershell", "Remove-Item -Recurse x"), "ask", "person"),
        (("--", "rm", "-rf", "two words"), "ask", "person"),
    ],
)
def test_kinds_of_actions(front: Front, arguments: tuple[str, ...], verdict: str, rung: str) -> None:
    found = front.json("check", *arguments)
    assert (found["verdict"], found["rung"]) == (verdict, rung)


def test_deny_rules_own_rules_and_the_allowlist_are_read(front: Front) -> None:
    front.configure(
        f'[approvals]\ndeny = ["git push *"]\n{TELEGRAM}'
        '[[rules]]\nkey = "ours.deploy"\nverdict = "ask"\nprograms = ["deploy"]\nsentence = "deploys"\n'
    )
    front.write("state/allowlist.toml", 'commands = ["rm -rf build"]\nunattended_commands = ["rm -rf dist"]\n')
    assert front.json("check", "git push origin main")["rung"] == "deny"
    assert front.json("check", "deploy")["rule_keys"] == ["ours.deploy"]
    assert front.json("check", "rm -rf build")["rung"] == "allowlist"
    assert front.json("check", "--kind", "cron", "rm -rf build")["rung"] == "nobody"
    assert front.json("check", "--kind", "cron", "rm -rf dist")["rung"] == "allowlist"


def test_the_end_of_a_line_is_shown_as_one(front: Front) -> None:
    out = front("check", 'rm -rf "a\nb"')
    assert "\n1 rm -rf 'a ⏎ b'\n" in out
    front.configure(
        '[[rules]]\nkey = "ours.deploy"\nverdict = "ask"\nprograms = ["deploy"]\nsentence = "deploys\\nit"\n'
    )
    assert "Deploys ⏎ it." in front("check", "deploy")


def test_a_profile_has_its_own(front: Front) -> None:
    front.configure('[approvals]\ndeny = ["one *"]\n[profiles.second.approvals]\ndeny = ["two *"]\n')
    assert front.json("check", "--profile", "second", "two x")["verdict"] == "block"
    assert front.json("check", "--profile", "second", "one x")["verdict"] == "allow"
    assert "There is no profile 'third'" in front("check", "--profile", "third", "ls", code=2)


def test_an_allowlist_that_cannot_be_read_admits_nothing(front: Front) -> None:
    front.write("state/allowlist.toml", "commands = [")
    out = front("check", "rm -rf build")
    assert "is not TOML" in out
    assert "ask (high)" in out


def test_a_long_text_comes_from_a_file_or_standard_input(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    path = front.write("run.sh", "echo one\nrm -rf build\n")
    assert front.json("check", "--from", str(path))["rule_keys"] == ["delete.recursive"]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"rm -rf build\xff"), isatty=lambda: False))
    assert front.json("check", "-")["verdict"] == "ask"
    assert "cannot be read" in front("check", "--from", "missing.sh", code=2)


@pytest.mark.parametrize(
    "arguments", [(), ("ls", "--tool", "t"), ("--tool", "t", "--file", "f"), ("ls", "--from", "f")]
)
def test_wrong_use(front: Front, arguments: tuple[str, ...]) -> None:
    assert "signoff: Give" in front("check", *arguments, code=2)


def test_a_session_needs_the_gateway(front: Front) -> None:
    assert "No gateway runs here" in front("check", "--session", "s1", "ls", code=75)
