"""Predicates on words nobody thought of: they answer, whatever a command looks like."""

from hypothesis import given, settings
from hypothesis import strategies as st

from signoff.policy import findings, predicates, ruleset
from signoff.policy.seen import OwnFacts
from signoff.policy.shell import UNKNOWN, Command, Redirect, Script, Word
from signoff.policy.shell.deadline import Deadline

RULES = ruleset.shipped()
NAMES = sorted({name for rule in RULES.rules for name in rule.programs if not name.endswith("*")})
SUBCOMMANDS = sorted({part for rule in RULES.rules for entry in rule.subcommands for part in entry.split()})
FLAGS = sorted({flag for rule in RULES.rules for flag in (*rule.flags, *rule.without)})
ODD = [
    "",
    "-",
    "--",
    "=",
    "-=",
    "--=x",
    "@",
    ":",
    "a:",
    "+",
    UNKNOWN,
    "-" + UNKNOWN,
    "a=b",
    "/",
    "~",
    "x.sh",
    "s3://",
    "{",
    "-e",
    "-c",
]

WORDS = st.one_of(st.sampled_from(SUBCOMMANDS), st.sampled_from(FLAGS), st.sampled_from(ODD), st.text(max_size=6))


@st.composite
def commands(draw: st.DrawFn) -> Command:
    words = (draw(st.sampled_from(NAMES)), *draw(st.lists(WORDS, max_size=6)))
    return Command(
        words=tuple(map(Word, words)),
        own=draw(st.integers(min_value=1, max_value=len(words))),
        assignments=tuple(
            draw(st.lists(st.tuples(st.sampled_from(["GIT_SSH", "DOCKER_HOST", "A"]), WORDS), max_size=2))
        ),
        redirects=tuple(Redirect(operator=">", target=Word(text)) for text in draw(st.lists(WORDS, max_size=1))),
        stdin=draw(st.none() | st.text(max_size=10)),
        fed=draw(st.booleans()),
        cwd=draw(st.none() | st.just("/home/ana/project")),
    )


@given(commands())
@settings(max_examples=200, deadline=None)
def test_no_command_is_too_odd(command: Command) -> None:
    script = Script(commands=(command,))
    found = findings.find(script, RULES, OwnFacts(), Deadline(lambda: 0.0))
    assert found.verdict in {"allow", "ask", "block"}


def test_every_predicate_is_used_by_a_rule() -> None:
    used = {name for rule in (*RULES.rules, *ruleset.floors().rules) for name in (*rule.only_if, *rule.unless)}
    assert predicates.table().keys() == used
