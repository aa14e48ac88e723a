"""`signoff init --import`: what other agents allow and deny, in this gateway's words, and nothing wider."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cli.front import Front

from signoff.policy.deny import fits, pattern_parts
from signoff.setup.carrying import carries_any
from signoff.setup.importing import (
    ALL,
    ANY_COMMAND,
    ANY_PROGRAM,
    ASKS,
    CATEGORY,
    NOT_A_COMMAND,
    NOT_READ,
    OPERATORS,
    SIGNS,
    Proposal,
    Wish,
    from_claude,
    from_codex_rules,
    from_hermes,
    from_opencode,
    may_overlap,
    proposed,
)


@pytest.fixture
def front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Front:
    """Commands in an empty folder and an empty home."""
    for name in [name for name in os.environ if name.startswith("SIGNOFF_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    return Front(tmp_path, capsys)


def of(*wishes: tuple[Wish, ...]) -> Proposal:
    return proposed(wishes)


def texts(proposal: Proposal) -> tuple[list[str], list[str], dict[str, str]]:
    return (
        [line.text for line in proposal.commands],
        [line.text for line in proposal.deny],
        {left.shown: left.why for left in proposal.left},
    )


def claude(**permissions: list[Any]) -> tuple[list[str], list[str], dict[str, str]]:
    return texts(of(from_claude({"permissions": permissions}, "settings.json")))


# --- Claude Code -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "entries"),
    [
        ("Bash(git status:*)", ["git status", "git status *"]),
        ("Bash(git status *)", ["git status", "git status *"]),
        ("Bash(npm run test)", ["npm run test"]),
        ("Bash(npm run test*)", ["npm run test*"]),
        ("Bash(git * main)", ["git * main"]),
        (r"Bash(grep \d x)", [r"grep \\d x"]),
        (r"Bash(ls \*.py)", [r"ls \*.py"]),
    ],
)
def test_a_command_that_claude_allows(rule: str, entries: list[str]) -> None:
    assert claude(allow=[rule]) == (entries, [], {})


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("Bash", ALL),
        ("Bash(*)", ALL),
        ("Bash(:*)", ALL),
        ("Bash(* install)", ANY_PROGRAM),
        ("Bash(make && make test)", OPERATORS),
        ("Bash(cat x > y)", OPERATORS),
        ("Bash(ls ?.txt)", SIGNS),
        ("Read(src/**)", NOT_A_COMMAND),
        ("mcp__github__merge", NOT_A_COMMAND),
        ("Bash(", NOT_READ),
        (7, NOT_READ),
    ],
)
def test_what_would_mean_more_here_is_left(rule: Any, why: str) -> None:
    commands, deny, left = claude(allow=[rule])
    assert (commands, deny, list(left.values())) == ([], [], [why])


def test_what_asks_there_is_not_allowed_here() -> None:
    commands, deny, left = claude(allow=["Bash(git *)", "Bash(ls *)"], ask=["Bash(git push:*)"], deny=["Bash(curl:*)"])
    assert commands == ["ls", "ls *"]
    assert deny == ["curl *"]
    assert left["ask Bash(git push:*)"] == ASKS
    assert left["allow Bash(git *)"].startswith("ask Bash(git push:*) asks for some of it there")


def test_what_rules_ask_for_today_is_told() -> None:
    found = of(from_claude({"permissions": {"allow": ["Bash(rm -rf build)", "Bash(ls)"]}}, "x"))
    assert [line.asks for line in found.commands] == ["delete.recursive", ""]


# --- Codex, opencode, hermes-agent -----------------------------------------------------------------


def test_rules_of_codex() -> None:
    found = of(
        from_codex_rules(
            'prefix_rule(pattern=["gh", "pr", ["view", "list"]], decision="allow", justification="x")\n'
            'prefix_rule(pattern=["gh", "pr", "merge"], decision="prompt")\n'
            'prefix_rule(pattern=["docker", "prune"], decision="forbidden")\n'
            'prefix_rule(pattern=["gh"])\n'
            'host_executable(name="git", paths=["/usr/bin/git"])\n'
            "prefix_rule(pattern=NAMES)\n",
            "default.rules",
        )
    )
    commands, deny, left = texts(found)
    assert commands == ["gh pr view", "gh pr view *", "gh pr list", "gh pr list *"]
    assert deny == ["docker prune *"]
    reasons = sorted(left.values())
    assert reasons.count(NOT_READ) == 2
    assert ASKS in reasons
    assert any(why.startswith("prefix_rule(pattern=['gh', 'pr', 'merge']") for why in reasons)


def test_a_star_in_a_rule_of_codex_is_a_star() -> None:
    assert texts(of(from_codex_rules('prefix_rule(pattern=["ls", "*.py"])', "x")))[0] == [r"ls \*.py", r"ls \*.py *"]


def test_in_opencode_the_last_pattern_wins() -> None:
    bash = {
        "*": "ask",
        "git *": "allow",
        "git push *": "ask",
        "npm *": "allow",
        "rm *": "deny",
        "rm -rf build": "allow",
        "docker *": "ask",
        "docker ps *": "allow",
    }
    commands, deny, left = texts(of(from_opencode({"permission": {"edit": "allow", "bash": bash}}, "opencode.json")))
    assert commands == ["npm", "npm *", "docker ps", "docker ps *"]
    assert deny == ["rm *"]
    assert left['edit: "allow"'] == NOT_A_COMMAND
    assert left['rm -rf build: "allow"'] == 'rm *: "deny" forbids it here, where a deny rule has no exceptions'
    assert left['git *: "allow"'].startswith('git push *: "ask" asks for some of it there')


@pytest.mark.parametrize("permission", ["allow", {"bash": "allow"}, {"bash": {"*": "allow"}}])
def test_everything_allowed_is_not_taken_over(permission: Any) -> None:
    commands, deny, left = texts(of(from_opencode({"permission": permission}, "x")))
    assert (commands, deny, list(left.values())) == ([], [], [ALL])


def test_lists_of_hermes() -> None:
    tree = {
        "command_allowlist": ["recursive delete", "git stash", "docker compose up*", 3],
        "approvals": {"mode": "smart", "deny": ["git push --force*", "*sudo*", "rm [a-z]"]},
    }
    commands, deny, left = texts(of(from_hermes(tree, "config.yaml")))
    assert commands == ["git stash", "docker compose up*"]
    assert deny == ["git push --force*", "*sudo*"]
    assert left == {
        "command_allowlist: recursive delete": CATEGORY,
        "command_allowlist: 3": NOT_READ,
        "approvals.deny: rm [a-z]": SIGNS,
    }


PATTERN = st.text("ab *", min_size=1, max_size=6).map(" ".join).filter(lambda text: bool(text.strip()))


@given(PATTERN, PATTERN, st.text("ab ", max_size=8))
def test_patterns_that_share_a_text_are_known_to_overlap(one: str, other: str, text: str) -> None:
    plain = " ".join(text.split())
    if fits(pattern_parts(one), plain) and fits(pattern_parts(other), plain):
        assert may_overlap(one, other)


# --- the command -----------------------------------------------------------------------------------

CLAUDE = json.dumps({"permissions": {"allow": ["Bash(git status:*)"], "deny": ["Bash(curl:*)"]}})
CONFIG = '# mine\n[approvals]\n# never\ndeny = ["shutdown *"]  # really\n'


def configured(front: Front) -> None:
    front.configure(CONFIG)
    front.write(".claude/settings.json", CLAUDE)


def test_nothing_is_written_without_a_yes(front: Front) -> None:
    configured(front)
    before = (front.folder / "signoff.toml").read_text()
    out = front("init", "--import", "auto", code=1)
    assert "git status *  (" in out
    assert "signoff: nothing was written; --yes writes it." in out
    assert (front.folder / "signoff.toml").read_text() == before
    assert not (front.folder / "state" / "allowlist.toml").exists()


def test_a_yes_writes_both_files_and_keeps_comments(front: Front) -> None:
    configured(front)
    (front.folder / "signoff.toml").chmod(0o640)
    assert front("init", "--import", "auto", "--yes").endswith("Written.\n")
    text = (front.folder / "signoff.toml").read_text()
    assert (front.folder / "signoff.toml").stat().st_mode & 0o777 == 0o640
    for kept in ("# mine", "# never", '"shutdown *"', '"curl *"'):
        assert kept in text
    assert front.json("check", "curl https://example.com")["rung"] == "deny"
    assert front.json("check", "git status -s")["rung"] == "allowlist"
    assert "Nothing new is to be written." in front("init", "--import", "auto", "--yes")


def test_programs_read_what_would_be_written(front: Front) -> None:
    configured(front)
    found = front.json("init", "--import", ".claude/settings.json", code=1)
    assert [line["text"] for line in found["commands"]] == ["git status", "git status *"]
    assert [line["text"] for line in found["deny"]] == ["curl *"]
    assert (found["left"], found["written"]) == ([], False)


def test_a_profile_gets_its_own(front: Front) -> None:
    front.configure('[profiles.second.approvals]\nmode = "manual"\n')
    front.write(".claude/settings.json", CLAUDE)
    front("init", "--import", "auto", "--profile", "second", "--yes")
    assert front.json("check", "--profile", "second", "curl x")["rung"] == "deny"
    assert (front.folder / "state" / "profiles" / "second" / "allowlist.toml").exists()
    assert "There is no profile 'third'" in front("init", "--import", "auto", "--profile", "third", code=2)


def test_all_four_are_found(front: Front) -> None:
    front.write("home/.codex/rules/default.rules", 'prefix_rule(pattern=["gh"], decision="forbidden")')
    front.write("home/.codex/config.toml", 'approval_policy = "never"\n')
    front.write("opencode.jsonc", '{ // comment\n "permission": {"bash": {"deno *": "deny", }, } /* end */ }')
    front.write("home/.hermes/config.yaml", "approvals:\n  deny:\n    - 'nc *'\n")
    front.write(".claude/settings.local.json", '{"permissions": {"deny": ["Bash(curl:*)"]}}')
    found = front.json("init", "--import", "auto", code=1)
    assert {line["text"] for line in found["deny"]} == {"gh *", "deno *", "nc *", "curl *"}
    assert [left["shown"] for left in found["left"]] == ['approval_policy = "never"']


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("settings.json", "{", "cannot be read"),
        ("settings.json", "[]", "holds no object"),
        ("default.rules", "prefix_rule(", "cannot be read"),
        ("config.yaml", "a: [", "cannot be read"),
        ("config.yaml", "- a", "holds no settings"),
        ("config.toml", "a = ", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(front: Front, name: str, text: str, says: str) -> None:
    front.write(name, text)
    out = front("init", "--import", name, code=2)
    assert name in out
    assert says in out


def test_nothing_to_import_is_said(front: Front) -> None:
    assert "No settings of" in front("init", "--import", "auto", code=2)
    assert "There is no file missing.json" in front("init", "--import", "missing.json", code=2)


def test_deny_rules_need_a_configuration(front: Front) -> None:
    (front.folder / "signoff.toml").unlink()
    front.write("settings.json", CLAUDE)
    assert "make one with `signoff init`" in front("init", "--import", "settings.json", "--yes", code=2)


# --- what would let any command run ----------------------------------------------------------------


@pytest.mark.parametrize(
    "entry",
    [
        "bash -c *",
        "sh *",
        "zsh -lc *",
        "eval *",
        "sudo *",
        "doas *",
        "su *",
        "env *",
        "xargs *",
        "timeout *",
        "ssh *",
        "ssh prod *",
        "docker exec *",
        "python3 -c *",
        "python *",
        "node -e *",
        "perl -e *",
        "find *",
        "npx *",
        "watch *",
        "ssh * uptime *",
    ],
)
def test_an_entry_through_which_any_command_runs_is_left_out(entry: str) -> None:
    assert carries_any(entry)
    allowed, denied, left = claude(allow=[f"Bash({entry})"], deny=[])
    assert (allowed, denied) == ([], [])
    assert left == {f"allow Bash({entry})": ANY_COMMAND}
    assert texts(of(from_hermes({"command_allowlist": [entry]}, "config.yaml")))[0] == []
    # To forbid it is no danger.
    assert claude(deny=[f"Bash({entry})"])[1] != []


@pytest.mark.parametrize(
    "entry", ["git *", "npm run *", "pytest *", "python -m pytest *", "rm *", "ls *", r"bash -c \*", "sudo apt update"]
)
def test_others_are_carried_over(entry: str) -> None:
    assert not carries_any(entry)
    assert claude(allow=[f"Bash({entry})"])[2] == {}


def test_the_command_says_what_was_left_out(front: Front) -> None:
    allow = ["Bash(bash -c:*)", "Bash(eval:*)", "Bash(sudo:*)", "Bash(git log:*)"]
    front.write(".claude/settings.json", json.dumps({"permissions": {"allow": allow}}))
    out = front("init", "--import", "auto", "--yes")
    for rule in allow[:3]:
        assert f"allow {rule}" in out
    assert "it would let any command run" in " ".join(out.split())
    written = (front.folder / "state" / "allowlist.toml").read_text()
    assert "git log *" in written
    assert not any(word in written for word in ("bash", "eval", "sudo"))
