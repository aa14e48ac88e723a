"""The ladder: which step answers, and what it names."""

from itertools import product
from typing import Literal, get_args

import pytest
from msgspec.structs import replace

from signoff.policy import LADDER, ActionKind, Allowlist, JudgeContext, judge
from signoff.policy.contexts import ODD_NAME
from signoff.policy.ruleset import shipped
from signoff.policy.verdict import MAX_LABEL_CHARS

Mode = Literal["deny", "approve", "defer"]
CHAT = JudgeContext(kind="chat", attended=True, cwd="/srv/app", home="/home/ana")
ASKS = "git push --force origin main"
UNKNOWN = "tfx delete x"
"""A program that no rule knows, with a verb that destroys."""
EACH_ASKS: dict[ActionKind, str] = {
    "command": ASKS,
    "code": "print(open(name).read())",
    "tool": "send_email",
    "file_write": "src/main.py",
    "rule": "net.egress",
    "elicitation": "jira",
}
"""One action of each kind that somebody is asked about."""


def own(*rows: dict[str, object]) -> JudgeContext:
    return replace(CHAT, rules=shipped().with_own(rows))


def test_the_rungs_stand_in_their_order() -> None:
    order = ["deny", "isolated", "floor", "protected", "bypass", "allowlist", "rules"]
    order += ["tool_gate", "nobody", "person"]
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
    assert verdict.coverage == ("git.force_push@git [to branch main]",)
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
    assert two.coverage == ("delete.recursive@rm [in /srv/app]", "git.force_push@git [to branch main]")


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


def test_isolation_stands_above_the_floors_and_below_what_the_operator_forbids() -> None:  # #91029 #91002 1.1.2
    isolated = replace(CHAT, isolated=True)
    assert judge("command", "rm -rf /", isolated).verdict == "allow"
    denied = replace(isolated, deny=("rm *",))
    assert judge("command", "rm -rf x", denied).verdict == "block"
    assert judge("command", "ls 'x", denied).verdict == "ask"
    assert judge("command", "ls 'x", isolated).verdict == "allow"
    forbidding = shipped().with_own([{"key": "own.rm", "verdict": "block", "programs": ["rm"]}])
    assert judge("command", "rm x", replace(isolated, rules=forbidding)).rung == "deny"
    assert judge("command", "ls 'x", replace(isolated, rules=forbidding)).verdict == "ask"


@pytest.mark.parametrize("isolated", [False, True])
@pytest.mark.parametrize("kind", list(EACH_ASKS))
def test_isolation_bounds_commands_and_code_alone(kind: ActionKind, isolated: bool) -> None:
    """A tool, a server's question, a plugin's rule and a file write reach beyond the environment."""
    there = replace(CHAT, isolated=isolated)
    runs = isolated and kind in {"command", "code"}
    verdict = judge(kind, EACH_ASKS[kind], there)
    assert (verdict.verdict, verdict.rung) == (("allow", "isolated") if runs else ("ask", "person"))
    nobody = judge(kind, EACH_ASKS[kind], replace(there, kind="cron"))
    assert (nobody.verdict, nobody.rung) == (("allow", "isolated") if runs else ("block", "nobody"))


@pytest.mark.parametrize("isolated", [False, True])
def test_isolation_lifts_no_rung_about_files(isolated: bool) -> None:
    there = replace(CHAT, isolated=isolated, own_paths=("/srv/signoff",))
    for path, answer in (("/srv/signoff/signoff.db", ("block", "floor")), ("AGENTS.md", ("ask", "protected"))):
        verdict = judge("file_write", path, there)
        assert (verdict.verdict, verdict.rung) == answer
        touched = judge("file_write", "src/main.py", replace(there, files=("src/main.py", path)))
        assert (touched.verdict, touched.rung) == answer


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
        ("rm -rf a", "/usr/bin/env rm -rf a", True),
        ("rm -rf a", "/tmp/evil/env rm -rf a", False),
        ("rm -rf a", "./timeout 5 rm -rf a", False),
        ("rm -rf a", "./bash -c 'rm -rf a'", False),
        ("rm -rf a b c", "./bash -c 'rm -rf a b c'", False),
        ("rm -rf a b c", "ssh host 'rm -rf a b c'", False),
        ("rm -rf a\nrm -rf b", "rm -rf a rm -rf b", False),
        ("rm -rf a\n*", "rm -rf a b", False),
        ("rm -rf a\u00a0b", "rm -rf a b", False),
    ],
)
def test_an_entry_admits_one_simple_command(entry: str, command: str, admitted: bool) -> None:
    verdict = judge("command", command, replace(CHAT, allowlist=Allowlist([entry])))
    assert (verdict.verdict, verdict.rung) == (("allow", "allowlist") if admitted else ("ask", "person"))
    assert admitted == bool(verdict.rule_keys == (f"allowlist:{entry}",))


@pytest.mark.parametrize(
    ("entry", "command"),
    [("rm 'a\nb'", "rm 'a\nb'"), ("rm  a\tb\n", "rm a b"), ("\nrm a", "rm a"), ("rm 'a\n\\*'", "rm 'a\n*'")],
)
def test_an_entry_with_other_blanks_fits_its_own_text(entry: str, command: str) -> None:
    assert judge("command", command, replace(CHAT, allowlist=Allowlist([entry]))).rung == "allowlist"


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


@pytest.mark.parametrize(
    ("command", "name", "value", "key"),
    [
        ("dd if=/dev/zero $D", "D", "of=/dev/sda", "floor.write_disk"),
        ("find $D", "D", "/ -delete", "floor.delete_root"),
        ("kill $D", "D", "-9 -1", "floor.kill_all"),
        ('rm -rf "$D"', "D", "/home/ana", "floor.delete_home"),
        ("rm -rf ~/*", "HOME", "", "floor.delete_root"),
        ("ls", "PROMPT_COMMAND", "rm -rf /", "floor.delete_root"),
        ("echo x > $D", "D", "/home/ana/.bashrc", "files.startup"),
        ("cat $X", "X", "/home/ana/.ssh/id_rsa", "secrets.read"),
        ("sh -c 'cat $X'", "X", "/home/ana/.ssh/id_rsa", "secrets.read"),
        ("cat ~/id_rsa", "HOME", "/home/ana/.ssh", "secrets.read"),
        ("cat $HOME/id_rsa", "HOME", "/home/ana/.ssh", "secrets.read"),
        ("python3 -c 'import os; os.system(\"cat $X\")'", "X", "/home/ana/.ssh/id_rsa", "secrets.read"),
        ("npm $X", "X", "publish", "publish.package"),
        ("echo $((X))", "X", "a[$(rm -rf src)]", "delete.recursive"),
        ("[[ $X -eq 1 ]]", "X", "a[$(rm -rf src)]", "delete.recursive"),
    ],
)
def test_what_is_set_around_a_command_is_expanded_in_it(command: str, name: str, value: str, key: str) -> None:
    verdict = judge("command", command, replace(CHAT, env=((name, value),)))
    assert key in verdict.rule_keys
    assert verdict.verdict == ("block" if key.startswith("floor.") else "ask")


@pytest.mark.parametrize("name", ["OLDPWD", "RANDOM", "UID", "_", "BASH_SOURCE"])
def test_what_the_shell_sets_itself_is_not_taken_from_around(name: str) -> None:
    assert judge("command", f"${name} x", replace(CHAT, env=((name, "ls"),))).verdict == "ask"
    assert judge("command", "$OTHER x", replace(CHAT, env=(("OTHER", "ls"),))).verdict == "allow"


@pytest.mark.parametrize("name", ["BASH_FUNC_ls%%", "a b", "", "1A", "A-B", "Ä", "A\n"])
def test_a_name_that_no_variable_can_have_is_not_understood(name: str) -> None:
    context = replace(CHAT, env=((name, "() { rm -rf src; }"),))
    for each in (context, replace(context, bypass=True), replace(context, mode="off")):
        verdict = judge("command", "ls", each)
        assert (verdict.verdict, verdict.coverage, verdict.reviewable) == ("ask", (), False)
        assert ODD_NAME in verdict.description


def test_the_environment_reaches_a_shell_of_windows() -> None:
    pwsh = replace(CHAT, shell="pwsh", env=(("Tool", "ri"),))  # noqa: S604  # nothing runs
    assert judge("command", "git status", pwsh).verdict == "allow"
    assert judge("command", "echo $env:TOOL", pwsh).verdict == "ask"
    assert judge("command", "echo %tool%", replace(pwsh, shell="cmd")).verdict == "ask"  # noqa: S604


@pytest.mark.parametrize("shell", ["/tmp/evil/bash", "./bash", "bin/bash", "/bash", "/home/ana/bin/sh", "fish"])
def test_what_another_shell_makes_of_it_is_approved_only_as_it_is(shell: str) -> None:
    context = replace(CHAT, shell=shell)
    verdict = judge("command", "rm -rf build", context)
    assert (verdict.verdict, verdict.coverage, verdict.label, verdict.reviewable) == ("ask", (), "", False)
    assert any(f"`{shell}`" in line for line in verdict.why)
    assert judge("command", "ls", context).verdict == "ask"
    assert judge("command", "rm x", replace(context, allowlist=Allowlist(["*"], ["*"]))).verdict == "ask"


@pytest.mark.parametrize("shell", [None, "", "bash", "/bin/sh", "/usr/bin/bash", "/opt/homebrew/bin/bash", "zsh"])
def test_shells_of_the_system_are_read_as_meant(shell: str | None) -> None:
    assert judge("command", "ls", replace(CHAT, shell=shell)).verdict == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "=rm -rf src",
        "echo a > =rm",
        "x==rm; ls",
        'emulate sh -c "rm -rf src"',
        'functions[ls]="rm -rf src"; ls',
        "commands[ls]=/bin/rm; ls src",
        "aliases[ls]=x; ls",
        "galiases[ls]=x; ls",
        "options[x]=on",
        "ls >! x",
        "ls >&! ~/.bashrc",
        "ls &>>! ~/.bashrc",
        "ls >>| x",
        "repeat 3 rm -rf src",
        "noglob rm -rf src",
        "- rm -rf src",
        "ls $=x",
        "ls ${~x}",
        "function chpwd { rm -rf src }; cd x",
        "ls *(e:x:)",
    ],
)
def test_zsh_reads_some_things_otherwise(command: str) -> None:
    assert judge("command", command, replace(CHAT, shell="zsh")).verdict == "ask"  # noqa: S604
    bypassed = judge("command", command, replace(CHAT, shell="/bin/zsh", bypass=True))  # noqa: S604
    assert bypassed.verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "A=1 git log --format=%h | head",
        "[[ $a == b ]] && ls",
        "[[ $a =~ b ]] && ls",
        "git diff 2>&1|head",
        "cd - && ls",
    ],
)
def test_what_zsh_reads_as_others_do_runs(command: str) -> None:
    assert judge("command", command, replace(CHAT, shell="zsh")).verdict == "allow"  # noqa: S604


@pytest.mark.parametrize("language", ["python", "python3", "IPython", "python3.12", "py"])
def test_code_in_an_encoding_of_its_own_is_a_persons_to_read(language: str) -> None:
    context = replace(CHAT, language=language)
    plain, odd = (judge("code", f"# coding: {name}\nprint(1)", context) for name in ("utf-8", "utf-7"))
    assert (plain.reviewable, odd.reviewable) == (True, False)
    assert any("encoding" in line for line in odd.why)


@pytest.mark.parametrize("shell", ["fish", "/opt/odd", "nu", "xonsh"])
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


@pytest.mark.parametrize("kind", ["cron", "webhook", "worker", "single_query"])
def test_a_listener_does_not_make_unattended_kinds_attended(kind: str) -> None:  # 2.3.3 2.3.5
    assert judge("command", ASKS, JudgeContext(kind=kind, attended=True)).verdict == "block"


@pytest.mark.parametrize("kind", ["api", "chat", "cli"])
def test_a_session_with_a_listener_is_asked(kind: str) -> None:
    assert judge("command", ASKS, JudgeContext(kind=kind, attended=True)).verdict == "ask"


@pytest.mark.parametrize("kind", ["command", "code", "tool", "file_write", "rule", "elicitation"])
@pytest.mark.parametrize("session", ["chat", "cli", "api", "cron", "webhook", "worker", "single_query", None])
def test_modes_and_bypasses_skip_asking_in_every_gate(kind: ActionKind, session: str | None) -> None:
    # 3e066dfedd 1.3.1
    text = ASKS if kind == "command" else "x"
    context = JudgeContext(kind=session, attended=session in {"chat", "cli", "api"})
    expected = "ask" if context.somebody else "block"
    assert judge(kind, text, context).verdict == expected
    assert judge(kind, text, replace(context, mode="off")).verdict == "allow"
    assert judge(kind, text, replace(context, bypass=True)).verdict == "allow"


SESSIONS = ("chat", "cli", "api", "worker", "cron", "webhook", "single_query", None)
ASKED_WITH_SOMEBODY = ("chat", "cli", "api")
SPEAKS_FOR = {
    **dict.fromkeys(("chat", "cli", "api", "worker", "webhook", None), "unattended_mode"),
    "cron": "cron_mode",
    "single_query": "single_query_mode",
}


@pytest.mark.parametrize("session", SESSIONS)
def test_who_is_asked_in_every_gate_kind_and_mode(session: str | None) -> None:
    """Each gate in each session, by each combination of the three modes: somebody there is asked whatever they are, and
    of them only the session's own counts. The words of a bypass that ended let nothing pass."""
    judged = 0
    for attended, cron, unattended, single in product((False, True), *[get_args(Mode)] * 3):
        modes = {"cron_mode": cron, "unattended_mode": unattended, "single_query_mode": single}
        context = JudgeContext(
            kind=session, attended=attended, cron_mode=cron, unattended_mode=unattended, single_query_mode=single
        )
        name = SPEAKS_FOR[session]
        expected: tuple[str, str, str | None]
        if attended and session in ASKED_WITH_SOMEBODY:
            expected = ("ask", "person", None)
        elif modes[name] == "approve" and session is not None:
            expected = ("allow", "nobody", f"approvals.{name}")
        else:
            expected = ("block", "nobody", f"approvals.{name}")
        for (kind, text), stale in product(EACH_ASKS.items(), ("", "bypass until 2026-01-05 09:30 UTC by Ana")):
            verdict = judge(kind, text, replace(context, bypass_words=stale))
            assert (verdict.verdict, verdict.rung, verdict.setting) == expected, (kind, modes, attended, stale)
            judged += 1
    assert judged == 2 * 27 * 6 * 2
