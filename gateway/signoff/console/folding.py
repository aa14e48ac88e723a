"""A long action on a page: its beginning and its end in the open, and between them what a reader opens. Pure."""

from __future__ import annotations

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


def fold(text: str, *, open: bool = False, asks: Iterable[str] = ()) -> Fold | None:
    """The parts of a long text; None for one that is shown whole.

    `asks`: the commands for which a person is asked. Where one of them does not stand in what is shown, nothing is
    folded away: whoever approves has it before their eyes. `open`: as for a text that is to be read whole.
    """
    if text.count("\n") <= LONG_LINES and len(text) <= LONG_CHARS:
        return None
    head, tail = folds(text, head_units=HEAD_UNITS, tail_units=TAIL_UNITS, head_lines=HEAD_LINES, tail_lines=TAIL_LINES)
    middle = text[head:tail]
    if len(middle) < LEAST_CHARS:
        return None
    seen = " ".join(text[:head].split()), " ".join(text[tail:].split())
    hidden = any(not any(ask in part for part in seen) for ask in asks)
    lines = middle.count("\n")
    more = t("console.fold.lines", count=lines) if lines else t("console.fold.characters", count=len(middle))
    return Fold(head=text[:head], middle=middle, tail=text[tail:], more=more, open=open or hidden)
