"""What is found in a whole script: verdict, reasons, and how far a standing approval would reach."""

from typing import Any

import pytest
from tests.tables import every

from signoff.policy import findings, unknown
from signoff.policy.findings import Findings
from signoff.policy.rule import Rule
from signoff.policy.ruleset import RuleSet
from signoff.policy.seen import OwnFacts
from signoff.policy.shell import UNKNOWN, Command, Script, Word, read_shell
from signoff.policy.shell.deadline import Deadline, OutOfTimeError
from signoff.policy.unknown import UnknownCommands


def rule(key: str, **fields: Any) -> Rule:
    texts = {"sentence": f"does {key}", "label": key, "breadth": f"All {key}"}
    return Rule(**({"key": key, "verdict": "ask"} | texts | fields))


RULES = RuleSet(
    (
        rule("a.push", programs=("f", "g"), subcommands=("push",), severity="high"),
        rule("a.all", programs=("f",), flags=("--all",), severity="low"),
        rule("a.never", programs=("f",), subcommands=("never",), verdict="block", severity="critical"),
        rule("a.look", programs=("f", "look"), subcommands=("look",), verdict="allow"),
        rule("a.out", writes=("system_config",)),
        rule("a.part", programs=("partly",), flags=("--hook",), partial=True),
    )
)


def found(command: str, how: UnknownCommands = "verbs") -> Findings:
    script = read_shell(command, home="/home/ana", clock=lambda: 0.0)
    return findings.find(script, RULES, OwnFacts(), Deadline(lambda: 0.0), how)


def test_what_blocks_hides_what_asks() -> None:
    both = found("f push; f never")
    assert (both.verdict, both.rule_keys, both.severity) == ("block", ("a.never",), "critical")


def test_every_rule_that_asks_is_told_once() -> None:
    many = found("f push --all; f push x; g push; ls")
    assert many.verdict == "ask"
    assert many.rule_keys == ("a.push", "a.all")
    assert many.coverage == ("a.all@f", "a.push@f", "a.push@g")
    assert many.severity == "high"
    assert many.label == "a.push + a.all"
    assert many.breadth == "All a.push; All a.all"
    assert many.why[0] == "`f push --all` does a.push. (rule a.push)"
    assert len(many.why) == 4


def test_the_gravest_comes_first() -> None:
    many = found("f --all; ls > /etc/x; foo delete x; ./git x; f push")
    assert many.rule_keys == ("a.push", "unknown.impostor", "a.out", "unknown.verb", "a.all")
    assert [line.rpartition("(rule ")[2] for line in many.why] == [f"{key})" for key in many.rule_keys]
    assert [finding.rule.key for finding in many.fired] == ["a.push", "a.out", "a.all"]


def test_one_rule_has_its_own_words() -> None:
    one = found("f push; f push x")
    assert (one.label, one.breadth) == ("a.push", "All a.push")


def test_many_labels_become_a_number() -> None:
    rules = RuleSet(tuple(rule(f"a.number{number}", programs=("f",)) for number in range(3)))
    script = read_shell("f", clock=lambda: 0.0)
    many = findings.find(script, rules, OwnFacts(), Deadline(lambda: 0.0))
    assert many.label == "these 3 kinds"


def test_nothing_found_says_nothing() -> None:
    nothing = found("f x; ls")
    assert nothing.verdict == "allow"
    assert (nothing.rule_keys, nothing.coverage, nothing.why) == ((), (), ())
    assert nothing.worst is None
    assert (nothing.label, nothing.breadth, nothing.severity) == ("", "", "low")


def test_a_rule_that_allows_is_kept_beside() -> None:
    looked = found("f look; f x")
    assert looked.verdict == "allow"
    assert [finding.rule.key for finding in looked.allowed] == ["a.look"]


def test_a_redirection_is_covered_with_the_program_that_writes() -> None:
    assert found("ls > /etc/x; > /etc/y").coverage == ("a.out@", "a.out@ls")


@pytest.mark.parametrize("command", ["f push\nf push (", "f push; $x y", 'f push; eval "$x"', "f push; foo delete x"])
def test_nothing_but_the_exact_text_can_be_covered_when_more_than_rules_asks(command: str) -> None:
    some = found(command)
    assert some.verdict == "ask"
    assert "a.push" in some.rule_keys
    assert (some.coverage, some.label, some.breadth) == ((), "", "")


def test_a_fork_bomb_is_never_allowed() -> None:
    assert found("f() { f | f & }; f").verdict == "ask"


def test_a_command_in_a_line_is_short() -> None:
    (line,) = found("f push " + "x" * 500).why
    assert len(line) < 200


def test_many_lines_are_counted() -> None:
    why = found("\n".join(f"f push {number}" for number in range(40))).why
    assert len(why) == findings.MAX_WHY + 1
    assert why[-1].startswith("28 more")


def test_time_runs_out() -> None:
    script = read_shell("ls\n" * 20, clock=lambda: 0.0)
    times = iter([0.0, 1.0])
    with pytest.raises(OutOfTimeError):
        findings.find(script, RULES, OwnFacts(), Deadline(lambda: next(times, 2.0)))


def test_time_runs_out_within_one_long_command() -> None:
    script = read_shell("f " + "x " * 500, clock=lambda: 0.0)
    times = iter([0.0, 1.0])
    with pytest.raises(OutOfTimeError):
        findings.find(script, RULES, OwnFacts(), Deadline(lambda: next(times, 2.0)))


# Programs that no rule knows


@pytest.mark.parametrize(
    "command",
    [
        "./configure --prefix=/usr",
        "./gradlew build",
        "./scripts/test.sh -v",
        "./script x",
        "logger reboot",
        "echo delete --force",
        "node_modules/.bin/x run",
        "foo",
        "foo build -f x --yes",
        "foo 'please delete everything'",
        "foo a b c delete",
        "foo -m delete.txt",
        "foo src/delete",
        "foo undeleted",
        "foo=delete",
        "timeout 5 foo",
        "f delete",
        "[ -f x ]",
        "cd x && foo --release",
    ],
)
def test_what_no_rule_knows_runs(command: str) -> None:
    assert found(command).verdict == "allow"


@pytest.mark.parametrize(
    ("command", "key"),
    [
        ("foo delete x", "unknown.verb"),
        ("foo users delete x", "unknown.verb"),
        ("foo delete-user x", "unknown.verb"),
        ("foo users:destroy x", "unknown.verb"),
        ("foo dropTable x", "unknown.verb"),
        ("foo DELETE x", "unknown.verb"),
        ("foo -x purge", "unknown.verb"),
        ("foo --force", "unknown.verb"),
        ("goenv uninstall 1.20", "unknown.verb"),
        ("west delete x", "unknown.verb"),
        ("foo x --no-verify", "unknown.verb"),
        ("foo --yes-i-really-mean-it", "unknown.verb"),
        ("foo --dangerously-skip", "unknown.verb"),
        ("./deploy.sh", "unknown.verb"),
        ("./scripts/publish-all", "unknown.verb"),
        ("/srv/x/wipe", "unknown.verb"),
        ("sudo foo delete x", "unknown.verb"),
        ("bash -c 'foo delete x'", "unknown.verb"),
        ("ｆoo x", "unknown.name"),
        ("=rm -rf src", "unknown.name"),
        ("gіt status", "unknown.name"),
        ("./git status", "unknown.impostor"),
        ("/tmp/bin/sed -n 1p x", "unknown.impostor"),
        ("bin/cat x", "unknown.impostor"),
        ("'rm -rf' x", "unknown.name"),
        ("rm\\ -rf x", "unknown.name"),
        ("/proc/self/exe -c x", "unknown.hidden"),
        ("/dev/fd/3 x", "unknown.hidden"),
        ("./sudo ls", "unknown.impostor"),
        ("'\\' x", "unknown.name"),
        ("partly delete x", "unknown.verb"),
        ("watchman shutdown-server", "unknown.verb"),
        ("/../ x", "unknown.name"),
        ("x" * 300, "unknown.name"),
    ],
)
def test_what_no_rule_knows_asks(command: str, key: str) -> None:
    some = found(command)
    assert some.verdict == "ask"
    assert [finding.rule.key for finding in some.unknown] == [key]


def test_a_program_that_is_only_known_when_it_runs_asks() -> None:
    assert found("$x y").verdict == "ask"
    script = Script(commands=(Command(words=(Word(UNKNOWN), Word("y")), own=2),))
    assert findings.find(script, RULES, OwnFacts(), Deadline(lambda: 0.0), "allow").rule_keys == ("unknown.hidden",)


def test_settings_for_programs_that_no_rule_knows() -> None:
    assert found("foo delete", "allow").verdict == "allow"
    assert found("foo", "ask").rule_keys == ("unknown.program",)
    assert found("f x", "ask").rule_keys == ("unknown.program",)
    assert found("f look; timeout 5 f look; x=1", "ask").verdict == "allow"
    assert found("sudo f look", "ask").rule_keys == ("unknown.program",)
    assert found("$x", "allow").verdict == "ask"
    assert found("f push", "allow").verdict == "ask"


@every("verb", sorted(unknown.table().verbs))
def test_each_destructive_verb_asks(verb: str) -> None:
    assert found(f"foo {verb} x").rule_keys == ("unknown.verb",)
    assert verb in found(f"foo {verb} x").why[0]


def test_each_destructive_flag_asks() -> None:
    flags = [*unknown.table().flags, *(f"{start}x" for start in unknown.table().flag_starts)]
    assert [flag for flag in flags if found(f"foo x {flag}").verdict == "allow"] == []


def test_a_long_command_is_cut_behind_a_word() -> None:
    secret = "ghp_" + "a1" * 18
    (line,) = found(f"foo delete {'x' * 80} {secret} y").why
    assert "ghp_" not in line
    assert f"{'x' * 80} …`" in line


def test_of_a_word_that_is_too_long_nothing_is_shown() -> None:
    (line,) = found("./" + "x" * 250 + "-delete").why
    assert line.startswith("`…`")
