"""What stands on the terminal: the card, the answers with their keys, and how it ended. Nothing in it is markup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from rich.cells import cell_len, get_character_cell_size
from rich.console import Console
from rich.text import Text

from signoff.shown_card import Part, ShownCard, Way

KEYS = {"once": "a", "deny": "d", "once_all": "n", "session": "s", "30m": "t", "always": "w"}
"""The letter of each answer. `r` denies with a reason, `v` shows the whole text."""
REASON, WHOLE = "r", "v"
MARGINS: Mapping[str, str] = {"code": "│ ", "quote": "▏ ", "text": "", "small": ""}
STYLES: Mapping[str, str] = {"code": "", "quote": "italic", "text": "", "small": "dim"}
SEVERITIES: Mapping[str, str] = {"low": "bold", "medium": "bold", "high": "bold yellow", "critical": "bold red"}
NARROWEST = 20
"""Columns; a terminal that says it is narrower is written to as if it were so wide."""


class Drawing:
    """Writes to one terminal. Colours are left out where the terminal or the user (NO_COLOR) has none."""

    def __init__(self, out: TextIO) -> None:
        self._console = Console(file=out, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def card(self, card: ShownCard) -> None:
        """The card, each part in its order."""
        self.line("")
        for part in card.parts:
            self._part(part, card)
        if card.page:
            self.quoted(f"Open: {card.page}")

    def ways(self, card: ShownCard) -> None:
        """The answers on offer, each with its key and how far it reaches."""
        self.line("")
        for way in card.ways:
            self._way(KEYS.get(way.choice, way.choice), way)
            if way.choice == "deny":
                self._way(REASON, Way(choice="deny", label=f"{way.label}, with a reason for the agent"))
        if card.whole:
            label = f"Show the whole text ({card.hidden_chars:,} characters of it are not shown above)"
            self._way(WHOLE, Way(choice=WHOLE, label=label))

    def whole(self, card: ShownCard) -> None:
        """All of the action, to scroll through."""
        self._part(Part(kind="code", text=card.whole), card)

    def line(self, text: str, style: str = "") -> None:
        """One line of Signoff's own words."""
        self._console.print(Text(text, style))

    def _way(self, key: str, way: Way) -> None:
        text = Text.assemble(("  ", ""), (key, "bold"), ("  ", ""), (way.label, ""))
        if way.sentence:
            text.append(f"  {way.sentence}", "dim")
        self._console.print(text)

    def _part(self, part: Part, card: ShownCard) -> None:
        style = SEVERITIES[card.severity] if part.strong and part is card.parts[0] else STYLES[part.kind]
        margin = MARGINS[part.kind]
        if not margin:
            self.line(part.text, style)
            return
        self._beside(margin, part.text, style)

    def quoted(self, text: str) -> None:
        """Words that are not Signoff's own, each line of them beside a margin."""
        self._beside(MARGINS["code"], text, STYLES["code"])

    def _beside(self, margin: str, text: str, style: str) -> None:
        # Wrapped here, for a line that the terminal wraps would go on without its margin, like words of our own.
        for line in wrapped(text, max(NARROWEST, self._console.width) - cell_len(margin)):
            self._console.print(Text.assemble((margin, "dim"), (line, style)))


def wrapped(text: str, cells: int) -> list[str]:
    """The lines of `text`, none wider than so many cells; nothing is left out."""
    lines = []
    for line in text.split("\n"):
        piece, used = "", 0
        for char in line:
            size = get_character_cell_size(char)
            if used + size > cells:
                lines.append(piece)
                piece, used = "", 0
            piece, used = piece + char, used + size
        lines.append(piece)
    return lines
