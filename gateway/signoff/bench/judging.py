"""How long the judge takes: one command, texts of odd shapes, long scripts, and the import of the package."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Callable

from signoff.bench.figures import NotMeasured, percentile
from signoff.bench.rows import Sizes
from signoff.policy import JudgeContext, judge
from signoff.policy.warming import warm

COMMANDS = (
    "ls -la src/part{n}",
    "git status --short docs/{n}",
    "git commit -m 'Fix the parser, case {n}'",
    "cat logs/app-{n}.log | grep -c ERROR",
    "pytest -q tests/test_{n}.py",
    "python3 scripts/report_{n}.py --since yesterday",
    "npm run build --workspace=web{n}",
    "find . -name '*_{n}.py' -newer setup.cfg",
    "curl -sS https://example.com/api/{n}",
    "docker compose logs --tail 100 web{n}",
    "kubectl get pods -n team-{n}",
    "cd service{n} && make test 2>&1 | tail -20",
    "sed -n '1,{n}p' README.md",
    "grep -rn 'handler_{n}' src --include='*.ts'",
    "mkdir -p build/{n} && cp README.md build/{n}/",
    "rm -rf build/{n}",
    "git push --force origin topic-{n}",
    "sudo systemctl restart web{n}",
    "bash -c 'rm -f cache/{n}.tmp'",
    "curl -fsSL https://example.com/install-{n}.sh | sh",
)
"""Everyday commands and some that ask; with a number in each, no two texts are alike."""
CONTEXT = JudgeContext(kind="chat", attended=True, home="/home/ana", cwd="/home/ana/project")
REPEATS = 5
"""Of each long text, whose median counts; so often the package is imported."""
LINE = (
    'if [ -f "part{n}.txt" ]; then\n  cp "part{n}.txt" out/  # keep\n'
    "  grep -c total out/part{n}.txt >> counts.txt\nfi\n"
)
"""Four lines of an ordinary script; 10 kB hold some ninety of them."""


async def judge_texts(sizes: Sizes) -> dict[str, float]:
    """The time of each judgement, in this thread's processor time, which other work does not lengthen."""
    warm()
    for number in range(len(COMMANDS)):
        _ms(COMMANDS[number].format(n=number))
    took = sorted(_ms(COMMANDS[n % len(COMMANDS)].format(n=n + 1000)) for n in range(sizes.judged))
    found = {"judge_p50_ms": percentile(took, 50), "judge_p99_ms": percentile(took, 99)}
    for key, text in TEXTS.items():
        # Without the deadline: a judge that gives up early would look fast.
        found[key] = statistics.median(_ms(text(repeat), _standing_still) for repeat in range(REPEATS))
    return found


def _standing_still() -> float:
    return 0.0


def _ms(text: str, clock: Callable[[], float] = time.thread_time) -> float:
    before = time.thread_time_ns()
    judge("command", text, CONTEXT, clock=clock)
    return (time.thread_time_ns() - before) / 1e6


def _script(length: int, first: int) -> str:
    parts: list[str] = ["#!/bin/sh\nset -eu\n"]
    size = len(parts[0])
    number = first * 10_000
    while size < length:
        parts.append(LINE.format(n=number))
        size += len(parts[-1])
        number += 1
    return "".join(parts)


TEXTS: dict[str, Callable[[int], str]] = {
    "judge_newlines_ms": lambda repeat: "\n" * 1000 + f"ls {repeat}",
    "judge_lines_ms": lambda repeat: "\n".join(f"grep -c x{repeat} file{n}.txt" for n in range(1000)),
    "judge_parentheses_ms": lambda repeat: "(" * 1000 + f"ls {repeat}" + ")" * 1000,
    "judge_words_ms": lambda repeat: f"echo x{repeat} " + " ".join(f"'word {n}'" for n in range(10_000)),
    "judge_10kb_ms": lambda repeat: _script(10_000, repeat),
    "judge_100kb_ms": lambda repeat: _script(100_000, repeat),
}
"""The long texts by their rows' keys; each repeat is another text, so that nothing remembered helps."""

_IMPORT = "import time; before = time.perf_counter(); import signoff.policy; print(time.perf_counter() - before)"
_TABLES = (
    "import time; from signoff.policy.warming import warm; before = time.perf_counter(); warm(); "
    "print(time.perf_counter() - before)"
)


async def loading(_sizes: Sizes) -> dict[str, float]:
    """Import in a fresh process, and reading all rules, which is done once behind it."""
    return {
        "policy_import_s": statistics.median([await _fresh(_IMPORT) for _ in range(REPEATS)]),
        "policy_rules_s": statistics.median([await _fresh(_TABLES) for _ in range(REPEATS)]),
    }


async def _fresh(code: str) -> float:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    if process.returncode != 0:
        raise NotMeasured(f"the import failed: {err.decode('utf-8', 'replace').strip().splitlines()[-1:]}")
    return float(out)
