"""Cutting long texts so that head and tail stay and the reader learns how much is hidden.

Lengths are UTF-16 code units, the unit in which Telegram and Discord state their limits. Cut after escaping and
masking: no cut falls inside an escape or a mask `⟨…⟩`, a combined character or a joined emoji.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Final

import msgspec

from signoff.visible import CLOSE, OPEN

HEAD_UNITS: Final = 650
TAIL_UNITS: Final = 350
MAX_LINES: Final = 14
"""An action is shown whole up to 1,000 units and 14 lines: what a phone shows without scrolling past the buttons."""
NAME_UNITS: Final = 40
"""The longest name of a person, agent, tool, file or server on a card."""
REASON_UNITS: Final = 280
"""The longest reason of a person; what is cut is reported to them."""

_LONGEST_ESCAPE: Final = 64
_JOINER: Final = "\u200d"
_ELLIPSIS: Final = "…"


class Clipped(msgspec.Struct, frozen=True, kw_only=True):
    """A text that fits, and how many characters (code points) of the original it does not show."""

    text: str
    hidden_chars: int


def units(text: str) -> int:
    """Return the length of `text` in UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def clip(
    text: str,
    *,
    head_units: int = HEAD_UNITS,
    tail_units: int = TAIL_UNITS,
    max_lines: int = MAX_LINES,
    note: Callable[[int], str],
) -> Clipped:
    """Return `text` whole, or its head and its tail around a note, within the budget.

    The budget is `head_units + tail_units` UTF-16 units and `max_lines` lines, the note included (its room is taken
    from the head: what a long command does last is what a cut hides best). `note` gets the number of hidden
    characters and returns the words to stand between `⟨` and `⟩`.

    Raises ValueError when the head has no room for the note, or for fewer than one line.
    """
    if units(text) <= head_units + tail_units and text.count("\n") < max_lines:
        return Clipped(text=text, hidden_chars=0)
    if max_lines < 1:
        raise ValueError(f"max_lines must be at least 1, not {max_lines}")
    head_room = head_units - units(_middle(note(len(text))))
    if head_room < 0:
        raise ValueError(f"a head of {head_units} units has no room for the note")
    head_lines = max(1, -(-max_lines * head_units // (head_units + tail_units)))
    tail_lines = max_lines - head_lines + 1  # the last line of the head is also the first of the tail
    head_end = _head_end(text, head_room, head_lines)
    tail_start = _tail_start(text, tail_units, tail_lines, head_end)
    hidden = tail_start - head_end
    return Clipped(text=text[:head_end] + _middle(note(hidden)) + text[tail_start:], hidden_chars=hidden)


def folds(text: str, *, head_units: int, tail_units: int, head_lines: int, tail_lines: int) -> tuple[int, int]:
    """Where a text that is folded in its middle has its head's end and its tail's beginning: between lines where there
    are such, and never inside a character."""
    head = _head_end(text, head_units, head_lines)
    line = head + 1 if text[head : head + 1] == "\n" else text.rfind("\n", 0, head) + 1
    head = line if line > head // 2 else head
    tail = _tail_start(text, tail_units, tail_lines + text.endswith("\n"), head)
    line = tail if text[tail - 1 : tail] == "\n" else text.find("\n", tail) + 1
    return head, line if tail <= line < (tail + len(text)) // 2 else tail


def cut(text: str, *, limit_units: int) -> Clipped:
    """Return the longest beginning of `text` that fits `limit_units`, without a mark; the caller reports the number."""
    end = len(text) if units(text) <= limit_units else _head_end(text, limit_units, len(text) + 1)
    return Clipped(text=text[:end], hidden_chars=len(text) - end)


def cut_reason(reason: str) -> Clipped:
    """Return a person's reason cut at 280 units, and the number of characters cut, which the person is told."""
    return cut(reason, limit_units=REASON_UNITS)


def cut_name(name: str, *, note: Callable[[int], str], limit_units: int = NAME_UNITS, behind_chars: int = 0) -> Clipped:
    """Return a name within `limit_units`, a count of the hidden characters included: `nightly-f…⟨41 hidden⟩`.

    `behind_chars` of the name are hidden in any case, behind what is given. Raises ValueError when the limit has no
    room for the note.
    """
    if units(name) <= limit_units and not behind_chars:
        return Clipped(text=name, hidden_chars=0)
    room = limit_units - units(_tail_mark(note(len(name) + behind_chars)))
    if room < 0:
        raise ValueError(f"a limit of {limit_units} units has no room for the note")
    kept = cut(name, limit_units=room)
    hidden = kept.hidden_chars + behind_chars
    return Clipped(text=kept.text + _tail_mark(note(hidden)), hidden_chars=hidden)


def _middle(words: str) -> str:
    return f"{_ELLIPSIS} {OPEN}{words}{CLOSE} {_ELLIPSIS}"


def _tail_mark(words: str) -> str:
    return f"{_ELLIPSIS}{OPEN}{words}{CLOSE}"


def _head_end(text: str, room: int, lines: int) -> int:
    end = used = breaks = 0
    for char in text:
        used += 2 if char > "\uffff" else 1
        breaks += char == "\n"
        if used > room or breaks >= lines:
            break
        end += 1
    while end > 0 and not _may_cut(text, end):
        end -= 1
    return end


def _tail_start(text: str, room: int, lines: int, head_end: int) -> int:
    start, used, breaks = len(text), 0, 0
    while start > head_end:
        char = text[start - 1]
        used += 2 if char > "\uffff" else 1
        breaks += char == "\n"
        if used > room or breaks >= lines:
            break
        start -= 1
    while start < len(text) and not _may_cut(text, start):
        start += 1
    return start


def _may_cut(text: str, at: int) -> bool:
    """Tell whether a cut before `text[at]` leaves every escape, combined character and joined emoji whole."""
    if not 0 < at < len(text):
        return True
    following, before = text[at], text[at - 1]
    if _JOINER in (following, before) or unicodedata.category(following).startswith("M"):
        return False
    if 0x1F3FB <= ord(following) <= 0x1F3FF:  # a skin tone belongs to the emoji before it
        return False
    opened = text.rfind(OPEN, max(0, at - _LONGEST_ESCAPE), at)
    if opened < 0 or text.find(CLOSE, opened, at) >= 0:
        return True
    return text.find(CLOSE, at, at + _LONGEST_ESCAPE) < 0
