"""The whole examination, in the order in which a report is read."""

from __future__ import annotations

import asyncio
import logging
from typing import Any
from urllib.parse import urlsplit

from signoff.authorize import groups_on
from signoff.checkups import open_checkup
from signoff.config import Config
from signoff.console_adapter import PLATFORM as CONSOLE
from signoff.doctoring.absent import absent_findings
from signoff.doctoring.beside import Beside, ask_gateway, running_findings
from signoff.doctoring.clocks import clock_finding
from signoff.doctoring.files import file_findings
from signoff.doctoring.hooks import hook_findings, reach_findings
from signoff.doctoring.listening import port_findings, reachable_findings
from signoff.doctoring.people import approver_finding, principal_findings
from signoff.doctoring.programs import program_findings
from signoff.doctoring.rows import Row, rows_of
from signoff.doctoring.storing import serving_findings, shared_findings, store_findings
from signoff.drills import named_places
from signoff.errors import ConfigError
from signoff.loopback import is_loopback
from signoff.ports import Checkup, Finding, GroupCheckup
from signoff.settings import Profile

log = logging.getLogger(__name__)

PLATFORM_WITHIN_S = 60.0
"""An examination of one platform ends by then, whatever hangs."""


async def examine(config: Config, *, reach: bool = False) -> list[Row]:
    """Examine everything that the configuration names; platforms side by side. `reach`: also connect to the receivers
    of webhooks."""
    beside = await ask_gateway(config)
    rows = rows_of("gateway", file_findings(config))
    if beside is None:
        rows += rows_of("gateway", [Finding.fine("running", "No gateway runs here now."), *port_findings(config)])
        rows += rows_of("store", store_findings(config))
    else:
        rows += rows_of("gateway", running_findings(beside))
        rows += rows_of("store", serving_findings(beside.store))
        rows += rows_of("gateway", absent_findings(beside.executors))
    rows += rows_of("gateway", shared_findings(config))
    rows += rows_of("gateway", reachable_findings(config))
    for profile in config.profiles.values():
        part = "gateway" if profile.name == "default" else profile.name
        rows += rows_of(part, principal_findings(profile))
        rows += rows_of(part, program_findings(profile))
        rows += rows_of(part, hook_findings(profile, None if beside is None else beside.hooks))
        rows += rows_of(part, await reach_findings(profile) if reach else ())
    named = [(profile, platform) for profile in config.profiles.values() for platform in profile.platforms]
    if not named:
        rows += rows_of("gateway", [_no_platform(config)])
    tasks = [_platform(config, profile, platform, beside) for profile, platform in named]
    for (profile, platform), found in zip(named, await asyncio.gather(*tasks, return_exceptions=True), strict=True):
        part = platform if profile.name == "default" else f"{profile.name}/{platform}"
        rows += rows_of(part, found if isinstance(found, list) else [_defect(found)])
    return rows


def _no_platform(config: Config) -> Finding:
    """Without a chat, the console may be the place to ask in."""
    about = "platforms"
    places = [profile.approvals.fallback_destination for profile in config.profiles.values()]
    if config.gateway.console and all(place is not None and place.platform == CONSOLE for place in places):
        return Finding.fine(about, "No chat is configured: questions go to the web console.")
    mend = "Make a configuration: `signoff init`."
    if config.file:
        chat = "add a section such as [platforms.telegram] (`signoff init --show telegram` tells how to make its bot)"
        mend = f"{chat[:1].upper()}{chat[1:]}."
        if config.gateway.console:
            mend = f'Set approvals.fallback_destination = "{CONSOLE}:main" to ask in the web console, or {chat}.'
    return Finding.warning(about, "No platform is configured, so nobody is asked in a chat.", mend)


def _defect(error: BaseException) -> Finding:
    if not isinstance(error, Exception):
        raise error
    if isinstance(error, TimeoutError):
        text = f"The examination took longer than {PLATFORM_WITHIN_S:g} s."
        return Finding.problem("connection", text, "Let this machine reach the platform (network, proxy).")
    log.error("an examination ended in an error", exc_info=error)
    return Finding.problem("examination", f"It ended in an unexpected {type(error).__name__}.", "Please report this.")


async def _platform(config: Config, profile: Profile, platform: str, beside: Beside | None) -> list[Finding]:
    settings = dict(profile.platforms[platform])
    hooked = settings.get("mode") in ("webhook", "http")
    if hooked and config.gateway.hooks_url is not None:
        settings["hooks_url"] = f"{config.gateway.hooks_url.rstrip('/')}/hooks/{profile.name}/{platform}"
    try:
        checkup = open_checkup(platform, settings)
    except ConfigError as error:
        text, _, mend = error.message.rpartition("; ")
        return [Finding.problem("adapter", f"{text or error.message}.", f"{mend[:1].upper()}{mend[1:]}")]
    found = [approver_finding(profile, platform)]
    if hooked:
        found += _reachable(config)
    if checkup is None:
        return [*found, Finding.warning("adapter", "This adapter has no check-up.", "Look at its own documentation.")]
    try:
        async with asyncio.timeout(PLATFORM_WITHIN_S):
            return found + await _examined(checkup, profile, platform, beside)
    finally:
        await checkup.aclose()


async def _examined(checkup: Checkup, profile: Profile, platform: str, beside: Beside | None) -> list[Finding]:
    serving = beside is not None and beside.receives(profile.name, platform)
    found = await checkup.account(serving=serving)
    clock = await clock_finding(checkup.time_url, platform.capitalize())
    if clock is not None:
        found.append(clock)
    if beside is not None:
        found.append(beside.health_finding(profile.name, platform))
    if any(each.level == "problem" and each.about in ("token", "connection") for each in found[:1]):
        return found
    if isinstance(checkup, GroupCheckup):
        found += [await checkup.group(group) for group in groups_on(profile, platform)]
    for place in named_places(profile):
        if place.platform == platform:
            found.append(await checkup.place(place))
    return found


def _reachable(config: Config) -> list[Finding]:
    """A platform posts to an address of ours, so there must be one that it can reach."""
    settings: Any = config.gateway
    name = urlsplit(settings.hooks_url).hostname if settings.hooks_url else settings.hooks_host
    if not is_loopback(name or ""):
        return []
    return [
        Finding.warning(
            "hooks address",
            f"The platform is told to post to {name}, which only this machine can reach.",
            "Set gateway.hooks_url to the public https address of the hooks listener.",
        )
    ]
