"""`demo`: see what Signoff does, without an account, a configuration or anything left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from signoff.cli.exits import USAGE

if TYPE_CHECKING:
    from signoff.demo.show import Stage


_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@click.command()
@click.option("--auto", is_flag=True, help="Press the buttons by itself, in the terminal, for a look or a test.")
@click.option("--terminal", is_flag=True, help="Show the cards in this terminal, without a browser.")
@click.option("--no-browser", is_flag=True, help="Print the console's link instead of opening it.")
@click.option("--platform", type=click.Choice(["telegram"]), help="Show the cards in a real chat instead.")
@click.option("--token-env", metavar="NAME", help="The environment variable that holds the bot's token.")
@click.option("--chat", metavar="ID", help="The chat that the cards go to.")
@click.option("--approver", metavar="ID", help="Your user id there: you alone may decide.")
@click.option("--api-base-url", metavar="URL", hidden=True, help="Another origin of the platform's API.")
def demo(*, auto: bool, terminal: bool, no_browser: bool, platform: str | None, **chat: str | None) -> int:
    """Let a scripted agent ask you for five things, in a browser or in this terminal.

    Everything is real but the agent: the gateway, the store, the buttons. It runs nothing and only says what it would
    run. All files are in a temporary folder that is removed at the end.

    Where there is a display, the web console opens in your browser. In a terminal without one the cards are drawn
    there, and without a terminal the console's link is printed.

    In a real chat: signoff demo --platform telegram --token-env BOT_TOKEN --chat ID --approver ID

    Exit codes: 0 the end or Ctrl-D, 130 Ctrl-C, 129 the terminal was closed, 75 the chat cannot be reached, 2 wrong
    usage.
    """
    _one_of({"--terminal": terminal, "--no-browser": no_browser, "--platform": platform is not None})
    if auto and (no_browser or platform):
        raise click.UsageError("--auto presses buttons in the terminal, not in a browser or a real chat")
    stage = _chat_stage(platform, **chat)

    from signoff.demo.pages import has_display
    from signoff.demo.running import perform
    from signoff.demo.show import CONSOLE, TERMINAL

    display = has_display()
    if stage is None:
        drawn = auto or terminal or not (no_browser or display or not sys.stdin.isatty())
        stage = TERMINAL if drawn else CONSOLE
    if stage is TERMINAL and not auto and not sys.stdin.isatty():
        click.echo(
            "signoff: --terminal needs a terminal to type in; --auto lets it press the buttons by itself.", err=True
        )
        return USAGE
    with _signals_as_exits(), TemporaryDirectory(prefix="signoff-demo-") as folder:
        return asyncio.run(perform(Path(folder), stage, auto=auto, browser=display and not no_browser))


@contextmanager
def _signals_as_exits() -> Iterator[None]:
    """While inside, SIGTERM and a terminal that is closed end the process as an exit does: what is temporary goes."""

    def leave(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        raise SystemExit(128 + number)

    # What ignores a hang-up, as with nohup, goes on to do so.
    before = {each: signal.signal(each, leave) for each in _ENDING if signal.getsignal(each) != signal.SIG_IGN}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _one_of(given: dict[str, bool]) -> None:
    """Refuse options that name different places for the cards."""
    named = [name for name, is_given in given.items() if is_given]
    if len(named) > 1:
        raise click.UsageError(f"{' and '.join(named)} name different places for the cards; give one of them")


def _chat_stage(
    platform: str | None,
    *,
    token_env: str | None,
    chat: str | None,
    approver: str | None,
    api_base_url: str | None,
) -> Stage | None:
    """The real chat that the options name, or None where none is named."""
    needed = {"--token-env": token_env, "--chat": chat, "--approver": approver}
    if platform is None:
        given = [name for name, value in needed.items() if value is not None]
        if given:
            raise click.UsageError(f"{given[0]} goes with --platform")
        return None
    missing = [name for name, value in needed.items() if not value]
    if missing:
        raise click.UsageError(f"--platform {platform} needs {', '.join(missing)}")
    token = os.environ.get(token_env or "", "").strip()
    if not token:
        raise click.UsageError(f"the environment variable {token_env} is not set; put the bot's token in it")
    from signoff.demo.show import Stage
    from signoff.model import Destination

    settings = {"token": token, "mode": "polling"}
    if api_base_url:
        settings["api_base_url"] = api_base_url
    return Stage(
        destination=Destination(platform, chat or ""),
        approver=approver or "",
        settings=settings,
        title=platform.capitalize(),
    )
