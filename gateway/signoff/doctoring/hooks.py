"""The receivers of webhooks: where they are, whether they can be reached, and how deliveries to them go."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from signoff.loopback import is_loopback
from signoff.ports import Finding
from signoff.settings import HookSettings, Profile

REACH_WITHIN_S = 5.0
"""A receiver that takes longer for a connection alone would hardly take a message in time."""
MANY_BEHIND = 1000
"""Events that a receiver may lag behind without anybody's doing: a restart of it, a busy hour."""
TRY_IT = "signoff hook test {name}"


def hook_findings(profile: Profile, states: Mapping[str, Mapping[str, Any]] | None) -> Iterator[Finding]:
    """What the settings and the running gateway say. `states`: its deliveries by `profile/name`; None where no gateway
    runs here."""
    for name, hook in profile.hooks.items():
        about = f"hooks.{name}"
        yield _address(about, urlsplit(hook.url))
        if states is None:
            continue
        state = states.get(f"{profile.name}/{name}")
        if state is None:
            yield Finding.problem(
                about, "The running gateway does not know it.", "Start it again with this configuration."
            )
        else:
            yield _going(about, name, state)


def _address(about: str, url: SplitResult) -> Finding:
    host = url.hostname or ""
    if url.scheme == "https":
        return Finding.fine(about, f"It is told over https at {host}.")
    if url.scheme == "http" and is_loopback(host):
        return Finding.fine(about, f"It is told over http at {host}, which is this machine.")
    return Finding.problem(
        about, f"{url.scheme or 'no scheme'} to {host or 'no host'} is no way to tell it.", f"Set {about}.url to https."
    )


def _going(about: str, name: str, state: Mapping[str, Any]) -> Finding:
    behind = int(state.get("behind") or 0)
    if state.get("state") != "ok":
        given_up = int(state.get("parked") or 0)
        lost = f" {given_up} events were given up." if given_up else ""
        return Finding.problem(
            about,
            f"It has been failing since {state.get('failing_since')}: {state.get('detail') or 'no detail'}. "
            f"It is {behind} events behind.{lost}",
            f"Mend the receiver; it is told by itself. Try it: {TRY_IT.format(name=name)}",
        )
    if behind > MANY_BEHIND:
        return Finding.warning(
            about, f"It is {behind} events behind.", f"Let the receiver answer sooner. {TRY_IT.format(name=name)}"
        )
    return Finding.fine(about, "Its deliveries go through.")


async def reach_findings(profile: Profile) -> list[Finding]:
    """Connect to each receiver, with TLS where it is `https`; nothing is sent."""
    return list(await asyncio.gather(*(_reached(name, hook) for name, hook in profile.hooks.items())))


async def _reached(name: str, hook: HookSettings) -> Finding:
    about, url = f"hooks.{name}", urlsplit(hook.url)
    host = url.hostname or ""
    if not is_loopback(host) and any(os.environ.get(each) for each in ("HTTPS_PROXY", "https_proxy")):
        return Finding.warning(about, "It is told through a proxy, which is not tried here.", TRY_IT.format(name=name))
    tls = ssl.create_default_context() if url.scheme == "https" else None
    try:
        async with asyncio.timeout(REACH_WITHIN_S):
            _, writer = await asyncio.open_connection(host, url.port or (443 if tls else 80), ssl=tls)
            writer.close()
            await writer.wait_closed()
    except TimeoutError:
        why = f"no connection within {REACH_WITHIN_S:g} s"
    except (OSError, ValueError) as error:  # also what TLS refuses
        why = f"{type(error).__name__}: {error}"[:200]
    else:
        return Finding.fine(about, f"{host} takes connections.")
    return Finding.problem(about, f"{host} cannot be reached: {why}.", "Mend its address, its certificate or the way.")
