"""The command group, its commands by name, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import difflib
import errno
import importlib
import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, cast

import click

from signoff.cli.contents import SECTIONS
from signoff.cli.exits import INTERRUPTED, NOBODY, OK, OTHER, USAGE, code_of
from signoff.cli.output import Suggested
from signoff.cli.saying import said
from signoff.errors import InsufficientScope, SignoffError, Unauthenticated

log = logging.getLogger("signoff.cli")

_INVALID = re.compile(r"^Invalid value for '?([^':]+)'?:")

COMMANDS: dict[str, str] = {
    "demo": "signoff.cli.demo:demo",
    "serve": "signoff.cli.serve:serve",
    "init": "signoff.cli.init:init",
    "doctor": "signoff.cli.doctor:doctor",
    "drill": "signoff.cli.drill:drill",
    "ask": "signoff.cli.ask:ask",
    "run": "signoff.cli.run:run",
    "check": "signoff.cli.check:check",
    "why": "signoff.cli.check:why",
    "policy": "signoff.cli.policy:policy",
    "pending": "signoff.cli.deciding:pending",
    "approve": "signoff.cli.deciding:approve",
    "deny": "signoff.cli.deciding:deny",
    "stop": "signoff.cli.deciding:stop",
    "actions": "signoff.cli.actions:actions",
    "grants": "signoff.cli.grants:grants",
    "revoke": "signoff.cli.grants:revoke",
    "allowlist": "signoff.cli.allowlist:allowlist",
    "yolo": "signoff.cli.yolo:yolo",
    "key": "signoff.cli.keys:key",
    "hook": "signoff.cli.hooks:hook",
    "console": "signoff.cli.console:console",
    "bench": "signoff.cli.bench:bench",
}
"""Each command's module and name. Modules are imported when their command is used, so that none slows the others."""


class LazyGroup(click.Group):
    """A group whose commands are imported on use. An unknown one is answered with the nearest."""

    def __init__(self, *args: Any, places: Mapping[str, str] | None = None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.places = dict(places or {})

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click's; without a command the help is asked for, and is no error."""
        return super().parse_args(ctx, args or ["--help"])

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the table."""
        return list(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of that name."""
        place = self.places.get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        return cast("click.Command", getattr(importlib.import_module(module), name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with a suggestion where there is none of that name."""
        name = args[0]
        if name not in self.places and not name.startswith("-"):
            near = difflib.get_close_matches(name, self.places, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"There is no command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


class Contents(LazyGroup):
    """The outermost group. Its help is read by who looks for a command, so it lists them by what they are for."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A list for each heading, under which no command is imported."""
        for heading, lines in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl(list(lines.items()))


@click.group(
    cls=Contents,
    places=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 refused, 2 wrong usage or configuration, 75 no gateway, 130 interrupted. "
    "`ask` and `run` add 77: not approved, 79: kept for a later yes, and end with 75 whenever nobody could be asked.",
)
@click.version_option(version("signoff"), "-V", "--version", prog_name="signoff")
def cli() -> None:
    """People's sign-off for what agents do, in the chat they already use."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point: run one command and exit with its code. Errors are one line on standard error."""
    _open_streams()
    # Without a handler of its own, Python would print what the library logs among the answers.
    logging.getLogger("signoff").addHandler(logging.NullHandler())
    code = run_command(list(sys.argv[1:] if arguments is None else arguments))
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python would complain once more at exit about what it could not write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # A reader that has gone, as with `| head`, has what it wanted.
        if not isinstance(error, BrokenPipeError) and code == OK:
            code = _told(_of_system(error), OTHER)
    sys.exit(code)


def _open_streams() -> None:
    """Open the standard streams that the caller closed, as nothing: else a connection would get the number of one, and
    a command that is run would write into it."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is this one: those below are open by now.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  # until the end


def run_command(arguments: list[str]) -> int:
    """Run one command; its exit code."""
    try:
        value = cli.main(
            arguments,
            prog_name="signoff",
            standalone_mode=False,
            color=False if os.environ.get("NO_COLOR") else None,
        )
    except click.exceptions.Exit as end:
        return end.exit_code
    except Suggested as error:
        return _told(f"{error.message}:", USAGE, verbatim=f" {error.command}")
    except click.ClickException as error:
        return _told(_usage(error), USAGE)
    except (click.Abort, KeyboardInterrupt):
        return _told("interrupted", INTERRUPTED)
    except SignoffError as error:
        return _told(f"{said(error)}{_other_key(error)}", code_of(error))
    except BrokenPipeError:
        return OK
    except PermissionError as error:
        return _told(_of_system(error), NOBODY)
    except Exception as error:  # the outermost edge: people get a line, the log gets the rest
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
            return _told(_of_system(error), OTHER)
        log.debug("unexpected", exc_info=error)
        return _told(f"unexpected {type(error).__name__}: {error}. This is a defect; please report it.", OTHER)
    return value if isinstance(value, int) else 0


def _of_system(error: OSError) -> str:
    """What the system refused, and the mend where it is known."""
    if isinstance(error, PermissionError) and error.filename is not None:
        return (
            f"{error.filename} may not be read or written by this user. Run this as the gateway's own user, or set "
            "SIGNOFF_URL and SIGNOFF_KEY."
        )
    return f"{error.filename or 'The output'} cannot be written: {error.strerror or error}."


def _other_key(error: SignoffError) -> str:
    """What an operator overlooks whose shell still holds an agent's key."""
    named = [name for name in ("SIGNOFF_URL", "SIGNOFF_KEY") if os.environ.get(name)]
    if not named or not isinstance(error, (InsufficientScope, Unauthenticated)):
        return ""
    them = "them" if len(named) > 1 else "it"
    are = "are" if len(named) > 1 else "is"
    return f" {' and '.join(named)} {are} set here; unset {them} to speak to this machine's gateway as its operator."


def _usage(error: click.ClickException) -> str:
    message = _INVALID.sub(r"\1:", error.format_message()).rstrip(".")
    message += "" if message.endswith("?") else "."
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "signoff"
    return f"{message} See `{path} --help`."


def _told(message: str, code: int, *, verbatim: str = "") -> int:
    line = " ".join(str(message).split())
    click.echo(f"signoff: {line}{verbatim}", err=True)
    return code
