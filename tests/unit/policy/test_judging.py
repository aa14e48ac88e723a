"""What the ladder is told about an action: the folder it runs in, and which files are the gateway's own."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from signoff.judging import HOME, judge_action
from signoff.model import Action, Command, FileWrite, Operand, Session
from signoff.policy import Allowlist, JudgeContext, Verdict, judge
from signoff.policy.describing import MAX_FILES
from signoff.policy.ruleset import shipped
from signoff.settings import AgentSettings, ApprovalSettings, Profile

STATE = "/home/ana/.local/state/signoff"
OWN = JudgeContext(kind="chat", attended=True, home="/home/ana", own_paths=(STATE, "/home/ana/signoff.toml"))
NOW = datetime(2026, 1, 2, tzinfo=UTC)
SESSION = Session(profile="default", session_id="s", kind="chat", created_at=NOW)


def judged(action: Action, *own_paths: str) -> Verdict:
    profile = Profile(own_paths=own_paths)
    return judge_action(action, profile, AgentSettings(), SESSION, SESSION, attended=True, now=NOW)


@pytest.mark.parametrize(
    ("command", "cwd", "verdict"),
    [
        ("rm -rf *", "/", "block"),
        ("rm -rf .", "/etc", "block"),
        ("find . -delete", "/usr", "block"),
        ("cd .. && rm -rf *", "/tmp", "block"),
        ("rm -rf *", "/srv/app", "ask"),
        ("rm -rf *", "relative", "ask"),
        ("rm -rf *", None, "ask"),
    ],
)
def test_the_folder_of_a_command_counts(command: str, cwd: str | None, verdict: str) -> None:
    assert judged(Command(command=command, cwd=cwd)).verdict == verdict


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("/srv/signoff/signoff.db", "block"),
        ("/srv/signoff", "block"),
        ("/srv/other/../signoff/x", "block"),
        ("//srv/./signoff/x", "block"),
        ("/proc/self/root/srv/signoff/x", "block"),
        ("~/.config/signoff.toml", "block"),
        ("~/x/../.config/signoff.toml", "block"),
        ("/srv/signoffs/x", "ask"),
        ("/srv", "ask"),
        ("signoff.toml", "ask"),
        ("../srv/signoff/x", "ask"),
        ("~ana/.config/signoff.toml", "ask"),
    ],
)
def test_a_file_of_the_gateway_is_nobodys_to_write(path: str, verdict: str) -> None:
    found = judged(FileWrite(path=path), "/srv/signoff", f"{HOME}/.config/signoff.toml")
    assert found.verdict == verdict
    assert found.rule_keys == (("floor.own_state",) if verdict == "block" else ())


def test_a_link_to_a_file_of_the_gateway_cannot_be_seen_in_its_name(tmp_path: Path) -> None:
    own = tmp_path / "state"
    own.mkdir()
    link = tmp_path / "link"
    link.symlink_to(own)
    assert judged(FileWrite(path=f"{own}/x"), str(own)).verdict == "block"
    assert judged(FileWrite(path=f"{link}/x"), str(own)).verdict == "ask"


def test_a_relative_file_is_known_where_its_folder_is() -> None:
    context = replace(OWN, cwd="/home/ana")
    assert judge("file_write", "signoff.toml", context).verdict == "block"
    assert judge("file_write", "x/../signoff.toml", context).verdict == "block"
    assert judge("file_write", "signoff.toml", OWN).verdict == "ask"
    assert judge("file_write", "~/signoff.toml", replace(OWN, home=None)).verdict == "ask"


def test_no_bypass_reaches_the_files_of_the_gateway() -> None:
    assert judge("file_write", f"{STATE}/x", replace(OWN, bypass=True, mode="off")).verdict == "block"


@pytest.mark.parametrize(
    ("diff", "rung"),
    [
        ('--- "a/CLAUDE.md"\n+++ "b/CLAUDE.md"\n', "protected"),
        ('+++ "b/CLA\\125DE.md"\n', "protected"),
        ("diff --git a/CLAUDE.md b/x\nrename from CLAUDE.md\nrename to x\n", "protected"),
        ('diff --git "a/x" "b/CLAUDE.md"\n', "protected"),
        ("Index: CLAUDE.md\n", "protected"),
        ("*** CLAUDE.md\t2026-01-01\n--- x\n***************\n*** 1,3 ****\n", "protected"),
        ("*** Begin Patch\n*** Update File: CLAUDE.md\n", "protected"),
        ("*** Begin Patch\n*** Update File: x\n*** Move to: AGENTS.md\n", "protected"),
        ("--- a/x\n+++ b/x\n+see CLAUDE.md\n*** 1,3 ****\n", "person"),
    ],
)
def test_every_header_of_a_patch_names_a_file(diff: str, rung: str) -> None:
    assert judged(FileWrite(path="x", diff=diff)).rung == rung


def test_more_files_than_are_looked_at_are_asked_for() -> None:
    """Each file is looked at for what it is. Of so many that it took too long nobody knows that none is protected."""
    diff = "".join(f"--- a/{n}\n+++ b/{n}\n" for n in range(MAX_FILES + 1))
    off, none = (Profile(approvals=ApprovalSettings(mode="off", protect_instructions=each)) for each in (True, False))
    assert judged_by(none, FileWrite(path="x", diff=diff)).verdict == "allow"
    asked = judged_by(off, FileWrite(path="x", diff=diff))
    assert (asked.verdict, asked.rung, asked.once_only) == ("ask", "protected", True)
    assert asked.why == (
        "`x` and 1,001 files in one change are more than are looked at, so each change of it is asked for.",
    )
    assert judged_by(off, FileWrite(path="x", diff=diff.partition("--- a/1000")[0])).verdict == "allow"
    manual = Profile(approvals=ApprovalSettings(protect_instructions=False))
    for profile in (off, manual):
        told = judged_by(profile, FileWrite(path="x", diff=diff))
        assert (told.severity, told.description) == ("high", "changes x, one of more files than are looked at")
    assert told.rule_keys == ("file.many",)
    keys = judged_by(manual, FileWrite(path="x", diff=f"+++ b/../.ssh/authorized_keys\n{diff}")).rule_keys
    assert keys == ("file.ssh_material", "file.secret_file", "file.many")


def test_the_profile_says_what_is_allowed_forbidden_and_unknown() -> None:
    push, unknown = Command(command="git push --force"), Command(command="tfx build")
    rules = shipped().with_own([{"key": "own.tfx", "verdict": "block", "programs": ["tfx"]}])
    told = replace(Profile(), allowlist=Allowlist(["git push *"]), rules=rules)
    assert judged_by(told, push).rung == "allowlist"
    assert judged_by(told, unknown).rule_keys == ("own.tfx",)
    asking = Profile(approvals=ApprovalSettings(unknown_commands="ask"))
    assert [judged_by(each, unknown).verdict for each in (Profile(), asking)] == ["allow", "ask"]


def test_what_stands_around_an_action_is_judged_too() -> None:
    assert judged(Command(command="ls")).verdict == "allow"
    assert judged(Command(command="ls", env={"LD_PRELOAD": "/tmp/x.so"})).verdict == "ask"
    assert judged(FileWrite(path="x", diff="--- a/x\n+++ b/sub/AGENTS.md\n+1")).rung == "protected"
    script = "./deploy.sh --delete"
    assert judged(Command(command=script)).unread_file == "./deploy.sh"
    read = Command(command=script, operands=(Operand(path="./deploy.sh", sha256="aa", bytes=1),))
    assert not judged(read).once_only


def judged_by(profile: Profile, action: Action) -> Verdict:
    return judge_action(action, profile, AgentSettings(), SESSION, SESSION, attended=True, now=NOW)
