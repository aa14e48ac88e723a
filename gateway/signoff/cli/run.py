"""`run`: ask about a command and, once it is approved and claimed, run exactly that, once."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
from typing import Any

import click

from signoff.cli.asking import (
    Wish,
    asked,
    asking_options,
    check_texts,
    on_ending,
    told,
    until_interrupted,
    working_folder,
)
from signoff.cli.child import run_child
from signoff.cli.connect import REPORT_PATIENCE_S, Place, placed
from signoff.cli.exits import NOT_FOUND, OK, code_of_asking, code_of_record
from signoff.cli.output import Suggested, put_json
from signoff.cli.saying import said
from signoff.client import ApprovalRecord, Client, operands_of
from signoff.errors import SignoffError
from signoff.model import Command

_SHELL = ("sh", ["/bin/sh", "-c"]) if os.name == "posix" else ("cmd", ["cmd", "/d", "/s", "/c"])
_CANNOT_START = 126
"""As a shell: the program is there and cannot be started."""


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("argv", nargs=-1, required=True, metavar="CMD...", type=click.UNPROCESSED)
@click.option("--shell", is_flag=True, help="CMD is one text for the shell, such as 'a && b'.")
@click.option("--operand", "operands", multiple=True, metavar="PATH", help="A file that CMD reads or runs.")
@asking_options
@placed
def run(place: Place, /, *, argv: tuple[str, ...], shell: bool, operands: tuple[str, ...], **wish: Any) -> int:
    """Ask for approval of CMD, run it once if it is given, and report how it went.

    \b
        signoff run -- rm -rf build
        signoff run --reason "the build is stale" --shell 'make clean && make'

    CMD is run as typed, without a shell. It is asked in --session (or SIGNOFF_SESSION_ID), at --to, or at the profile's
    fallback destination. What a person denies is not asked again here for 10 minutes.

    Exit codes: that of CMD when it ran (127 no such program, 128 + N ended by signal N); 77 not approved, 79 kept
    for a later yes (CMD did not run; once approved, the gateway's executor runs it), 75 nobody could be asked (no
    gateway, a key that it does not take, no place), 130 interrupted (the question is withdrawn), 2 wrong usage.
    """
    check_texts(argv, operands)
    folder = working_folder()
    program = _program(argv, shell)
    if program is None:
        click.echo(f"signoff: there is no program {argv[0]!r}; nobody was asked.", err=True)
        return NOT_FOUND
    action = Command(
        command=argv[0] if shell else shlex.join(argv),
        cwd=folder,
        shell=_SHELL[0] if shell else None,
        operands=tuple(operands_of(operands)),
    )

    async def work() -> int:
        try:
            async with asked(place, Wish(**wish), action) as (client, record):
                return await _run_once(place, client, record, program, folder)
        except SignoffError as error:
            click.echo(f"signoff: {said(error)}", err=True)
            return code_of_asking(error)

    return until_interrupted(work)


def _program(argv: tuple[str, ...], shell: bool) -> list[str] | None:
    """What is started, or None where there is no such program. Raises `UsageError` for a shell text without --shell."""
    if shell:
        if len(argv) != 1:
            raise click.UsageError("With --shell, CMD is one text: put it in quotes")
        return [*_SHELL[1], argv[0]]
    if shutil.which(argv[0]) is not None:
        return list(argv)
    if len(argv) == 1 and any(char.isspace() for char in argv[0]):
        raise Suggested(
            f"{argv[0]!r} is one argument, so it names one program, which does not exist. Type the words apart, or "
            "have a shell read them",
            shlex.join(("signoff", "run", "--shell", *(("--",) if argv[0].startswith("-") else ()), argv[0])),
        )
    return None


async def _run_once(
    place: Place, client: Client, record: ApprovalRecord, program: list[str], folder: str | None
) -> int:
    if not record.may_run:
        if place.as_json:
            put_json(record)
        click.echo(f"signoff: {told(record)}", err=True)
        return code_of_record(record)
    try:
        code = await run_child(program, folder)
    except OSError as error:
        done = await _report(client, record, "not_run", None)
        click.echo(f"signoff: {program[0]} cannot be started: {error.strerror}.", err=True)
        code = _CANNOT_START
    else:
        done = await _report(client, record, "succeeded" if code == OK else "failed", code)
    if place.as_json:
        put_json(record if done is None else done)
    return code


async def _report(client: Client, record: ApprovalRecord, status: Any, code: int | None) -> ApprovalRecord | None:
    """Tell the gateway, for as long as nobody interrupts it; what ran has run, so a gateway that cannot be told changes
    no exit code."""
    telling = asyncio.ensure_future(client.result(record.request_id, status, code, patience_s=REPORT_PATIENCE_S))
    on_ending(telling.cancel)
    try:
        return await telling
    except SignoffError as error:
        click.echo(f"signoff: the result could not be reported: {error.message}", err=True)
    except asyncio.CancelledError:
        click.echo("signoff: interrupted; the result is not reported.", err=True)
    return None
