"""One time budget for reading one text."""

from collections.abc import Callable

BUDGET_S = 0.05
"""Half of the 100 ms within which every input gets a verdict: the parser is quadratic on some inputs (7 s for 48 kB of
`x=(`, measured with tree-sitter-bash 0.25) and holds the interpreter lock."""


class GivenUpError(Exception):
    """Reading or judging a text was given up; `reason` ends a sentence that begins with "cannot be understood"."""

    reason = ""


class OutOfTimeError(GivenUpError):
    """The time budget of this text is spent."""

    reason = "it takes too long to read"


class TooManyWordsError(GivenUpError):
    """The text makes more words than are looked at."""

    reason = "it has too many words"


class Deadline:
    """Counts down from its making; `clock` returns seconds and never goes back."""

    def __init__(self, clock: Callable[[], float], budget_s: float = BUDGET_S) -> None:
        """Start the countdown now."""
        self._clock = clock
        self._end = clock() + budget_s

    def expired(self) -> bool:
        """Whether the budget is spent."""
        return self._clock() > self._end

    def check(self) -> None:
        """Raise `OutOfTimeError` when the budget is spent."""
        if self.expired():
            raise OutOfTimeError
