"""An explanation says what the verdict says, command by command and rung by rung."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signoff.policy import JudgeContext, judge
from signoff.policy.allow import Allowlist
from signoff.policy.explaining import MAX_COMMANDS, Explanation, explain
from signoff.policy.ladder import LADDER
from signoff.policy.ruleset import shipped
from signoff.policy.telling import MAX_TEXT_CHARS, tree

CHAT = JudgeContext(kind="chat", attended=True, home="/home/ana", cwd="/home/ana/project", own_paths=("/srv/signoff",))


def told(text: str, context: JudgeContext = CHAT) -> Explanation:
    return explain("command", text, context)


def decided(explanation: Explanation) -> str:
    return next(rung.rung for rung in explanation.rungs if rung.reached == "decided")


@pytest.mark.parametrize(
    ("text", "context", "rung"),
    [
        ("ls", CHAT, "rules"),
        ("rm -rf build", CHAT, "person"),
        ("rm -rf /", CHAT, "floor"),
        ("rm -rf build", JudgeContext(kind="cron"), "nobody"),
        ("rm -rf build", JudgeContext(kind="chat", attended=True, isolated=True), "isolated"),
        ("rm -rf build", JudgeContext(kind="chat", attended=True, bypass=True), "bypass"),
        ("git push", JudgeContext(kind="chat", attended=True, deny=("git push *",)), "deny"),
        ("rm -rf build", JudgeContext(kind="chat", attended=True, allowlist=Allowlist(("rm -rf build",))), "allowlist"),
    ],
)
def test_each_rung_before_the_one_that_decided_passed_it_on(text: str, context: JudgeContext, rung: str) -> None:
    found = told(text, context)
    assert found.verdict == judge("command", text, context)
    assert [each.rung for each in found.rungs] == [each.name for each in LADDER]
    place = [each.rung for each in found.rungs].index(decided(found))
    assert decided(found) == rung
    assert {each.reached for each in found.rungs[:place]} <= {"passed on"}
    assert {each.reached for each in found.rungs[place + 1 :]} <= {"not reached"}
    assert found.rungs[place].verdict == found.verdict.verdict
    assert found.rungs[place].said


def test_the_tree_has_wrappers_above_what_they_carry() -> None:
    found = told("sudo env A=1 bash -c 'rm -rf build; ls' > out.txt && cat x | wc -l")
    lines = [(line.number, line.depth, line.text, line.verdict) for line in tree(found)]
    assert lines == [
        ("1", 0, "sudo > out.txt", "ask"),
        ("1.1", 1, "env A=1", "allow"),
        ("1.1.1", 2, "A=1 bash -c 'rm -rf build; ls'", "ask"),
        ("1.1.1.1", 3, "rm -rf build", "ask"),
        ("1.1.1.2", 3, "ls", "allow"),
        ("2", 0, "cat x", "allow"),
        ("3", 0, "wc -l", "allow"),
    ]
    rm = found.commands[3]
    assert rm.wrappers == ("sudo", "env", "bash")
    assert [rule.key for rule in rm.rules] == ["delete.recursive"]
    assert rm.passed == ""
    assert found.commands[0].redirections == ("> out.txt",)
    assert found.commands[6].fed


def test_what_is_only_known_then_stands_as_dots_and_places_are_told() -> None:
    found = told('ssh host "rm -rf $X"')
    inner = found.commands[1]
    assert inner.words == ("rm", "-rf", "…")
    assert inner.place == "remote"
    assert [line.around for line in tree(found)] == ["", "on another host"]


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("ls", "the rule read.files allows it"),
        ("A=1", "it starts no program"),
        ("frobnicate now", "no rule knows its program"),
    ],
)
def test_a_command_that_does_not_ask_says_why_not(text: str, passed: str) -> None:
    assert told(text).commands[0].passed.startswith(passed)


def test_a_rule_of_the_operator_is_marked() -> None:
    row = {"key": "ours.deploy", "verdict": "ask", "programs": ["deploy"], "sentence": "deploys to production"}
    found = told("deploy now", JudgeContext(kind="chat", attended=True, rules=shipped().with_own([row])))
    [rule] = found.commands[0].rules
    assert (rule.key, rule.own, rule.sentence) == ("ours.deploy", True, "deploys to production")
    assert not told("rm -rf x").commands[0].rules[0].own


def test_where_something_blocks_the_others_are_told_too() -> None:
    found = told("rm -rf / ; rm -rf build")
    assert [line.verdict for line in tree(found)] == ["block", "ask"]


def test_lines_of_python_are_told() -> None:
    found = explain("code", "import os\nos.remove('x')\n", JudgeContext(kind="chat", attended=True, language="python"))
    [line] = found.lines
    assert line.rule.key == "python.delete_file"
    assert [(each.number, each.text, each.verdict) for each in tree(found)] == [("1", "os.remove('x')", "ask")]


def test_a_text_that_is_not_understood_says_so() -> None:
    found = told("if then (")
    assert found.problems
    assert found.verdict.verdict == "ask"


def test_long_texts_are_told_in_part() -> None:
    found = told("\n".join(f"echo {n}" for n in range(MAX_COMMANDS + 7)))
    assert len(found.commands) == MAX_COMMANDS
    assert found.more == 7
    assert len(tree(told(f"echo {'x' * 5000}"))[0].text) == MAX_TEXT_CHARS


def test_telling_ends_with_its_time() -> None:
    class Racing:
        now = 0.0

        def __call__(self) -> float:
            self.now += 0.01
            return self.now

    text = "\n".join(f"rm {n}" for n in range(100))
    found = explain("command", text, CHAT, clock=Racing())
    assert found.verdict.verdict == "ask"
    assert found.more + len(found.commands) <= 100


@settings(max_examples=150, deadline=None)
@given(
    st.text(max_size=60)
    | st.lists(
        st.sampled_from(["sudo", "rm", "-rf", "/", "ls", "|", "&&", ";", "(", ")", "$X", "'", '"', ">", "x"])
    ).map(" ".join)
)
def test_an_explanation_never_differs_from_the_verdict(text: str) -> None:
    found = told(text)
    assert found.verdict == judge("command", text, CHAT)
    assert decided(found) == found.verdict.rung or found.verdict.rung == "mode_off"
    assert len(tree(found)) >= len(found.commands)


def test_commands_of_windows_are_told_once() -> None:
    context = JudgeContext(kind="chat", attended=True, shell="cmd")  # noqa: S604  # nothing is run
    found = tree(explain("command", "dir & del /q x", context))
    assert [(line.text, line.verdict) for line in found] == [("dir", "allow"), ("del /q x", "ask")]
