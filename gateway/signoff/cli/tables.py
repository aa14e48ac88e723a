"""Tables for people: a line each row, and the columns that give way where a terminal is too narrow for all."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence

import click
from rich.cells import cell_len, set_cell_size

PIPED = 120
"""How wide a cell that gives way is at most where no terminal sets a width."""
LEAST = 8
"""To this the first of them is cut at last."""
NARROW = 60
"""A terminal of fewer columns has no room for a table whose cells are folded."""
GAP = "  "
CUT = "…"


def put_lines(heads: Sequence[str], rows: Sequence[Sequence[str]], giving: Mapping[str, int]) -> None:
    """Print a row a line.

    On a terminal that is too narrow, the columns named in `giving` give way in their order: they are cut to so many
    characters at least, or left out for 0. What is too wide after that stays so, since nothing else may be lost.
    Elsewhere the first of them is cut at `PIPED`.
    """
    lines = (heads, *rows)
    widths = {head: max(cell_len(row[place]) for row in lines) for place, head in enumerate(heads)}
    first = next(iter(giving))
    if sys.stdout.isatty():
        _narrow(widths, giving, shutil.get_terminal_size().columns)
        _narrow(widths, {first: LEAST}, shutil.get_terminal_size().columns)
    else:
        widths[first] = min(widths[first], PIPED)
    for number, row in enumerate(lines):
        cells = [_fitted(cell, widths[head]) for head, cell in zip(heads, row, strict=True) if head in widths]
        line = GAP.join(cells).rstrip()
        click.echo(click.style(line, bold=True) if number == 0 else line)


def put_blocks(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Print each row as lines of `HEAD value` where the terminal is too narrow for columns; whether it is."""
    room = shutil.get_terminal_size().columns
    natural = sum(max(cell_len(row[place]) for row in (heads, *rows)) for place in range(len(heads)))
    if room >= NARROW or natural + len(GAP) * (len(heads) - 1) <= room:
        return False
    width = max(map(len, heads))
    for number, row in enumerate(rows):
        if number:
            click.echo()
        for head, cell in zip(heads, row, strict=True):
            click.echo(f"{click.style(head.ljust(width), bold=True)} {cell}".rstrip())
    return True


def _narrow(widths: dict[str, int], giving: Mapping[str, int], room: int) -> None:
    for head, least in giving.items():
        over = sum(widths.values()) + len(GAP) * (len(widths) - 1) - room
        if over > 0 and least == 0:
            del widths[head]
        elif over > 0:
            widths[head] = max(min(least, widths[head]), widths[head] - over)


def _fitted(cell: str, width: int) -> str:
    if cell_len(cell) > width:
        cell = f"{set_cell_size(cell, width - 1).rstrip()}{CUT}"
    return cell + " " * (width - cell_len(cell))
