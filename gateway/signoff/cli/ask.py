"""`ask`: put an action to a person and say how it ended."""

from __future__ import annotations

import shlex
import sys
from typing import Any

import click

from signoff.cli.asking import Wish, asked, asking_options, check_texts, told, until_interrupted, working_folder
from signoff.cli.connect import Place, placed
from signoff.cli.exits import code_of_asking, code_of_record
from signoff.cli.output import json_object, put_json
from signoff.cli.saying import said
from signoff.client import operands_of
from signoff.errors import SignoffError
from signoff.model import Action, Code, Command, Tool


@click.command()
@click.argument("command", nargs=-1)
@click.option("--code", help="Ask about a script; - reads it from standard input.")
@click.option("--language", default="python", show_default=True, help="The language of --code.")
@click.option("--tool", help="Ask about a call of this tool.")
@click.option("--arguments", help="The tool's arguments, a JSON object.")
@click.option("--operand", "operands", multiple=True, metavar="PATH", help="A file that the command reads or runs.")
@asking_options
@placed
def ask(place: Place, /, *, command: tuple[str, ...], operands: tuple[str, ...], **options: Any) -> int:
    """Ask for approval of a command text, a script or a tool call, and claim it.

    \b
        signoff ask 'rm -rf build' && rm -rf build
        signoff ask --tool send_email --arguments '{"to": "ben@example.com"}'
        signoff ask --code - --language python < script.py

    The approval is used by this: whoever gets exit code 0 runs the action once, now. What a person denies is not asked
    again here for 10 minutes.

    Exit codes: 0 approved, 77 not approved, 79 kept for a later yes (it did not run), 75 nobody could be asked (no
    gateway, a key that it does not take, no place), 130 interrupted (the question is withdrawn), 2 wrong usage.
    """
    check_texts(command, operands)
    given = {name: options.pop(name) for name in ("code", "language", "tool", "arguments")}
    action = _action(command, operands, **given)

    async def work() -> int:
        try:
            async with asked(place, Wish(**options), action) as (_, record):
                if place.as_json:
                    put_json(record)
                else:
                    click.echo(told(record))
                return code_of_record(record)
        except SignoffError as error:
            click.echo(f"signoff: {said(error)}", err=True)
            return code_of_asking(error)

    return until_interrupted(work)


def _action(
    command: tuple[str, ...],
    operands: tuple[str, ...],
    *,
    code: str | None,
    language: str,
    tool: str | None,
    arguments: str | None,
) -> Action:
    """What is asked about. Raises `UsageError`."""
    if sum((bool(command), code is not None, tool is not None)) != 1:
        raise click.UsageError("Give one of: a command text, --code, or --tool with --arguments")
    if arguments is not None and tool is None:
        raise click.UsageError("--arguments goes with --tool")
    if operands and not command:
        raise click.UsageError("--operand goes with a command text")
    if code is not None:
        return Code(language=language, code=_given(_text(code)), cwd=working_folder())
    if tool is not None:
        return Tool(name=tool, arguments=json_object(arguments or "{}", "--arguments"))
    text = _given(command[0] if len(command) == 1 else shlex.join(command))
    return Command(command=text, cwd=working_folder(), operands=tuple(operands_of(operands)))


def _given(text: str) -> str:
    if not text.strip():
        raise click.UsageError("The text is empty, so there is nothing to ask about")
    return text


def _text(code: str) -> str:
    return sys.stdin.read() if code == "-" else code
