"""How a command reaches the gateway: SIGNOFF_URL and SIGNOFF_KEY, or the local socket of the configuration."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import click
from msgspec import Struct

from signoff.client import Client
from signoff.client._link import OnOutage
from signoff.client.client import DEFAULT_URL
from signoff.config import Location, find_config, load_policy, locate
from signoff.errors import GatewayUnreachable, SignoffError
from signoff.loopback import from_here
from signoff.visible import visible

P = ParamSpec("P")
T = TypeVar("T")

ADMIN_PATIENCE_S = 2.0
"""How long a command of an operator looks for a gateway."""
ASK_PATIENCE_S = 5.0
"""How long `ask` and `run` do: a gateway restarts within that."""
REPORT_PATIENCE_S = 60.0
"""How long `run` goes on telling a gateway that it cannot reach how the command went, which has no other way to know.
That long a turn lives without its agent."""
LOOK_S = 0.1
"""Between two looks for a socket."""


class Place(Struct, frozen=True, kw_only=True):
    """Where the caller says the gateway is."""

    config: Path | None = None
    profile: str | None = None
    as_json: bool = False

    @property
    def by_url(self) -> bool:
        """Whether the environment names a gateway; a configuration given on the command line goes before it."""
        return self.config is None and bool(os.environ.get("SIGNOFF_URL") or os.environ.get("SIGNOFF_KEY"))

    def location(self) -> Location:
        """The gateway's own folder; raises `ConfigError`."""
        return locate(self.config or find_config())

    def console_address(self) -> str | None:
        """Where a browser finds the console, as far as it is known here: without its public address, that of the API.
        It answers only where the gateway has a console."""
        if self.by_url:
            return f"{(os.environ.get('SIGNOFF_URL') or DEFAULT_URL).rstrip('/')}/console"
        try:
            gateway = self.location().gateway
        except SignoffError:
            return None
        if gateway.console_url:
            return f"{gateway.console_url.rstrip('/')}/console"
        if not gateway.console or not gateway.port:
            return None
        host = from_here(gateway.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{gateway.port}/console"

    def client(self, patience_s: float, on_outage: OnOutage | None = None) -> Client:
        """A client of that gateway; raises `GatewayUnreachable` where there is no socket, and `ConfigError`."""
        if self.by_url:
            return Client(profile=self.profile, unreachable_after_s=patience_s, on_outage=on_outage)
        socket = self.location().gateway.admin_socket
        if not socket.exists():
            raise GatewayUnreachable(
                f"No gateway runs here ({socket} does not exist). Start one with `signoff serve`, name its "
                "configuration with --config, or set SIGNOFF_URL and SIGNOFF_KEY."
            )
        return Client(socket=socket, profile=self.profile, unreachable_after_s=patience_s, on_outage=on_outage)


async def returned(place: Place, waiting: Callable[[], None]) -> None:
    """Wait, for so long as `ask` and `run` do, for a gateway that ran here before: while it restarts it has no socket.
    `waiting` is called where there is something to wait for. Raises `ConfigError`."""
    if place.by_url:
        return
    gateway = place.location().gateway
    if gateway.admin_socket.exists() or not gateway.token_key_file.exists():
        return
    waiting()
    loop = asyncio.get_running_loop()
    until = loop.time() + ASK_PATIENCE_S
    while loop.time() < until and not gateway.admin_socket.exists():  # noqa: ASYNC110  # another process tells nobody
        await asyncio.sleep(LOOK_S)


def reachable(place: Place) -> bool:
    """Whether the local socket of a gateway is here, over which its own user is the operator."""
    try:
        return not place.by_url or place.location().gateway.admin_socket.exists()
    except SignoffError:
        return False


def warn_unknown(place: Place, principal: str | None) -> None:
    """Say on standard error where the settings name people and this is none of them. Where they name nobody, and for
    settings that are not here, any name will do."""
    if principal is None or place.by_url:
        return
    try:
        profile = load_policy(place.config or find_config()).profiles.get(place.profile or "default")
    except SignoffError:
        return
    if profile is not None and profile.principals and principal not in profile.principals:
        known = ", ".join(sorted(profile.principals))
        text = f"{principal!r} is no principal of the settings (there are: {known})"
        click.echo(visible(f"signoff: {text}; the record will name them so. Add [principals.{principal}]."), err=True)


def placed(command: Callable[Concatenate[Place, P], T]) -> Callable[P, T]:
    """Give a command the options that say where the gateway is, as its first argument."""

    @click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="The gateway's signoff.toml.")
    @click.option(
        "--profile", envvar="SIGNOFF_PROFILE", help="The profile to work in (default: default, or the key's)."
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @wraps(command)
    def with_place(*args: Any, config: Path | None, profile: str | None, as_json: bool, **options: Any) -> T:
        return command(Place(config=config, profile=profile, as_json=as_json), *args, **options)

    return with_place  # type: ignore[return-value]  # the same, seen from outside


def with_client(place: Place, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
    """Do `work` with a client of an operator's patience."""

    async def go() -> T:
        async with place.client(ADMIN_PATIENCE_S) as client:
            return await work(client)

    return asyncio.run(go())
