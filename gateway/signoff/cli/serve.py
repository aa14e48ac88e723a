"""`serve`: the gateway itself, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from signoff.config import Config, find_config, load_config
from signoff.outages import Outages

if TYPE_CHECKING:
    from signoff.serving import Addresses

log = logging.getLogger("signoff.cli")
_LEVELS = ("debug", "info", "warning", "error")


@click.command()
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="The gateway's signoff.toml.")
@click.option("--log-level", type=click.Choice(_LEVELS), default="info", show_default=True, help="What is logged.")
def serve(config: Path | None, log_level: str) -> None:
    """Run the gateway until SIGTERM or Ctrl-C, which end it with exit code 0.

    Prints `listening on http://HOST:PORT` on standard output once it answers, then `hooks on http://HOST:PORT` where a
    platform sends its updates to a webhook. The log goes to standard error.
    """
    settings = load_config(config or find_config())
    logging.basicConfig(
        level=log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    for handler in logging.getLogger().handlers:
        handler.addFilter(Outages())
    _warn(settings)
    asyncio.run(_serve(settings))


async def _serve(config: Config) -> None:
    from signoff.serving import run_gateway

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end(number: int) -> None:
        # A second signal ends at once, as if none were handled.
        loop.remove_signal_handler(number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end, number)

    def ready(addresses: Addresses) -> None:
        click.echo(f"listening on {addresses.api}")
        if addresses.hooks and config.webhooks:
            click.echo(f"hooks on {addresses.hooks}")
        sys.stdout.flush()
        if config.gateway.console:
            log.info("people answer in the web console too: `signoff console --principal NAME` prints a link to log in")

    await run_gateway(config, on_ready=ready, stop=stop)


def _warn(config: Config) -> None:
    """Say at the start what will keep people from deciding, and what others can reach."""
    from signoff.doctoring.listening import reachable_findings
    from signoff.doctoring.people import principal_findings

    for found in reachable_findings(config):
        log.warning("%s: %s %s", found.about, found.text, found.mend)
    for name, profile in config.profiles.items():
        for found in principal_findings(profile):
            section = "" if name == "default" else f"profiles.{name}."
            log.warning("%s%s: %s %s", section, found.about, found.text, found.mend)
        for platform in profile.platforms:
            if not profile.approvers.get(platform):
                prefix = "" if name == "default" else f"profiles.{name}."
                log.warning(
                    "%splatforms.%s.approvers is empty: nobody can decide there. List user ids.", prefix, platform
                )
