"""What the shipped rules say of two lists of commands: a table and every miss, by `python -m tests.unit.policy.report`.

`commands.jsonl` has cases with the verdict each should get. `everyday.jsonl` has command lines as they stand in public
CI files, Makefiles and instructions for contributors, with the file each was taken from (variables of make are replaced
by their values). Taken were the lines that build, test, lint, inspect, install what a project needs or work on a local
repository; left out were those that should ask: privileges, deletes, pushes, releases, packages of the system, and
downloads that are run at once.
"""

import sys
from collections import Counter
from pathlib import Path

import msgspec

from signoff.policy.contexts import JudgeContext
from signoff.policy.ladder import judge
from signoff.policy.verdict import Verdict, VerdictWord

FOLDER = Path(__file__).parent
HOME = "/home/ana"
CWD = "/home/ana/project"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a list; everyday lines should be allowed."""

    command: str
    source: str
    id: str = ""
    shell: str | None = None
    expect: VerdictWord = "allow"
    reason: str = ""


class Judged(msgspec.Struct, frozen=True):
    """A case with what was said of it."""

    case: Case
    verdict: Verdict

    @property
    def right(self) -> bool:
        """Whether it got the verdict it should."""
        return self.verdict.verdict == self.case.expect


def cases(name: str) -> list[Case]:
    """The cases of one list."""
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [msgspec.json.decode(line, type=Case) for line in lines]


def judged(name: str) -> list[Judged]:
    """Each case of a list, judged for a session with somebody to ask."""
    return [Judged(case, _judge(case)) for case in cases(name)]


def _judge(case: Case) -> Verdict:
    context = JudgeContext(shell=case.shell, kind="chat", attended=True, home=HOME, cwd=CWD)
    return judge("command", case.command, context)


def _line(each: Judged) -> str:
    keys = ", ".join(each.verdict.rule_keys) or each.verdict.rung
    return f"{each.case.command!r} [{keys}] {each.verdict.description}"


def main() -> int:
    """Print the table and the misses; 1 where something that should not be allowed is."""
    allowed = 0
    for name in ("commands.jsonl", "everyday.jsonl"):
        results = judged(name)
        counts = Counter((each.case.expect, each.verdict.verdict) for each in results)
        print(f"{name}: {len(results)} commands")
        print(f"  {'should':>8}  {'allow':>6} {'ask':>6} {'block':>6}")
        for expected in ("allow", "ask", "block"):
            row = [counts[expected, said] for said in ("allow", "ask", "block")]
            if any(row):
                print(f"  {expected:>8}  {row[0]:>6} {row[1]:>6} {row[2]:>6}")
        for each in results:
            if not each.right:
                allowed += each.verdict.verdict == "allow"
                print(f"  {each.case.expect} -> {each.verdict.verdict}: {_line(each)}")
    return 1 if allowed else 0


if __name__ == "__main__":
    sys.exit(main())
