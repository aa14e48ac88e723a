"""The command group, its commands by name, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import difflib
import importlib
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, cast

import click

from signoff.cli.exits import INTERRUPTED, OTHER, USAGE, code_of
from signoff.cli.output import Suggested
from signoff.cli.saying import said
from signoff.errors import InsufficientScope, SignoffError, Unauthenticated

log = logging.getLogger("signoff.cli")

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
            hint = f"did you mean {near[0]!r}?" if near else "`signoff --help` lists them."
            raise click.UsageError(f"There is no command {name!r}; {hint}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    places=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 refused, 2 wrong usage or configuration, 75 no gateway, 130 interrupted. "
    "`ask` and `run` add 77: not approved, and 79: kept for a later yes.",
)
@click.version_option(version("signoff"), "-V", "--version", prog_name="signoff")
def cli() -> None:
    """People's sign-off for what agents do, in the chat they already use."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point: run one command and exit with its code. Errors are one line on standard error."""
    # Without a handler of its own, Python would print what the library logs among the answers.
    logging.getLogger("signoff").addHandler(logging.NullHandler())
    code = run_command(list(sys.argv[1:] if arguments is None else arguments))
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone, as with `| head`. Python would complain at exit about what it could not write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def run_command(arguments: list[str]) -> int:
    """Run one command; its exit code. Without a command: the help."""
    try:
        value = cli.main(arguments or ["--help"], prog_name="signoff", standalone_mode=False)
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
        return 0
    except Exception as error:  # the outermost edge: people get a line, the log gets the rest
        log.debug("unexpected", exc_info=error)
        return _told(f"unexpected {type(error).__name__}: {error}. This is a defect; please report it.", OTHER)
    return value if isinstance(value, int) else 0


def _other_key(error: SignoffError) -> str:
    """What an operator overlooks whose shell still holds an agent's key."""
    named = [name for name in ("SIGNOFF_URL", "SIGNOFF_KEY") if os.environ.get(name)]
    if not named or not isinstance(error, (InsufficientScope, Unauthenticated)):
        return ""
    return f" {' and '.join(named)} set here: unset them to speak to this machine's gateway as its operator."


def _usage(error: click.ClickException) -> str:
    message = error.format_message().rstrip(".")
    message += "" if message.endswith("?") else "."
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "signoff"
    return f"{message} See `{path} --help`."


def _told(message: str, code: int, *, verbatim: str = "") -> int:
    line = " ".join(str(message).split())
    click.echo(f"signoff: {line}{verbatim}", err=True)
    return code
