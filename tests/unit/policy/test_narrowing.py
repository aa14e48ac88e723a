"""Rules are left out early where they cannot fire: what fires must be the same as when every rule is tried."""

import sys
from functools import cache
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signoff.bench.judging import CONTEXT, TEXTS
from signoff.policy import judge, ruleset
from signoff.policy.contexts import read
from signoff.policy.matching import Compiled, Group
from signoff.policy.paths import PathFacts
from signoff.policy.predicates import files, outputs
from signoff.policy.programs import module_of, name_of
from signoff.policy.rule import Rule
from signoff.policy.ruleset import RuleSet
from signoff.policy.seen import OwnFacts, Seen
from signoff.policy.shell import UNKNOWN, Command, Redirect, Script, Word, read_shell
from signoff.policy.shell.deadline import Deadline
from signoff.policy.shell.options import Marks, OptionSpec, arguments, matches

FACTS = OwnFacts(paths=PathFacts(home="/home/ana", own=("/home/ana/.signoff",), start="/home/ana/project"), pid=42)
FOLDERS = ["/home/ana/project", "/home/ana/.ssh", "/etc", "/", None]
PLACES = ["x", "/", "~/.ssh/id_rsa", ".env", "/etc/passwd", "/dev/sda", "out/a.txt", "*", ".", UNKNOWN, f"{UNKNOWN}/y"]
VALUES = [
    "host",
    "a=b",
    "https://169.254.169.254/x",
    "localhost:1/v1/approvals",
    "x.md",
    "CLAUDE.md",
    "main",
    "-",
    "--",
]


@cache
def spoken_of() -> dict[str, tuple[list[str], list[str]]]:
    """The programs that rules name, each with the words of its subcommands and with its options."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for rule in (*ruleset.floors().rules, *ruleset.shipped().rules):
        for program in rule.programs:
            words, options = found.setdefault(program.rstrip("*") or "foo", ([], []))
            words += [part.rstrip("*") for entry in rule.subcommands for part in entry.split()]
            words += rule.words
            options += (*rule.flags, *rule.all_flags, *rule.without, *rule.option_values)
    return found


@st.composite
def commands(draw: st.DrawFn) -> Command:
    program = draw(st.sampled_from(sorted(spoken_of())))
    words, options = spoken_of()[program]
    option = st.sampled_from([*options, "-o", "--output", "-m", "-c", "-n", "-sSo", "-O", "--directory", "--junitxml"])
    cut = option.map(lambda text: text[:6]) | option.map(lambda text: f"{text}=x")
    some = st.sampled_from([*words, "run", "x"]) | option | cut | st.sampled_from(PLACES) | st.sampled_from(VALUES)
    texts = [program, *draw(st.lists(some, max_size=6))]
    targets = st.sampled_from(PLACES).map(Word)
    redirects = st.builds(Redirect, operator=st.sampled_from([">", "<", ">>"]), target=targets)
    return Command(
        words=tuple(Word(text, pattern=text if text == "*" else None) for text in texts),
        own=len(texts),
        assignments=tuple(draw(st.lists(st.sampled_from([("GIT_PAGER", "x"), ("PGHOST", "h"), ("LD_PRELOAD", "y")])))),
        redirects=tuple(draw(st.lists(redirects, max_size=2))),
        chain=tuple(draw(st.lists(st.sampled_from(["sudo", "xargs", "find", "cmake"]), max_size=2))),
        fed=draw(st.booleans()),
        cwd=draw(st.sampled_from(FOLDERS)),
        source=" ".join(texts),
    )


def all_of(group: Group) -> list[Compiled]:
    return list(dict.fromkeys((*group._rest, *(rule for rules in group._by_first.values() for rule in rules))))


def check(command: Command, script: Script, rules: RuleSet) -> None:
    name = name_of(command.words[0].text, command.cwd)
    module = module_of(command.words, name)
    for seen_as, words in ((name, command.words), *([module] if module is not None else [])):
        for group in rules.groups_of(seen_as):
            found: list[tuple[Compiled, Seen]] = []
            group.add_fired(Seen(command, words, seen_as, group.read, FACTS, script), Deadline(lambda: 0.0), found)
            each = [
                rule for rule in all_of(group) if rule.fires(Seen(command, words, seen_as, group.read, FACTS, script))
            ]
            assert {id(rule) for rule, _seen in found} == {id(rule) for rule in each}


@settings(max_examples=150)
@given(st.lists(commands(), min_size=1, max_size=3))
def test_what_fires_is_what_would_fire_if_every_rule_was_tried(several: list[Command]) -> None:
    script = Script(commands=tuple(several))
    for command in several:
        for rules in (ruleset.floors(), ruleset.shipped()):
            check(command, script, rules)


WRITERS = sorted({*outputs._MARKED, *outputs._WRITE_OPERANDS, "make"})
WRITING = sorted(
    {*outputs._ANY, *(name for names in outputs._SHORT.values() for name in names)}
    | {"-C", "--directory", "--one-top-level", "-w", "--write-out", "--cookie-jar", "--trace", "--trace-ascii"}
    | {"--remote-name", "--remote-name-all", "--append-output", "--save-cookies"}
)


def test_what_is_written_is_named_by_options_that_are_looked_for() -> None:
    for name in WRITERS:
        for option in WRITING:
            for said in ([option, "%output{f}"], [f"{option}=%output{{f}}"], [f"-q{option[1:]}f"], [f"{option}f"]):
                words = tuple(map(Word, (name, "x", *said, "y")))
                command = Command(words=words, own=len(words), cwd="/home/ana/project")
                seen = Seen(command, words, name, arguments, FACTS, Script(commands=(command,)))
                if outputs._may_be_named(seen):
                    continue
                assert not outputs._named(seen) and not files.fetched_to(seen), said
                assert name in outputs._WRITE_UNTOLD or not [*outputs._joined(seen), *outputs._operands(seen)], said


NAMES = st.sampled_from(["-o", "-op", "--x", "-out", "--output", "--out", "--output-dir", "-x"])
OTHERS = st.sampled_from(["-ao", "--o", "--outp", "--output=f", "-x=f", "f"])


@given(st.lists(NAMES, max_size=3), st.lists(NAMES | OTHERS))
def test_marks_tell_of_every_option_that_is_read(names: list[str], texts: list[str]) -> None:
    words = (Word("f"), *map(Word, texts))
    for spec in (OptionSpec(), OptionSpec(short_values="a", long_values=("output",)), OptionSpec(long_single=True)):
        read = arguments(words, spec).options
        if any(matches(option.name, name) for option in read for name in names):
            assert Marks(names).may_be_in(words)


@pytest.mark.parametrize("given", ["--out", "--outp", "--output", "--output-dir", "--o", "-o"])
def test_an_option_may_be_the_beginning_of_another(given: str) -> None:
    rules = RuleSet(
        tuple(
            Rule(key=f"a.{number}", verdict="allow", programs=("f",), flags=(flag,))
            for number, flag in enumerate(["--out", "--output", "--output-dir"])
        )
    )
    script = read_shell(f"f {given} x", clock=lambda: 0.0)
    check(script.commands[0], script, rules)


@pytest.mark.parametrize("text", ["f a", "f a b", "f a c", "f a x", "f d", "f", "f b", "f a b c"])
def test_a_subcommand_is_found_by_its_first_words(text: str) -> None:
    entries = [("a b",), ("a",), ("a *",), ("a c*", "d"), ("a b c",), ()]
    rules = RuleSet(
        tuple(
            Rule(key=f"a.n{number}", verdict="allow", programs=("f",), subcommands=subcommands)
            for number, subcommands in enumerate(entries)
        )
    )
    script = read_shell(text, clock=lambda: 0.0)
    check(script.commands[0], script, rules)


MOST_CALLS = 320
"""For each command of an ordinary script; at 355 one of 100 kB took longer than there is (measured)."""


def test_an_ordinary_script_takes_few_steps() -> None:
    """What is called is counted, since that is the same on every machine, whatever else runs there."""
    text = TEXTS["judge_10kb_ms"](1)
    commands = len(read("command", text, CONTEXT, lambda: 0.0).script.commands)
    called = 0

    def count(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal called
        called += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        verdict = judge("command", text, CONTEXT, clock=lambda: 0.0)
    finally:
        sys.setprofile(before)
    assert verdict.rung == "rules"
    assert called < MOST_CALLS * commands
