"""The ladder: which step answers, and what it names."""

from typing import Literal

import pytest
from msgspec.structs import replace

from signoff.policy import LADDER, ActionKind, Allowlist, JudgeContext, Verdict, judge
from signoff.policy.ruleset import shipped
from signoff.policy.verdict import MAX_LABEL_CHARS

Mode = Literal["deny", "approve", "defer"]
CHAT = JudgeContext(kind="chat", attended=True, cwd="/srv/app", home="/home/ana")
ASKS = "git push --force origin main"
UNKNOWN = "tfx delete x"
"""A program that no rule knows, with a verb that destroys."""


def own(*rows: dict[str, object]) -> JudgeContext:
    return replace(CHAT, rules=shipped().with_own(rows))


def test_the_rungs_stand_in_their_order() -> None:
    order = ["deny", "isolated", "floor", "protected", "bypass", "allowlist", "rules", "nobody", "person"]
    assert [rung.name for rung in LADDER] == order


@pytest.mark.parametrize("command", ["ls -la", "git status --short", "make test", "tfx build x", "pytest -q | tail -3"])
def test_harmless_commands_run_silently_wherever_somebody_is_or_not(command: str) -> None:
    for context in (CHAT, JudgeContext(kind="cron"), JudgeContext(kind="webhook"), JudgeContext()):
        verdict = judge("command", command, context)
        assert (verdict.verdict, verdict.rung, verdict.severity) == ("allow", "rules", "low")


def test_a_person_is_asked_and_told_how_far_an_answer_reaches() -> None:
    verdict = judge("command", ASKS, CHAT)
    assert (verdict.verdict, verdict.rung, verdict.severity) == ("ask", "person", "high")
    assert verdict.rule_keys == ("git.force_push",)
    assert verdict.coverage == ("git.force_push@git",)
    assert verdict.why == (f"`{ASKS}` {verdict.description}. (rule git.force_push)",)
    assert 0 < len(verdict.label) <= MAX_LABEL_CHARS
    assert verdict.breadth
    assert verdict.reviewable
    assert not verdict.once_only


def test_without_a_rule_nothing_wider_than_the_action_is_covered() -> None:
    verdict = judge("command", UNKNOWN, CHAT)
    assert (verdict.verdict, verdict.coverage, verdict.label, verdict.breadth) == ("ask", (), "", "")
    both = judge("command", f"{ASKS}; {UNKNOWN}", CHAT)
    assert (both.verdict, both.coverage) == ("ask", ()), "a part without a rule is covered by nothing else"
    two = judge("command", f"{ASKS} && rm -rf build", CHAT)
    assert two.coverage == ("delete.recursive@rm", "git.force_push@git")


@pytest.mark.parametrize(("setting", "verdict"), [("verbs", "ask"), ("ask", "ask"), ("allow", "allow")])
def test_programs_without_a_rule_follow_the_setting(setting: Literal["verbs", "ask", "allow"], verdict: str) -> None:
    context = replace(CHAT, unknown_commands=setting)
    assert judge("command", UNKNOWN, context).verdict == verdict
    assert judge("command", "tfx build", context).verdict == ("ask" if setting == "ask" else "allow")
    assert judge("command", ASKS, context).verdict == "ask"


# --- what stands above everything ----------------------------------------------------------------


@pytest.mark.parametrize(
    "context",
    [
        replace(CHAT, bypass=True),
        replace(CHAT, mode="off"),
        JudgeContext(kind="cron", cron_mode="approve"),
        replace(CHAT, bypass=True, mode="off", allowlist=Allowlist(["*"], ["*"]), unknown_commands="allow"),
    ],
)
def test_no_setting_reaches_below_deny_rules_and_floors(context: JudgeContext) -> None:
    assert judge("command", ASKS, context).verdict == "allow"
    assert judge("command", "rm -rf /", context).verdict == "block"
    assert judge("command", ASKS, replace(context, deny=("git push *",))).verdict == "block"
    forbidding = shipped().with_own([{"key": "own.x", "verdict": "block", "programs": ["git"]}])
    verdict = judge("command", ASKS, replace(context, rules=forbidding))
    assert (verdict.verdict, verdict.rung, verdict.rule_keys) == ("block", "deny", ("own.x",))
    assert judge("code", "import os; os.system('rm -rf /')", replace(context, language="python")).verdict == "block"


@pytest.mark.parametrize("command", ["rm -rf 'x", "echo (", "x=(" * 100])
def test_what_cannot_be_read_is_never_allowed_by_a_bypass(command: str) -> None:
    open_ = replace(CHAT, bypass=True, mode="off", allowlist=Allowlist(["*"], ["*"]))
    verdict = judge("command", command, open_)
    assert (verdict.verdict, verdict.severity) == ("ask", "high")
    assert verdict.description.startswith("cannot be understood: ")
    assert verdict.why
    assert not verdict.reviewable
    nobody = judge("command", command, JudgeContext(kind="cron", cron_mode="approve"))
    assert (nobody.verdict, nobody.setting) == ("block", "approvals.cron_mode")


def test_isolation_stands_above_the_floors_and_below_what_the_operator_forbids() -> None:
    isolated = replace(CHAT, isolated=True)
    assert judge("command", "rm -rf /", isolated).verdict == "allow"
    denied = replace(isolated, deny=("rm *",))
    assert judge("command", "rm -rf x", denied).verdict == "block"
    assert judge("command", "ls 'x", denied).verdict == "ask"
    assert judge("command", "ls 'x", isolated).verdict == "allow"
    forbidding = shipped().with_own([{"key": "own.rm", "verdict": "block", "programs": ["rm"]}])
    assert judge("command", "rm x", replace(isolated, rules=forbidding)).rung == "deny"
    assert judge("command", "ls 'x", replace(isolated, rules=forbidding)).verdict == "ask"


def test_an_operators_rule_that_allows_spares_the_question() -> None:
    allowing = own({"key": "own.push", "verdict": "allow", "programs": ["git"], "subcommands": ["push"]})
    assert judge("command", ASKS, allowing).verdict == "allow"
    assert judge("command", f"{ASKS}; rm -rf build", allowing).verdict == "ask"
    asking = own({"key": "own.ls", "verdict": "ask", "programs": ["ls"], "sentence": "looks around"})
    verdict = judge("command", "ls", asking)
    assert (verdict.verdict, verdict.description, verdict.coverage) == ("ask", "looks around", ("own.ls@ls",))


# --- the allowlist -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "command", "admitted"),
    [
        ("git push *", ASKS, True),
        ("git push *", "git  push   --force x", True),
        ("git push --force origin main", ASKS, True),
        ("git push --force origin main", "nohup git push --force origin main", True),
        ("git push *", "timeout 5 git push --force x", True),
        ("git push *", "bash -c 'git push --force x'", True),
        ("git push --force origin", ASKS, False),
        ("git push *", "git push --force x; rm -rf y", False),
        ("git push *", "git push --force x && rm -rf y", False),
        ("git push *", "git push --force $(rm -rf y)", False),
        ("git push *", "git push --force $X", False),
        ("git push *", "git push --force x > /etc/passwd", False),
        ("git push *", "GIT_SSH=x git push --force x", False),
        ("git push *", "env GIT_SSH=x git push --force x", False),
        ("git push *", "sudo git push --force x", False),
        ("git *", "git -c core.pager='rm -rf y' push --force", False),
        ("git push *", "git push --force 'x", False),
        ("git push *", "git push --force x &", False),
        ("rm build/\\*", "rm build/*", True),
        ("rm build/\\*", "rm build/x", False),
        ("rm a b", "rm 'a b'", False),
        ("rm 'a b'", "rm 'a b'", True),
        ("rm \\*.py", "rm '*.py'", False),
        ("*", "sudo rm -rf build", True),
        ("sudo systemctl restart *", "sudo systemctl restart web", True),
        ("", "rm x", False),
    ],
)
def test_an_entry_admits_one_simple_command(entry: str, command: str, admitted: bool) -> None:
    verdict = judge("command", command, replace(CHAT, allowlist=Allowlist([entry])))
    assert (verdict.verdict, verdict.rung) == (("allow", "allowlist") if admitted else ("ask", "person"))
    assert admitted == bool(verdict.rule_keys == (f"allowlist:{entry}",))


def test_where_nobody_is_only_the_unattended_entries_count() -> None:
    entries = Allowlist(["rm x"], ["rm y"])
    assert judge("command", "rm x", replace(CHAT, allowlist=entries)).verdict == "allow"
    assert judge("command", "rm y", replace(CHAT, allowlist=entries)).verdict == "allow"
    for kind in ("cron", "webhook", "worker", "single_query", "api"):
        context = JudgeContext(kind=kind, allowlist=entries)
        assert judge("command", "rm x", context).verdict == "block"
        assert judge("command", "rm y", context).verdict == "allow"


def test_entries_are_about_commands_and_not_about_what_is_set_around_them() -> None:
    everything = replace(CHAT, allowlist=Allowlist(["*"], ["*"]), language="python")
    assert judge("code", "x", everything).verdict == "ask"
    assert judge("tool", "send_email", everything).verdict == "ask"
    assert judge("command", ASKS, replace(everything, env=(("GIT_SSH_COMMAND", "x"),))).verdict == "ask"


def test_the_environment_of_a_command_is_judged() -> None:
    assert judge("command", "ls", replace(CHAT, env=(("LD_PRELOAD", "/tmp/x.so"),))).verdict == "ask"
    assert judge("command", "ls", replace(CHAT, env=(("LANG", "C"),))).verdict == "allow"


@pytest.mark.parametrize("shell", ["fish", "/opt/odd", "nu", "cmd.exe"])
def test_rules_allow_nothing_in_a_shell_that_reads_words_otherwise(shell: str) -> None:
    assert judge("command", "ls", replace(CHAT, shell=shell)).verdict == "ask"
    zsh = replace(CHAT, shell="/bin/zsh")  # noqa: S604  # nothing runs
    assert judge("command", "ls", zsh).verdict == "allow"
    assert judge("command", "ls *(e:x:)", zsh).verdict == "ask"


# --- nobody there --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "setting"),
    [
        ("cron", "approvals.cron_mode"),
        ("single_query", "approvals.single_query_mode"),
        ("webhook", "approvals.unattended_mode"),
        ("worker", "approvals.unattended_mode"),
        ("api", "approvals.unattended_mode"),
        (None, "approvals.unattended_mode"),
    ],
)
@pytest.mark.parametrize("mode", ["deny", "defer"])
@pytest.mark.parametrize("command", [ASKS, UNKNOWN, "sudo ls", "curl x | sh"])
def test_nobody_present_blocks_under_the_setting_of_the_kind(
    kind: str | None, setting: str, mode: Mode, command: str
) -> None:
    context = JudgeContext(kind=kind, cron_mode=mode, unattended_mode=mode, single_query_mode=mode)
    verdict = judge("command", command, context)
    assert (verdict.verdict, verdict.rung, verdict.setting) == ("block", "nobody", setting)
    assert verdict.rule_keys
    if mode == "defer" and kind is not None:
        expected = f'{setting} = "defer" needs a registered executor for command actions, and there is none.'
        assert verdict.why[0] == expected


@pytest.mark.parametrize("kind", ["cron", "single_query", "webhook", "worker", "api"])
@pytest.mark.parametrize("attended", [False, True])
def test_each_kind_obeys_only_its_own_mode(kind: str, attended: bool) -> None:
    own_mode = {"cron": "cron_mode", "single_query": "single_query_mode"}.get(kind, "unattended_mode")
    for name in ("cron_mode", "unattended_mode", "single_query_mode"):
        modes: dict[str, Mode] = {"cron_mode": "deny", "unattended_mode": "deny", "single_query_mode": "deny"}
        modes[name] = "approve"
        context = JudgeContext(
            kind=kind,
            attended=attended and kind in {"cron", "single_query", "webhook"},
            cron_mode=modes["cron_mode"],
            unattended_mode=modes["unattended_mode"],
            single_query_mode=modes["single_query_mode"],
        )
        assert judge("command", ASKS, context).verdict == ("allow" if name == own_mode else "block")


def test_no_session_is_blocked_even_where_unattended_work_is_approved() -> None:
    assert judge("command", ASKS, JudgeContext(unattended_mode="approve")).verdict == "block"
    assert judge("command", ASKS, JudgeContext(unattended_mode="approve", attended=True)).verdict == "block"


@pytest.mark.parametrize("kind", ["cron", "webhook", "single_query"])
def test_a_listener_does_not_make_unattended_kinds_attended(kind: str) -> None:
    assert judge("command", ASKS, JudgeContext(kind=kind, attended=True)).verdict == "block"


@pytest.mark.parametrize("kind", ["api", "chat", "cli", "worker"])
def test_a_session_with_a_listener_is_asked(kind: str) -> None:
    assert judge("command", ASKS, JudgeContext(kind=kind, attended=True)).verdict == "ask"


@pytest.mark.parametrize("kind", ["command", "code", "tool", "file_write", "rule", "elicitation"])
@pytest.mark.parametrize("session", ["chat", "cli", "api", "cron", "webhook", "worker", "single_query", None])
def test_modes_and_bypasses_skip_asking_in_every_gate(kind: ActionKind, session: str | None) -> None:
    text = ASKS if kind == "command" else "x"
    context = JudgeContext(kind=session, attended=session in {"chat", "cli", "api"})
    expected = "ask" if context.somebody else "block"
    assert judge(kind, text, context).verdict == expected
    assert judge(kind, text, replace(context, mode="off")).verdict == "allow"
    assert judge(kind, text, replace(context, bypass=True)).verdict == "allow"


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
    assert verdict.description.startswith("runs Python code, 2 lines: deletes ")
    started = judge("code", "import os\nos.system('git push --force')", context)
    assert started.rule_keys == ("git.force_push",)
    assert (
        judge("code", "import os\nos.system('git push --force')", replace(context, deny=("git push *",))).rung == "deny"
    )
    other = judge("code", "shutil.rmtree('x')", replace(CHAT, language="javascript"))
    assert (other.severity, other.rule_keys) == ("medium", ())


def test_other_kinds_are_not_read_as_shell() -> None:
    assert judge("tool", "rm -rf /", CHAT).verdict == "ask"
    assert judge("code", "rm -rf /", replace(CHAT, deny=("rm *",), language="python")).verdict == "ask"
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
