"""Trying answers at the platform as they are given."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from signoff.checkups import open_checkup
from signoff.doctoring.clocks import clock_finding
from signoff.errors import ConfigError
from signoff.model import Destination
from signoff.ports import Checkup, Finding, Introduction
from signoff.setup.writing import PlatformChoice


def settings_of(choice: PlatformChoice) -> dict[str, Any]:
    """What the adapter and its check-up are opened with."""
    return {**choice.settings, **{name: given.value for name, given in choice.secrets.items()}}


async def introduce(choice: PlatformChoice) -> Introduction:
    """Who the platform says that we are; raises `AdapterError`, `ConfigError`."""
    async with _checkup(choice) as checkup:
        return await checkup.introduce()


async def examine(choice: PlatformChoice) -> list[Finding]:
    """Everything about the account and the clock."""
    async with _checkup(choice) as checkup:
        found = await checkup.account(serving=False)
        clock = await clock_finding(checkup.time_url, choice.platform.capitalize())
    return found if clock is None else [*found, clock]


async def look_at(choice: PlatformChoice, place: Destination) -> Finding:
    """Whether a card can be posted in a place."""
    async with _checkup(choice) as checkup:
        return await checkup.place(place)


@asynccontextmanager
async def _checkup(choice: PlatformChoice) -> AsyncIterator[Checkup]:
    try:
        checkup = open_checkup(choice.platform, settings_of(choice))
    except ValueError as error:
        raise ConfigError(f"{error}.") from None
    if checkup is None:
        raise ConfigError(f"{choice.platform} has no check-up to set it up with; write its section by hand.")
    try:
        yield checkup
    finally:
        await checkup.aclose()
