"""One time budget for reading one text."""

import time
from collections.abc import Callable

BUDGET_S = 0.05
"""Half of the 100 ms within which every input gets a verdict: the parser is quadratic on some inputs (7 s for 48 kB of
`x=(`, measured with tree-sitter-bash 0.25) and holds the interpreter lock."""


_UNCLOCKED_S = 0.001
"""Most texts are read in less."""


class GivenUpError(Exception):
    """Reading or judging a text was given up; `reason` ends a sentence that begins with "cannot be understood"."""

    reason = ""


class OutOfTimeError(GivenUpError):
    """The time budget of this text is spent."""

    reason = "it takes too long to read"


class TooManyWordsError(GivenUpError):
    """The text makes more words than are looked at."""

    reason = "it has too many words"


class UnbalancedError(GivenUpError):
    """A quote within backticks is never closed: the grammar and the shell see different ends."""

    reason = "its syntax cannot be read"


class Deadline:
    """Counts down from its making; `clock` returns seconds and never goes back.

    The clock of a thread takes 1 microsecond to read, ten times as long as the wall's (measured). A thread has never
    worked longer than time has passed, so its clock is first read when a millisecond is over by the wall's, and from
    then on only where the budget may be spent.
    """

    __slots__ = ("_budget_s", "_clock", "_end", "_spared", "_wall")

    def __init__(self, clock: Callable[[], float], budget_s: float = BUDGET_S) -> None:
        """Start the countdown now."""
        self._clock = clock
        self._budget_s = budget_s
        self._spared = clock is time.thread_time
        self._end: float | None = None if self._spared else clock() + budget_s
        self._wall = time.perf_counter() + _UNCLOCKED_S if self._spared else 0.0

    def expired(self) -> bool:
        """Whether the budget is spent."""
        if self._spared and time.perf_counter() < self._wall:
            return False
        if self._end is None:
            self._end = self._clock() + self._budget_s - _UNCLOCKED_S
        left = self._end - self._clock()
        if self._spared:
            self._wall = time.perf_counter() + left
        return left < 0

    def check(self) -> None:
        """Raise `OutOfTimeError` when the budget is spent."""
        if self._spared and time.perf_counter() < self._wall:
            return
        if self.expired():
            raise OutOfTimeError
