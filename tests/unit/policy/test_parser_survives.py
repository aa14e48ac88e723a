"""The parser is C code in our process: a text that crashes it would take every open question down with it.

No text may raise either, and none may take long. How long is told by a clock that moves on whenever it is asked: what a
loop does between two looks at the clock is little, and a reader that stops looking is found out by reading too much.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from signoff.policy.shell import read_shell
from signoff.policy.shell.deadline import BUDGET_S

TEXTS = [
    "\x15\x86\U00102fd7k\x19]{\U000de7b4",
    "\U0010f161\u00d7\U0003a104\n4{\U000d7362'OB",
    "\U0010a765\u00d8R{\U0010a765\u00d8R<<'E'\n{$x",
    "{\U0010fffd",
    "${\U0010fffd",
    "x=\U0010fffd{\U0010fffd}",
]


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_characters_beyond_the_scanners_tables_do_not_end_the_process(text: str) -> None:
    program = (
        "import sys; from signoff.policy import JudgeContext, judge\n"
        "context = JudgeContext(shell='bash', kind='chat', attended=True)\n"
        "for _ in range(50): verdict = judge('command', sys.argv[1], context)\n"
        "print(verdict.verdict)"
    )
    done = subprocess.run([sys.executable, "-c", program, text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in {"ask", "allow"}


HUGE: list[tuple[str, str, int, str]] = [
    # before, repeated, how often, behind
    ("", "\0", 1_000_000, ""),
    ("", "ls \0 a\n", 20_000, ""),
    ("", "\udcff\ud800", 100_000, ""),
    ("", "echo \udcff;", 20_000, ""),
    ("", "(", 100_000, ""),
    ("", "(", 1000, "ls" + ")" * 1000),
    ("", "((", 50_000, ""),
    ("", ")", 100_000, ""),
    ("", "x=(", 16_000, ""),
    ("", "'", 99_999, ""),
    ("", '"', 99_999, ""),
    ("", "'a", 50_000, ""),
    ("", '"$(', 19_000, ""),
    ("", "`", 100_001, ""),
    ("`", "\\`", 50_000, ""),
    ("`", "\\", 100_000, "`"),
    ("", "`a ", 50_000, ""),
    ("", "`a` ", 50_000, ""),
    ("", "{", 100_000, ""),
    ("", "{a,", 50_000, ""),
    ("echo ", "{a,b}", 40_000, ""),
    ("", "${", 50_000, ""),
    ("", "${a:-", 30_000, ""),
    ("", "$((", 19_000, ""),
    ("((", "a+", 100_000, "a))"),
    ("", "[[ ", 50_000, ""),
    ("", "<<E\n", 50_000, ""),
    ("", "cat <<E;", 30_000, "\n"),
    ("", "cat <<E; ls\na\nE\n", 10_000, ""),
    ("", "cat <<E\n$x `y` $(z)\nE\n", 8_000, ""),
    ("cat <<E\n", "$(a ", 19_000, "\nE\n"),
    ("", "a|", 100_000, ""),
    ("", "a|", 900, ""),
    ("", "a||", 80_000, ""),
    ("", "a&&", 80_000, ""),
    ("", "a|b|c\nd >f\n", 300, ""),
    ("", "a\n\\b ", 40_000, ""),
    ("", "a\n\\\n", 60_000, ""),
    ("sed '", "s/[/x/e;", 3000, "'"),
    ("sed '", "/[/", 10_000, "'"),
    ("awk '", "a|getline;", 900, "'"),
    ("awk '", "system(", 4000, "'"),
    ("perl -e '", 'system("a");', 2600, "'"),
    ("node -e '", 'exec("#{', 4000, "'"),
    ("vim -c '", ":r !", 8000, "'"),
    ("gdb -ex '", "\n", 30_000, "'"),
    ("find . ", "-exec a \\; ", 20_000, ""),
    ("", "xargs ", 20_000, ""),
    ("", "sudo ", 40_000, ""),
    ("", "git -c alias.a=!b ", 10_000, ""),
    ("parallel a ", "::: b ", 30_000, ""),
    ("", "alias a=b;a ", 20_000, ""),
    ("alias ", "a=a ", 9_000, ";a"),
    ("", "f(){ f; };", 10_000, ""),
    ("", "for x in a; do x=b; ", 3_000, "done;" * 3_000),
    ("x='$('; ", "((x));", 9_000, ""),
    ("a='a[$(b)]';", "a+=$a;", 9_000, "((a))"),
    ("a=" + "b" * 4000 + ";echo ", "$a", 30_000, ""),
    ("a=(b c);", 'a=("${a[@]}" "${a[@]}");', 5_000, ""),
    ("", "echo $(cat f) >> f;", 9_000, ". ./f"),
    ("", "x=$x$x;", 20_000, ""),
    ("", "arr+=(a b);", 9_000, ""),
    ("a=(", "b ", 100_000, ")"),
    ("", "declare -u x=1;", 10_000, ""),
    ("", "case a in ", 20_000, ""),
    ("", "a ", 120_000, ""),
    ("", "a\n", 120_000, ""),
    ("echo ", "'a' ", 10_000, ""),
    ("echo ", "*?[", 80_000, ""),
    ("IFS=ab; ", "x=abababab; echo $x;", 9_000, ""),
    ("", "trap 'echo $x' EXIT;", 10_000, ""),
    ("", "PS4='$(a)';", 10_000, ""),
    ("", "PAGER='a b' c;", 10_000, ""),
    ("", "bash -c 'bash -c ", 5_000, ""),
    ("", "eval ", 40_000, ""),
    ("", "echo hello world\n", 60_000, ""),
]


def _text(case: tuple[str, str, int, str]) -> str:
    before, repeated, count, behind = case
    return before + repeated * count + behind


def test_no_huge_text_ends_the_process() -> None:
    program = (
        "import json, sys; from signoff.policy.shell import read_shell\n"
        "for before, repeated, count, behind in json.load(sys.stdin):\n"
        "    read_shell(before + repeated * count + behind)\n"
        "print('done')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(HUGE), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr[-2000:]


CHECKS = 200
MOST = 2500
"""With a budget of 200 looks at the clock few more may follow: the parser looks on while it mends what is broken."""


@pytest.mark.parametrize("case", HUGE, ids=lambda case: ascii(case[0] + case[1])[:30])
def test_reading_looks_at_the_clock_and_obeys_it(case: tuple[str, str, int, str]) -> None:
    asked = 0

    def clock() -> float:
        nonlocal asked
        asked += 1
        return asked * BUDGET_S / CHECKS

    script = read_shell(_text(case), clock=clock)
    assert asked < MOST
    if asked >= CHECKS + 1:
        assert script.problems
