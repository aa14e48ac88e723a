"""`console`: a one-time link by which somebody logs in to the web console of the gateway that runs here."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import click
import msgspec

from signoff.cli.connect import Place, placed, warn_unknown
from signoff.cli.output import put_json
from signoff.config import Location
from signoff.errors import ConfigError, GatewayUnreachable, InvalidInput

WITHIN_S = 5.0


@click.command()
@click.option("--principal", help="The person who decides there, as the record names them.")
@click.option("--view", is_flag=True, help="Only to look; nothing can be decided.")
@placed
def console(place: Place, principal: str | None, view: bool) -> None:
    """Print a link that logs one person in to the web console. It works once, within 10 minutes."""
    if not view and not principal:
        raise click.UsageError("name the person with --principal, or add --view for somebody who only looks")
    warn_unknown(place, principal)
    made = asyncio.run(_made(place.location(), place.profile or "default", {"principal": principal, "view": view}))
    if place.as_json:
        put_json({"url": made["url"]})
    else:
        click.echo(made["url"])


async def _made(location: Location, profile: str, body: dict[str, Any]) -> dict[str, Any]:
    socket = location.gateway.admin_socket
    if not socket.exists():
        raise GatewayUnreachable(
            f"No gateway runs here ({socket} does not exist). Start one with `signoff serve`, or name its "
            "configuration with --config."
        )
    connector = aiohttp.UnixConnector(path=str(socket))
    limit = aiohttp.ClientTimeout(total=WITHIN_S)
    headers = {"X-Signoff-Profile": profile}
    try:
        async with (
            aiohttp.ClientSession("http://localhost", connector=connector, timeout=limit, headers=headers) as http,
            http.post("/console/links", data=msgspec.json.encode(body)) as answer,
        ):
            found: dict[str, Any] = msgspec.json.decode(await answer.read())
    except (aiohttp.ClientError, OSError, TimeoutError, msgspec.DecodeError) as error:
        raise GatewayUnreachable(f"The gateway at {socket} does not answer ({type(error).__name__}).") from None
    if answer.status == 404:
        raise ConfigError("The console of this gateway is off; set gateway.console = true and start it again.")
    if answer.status >= 400:
        raise InvalidInput(found["error"]["message"])
    return found
