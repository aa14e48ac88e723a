"""Texts made to be slow, judged through the gateway: the worst verdict and the longest gap of the loop meanwhile."""

from __future__ import annotations

import time

from signoff.bench.figures import watching
from signoff.bench.rig import opened, sessions
from signoff.bench.rows import Sizes
from signoff.gateway import Gateway
from signoff.model import Action, Code, Command

SHAPES: tuple[tuple[str, str, str], ...] = (
    ("", "\0", ""),
    ("ls ", "\udcff ", ""),
    ("", "(", ""),
    ("", ")", ""),
    ("", "x=(", ""),
    ("", "'a", ""),
    ('echo "', "$(a ", ""),
    ("echo '", "a ", "'"),
    ("`", "\\`", ""),
    ("", "<<<", ""),
    ("", "|", ""),
    ("", "\n", "ls"),
    ("", "# x\n", ""),
    ("", "plain ", ""),
    ("", "a;", ""),
    ("rm ", "*/", ""),
    ("rm -rf ", "x ", ""),
    ("", "a\\ ", ""),
    ("a=", "~:", ""),
    ("a=(", "b ", ")"),
    ("a ", ">b ", ""),
    ("((x", "a", "+b=1))"),
    ("curl -d '", "a", "' http://x"),
    ("cat <<E\n", "$x `y`\n", "E\n"),
    ("sed ", "-e s/a/b/ ", "x"),
    ("psql -c '", "select 1;", "'"),
    ("node -e '", '"\\', "'"),
    ("python3 -c '", "f(x);", "'"),
    ("", "sudo rm -rf x\n", ""),
    ("", "find . -name 'id_*';", ""),
    ("", "git push --force origin x\n", ""),
    ("x=(a b c d e f g h); for i in ${x[@]}; do for j in ${x[@]}; do ", "rm $i$j; ", "done; done"),
)
"""What stands before, is repeated, and stands behind: NUL, invalid UTF-8, brackets and quotes that nothing closes,
and what takes the parser, the reader and the rules their time."""

CODE: tuple[tuple[str, str, str], ...] = (
    ("", "f(x)\n", ""),
    ("x = ", "(", "1"),
    ("x = [", "a(),", "]"),
    ("import os\nx = ['a', 'b']\n", "x = x + x\n", "os.system(x[0])"),
    ("import os\nx = '%()", "0", "' % y\nos.system(x)"),
)
"""The same as Python code."""

LENGTHS = (4_000, 20_000, 100_000, 250_000, 1_000_000)
"""In characters; the first is judged on the event loop."""
REPEATS = 3
"""The least time of so many counts for a text: other work on the machine only adds to it."""


async def worst(_sizes: Sizes) -> dict[str, float]:
    """`judge_hostile_ms`, `judge_hostile_gap_ms`."""
    slowest = widest = 0.0
    async with opened() as (gateway, _adapter):
        (name,) = await sessions(gateway, 1)
        for action in _actions():
            taken = [await _judged(gateway, name, action) for _ in range(REPEATS)]
            slowest = max(slowest, min(took for took, _gap in taken))
            widest = max(widest, min(gap for _took, gap in taken))
    return {"judge_hostile_ms": slowest * 1000, "judge_hostile_gap_ms": widest * 1000}


def _actions() -> list[Action]:
    commands: list[Action] = [Command(command=_text(shape, length)) for shape in SHAPES for length in LENGTHS]
    return [*commands, *(Code(language="python", code=_text(shape, length)) for shape in CODE for length in LENGTHS)]


def _text(shape: tuple[str, str, str], length: int) -> str:
    before, part, behind = shape
    return before + part * max((length - len(before) - len(behind)) // len(part), 1) + behind


async def _judged(gateway: Gateway, name: str, action: Action) -> tuple[float, float]:
    """The seconds until the verdict, and the loop's longest gap meanwhile."""
    async with watching() as gaps:
        begun = time.perf_counter()
        await gateway.check(action, session_id=name)
        took = time.perf_counter() - begun
    return took, gaps.longest_s
