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
        "git -C . push --force",
        "git -C. push",
        "git -c a=b --no-pager push origin",
        "git --git-dir x/.git push",
        "git.exe push",
        "GIT push",
        "sudo git -C x push",
        "python -c 'import os; os.system(\"git -C x push\")'",
    ],
)
def test_the_rule_is_found_wherever_the_command_stands(command: str) -> None:
    context = JudgeContext(kind="chat", attended=True, bypass=True, deny=("npm *", "git push *"))
    verdict = judge("command", command, context)
    assert (verdict.verdict, verdict.rung, verdict.setting) == ("block", "deny", "approvals.deny")
    assert verdict.rule_keys == ("deny:git push *",)
    assert "git push *" in verdict.description


BEFORE_THE_VERB = {
    "docker compose -f x.yml down": "docker compose down*",
    "docker --context x compose --profile y down -v": "docker compose down*",
    "kubectl -n prod --context x delete pod y": "kubectl delete *",
    "kubectl delete -n prod pod y": "kubectl delete pod *",
    "terraform -chdir=x destroy": "terraform destroy *",
    "aws --profile x s3 rm s3://y": "aws s3 rm *",
    "npm --prefix x publish": "npm publish *",
    "python3 -m pip install x": "pip install *",
    "pip3.11 install x": "pip install *",
    "/usr/bin/pip3 --quiet install x": "pip install *",
    "nobody-knows --loud wipe": "nobody-knows wipe",
}


@pytest.mark.parametrize("command", BEFORE_THE_VERB)
def test_options_before_what_is_to_be_done_lead_past_no_rule(command: str) -> None:
    context = JudgeContext(kind="chat", attended=True, mode="off", deny=(BEFORE_THE_VERB[command],))
    assert judge("command", command, context).rung == "deny"


@pytest.mark.parametrize("command", ["git log push", "git -C push status", "git --version", "git stash push"])
def test_a_word_elsewhere_is_not_what_is_to_be_done(command: str) -> None:
    context = JudgeContext(kind="chat", attended=True, mode="off", deny=("git push *", "git"))
    assert judge("command", command, context).rung == "mode_off"


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
