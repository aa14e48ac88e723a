"""A long action on a page: its beginning and its end in the open, and between them what a reader opens. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from signoff.clipping import folds
from signoff.wording import t

LONG_LINES, LONG_CHARS = 14, 1000
"""What is no longer than this is shown whole."""
HEAD_LINES, HEAD_UNITS = 9, 650
TAIL_LINES, TAIL_UNITS = 4, 350
LEAST_CHARS = 120
"""Less than this is not worth a line that says how much it is."""


class Fold(Struct, frozen=True, kw_only=True):
    """A text in three parts, without a gap. `more` says how much the one in the middle is."""

    head: str
    middle: str
    tail: str
    more: str
    open: bool


def fold(text: str, *, open: bool = False, asks: Iterable[str] | None = ()) -> Fold | None:
    """The parts of a long text; None for one that is shown whole.

    `asks`: the commands for which a person is asked; None where not all of them are known. Unless each is found, and
    only in what is shown, nothing is folded away: whoever approves has them before their eyes. `open`: as for a text
    that is to be read whole.
    """
    if text.count("\n") <= LONG_LINES and len(text) <= LONG_CHARS:
        return None
    head, tail = folds(text, head_units=HEAD_UNITS, tail_units=TAIL_UNITS, head_lines=HEAD_LINES, tail_lines=TAIL_LINES)
    middle = text[head:tail]
    if len(middle) < LEAST_CHARS:
        return None
    lines = middle.count("\n")
    more = t("console.fold.lines", count=lines) if lines else t("console.fold.characters", count=len(middle))
    return Fold(
        head=text[:head], middle=middle, tail=text[tail:], more=more, open=open or _hides(text, head, tail, asks)
    )


def _hides(text: str, head: int, tail: int, asks: Iterable[str] | None) -> bool:
    """Whether a command that asks may stand between `head` and `tail`."""
    if asks is None:
        return True
    for ask, count in Counter(asks).items():
        places = _places(text, ask)
        # One that is written otherwise, as `"su"`, is not found: fewer places than commands.
        if len(places) < count or any(end > head and start < tail for start, end in places):
            return True
    return False


def _places(text: str, ask: str) -> list[tuple[int, int]]:
    """From where to where a command stands in a text, as whole words of one line: `su` does not stand in `result`."""
    words = r"[^\S\n]+".join(map(re.escape, ask.split()))
    return [found.span() for found in re.finditer(rf"(?<![^\s;&|(]){words}(?![^\s;&|)])", text)]
