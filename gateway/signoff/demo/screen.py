"""The terminal: what is printed while a person may be typing."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

MAX_WIDTH = 92
"""Longer lines are hard to read."""
PROMPT = "› "


class Terminal(Console):
    """Rich's console; when nobody reads any more, as behind `| head` or on a terminal that was closed, the rest is not
    shown instead of raised."""

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich's."""
        with self._while_read():
            super().print(*objects, **options)

    def put(self, text: str) -> None:
        """Write it as it is, at once."""
        with self._while_read():
            if not self.quiet:
                self.file.write(text)
                self.file.flush()

    @contextmanager
    def _while_read(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in (errno.EIO, errno.EPIPE):
                raise
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Go on in silence; the interpreter's own flush at the end must find an open file."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Screen:
    """Prints lines above the line being typed. `interactive`: a person types at a prompt."""

    def __init__(self, console: Terminal, *, interactive: bool) -> None:
        self.console = console
        self._interactive = interactive
        self._prompted = False
        self._blank = True

    @property
    def width(self) -> int:
        """Columns to fill."""
        return min(self.console.width, MAX_WIDTH)

    def put(self, lines: Iterable[Text | str], *, gap: bool = False) -> None:
        """Print, wrapped unless a text says `no_wrap`. `gap` leaves a blank line before; the prompt moves below."""
        asked = self._prompted
        self._clear()
        if gap and not self._blank:
            self.console.print()
        for line in lines:
            text = Text(line) if isinstance(line, str) else line
            whole = text.no_wrap or text.cell_len <= self.width
            for piece in [text] if whole else text.wrap(self.console, self.width):
                self.console.print(piece, soft_wrap=True)
                self._blank = not piece.plain
        if asked:
            self.prompt()

    def prompt(self) -> None:
        """Show that a line may be typed."""
        if self._interactive and not self._prompted:
            self.console.print(Text(PROMPT, "bold"), end="", soft_wrap=True)
            self.console.put("")
            self._prompted = True

    def entered(self) -> None:
        """The person pressed Enter: the cursor stands on a new line."""
        self._prompted = False

    def close(self) -> None:
        """Ask for nothing more."""
        self._clear()
        self._interactive = False

    def _clear(self) -> None:
        if self._prompted:
            self.console.put("\r\x1b[2K" if self.console.is_terminal else "\n")
            self._prompted = False
