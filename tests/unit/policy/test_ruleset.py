"""What each field of a rule means, and what an operator's own rules may do."""

from typing import Any

import pytest

from signoff.policy import findings, ruleset
from signoff.policy.findings import Findings
from signoff.policy.paths import PathFacts
from signoff.policy.rule import Program, Rule, RuleError, check
from signoff.policy.ruleset import RuleSet
from signoff.policy.seen import OwnFacts
from signoff.policy.shell import read_shell
from signoff.policy.shell.deadline import Deadline

FACTS = OwnFacts(paths=PathFacts(home="/home/ana", start="/home/ana/project"))


def rule(**fields: Any) -> Rule:
    texts = {"sentence": "does something", "label": "things", "breadth": "Things"}
    return Rule(**({"key": "a.b", "verdict": "ask"} | texts | fields))


def found(command: str, *rules: Rule, programs: tuple[Program, ...] = ()) -> Findings:
    return judged(command, RuleSet(rules, programs))


def judged(command: str, rules: RuleSet) -> Findings:
    script = read_shell(command, home="/home/ana", cwd="/home/ana/project", clock=lambda: 0.0)
    return findings.find(script, rules, FACTS, Deadline(lambda: 0.0), "allow")


FIELDS: list[tuple[dict[str, Any], list[str], list[str]]] = [
    (
        {"programs": ("foo",)},
        ["foo", "/usr/bin/foo x", "sudo foo", "FOO", "node_modules/.bin/foo"],
        ["bar", "./foo", "foox"],
    ),
    ({"programs": ("foo*",)}, ["foo", "foo.ext4"], ["fo", "./foo"]),
    ({"programs": ("./foo",)}, ["./foo", "/srv/foo", "../foo x"], ["foo", "/usr/bin/foo"]),
    (
        {"programs": ("pip",)},
        ["python3 -m pip list", "python -I -m pip", "pypy3 -mpip x"],
        ["python3 pip", "python3 x.py"],
    ),
    ({"programs": ("http.server",)}, ["python -m http.server 80"], ["python -m http.client"]),
    ({"programs": ("python3",)}, ["python3 -m pip list"], []),
    (
        {"programs": ("f",), "subcommands": ("push", "a b")},
        ["f push", "f -x push y", "f a b c", "f a -x b"],
        ["f", "f a", "f x push", "f a c", "f pusher"],
    ),
    (
        {"programs": ("f",), "subcommands": ("s3 rm*", "* delete-*")},
        ["f s3 rmdir", "f s3 rm", "f x delete-y"],
        ["f s3 ls", "f delete-y", "f x undelete-y"],
    ),
    (
        {"programs": ("f",), "flags": ("-r", "--recursive")},
        ["f -r", "f -xr", "f --recursive", "f --recur", "f x --recursive=yes"],
        ["f", "f --re", "f r", "f -- -r", "f --recursively"],
    ),
    ({"programs": ("f",), "all_flags": ("-a", "-b")}, ["f -ab", "f -b x -a"], ["f -a", "f -b", "f"]),
    ({"programs": ("f",), "without": ("-n",)}, ["f", "f -m", "f $x"], ["f -n", "f -mn"]),
    ({"programs": ("f",), "flags": ("-S",), "short_values": "u"}, ["f -S", "f -u S -S"], ["f -uS", "f -u -S"]),
    (
        {"programs": ("f",), "words": ("x",), "long_values": ("to",)},
        ["f x", "f --to=x x"],
        ["f --to x", "f --to=x", "f y"],
    ),
    ({"programs": ("f",), "flags": ("-delete",), "long_single": True}, ["f . -delete"], ["f . -dele", "f -d -e"]),
    ({"programs": ("f",), "operands": ("system", "home")}, ["f /etc", "f x ~"], ["f", "f /etc/x", "f x"]),
    ({"programs": ("f",), "words": ("all", "now")}, ["f all", "f x now"], ["f", "f All", "f allx"]),
    ({"programs": ("f",), "prefixes": ("http:", "+")}, ["f http://x", "f a +b"], ["f xhttp://", "f"]),
    ({"programs": ("f",), "contains": ("@",)}, ["f a@b"], ["f ab"]),
    ({"programs": ("f",), "subcommands": ("do",), "words": ("do",)}, ["f do do"], ["f do", "f do x"]),
    ({"programs": ("f",), "words": ("x",), "prefixes": ("y",)}, ["f x ya"], ["f x", "f ya"]),
    (
        {"programs": ("f",), "value_of": "of=", "operands": ("disk",)},
        ["f of=/dev/sda"],
        ["f if=/dev/sda", "f /dev/sda"],
    ),
    (
        {
            "programs": ("f",),
            "option_values": ("-o", "--out"),
            "operands": ("system",),
            "short_values": "o",
            "long_values": ("out",),
        },
        ["f -o /etc", "f --out=/etc", "f -o/etc"],
        ["f /etc", "f -x /etc"],
    ),
    ({"programs": ("f",), "min_operands": 2}, ["f a b", "f -x a b"], ["f a", "f a -x"]),
    ({"programs": ("f",), "subcommands": ("do",), "max_operands": 0}, ["f do", "f do -x"], ["f do a"]),
    ({"programs": ("f",), "max_operands": 1}, ["f", "f a"], ["f a b"]),
    (
        {"assigns": ("LD_*", "PATH")},
        ["LD_PRELOAD=x ls", "PATH=x", "export LD_A=1", "env PATH=/x ls", "declare -x PATH=x"],
        ["LDX=1 ls", "ls PATH=x", "export PATH", "echo LD_A=1"],
    ),
    ({"programs": ("f",), "assigns": ("A",)}, ["A=1 f", "env A=1 f"], ["f", "A=1 g", "B=1 f"]),
    (
        {"writes": ("system_config",)},
        ["echo x > /etc/a", "echo x >> /etc/a", "ls &> /etc/a", "> /etc/a", "{ ls; } > /etc/a"],
        ["cat < /etc/a", "echo x > a", "cat /etc/a"],
    ),
    ({"reads": ("secret_file",)}, ["cat < ~/.ssh/id_rsa"], ["echo > ~/.ssh/id_rsa", "cat ~/.ssh/id_rsa"]),
    ({"programs": ("f",), "chain": ("sudo",)}, ["sudo f", "sudo env f", "sudo bash -c 'f x'"], ["f", "doas f"]),
    ({"programs": ("f",), "place": "remote"}, ["ssh h f", "ssh h 'f x'"], ["f", "docker exec c f"]),
    ({"programs": ("f",), "place": "here"}, ["f", "sudo f"], ["ssh h f"]),
    ({"programs": ("f",), "fed": True}, ["ls | f", "f <<< x", "f < x"], ["f", "f | ls"]),
    ({"programs": ("f",), "fed": False}, ["f"], ["ls | f"]),
    ({"programs": ("f",), "only_if": ("kills_everything",)}, ["f -1", "f -9 -1"], ["f 1"]),
    ({"programs": ("f",), "unless": ("kills_everything",)}, ["f 1"], ["f -1"]),
    ({"programs": ("f",), "words": ("x",), "unknown": True}, ["f x", "f $a", "f a$b"], ["f y"]),
    ({"programs": ("f",), "flags": ("-x",), "unknown": True}, ["f -x", "f $a", "f -$b"], ["f y", 'f "y$c"']),
    ({"programs": ("f",), "all_flags": ("-x",), "unknown": True}, ["f -x", "f $a"], ["f y"]),
    (
        {"programs": ("f",), "subcommands": ("x y", "z"), "unknown": True},
        ["f x y", "f $a", "f x $a", "f z"],
        ["f y", "f x"],
    ),
    ({"writes": ("disk",), "unknown": True}, ["ls > $a", "ls > /dev/sda"], ["ls > a"]),
    ({"programs": ("f",), "words": ("x",)}, ["f x"], ["f $a"]),
]


@pytest.mark.parametrize(("fields", "fires", "passes"), FIELDS, ids=[str(fields) for fields, *_ in FIELDS])
def test_a_field(fields: dict[str, Any], fires: list[str], passes: list[str]) -> None:
    one = rule(**fields)
    assert [command for command in fires if not found(command, one).fired] == []
    assert [command for command in passes if found(command, one).fired] == []


LEADING = Program(
    names=("git",), leading_short="C", leading_long=("git-dir",), short_values="m", long_values=("message",)
)


def test_options_before_the_first_operand_are_read_as_leading_ones() -> None:
    push = rule(programs=("git",), subcommands=("push",), flags=("-C", "-f"))
    for command in ("git -C /x push", "git --git-dir x push -f", "git push -f", "git push -m x -f"):
        assert found(command, push, programs=(LEADING,)).fired, command
    for command in ("git -C push x", "git --git-dir push -f", "git push -m -f", "git push -- -f"):
        assert not found(command, push, programs=(LEADING,)).fired, command


def test_a_file_with_the_name_of_a_number_is_no_copy_of_a_stream() -> None:
    write = rule(writes=("system_config",))
    assert not found("ls > /dev/null 2>&1", write).fired
    assert found("cd /etc; ls > 1", write).fired
    assert found("ls > /etc/x 2>&1", write).fired


def test_an_allow_rule_never_fires_on_what_is_not_known() -> None:
    allow = rule(verdict="allow", programs=("f",), subcommands=("get",), without=("-x",))
    rules = RuleSet((allow,))
    for command, allowed in (
        ("f get", True),
        ("f get a", True),
        ("f get -x", False),
        ("f get $y", False),
        ('f get "a$y"', True),
        ("f get a$y", False),
        ("f $y", False),
        ("$y get", False),
        ("f -$y get", False),
        ('f get "${y[@]}"', False),
    ):
        script = read_shell(command, clock=lambda: 0.0)
        assert (findings.find(script, rules, FACTS, Deadline(lambda: 0.0), "ask").verdict == "allow") is allowed, (
            command
        )


# Checks of rows


@pytest.mark.parametrize(
    ("fields", "field", "text"),
    [
        ({"key": "push"}, "key", "key"),
        ({"key": "Git.push"}, "key", "key"),
        ({"programs": ()}, "programs", "names no program"),
        ({"operands": ("rooot",)}, "operands", '"rooot"'),
        ({"writes": ("x",)}, "writes", '"x"'),
        ({"only_if": ("nothing",)}, "only_if", '"nothing"'),
        ({"unless": ("nothing",)}, "unless", '"nothing"'),
        ({"label": "x" * 21}, "label", "20 characters"),
        ({"sentence": "does it."}, "sentence", "full stop"),
        ({"verdict": "allow", "unknown": True}, "unknown", "unknown words"),
        ({"subcommands": ("",)}, "subcommands", "empty"),
        ({"programs": ("a*b",)}, "programs", "star"),
        ({"flags": ("force",)}, "flags", "dash"),
        ({"option_values": ("-o",)}, "option_values", "operands"),
        ({"value_of": "of="}, "value_of", "operands"),
        ({"verdict": "deny"}, "verdict", "verdict"),
        ({"programs": "rm"}, "programs", "array"),
        ({"program": ("rm",)}, "program", '"program"'),
        ({"min_operands": "2"}, "min_operands", "int"),
    ],
)
def test_a_row_that_makes_no_sense_is_one_clear_line(fields: dict[str, Any], field: str, text: str) -> None:
    row = {"key": "own.thing", "verdict": "ask", "programs": ["foo"]} | fields
    with pytest.raises(RuleError) as error:
        RuleSet(()).with_own([{"key": "own.fine", "verdict": "ask", "programs": ["foo"]}, row])
    assert (error.value.row, error.value.field) == (2, field)
    assert str(error.value).startswith("rule 2: ") and text in str(error.value)
    assert "\n" not in str(error.value)


def test_a_row_without_key_or_verdict_says_so() -> None:
    for row in ({}, {"key": "a.b"}, {"verdict": "ask"}):
        (error,) = ruleset.problems_of([row])
        assert "required field" in str(error)


def test_each_row_that_cannot_be_used_is_told() -> None:
    good = {"key": "own.thing", "verdict": "block", "programs": ["foo"]}
    problems = ruleset.problems_of([good | {"key": ""}, good, good | {"x": 1}])
    assert [(problem.row, problem.field) for problem in problems] == [(1, "key"), (3, "x")]


def test_shipped_rows_must_say_what_people_read() -> None:
    for field in ("sentence", "label", "breadth"):
        with pytest.raises(RuleError, match=field):
            check(rule(programs=("f",), **{field: ""}), frozenset(), frozenset())
    check(rule(programs=("f",), verdict="block", label="", breadth=""), frozenset(), frozenset())


# The operator's own rows

SHIPPED = RuleSet(
    (
        rule(key="shipped.push", programs=("f",), subcommands=("push",)),
        rule(key="shipped.write", writes=("system_config",)),
        rule(key="shipped.never", programs=("f",), subcommands=("never",), verdict="block"),
        rule(key="shipped.look", programs=("f",), subcommands=("look",), verdict="allow"),
    )
)


def verdict(command: str, *rows: dict[str, Any]) -> str:
    return judged(command, SHIPPED.with_own(rows)).verdict


def test_an_own_row_that_allows_silences_what_is_said_of_the_program_only() -> None:
    allow = {"key": "own.f", "verdict": "allow", "programs": ["f"]}
    assert verdict("f push") == "ask"
    assert verdict("f push", allow) == "allow"
    assert verdict("f push > /etc/x", allow) == "ask"
    assert verdict("f push; g > /etc/x", allow) == "ask"
    assert verdict("f never", allow) == "block"


def test_an_own_row_that_asks_or_blocks_stands_before_shipped_ones_that_allow() -> None:
    ask = {"key": "own.f", "verdict": "ask", "programs": ["f"]}
    assert verdict("f look") == "allow"
    assert verdict("f look", ask) == "ask"
    assert verdict("f look", {**ask, "verdict": "block"}) == "block"
    assert verdict("f look", ask, {"key": "own.g", "verdict": "allow", "programs": ["f"]}) == "ask"


def test_an_own_row_gets_words_for_people() -> None:
    own = judged("f x", SHIPPED.with_own([{"key": "own.f", "verdict": "ask", "programs": ["f"]}]))
    assert own.worst is not None
    assert own.worst.rule.sentence == "falls under the rule own.f of the operator"
    assert own.label and own.breadth


def test_a_row_can_be_left_out() -> None:
    assert judged("f push", SHIPPED.without(0)).verdict == "allow"
    assert judged("f never", SHIPPED.without(0)).verdict == "block"


def test_names_of_programs_from_texts_take_no_endless_memory() -> None:
    rules = RuleSet((rule(programs=("*",)),))
    for number in range(5000):
        rules.groups_of(f"f{number}")
    assert len(rules._groups) <= 4096
