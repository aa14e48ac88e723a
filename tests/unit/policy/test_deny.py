"""Deny rules: words with stars, tried on every command and every wrapper."""

import time

import pytest

from signoff.policy import JudgeContext, judge
from signoff.policy.deny import fits, pattern_parts


@pytest.mark.parametrize(
    ("rule", "text", "expected"),
    [
        ("git push", "git push", True),
        ("git push", "git push origin", False),
        ("git push *", "git push origin main", True),
        ("git * --force", "git push origin --force", True),
        ("git * --force", "git push origin --force-with-lease", False),
        ("*prod*", "kubectl get pods -n prod-1", True),
        ("echo \\*", "echo *", True),
        ("echo \\*", "echo x", False),
        ("a?c", "abc", False),
        ("a?c", "a?c", True),
        ("[ab]", "a", False),
        ("a*a", "a", False),
        ("a\\b", "a\\b", True),
        ("*", "", True),
    ],
)
def test_only_the_star_is_special(rule: str, text: str, expected: bool) -> None:
    assert fits(pattern_parts(rule), text) is expected


@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "git  push   origin",
        "'git' push",
        "/usr/bin/git push",
        "ls && git push -f",
        "echo $(git push)",
        "sudo env A=1 timeout 5 git push",
        "bash -c 'cd x && git push'",
        "ssh host git push",
        "find . -execdir git push \\;",
        "x=push; git $x",
        "git push > out",
        "git push 'unclosed",
    ],
)
def test_the_rule_is_found_wherever_the_command_stands(command: str) -> None:
    context = JudgeContext(kind="chat", attended=True, bypass=True, deny=("npm *", "git push *"))
    verdict = judge("command", command, context)
    assert (verdict.verdict, verdict.rung, verdict.setting) == ("block", "deny", "approvals.deny")
    assert verdict.rule_keys == ("deny:git push *",)
    assert "git push *" in verdict.description


@pytest.mark.parametrize("rule", ["sudo *", "sudo -u bob *", "timeout 5 *", "GIT_TRACE=1 git *", "* > out"])
def test_wrappers_assignments_and_redirections_can_be_forbidden(rule: str) -> None:
    context = JudgeContext(kind="chat", attended=True, deny=(rule,))
    command = "sudo -u bob timeout 5 true; GIT_TRACE=1 git push; ls > out"
    assert judge("command", command, context).verdict == "block"


@pytest.mark.parametrize("command", ["echo git push", "git commit -m 'git push'", "git pushx", "grep 'git push' f"])
def test_text_that_is_data_does_not_fall_under_a_rule(command: str) -> None:
    context = JudgeContext(kind="chat", attended=True, deny=("git push *",))
    assert judge("command", command, context).verdict != "block"


def test_many_stars_on_a_long_text_take_no_time() -> None:
    started = time.process_time()
    assert not fits(pattern_parts("*a" * 2000 + "*c*"), "a" * 200_000 + "b")
    assert time.process_time() - started < 1
