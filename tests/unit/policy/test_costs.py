"""What judging costs: no text, however it repeats itself, may take long.

The expressions and loops that texts once made quadratic are tried on a text and on one of twice its length: what is
linear takes twice as long, what is quadratic four times.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest
from tests.unit.policy.test_parser_survives import HUGE

from signoff.policy import JudgeContext, breadth, graphql, judge, sql
from signoff.policy.contexts import read
from signoff.policy.findings import find
from signoff.policy.paths import PathFacts, is_root
from signoff.policy.predicates import helpers, indirect, inline_code, secrets, shell_env
from signoff.policy.protected import fits_some
from signoff.policy.python import folding
from signoff.policy.ruleset import shipped
from signoff.policy.seen import OwnFacts
from signoff.policy.shell import Command, Script, Word, evaluating, names, source, zsh
from signoff.policy.shell.deadline import Deadline, OutOfTimeError
from signoff.policy.shell.embedded import shell_texts
from signoff.policy.shell.machine import Machine

CONTEXT = JudgeContext(kind="chat", attended=True, home="/home/ana", cwd="/home/ana/project")


def _editor(language: str, text: str) -> None:
    inline_code._has(inline_code._VI_LOADS if language == "vi" else inline_code._DEBUGGER_CALLS, text)
    shell_texts(language, text)


LINEAR: list[tuple[str, Callable[[str], object], str, str, int]] = [
    # name, what is done, repeated, behind, how often for the shorter text
    ("debugger, empty lines", lambda text: _editor("escape", text), "\n", "", 8000),
    ("debugger, blanks", lambda text: _editor("escape", text), " \n", "", 5000),
    ("editor, blanks", lambda text: _editor("vi", text), " ", "", 8000),
    ("editor, blanks behind a command", lambda text: _editor("vi", ":w" + text), " ", "", 8000),
    ("editor, silent lines", lambda text: _editor("vi", text), "\nsilent\n", "", 1500),
    ("client, brackets without an end", lambda text: _editor("escape", text), "\\g(", "", 4000),
    ("client, blanks behind a command", lambda text: _editor("escape", "\\g" + text), " ", "", 8000),
    ("rpm, brackets without an end", lambda text: shell_texts("rpm", text), "%(", "", 8000),
    ("rpm, code of another language", lambda text: shell_texts("rpm", text), "%{lua:", "", 2500),
    ("flags of linkers", helpers.STARTS_PROGRAM.search, "-extld=", "", 5000),
    ("m4, brackets without an end", lambda text: shell_texts("m4", text), "syscmd(", "", 2000),
    ("javascript, blanks behind a call", lambda text: shell_texts("javascript", "exec" + text), " ", "", 8000),
    ("awk, quotes without a partner", lambda text: shell_texts("awk", text), '"\\', "", 7000),
    ("awk, slashes without a partner", lambda text: shell_texts("awk", text), "/\\", "", 7000),
    ("arithmetic that sets nothing", lambda text: evaluating._CHANGED.sub("", text), "a", "+b==1", 4000),
    ("arithmetic in open brackets", lambda text: evaluating._CHANGED.sub("", text), "a[", "==", 8000),
    ("redirections, as zsh may read them", zsh.reads_otherwise, ">", "", 8000),
    ("empty lines, as zsh may read them", zsh.reads_otherwise, "\n", "", 8000),
    ("empty lines behind an array of zsh", lambda text: zsh.reads_otherwise(f"a=(1);{text}"), "\n", "", 8000),
    ("tests, as zsh may read them", lambda text: zsh.reads_otherwise(f"a=(1);$x;{text}"), "&&[[ a", "", 8000),
    ("texts, as zsh may read them", lambda text: zsh.reads_otherwise(f"a=(1);$x;{text}"), '"a" ', '"', 8000),
    ("data that is no address", breadth._HOST.search, "a", "", 8000),
    ("places to fill in", lambda text: folding._PERCENT.sub("", "%" + text), "0", "", 4000),
    ("stars", lambda text: is_root(Word(text, pattern=text), "/", PathFacts()), "*/", "", 8000),
    ("graphql, strings without an end", lambda text: graphql.changes("{a " + text), '\\"""\n', "", 6000),
    ("sql", sql._statements, "$a$ $b$ ", "", 900),
    ("addresses", secrets._ADDRESS_SECRET.search, "://a", "$x", 8000),
    ("variables with defaults", secrets.NAMES_SECRET_VARIABLE.search, "${TOKEN-", "", 4000),
    ("variables cut short", lambda text: secrets._CUT_SHORT.sub("", text), "${a+", "", 8000),
    ("searches", secrets._takes, "grep ", "", 8000),
    ("options of pagers", shell_env._PLAIN_PAGER.fullmatch, " --a", " $", 4000),
    ("here-strings without an end", lambda text: source.joined(text, Deadline(lambda: 0.0)), "<<<", "", 4000),
    ("versions in names", names.without_version, "3.1", "t", 4000),
    ("protected paths", lambda text: fits_some(text, ("a/*b", "*.md")), "a/", "c", 8000),
    ("options of packers", lambda text: indirect._PACKERS.fullmatch("gzip" + text), " --a", " $", 4000),
]


def _took(work: Callable[[], object]) -> float:
    """The least of three runs, in seconds of this thread's own time."""
    times = []
    for _ in range(3):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return min(times)


@pytest.mark.parametrize(("work", "part", "end", "count"), [row[1:] for row in LINEAR], ids=[row[0] for row in LINEAR])
def test_twice_as_long_takes_no_more_than_three_times_as_long(
    work: Callable[[str], object], part: str, end: str, count: int
) -> None:
    short, double = part * count + end, part * count * 2 + end
    assert _took(lambda: work(double)) < 3 * _took(lambda: work(short)) + 0.003


def test_longer_sql_than_is_read_is_unknown() -> None:
    assert sql.effect("select 1; " * (sql.MAX_CHARS // 10 + 1)) == "unknown"
    assert sql.effects(["select 1; " * (sql.MAX_CHARS // 20 + 1)] * 2) == {"unknown"}
    assert sql.effects(["select 1", "drop table x"]) == {"reads", "destroys"}
    long = judge("command", f"psql -c '{'select 1; ' * 20_000}'", CONTEXT)
    assert long.verdict == "ask"
    assert "sql.unknown" in long.rule_keys


def test_longer_texts_of_editors_than_are_searched_count_as_doing_more() -> None:
    text = "p 1\n" * (inline_code.MAX_SEARCHED_CHARS // 4 + 1)
    assert "inline_code.starts_programs" in judge("command", f"gdb -batch -ex '{text}' a", CONTEXT).rule_keys


class _Clock:
    """Moves on by one second whenever it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> float:
        self.asked += 1
        return float(self.asked)


@pytest.mark.parametrize(
    "words",
    [("ls", "x" * 2000), ("ls", *("x",) * 200)],
    ids=["a long word", "many words"],
)
def test_the_clock_is_looked_at_before_each_rule_for_a_long_command(words: tuple[str, ...]) -> None:
    clock = _Clock()
    found = tuple(Word(word) for word in words)
    command = Command(words=found, own=len(found), source=" ".join(words))
    with pytest.raises(OutOfTimeError):
        find(Script(commands=(command,)), shipped(), OwnFacts(), Deadline(clock, 1.5))
    assert clock.asked < 10


def test_the_clock_is_looked_at_between_long_commands() -> None:
    clock = _Clock()
    commands = tuple(
        Command(words=(Word(f"p{number}"), Word("x" * 2000)), own=2, source="x" * 2000) for number in range(6)
    )
    with pytest.raises(OutOfTimeError):
        find(Script(commands=commands), shipped(), OwnFacts(), Deadline(clock, 3.5))
    assert clock.asked < 10


def test_a_deadline_counts_the_threads_own_time() -> None:
    began = time.thread_time()
    deadline = Deadline(time.thread_time, 0.01)
    assert not deadline.expired()
    while not deadline.expired():
        assert time.thread_time() - began < 1.0
    assert time.thread_time() - began > 0.008


@pytest.mark.parametrize(("text", "budget_s"), [("ls", 0.015), ("echo " + "word " * 2000, 0.075)])
def test_what_reading_leaves_of_a_long_texts_time_is_for_the_rules(text: str, budget_s: float) -> None:
    now = 0.0
    subject = read("command", text, CONTEXT, lambda: now)
    now = budget_s - 0.001
    assert not subject.deadline.expired()
    now = budget_s + 0.001
    assert subject.deadline.expired()


def test_reading_leaves_nothing_to_the_collector() -> None:
    judge("command", "ls | wc", CONTEXT)
    gc.collect()
    gc.disable()
    try:
        judge("command", "f() { ls; }; f | wc && bash -c 'ls' > x", CONTEXT)
        assert not [each for each in gc.get_objects() if isinstance(each, Machine)]
    finally:
        gc.enable()


WIDE: list[tuple[str, str, int, str]] = [
    # before, repeated, how often, behind
    ("git ", "-c a=b ", 5000, "status"),
    ("git commit -m '", "a ", 50_000, "'"),
    ("tar -cf a ", "--checkpoint-action=exec=x ", 9000, "b"),
    ("tar --exclude=", "*", 50_000, " -cf a b"),
    ("curl ", "-d a=b ", 10_000, "http://x"),
    ("curl http://", "1.", 50_000, ""),
    ("curl $x '", "://", 30_000, "'"),
    ("sed '", "1", 4000, "'"),
    ("sed '", "\n", 100_000, "'"),
    ("sed '", "s/a/b/;", 30_000, "'"),
    ("awk '", 'print "a";', 20_000, "'"),
    ("awk '", '"\\', 15_000, "'"),
    ("perl -e '", "print 1;", 25_000, "'"),
    ("perl -e '", "$x{", 1300, "'"),
    ("node -e '", '"\\', 2000, "'"),
    ("node -e '", "exec ", 6000, "'"),
    ("vim -c '", " ", 30_000, "'"),
    ("vim -c '", "\nsilent\n", 4000, "'"),
    ("gdb -ex '", " \n", 15_000, "'"),
    ("psql -c '", "select 1;", 22_000, "'"),
    ("psql ", "-c 'select 1' ", 10_000, ""),
    ("gh api graphql -f query='", "query a{b}", 6000, "'"),
    ("gh api graphql -f query='{a ", '\\"""\n', 12_000, "'"),
    ("python -c '", "print(1);", 20_000, "'"),
    ("python -c '", "(", 4000, "'"),
    ("rm ", "*/", 60_000, ""),
    ("rm -rf /", "*/..", 10_000, "/"),
    ("rm -rf ", "$x", 20_000, ""),
    ("rm -rf ", "x ", 50_000, ""),
    ("cat ", "ca.", 1365, "x"),
    ("cat ", "chrome/" * 580 + " ", 200, ""),
    ("cat ", ".env ", 20_000, ""),
    ("tee ", ".ssh/" * 800 + " ", 200, ""),
    ("rm ", "[a", 60_000, ""),
    ("export ", "A=b ", 30_000, ""),
    ("echo $x ", "${a+", 20_000, ""),
    ("PAGER='less", " --a", 9000, " $' git log"),
    ("", "ln -s /etc x;", 9000, ""),
    ("", "<<<", 40_000, ""),
    ("", "cat > f <<< x\n", 8000, ""),
    ("for i in ", "x ", 60_000, "; do rm -rf build; done"),
    ("for i in a b; do v=$v$i; ", "for i in a b; do v=$v$i; ", 30, "x;" + "done;" * 31),
    ("", "env | grep a;", 9000, ""),
    ("", "echo a > /etc/f;", 8000, ""),
    ("cat <<'E'\n", "a b c\n", 160_000, "E\n"),
    ("echo '", "a ", 500_000, "'"),
]
MOST_S = 0.5
"""Five times of what a quiet machine may take (100 ms): other work on it makes caches cold."""


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", [*HUGE, *WIDE], ids=lambda case: ascii(case[0] + case[1])[:30])
def test_every_text_has_its_verdict_soon(case: tuple[str, str, int, str]) -> None:
    before, repeated, count, behind = case
    text = before + repeated * count + behind
    assert _took(lambda: judge("command", text, CONTEXT)) < MOST_S
