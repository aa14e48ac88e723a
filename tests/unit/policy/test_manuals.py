"""Commands that only print help or a version run; those in which the option is somebody else's do not."""

from msgspec.structs import replace
from tests.tables import every
from tests.unit.policy.test_ladder import CHAT, own

from signoff.policy import judge, manuals, ruleset
from signoff.policy.shell import read_shell
from signoff.policy.shell.deadline import Deadline

HERE = replace(CHAT, home="/home/ana", cwd="/home/ana/project")
ANY_WORD = ("push", "delete", "prune", "restart", "down", "rm", "run-instances", "update", "stop", "pull", "leave")


def _commands(row: manuals.Manual, entry: str) -> list[str]:
    """The commands that one entry of a row speaks of, with words for its stars."""
    told = {entry.replace("*", word) for word in ANY_WORD}
    told |= {f"{entry} web"} if row.deep else set()
    return [
        " ".join(f"{program} {words} {option}".split())
        for program in row.programs
        for words in told
        for option in row.options
    ]


def _asks(text: str) -> bool:
    """Whether a rule would ask, were the option not known."""
    script = read_shell(text, cwd=HERE.cwd)
    (command,) = script.commands
    fired = ruleset.shipped().fired(command, script, HERE.facts, Deadline(lambda: 0.0))
    return any(compiled.asks for compiled, _seen in fired)


ENTRIES = [(row, entry) for row in manuals.table() for entry in row.words]


@every("row, entry", ENTRIES, ids=lambda each: each if isinstance(each, str) else sorted(each.programs)[0])
def test_help_runs_and_each_entry_is_needed(row: manuals.Manual, entry: str) -> None:
    others = tuple(each for each in manuals.table() if each is not row)
    asking = [text for text in _commands(row, entry) if _asks(text)]
    assert asking
    assert not any(manuals.only_prints(read_shell(text, cwd=HERE.cwd).commands[0], others) for text in asking)
    for text in asking:
        verdict = judge("command", text, HERE)
        assert (verdict.verdict, verdict.rule_keys) == ("allow", ("read.manual",)), text


@every(
    "command",
    [
        "/usr/bin/git push --help",
        "bash -lc 'git push --help'",
        "git push --help | head -20",
        "cd docs && npm publish --help 2>&1 | less",
    ],
)
def test_help_runs_where_nothing_around_it_does_more(command: str) -> None:
    assert judge("command", command, HERE).verdict == "allow"


@every(
    "command",
    [
        "sudo rm --help",
        "sudo --help -s",
        "sudo -s --help",
        "sudo -h web1 ls",
        "sudo git push --help",
        "xargs git push --help",
        "xargs rm --help",
        "find . -exec git push --help \\;",
        "ssh web1 --help",
        "ssh web1 git push --help",
        "docker exec web git push --help",
        "kubectl exec web rm --help",
        "kubectl delete pod --help web",
        "kubectl delete pod -- --help",
        "npx rm --help",
        "npm run deploy --help",
        "yarn publish --help",
        "aws s3 rm s3://bucket help --recursive",
        "aws s3 rm help s3://bucket",
        "git push origin --help",
        "git push -o --help",
        "git push $x --help",
        "git push * --help",
        "sudo $x --help",
        "git -c alias.push='!rm -rf src' push --help",
        "git push --help > ~/.bashrc",
        "git push --help; rm -rf src",
        "git push --help $(rm -rf src)",
        "GIT_PAGER='rm -rf src' git push --help",
        "MANPAGER=./x git push --help",
        "PATH=/tmp/x git push --help",
        "./git push --help",
        "/tmp/bin/sudo --help",
        "sudo() { rm -rf src; }; sudo --help",
        "alias sudo='rm -rf src;'; sudo --help",
    ],
)
def test_an_option_that_may_be_anothers_changes_nothing(command: str) -> None:
    assert judge("command", command, HERE).verdict == "ask"


def test_rules_of_the_operator_speak_of_help_as_well() -> None:
    mine = own({"key": "own.push", "verdict": "ask", "programs": ["git"], "subcommands": ["push"]})
    assert judge("command", "git push --help", mine).rule_keys == ("own.push",)
    assert judge("command", "git push --help", replace(HERE, deny=("git push *",))).rung == "deny"
