"""The ladder for code, tools, files and the rest: what is asked about them, and how far an answer reaches."""

import pytest
from msgspec.structs import replace
from tests.unit.policy.test_ladder import CHAT, own

from signoff.policy import ActionKind, Allowlist, JudgeContext, Verdict, judge
from signoff.policy.verdict import MAX_LABEL_CHARS

# --- code, tools, files --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text", "description", "severity"),
    [
        ("code", "a\nb\n", "runs Python code, 2 lines", "medium"),
        ("code", "a", "runs Python code, 1 line", "medium"),
        ("tool", "send_email", "calls tool send_email", "medium"),
        ("tool", "x" * 60, f"calls tool {'x' * 39}…", "medium"),
        ("file_write", "src/main.py", "changes src/main.py", "medium"),
        ("rule", "net.egress", "plugin rule net.egress asks", "medium"),
        ("elicitation", "jira", "answers a question from jira", "medium"),
    ],
)
def test_other_kinds_are_described_and_asked(kind: ActionKind, text: str, description: str, severity: str) -> None:
    verdict = judge(kind, text, replace(CHAT, language="python"))
    assert (verdict.verdict, verdict.description, verdict.severity) == ("ask", description, severity)


@pytest.mark.parametrize(
    ("kind", "text", "language", "label", "coverage"),
    [
        ("code", "x", "python", "any Python code", ("code:python",)),
        ("code", "x", "JavaScript", "any JavaScript code", ("code:javascript",)),
        ("code", "x", "a language with a long name", "any such code", ("code:a language with a long name",)),
        ("tool", "send_email", "", "tool send_email", ("tool:send_email",)),
        ("tool", "send_email_to_everybody", "", "this tool", ("tool:send_email_to_everybody",)),
        ("tool", "a\u202eb", "", "this tool", ("tool:a\u202eb",)),
        ("rule", "net.egress", "", "this plugin rule", ("rule:net.egress",)),
        ("file_write", "x", "", "", ()),
    ],
)
def test_how_far_an_answer_reaches(
    kind: ActionKind, text: str, language: str, label: str, coverage: tuple[str, ...]
) -> None:
    verdict = judge(kind, text, replace(CHAT, language=language))
    assert (verdict.label, verdict.coverage) == (label, coverage)
    assert len(label) <= MAX_LABEL_CHARS
    assert bool(verdict.breadth) == bool(label)


def test_a_question_from_a_server_is_answered_once() -> None:
    assert judge("elicitation", "jira", CHAT).once_only


def test_what_is_found_in_code_makes_it_graver() -> None:
    context = replace(CHAT, language="python")
    verdict = judge("code", "import shutil\nshutil.rmtree('x')\n", context)
    assert (verdict.verdict, verdict.severity, verdict.rule_keys) == ("ask", "high", ("python.delete_tree",))
    assert verdict.description == "deletes a folder and everything in it (Python code, 2 lines)"
    started = judge("code", "import os\nos.system('git push --force')", context)
    assert started.rule_keys == ("git.force_push",)
    assert (
        judge("code", "import os\nos.system('git push --force')", replace(context, deny=("git push *",))).rung == "deny"
    )
    other = judge("code", "shutil.rmtree('x')", replace(CHAT, language="javascript"))
    assert (other.severity, other.rule_keys) == ("medium", ())


def test_other_kinds_are_not_read_as_shell() -> None:
    assert judge("tool", "rm -rf /", CHAT).verdict == "ask"
    assert judge("code", "rm -rf /", replace(CHAT, deny=("rm *",), language="ruby")).verdict == "ask"
    assert judge("code", "print(1)", replace(CHAT, deny=("*",), language="python")).verdict == "ask"


@pytest.mark.parametrize(
    "path",
    [
        "AGENTS.md",
        "/srv/app/deep/claude.MD",
        "docs/../SOUL.md",
        ".cursorrules",
        "/home/ana/.claude/settings.json",
        ".codex/config.toml",
        "C:\\work\\AGENTS.md",
        "AG\u200bENTS.md",
        "AGENTS.md.",
        "AGENTS.md::$DATA",
        "CLAUDE.md\n",
        "CLA\x00UDE.md",
        "AGENTS~1.MD",
        ".qwen/settings.json",
        ".agents/skills/x/SKILL.md",
        "WARP.md",
        "crush.json",
        ".kiro/steering/a.md",
        ".roo\\rules\\a.md",
        "C:\\work\\.github\\instructions\\a.md",
        ".ki\u200bro/steering/a.md",
    ],
)
def test_files_that_tell_agents_how_to_behave_are_always_asked_for(path: str) -> None:
    everything = replace(CHAT, bypass=True, mode="off", allowlist=Allowlist(["*"], ["*"]))
    for context in (CHAT, everything):
        verdict = judge("file_write", path, context)
        assert (verdict.verdict, verdict.rung, verdict.once_only) == ("ask", "protected", True)
        assert (verdict.rule_keys, verdict.severity, verdict.coverage) == (("file.protected",), "high", ())
        assert not verdict.reviewable
    for kind in ("cron", "webhook", "api", None):
        nobody = JudgeContext(kind=kind, mode="off", bypass=True, cron_mode="approve", unattended_mode="approve")
        verdict = judge("file_write", path, nobody)
        assert (verdict.verdict, verdict.rung) == ("block", "protected")


def test_an_operator_says_which_files_are_protected() -> None:
    mine = replace(CHAT, mode="off", protected_files=("POLICY.md", "deploy/*.yml"))
    for path in (
        "POLICY.md",
        "/srv/app/docs/policy.md",
        "deploy/web.yml",
        "/srv/app/deploy/a/b.yml",
        "C:\\x\\deploy\\a.yml",
    ):
        assert judge("file_write", path, mine).rung == "protected"
    assert "approvals.protected_files" in judge("file_write", "POLICY.md", mine).why[0]
    for path in ("POLICY.mdx", "docs/deploy.yml", "web.yml"):
        assert judge("file_write", path, mine).rung == "mode_off"
    assert judge("file_write", "CLAUDE.md", mine).rung == "protected"
    assert judge("file_write", "CLAUDE.md", replace(mine, protect_instructions=False)).rung == "mode_off"
    assert judge("file_write", "POLICY.md", replace(mine, protect_instructions=False)).rung == "protected"


def test_a_change_of_several_files_is_as_grave_as_its_gravest() -> None:
    plain = judge("file_write", "src/main.py", replace(CHAT, files=("src/main.py", "src/AGENTS.md")))
    assert (plain.rung, plain.once_only) == ("protected", True)
    own_state = replace(CHAT, files=("/srv/signoff/x",), own_paths=("/srv/signoff",))
    assert judge("file_write", "src/main.py", own_state).rung == "floor"


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/home/ana/.bashrc", "file.startup_file"),
        (".git/hooks/pre-commit", "file.startup_file"),
        ("/home/ana/.ssh/authorized_keys", "file.ssh_material"),
        ("/srv/app/.env", "file.secret_file"),
        ("/etc/hosts", "file.system_config"),
    ],
)
def test_grave_files_say_why(path: str, key: str) -> None:
    verdict = judge("file_write", path, CHAT)
    assert (verdict.verdict, verdict.severity) == ("ask", "high")
    assert key in verdict.rule_keys
    assert verdict.why
    assert judge("file_write", path, replace(CHAT, bypass=True)).verdict == "allow"


# --- files of code -------------------------------------------------------------------------------


def test_what_a_script_holds_is_not_known_unless_it_was_read() -> None:
    asking = own({"key": "own.scripts", "verdict": "ask", "programs": ["bash", "./deploy.sh", "python3"]})
    for command, file in (
        ("bash run.sh x", "run.sh"),
        ("bash -x run.sh", "run.sh"),
        ("./deploy.sh", "./deploy.sh"),
        ("python3 -u tool.py", "tool.py"),
    ):
        verdict = judge("command", command, asking)
        assert (verdict.once_only, verdict.unread_file, verdict.coverage) == (True, file, ())
        read = judge("command", command, replace(asking, reviewed=(file,)))
        assert (read.once_only, bool(read.coverage)) == (False, True)
    for command in ("bash -c 'rm -rf x'", "python3 -m venv x"):
        assert not judge("command", command, asking).once_only


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("ls \u00a0x", "it has the character U+00A0 outside quotes"),
        ("echo 'x", "its syntax cannot be read"),
        ("a" * 300_000, "it is longer than 256 kB"),
        ("{ " * 200 + "a" + "; }" * 200, "it nests too deeply"),
        ("a|" * 5000, "it has more than 1000 times |"),
    ],
)
def test_what_is_not_understood_says_why(command: str, why: str) -> None:
    verdict = judge("command", command, CHAT, clock=lambda: 0.0)
    assert (verdict.verdict, verdict.severity, verdict.coverage) == ("ask", "high", ())
    assert verdict.description == f"cannot be understood: {why}"


def test_a_verdict_never_shows_a_piece_of_a_word() -> None:
    """What is cut in the middle of a secret is no longer known as one."""
    secret = "ghp_" + "a1B2" * 9
    verdict: Verdict = judge("command", f"{'x' * 90} push {secret}", replace(CHAT, deny=("*",)))
    assert secret[:10] not in " ".join((verdict.description, *verdict.why))
