"""What commands print: JSON for programs, aligned columns for people, colour only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from signoff.durations import left_parts
from signoff.visible import LINE_END, visible

_UNIT_WORDS = {"day": "day", "hour": "h", "minute": "min", "second": "s"}


class Suggested(click.UsageError):
    """A wrong use with the command to type instead, which is printed as it is: quoted text keeps its line breaks."""

    def __init__(self, message: str, command: str) -> None:
        super().__init__(message)
        self.command = command


class Shown(str):
    """A text as the gateway shows it: masked, and its invisible characters written out already."""


def put_json(value: Any) -> None:
    """One JSON value on standard output, indented for people's eyes on a terminal."""
    encoded = msgspec.json.encode(value)
    if sys.stdout.isatty():
        encoded = msgspec.json.format(encoded, indent=2)
    click.echo(encoded.decode())


def put_rows(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str, giving: Mapping[str, int] | None = None
) -> None:
    """A table, or a sentence where there is nothing. What others wrote is shown with its invisible characters.

    With `giving` (`signoff.cli.tables.put_lines`) each row has one line, and some columns give way to that.
    """
    if not rows:
        click.echo(empty)
        return
    cells = [[_cell(cell) for cell in row] for row in rows]
    if giving is not None:
        from signoff.cli.tables import put_lines

        put_lines(heads, cells, giving)
        return
    if sys.stdout.isatty():
        from signoff.cli.tables import put_blocks

        if not put_blocks(heads, cells):
            _put_rich(heads, cells)
        return
    widths = [max(len(row[i]) for row in (list(heads), *cells)) for i in range(len(heads))]
    for row in (list(heads), *cells):
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _put_rich(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def _cell(text: str) -> str:
    line = LINE_END.join(text.split("\n"))
    return (line if isinstance(text, Shown) else visible(line)) or "–"


def left(until: datetime | None, now: datetime | None = None) -> str:
    """The time until a deadline: `4 min`, `12 s`; a dash for none."""
    if until is None:
        return "–"
    return span_left((until - (now or datetime.now(UTC))).total_seconds())


def span_left(seconds: float) -> str:
    """The time until a deadline, in one unit, as on cards."""
    unit, count = left_parts(seconds)
    return f"{count} {'days' if unit == 'day' and count != 1 else _UNIT_WORDS[unit]}"


def json_object(text: str, option: str) -> dict[str, Any]:
    """The object that an option was given as JSON. Raises `UsageError`."""
    try:
        found: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise click.UsageError(f"{option} is not a JSON object: {error}") from None
    return found
