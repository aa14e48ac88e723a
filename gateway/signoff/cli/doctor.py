"""`doctor`: what keeps the gateway from working, and how to mend it."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from signoff.cli.exits import OK, OTHER
from signoff.cli.output import put_json
from signoff.config import find_config, load_config
from signoff.errors import ConfigError
from signoff.visible import visible

if TYPE_CHECKING:
    from signoff.doctoring import Row

_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


@click.command()
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="The gateway's signoff.toml.")
@click.option("--reach", is_flag=True, help="Also connect to the receivers of webhooks; nothing is posted.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(config: Path | None, *, reach: bool, as_json: bool) -> int:
    """Examine the settings, the store, the ports, webhooks and every platform, and say how to mend what is wrong.

    It works before the first start and beside a running gateway, and changes nothing. A line each: ok, warning or
    problem, what was found, and the mend. No secret is printed.

    Exit codes: 0 no problem, 1 problems.
    """
    # What libraries log would stand between the lines of the report.
    logging.getLogger("signoff_adapters").addHandler(logging.NullHandler())
    rows = _examined(config, reach=reach)
    problems = sum(row.level == "problem" for row in rows)
    warnings = sum(row.level == "warning" for row in rows)
    if as_json:
        put_json({"object": "list", "data": rows, "problems": problems, "warnings": warnings})
    else:
        _put(rows)
        click.echo(f"{_counted(problems, 'problem')}, {_counted(warnings, 'warning')}.")
    return OTHER if problems else OK


def _examined(file: Path | None, *, reach: bool) -> list[Row]:
    from signoff.doctoring import Row, examine, without_secrets

    try:
        config = load_config(file or find_config())
    except ConfigError as error:
        text, mend = _parted(error.message)
        return [Row(part="gateway", level="problem", about="configuration", text=text, mend=mend)]
    return without_secrets(asyncio.run(examine(config, reach=reach)), config)


def _parted(message: str) -> tuple[str, str]:
    """What is wrong, and the mend: errors of settings name it after the last semicolon."""
    text, _, mend = message.rpartition("; ")
    if not text:
        return message, "Mend that, and run `signoff doctor` again."
    return f"{text}.", f"{mend[:1].upper()}{mend[1:]}"


def _put(rows: Sequence[Row]) -> None:
    for row in rows:
        level = f"{row.level:<8}"
        if sys.stdout.isatty():
            level = click.style(level, fg=_COLOURS[row.level], bold=row.level == "problem")
        line = f"{row.part}, {row.about}: {row.text} {row.mend}".rstrip()
        click.echo(f"{level} {visible(' '.join(line.split()))}")


def _counted(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
