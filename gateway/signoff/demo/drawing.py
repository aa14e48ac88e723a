"""Cards as lines of text: a bar on the left in the card's colour, the action apart, numbered buttons below."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from signoff.demo.board import Numbered
from signoff.durations import left
from signoff.model import Block, Card, Span

WAITING, APPROVED, ENDED, NOTE = "yellow", "green", "red", "blue"
"""Colours of a card's bar; words carry the meaning, the colour repeats it."""

_BAR = "┃ "
_CODE_INDENT = "  "
_GOES_ON = "↳ "
_SPANS = {"bold": "bold", "code": "cyan", "link": "underline", "mention": "bold"}
_BLOCKS = {"text": "", "quote": "italic", "small": "dim"}
_BUTTONS = {"success": "bold green", "danger": "bold red", "neutral": "bold"}
_GAP = "   "


def card_lines(card: Card, buttons: Sequence[Numbered], console: Console, width: int, *, colour: str) -> list[Text]:
    """The whole card."""
    lines: list[Text] = []
    for number, block in enumerate(card.blocks):
        lines += block_lines(block, console, width, first=number == 0)
    if buttons:
        lines += [Text(), *button_lines(card, buttons, width - len(_BAR))]
    return barred(lines, colour)


def block_lines(block: Block, console: Console, width: int, *, first: bool = False) -> list[Text]:
    """One block, wrapped. A code block keeps every character, and has room around it."""
    room = _room(width)
    if block.kind == "code":
        whole = "".join(span.text for span in block.spans)
        return [Text(), *(line for part in whole.split("\n") for line in _code_lines(part, room)), Text()]
    text = Text("  " if block.kind == "quote" else "", _BLOCKS[block.kind])
    for span in block.spans:
        text.append(_words(span), _SPANS.get(span.style, ""))
    if first:
        text.stylize("bold")
    return list(text.wrap(console, room))


def wrapped(text: Text, console: Console, width: int) -> list[Text]:
    """The text in lines that have their place behind the bar."""
    return list(text.wrap(console, _room(width)))


def _room(width: int) -> int:
    return max(width - len(_BAR), 20)


def _code_lines(text: str, room: int) -> list[Text]:
    """One line of an action, broken after a space where one is near; no character is left out or added.

    What goes on is marked in front, where no character of the action ever stands.
    """
    pieces: list[str] = []
    rest = text
    while (end := _fitting(rest, room - len(_CODE_INDENT))) < len(rest):
        space = rest.rfind(" ", 0, end) + 1
        cut = space if space > end // 2 else end
        pieces.append(rest[:cut])
        rest = rest[cut:]
    pieces.append(rest)
    marks = [_CODE_INDENT, *[_GOES_ON] * (len(pieces) - 1)]
    return [Text.assemble((mark, "dim"), (piece, "bold cyan")) for mark, piece in zip(marks, pieces, strict=True)]


def _fitting(text: str, room: int) -> int:
    """How many characters fit; one at least, and what has no width stays with what it stands behind."""
    used = 0
    for at, char in enumerate(text):
        used += cell_len(char)
        if used > room and at:
            return at
    return len(text)


def button_lines(card: Card, buttons: Sequence[Numbered], room: int) -> list[Text]:
    """The buttons in their rows; a row that does not fit goes on below."""
    by_token = {each.button.token: each for each in buttons}
    lines: list[Text] = []
    for row in card.rows:
        line = Text()
        for button in row:
            piece = Text.assemble(f"[{by_token[button.token].number}] ", (button.label, _BUTTONS[button.style]))
            if line and line.cell_len + len(_GAP) + piece.cell_len > room:
                lines.append(line)
                line = Text()
            line = Text.assemble(line, _GAP, piece) if line else piece
        lines.append(line)
    return lines


def barred(lines: Sequence[Text], colour: str) -> list[Text]:
    """The lines with the bar before each; blank ones do not follow each other."""
    kept = [line for number, line in enumerate(lines) if line or (number and lines[number - 1])]
    return [Text.assemble((_BAR if line else _BAR.rstrip(), colour), line) for line in kept]


def news(before: Card, now: Card) -> tuple[Block, ...]:
    """The paragraphs that a card did not have before; what only moved with the clock is no news."""
    had = {_still(block) for block in before.blocks}
    return tuple(block for block in now.blocks if _still(block) not in had)


def colour_of(card: Card) -> str:
    """The bar's colour by the verdict's mark."""
    head = "".join(span.text for span in card.blocks[0].spans) if card.blocks else ""
    if head.startswith("✅"):
        return APPROVED
    return ENDED if head.startswith(("⛔", "⌛", "⏹")) else WAITING


def _still(block: Block) -> str:
    return "".join(span.text for span in block.spans if span.at is None)


def _words(span: Span) -> str:
    """A span's text; times are shown in this machine's zone."""
    if span.at is None:
        return span.text
    if span.style == "relative_time":
        # A window that began this instant is still whole for the reader.
        return f"in {left(max((span.at - datetime.now(UTC)).total_seconds() + 1.0, 0.0))}"
    return f"{span.at.astimezone():%H:%M}"
