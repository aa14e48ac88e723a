"""The limits of judging, by design and not by the clock on the wall.

A verdict takes 100 ms at most, and 60 ms where it is made on the event loop. Both hold because reading and judging
look at the time again and again and give up when it is over. So three things are looked at here, each without measuring
time: what becomes of a text when the time is over at any of these looks; how much is done between two of them, counted
in calls; and how much is done in all where each call takes a made-up time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from tests.unit.policy import hostile
from tests.unit.policy.hostile import Shape

from signoff.policy import JudgeContext, judge
from signoff.policy.contexts import LONG_CHARS
from signoff.policy.explaining import explain
from signoff.policy.shell.source import MAX_BYTES
from signoff.policy.verdict import Verdict
from signoff.policy.warming import warm

MEGABYTE = 1_000_000
QUICK = (*hostile.NAMED, *hostile.FOUND)
OVER = "it takes too long to read"


# When the time is over


class Over:
    """A clock that stands still for `looks` looks, then moves on by a second at each."""

    def __init__(self, looks: int) -> None:
        self.left = looks
        self.after = 0

    def __call__(self) -> float:
        if self.left > 0:
            self.left -= 1
            return 0.0
        self.after += 1
        return float(self.after)


LOOKS = (0, 1, 2, 3, 4, 5, 7, 9, 12, 17, 25, 40, 70, 130, 250, 600)
AFTER, AFTER_MENDING = 60, 2500
"""Looks that may follow: each step of the ladder, and each reader of an inner text, finds out for itself. While it
mends broken text the parser looks on."""
BROKEN = frozenset({")", "x=(", ">"})
BYPASSED = (
    JudgeContext(kind="chat", attended=True, home=hostile.HOME, bypass=True),
    JudgeContext(kind="chat", attended=True, home=hostile.HOME, mode="off"),
    JudgeContext(kind="cron", home=hostile.HOME, unattended_mode="approve", cron_mode="approve"),
)


def _when_over(shape: Shape, chars: int, looks: int) -> tuple[Verdict, Over]:
    clock = Over(looks)
    return judge(shape.kind, shape.text(chars), shape.context, clock=clock), clock


@pytest.mark.parametrize("shape", QUICK, ids=lambda shape: shape.name)
def test_whenever_the_time_is_over_it_asks_and_ends_at_once(shape: Shape) -> None:
    for looks in LOOKS:
        verdict, clock = _when_over(shape, 6000, looks)
        if clock.left or not clock.after:
            break  # it ended before
        assert verdict.verdict in {"ask", "block"}, looks
        assert clock.after <= (AFTER_MENDING if shape.part in BROKEN else AFTER), looks
        if verdict.verdict == "ask":
            told = " ".join((verdict.description, *verdict.why))
            assert "cannot be understood" in told or shape.kind == "code", looks


@pytest.mark.parametrize("context", BYPASSED, ids=["bypass", "mode off", "nobody"])
@pytest.mark.parametrize("text", ["a;" * 3000, "ls | wc; " * 600, "f() { a; }; f;" * 400])
def test_a_text_that_was_not_read_to_its_end_is_not_let_through(text: str, context: JudgeContext) -> None:
    assert judge("command", text, context, clock=lambda: 0.0).verdict == "allow", "read to its end it is"
    for looks in LOOKS[:12]:
        verdict = judge("command", text, context, clock=Over(looks))
        assert verdict.verdict in {"ask", "block"}, looks


def test_the_reason_is_that_the_time_was_over() -> None:
    for looks in LOOKS[:12]:
        verdict = judge("command", "a;" * 3000, hostile.PLAIN, clock=Over(looks))
        assert OVER in verdict.description, looks
        assert any(OVER in line for line in verdict.why), looks


@pytest.mark.parametrize("looks", LOOKS)
def test_telling_why_ends_as_well(looks: int) -> None:
    for text in ("rm x;" * 1000, "git push --force\n" * 300):
        clock = Over(looks)
        explanation = explain("command", text, hostile.SET_UP, clock=clock)
        assert explanation.verdict.verdict == "ask"
        assert clock.after <= AFTER


@pytest.mark.parametrize(
    "text", ["ls " + "a" * MEGABYTE, "a;" * (MEGABYTE // 2), "(" * MEGABYTE, "é" * (MAX_BYTES // 2 + 1)]
)
def test_a_text_above_the_limit_of_256_kb_asks_unread(text: str) -> None:
    looks = 0

    def clock() -> float:
        nonlocal looks
        looks += 1
        return 0.0

    verdict = judge("command", text, hostile.PLAIN, clock=clock)
    assert verdict.verdict == "ask"
    assert verdict.description == "cannot be understood: it is longer than 256 kB"
    assert looks < AFTER


MANY = 70
CARRIED = {
    "find": ("find . ", "-exec echo a \\; ", "-exec rm -rf /etc \\;"),
    "sed": ("sed ", "-e p ", "-e '1e rm -rf /etc' f"),
}


@pytest.mark.parametrize("name", CARRIED)
def test_what_stands_behind_more_commands_than_are_followed_is_not_passed_over(name: str) -> None:
    before, part, behind = CARRIED[name]
    assert judge("command", before + part * 3, hostile.PLAIN).verdict == "allow"
    assert judge("command", before + part * MANY + behind, hostile.PLAIN).verdict != "allow"


# How much is done


class Work:
    """Counts calls of functions, Python's and C's; a clock whose time they are."""

    CALL_S = 0.16e-6
    """What a call takes, and what stands around it, on the machine of docs/bench.md (measured)."""

    ENOUGH = 250_000
    """So many show what is done between two looks; then the time of one that does not move is over."""

    def __init__(self, *, moves: bool) -> None:
        self.calls = 0
        self.moves = moves
        self.most_between = 0
        self._looked = 0

    def __call__(self) -> float:
        self.most_between = max(self.most_between, self.calls - self._looked)
        self._looked = self.calls
        return self.calls * self.CALL_S if self.moves else float(self.calls > self.ENOUGH)

    def saw(self, _frame: FrameType, event: str, _argument: Any) -> None:
        """One event of the interpreter."""
        if event in {"call", "c_call"}:
            self.calls += 1

    def watching(self, work: Callable[[], Verdict]) -> Verdict:
        """Count what this does."""
        warm()
        before = sys.getprofile()
        sys.setprofile(self.saw)
        try:
            found = work()
        finally:
            sys.setprofile(before)
        self()
        return found

    @property
    def took_s(self) -> float:
        """The made-up time that all of it took."""
        return self.calls * self.CALL_S


def _judged(shape: Shape, chars: int, *, moves: bool) -> Work:
    work = Work(moves=moves)
    text = shape.text(chars)
    judge(shape.kind, shape.text(1000), shape.context, clock=lambda: 0.0)  # what is kept at hand is there
    work.watching(lambda: judge(shape.kind, text, shape.context, clock=work))
    return work


BETWEEN, BETWEEN_MANY = 50_000, 130_000
"""Calls between two looks: 8 of the made-up milliseconds, and 21 where one rule looks at 12,000 words, or at thousands
of commands, which is the most that a text may have."""
SHORT_S, LONG_S = 0.055, 0.098
"""Below the 60 ms and the 100 ms."""


def _between(shape: Shape, chars: int, most: int) -> None:
    for size in (chars, 4 * chars):
        assert _judged(shape, size, moves=False).most_between <= most, size


@pytest.mark.parametrize("shape", QUICK, ids=lambda shape: shape.name)
def test_four_times_as_much_text_means_no_more_work_between_two_looks(shape: Shape) -> None:
    _between(shape, 4000, BETWEEN)


ON_LOOP = [shape for shape in hostile.ALL if len(shape.text(LONG_CHARS)) <= LONG_CHARS]


@pytest.mark.heavy
@pytest.mark.parametrize("shape", ON_LOOP[len(QUICK) :], ids=lambda shape: shape.name)
def test_every_text_that_is_judged_on_the_loop_takes_little(shape: Shape) -> None:
    assert _judged(shape, LONG_CHARS, moves=True).took_s <= SHORT_S


@pytest.mark.parametrize("shape", QUICK, ids=lambda shape: shape.name)
def test_a_text_that_is_judged_on_the_loop_takes_little(shape: Shape) -> None:
    assert _judged(shape, LONG_CHARS, moves=True).took_s <= SHORT_S


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize("shape", hostile.ALL, ids=lambda shape: shape.name)
def test_every_text_has_its_verdict_in_time(shape: Shape) -> None:
    for chars in (20_000, 100_000, MAX_BYTES - 1000, MEGABYTE):
        assert _judged(shape, chars, moves=True).took_s <= LONG_S, chars


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize("shape", hostile.ALL, ids=lambda shape: shape.name)
def test_between_two_looks_little_is_done(shape: Shape) -> None:
    _between(shape, 25_000, BETWEEN_MANY)
