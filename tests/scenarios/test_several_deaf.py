"""Each way in which a chat library stays deaf and looks healthy, sprung on a running gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.platforms.discord import DiscordPlatform, SeenSession
from tests.platforms.slack import SlackPlatform
from tests.platforms.telegram import TelegramPlatform
from tests.scenarios import several
from tests.scenarios.gateways import soon
from tests.scenarios.several import STREAMS

HEALED_WITHIN_S = 30.0
"""From the moment a trap springs until a press was heard and the adapter has told of it and is ready again."""


class Trap(Struct, frozen=True, kw_only=True):
    """How to spring it, and what the adapter's history tells afterwards."""

    name: str
    platform: str
    spring: Callable[[Any], Awaitable[None]]
    told: str
    quick: bool = False


async def poll_refused(server: TelegramPlatform) -> None:
    """A proxy answers one poll: the library's updater ends for good at it."""
    await server.fault("401", method="getUpdates")


async def poll_not_found(server: TelegramPlatform) -> None:
    """The same with another status."""
    await server.fault("404", method="getUpdates")


async def unreadable_press(server: DiscordPlatform) -> None:
    """A press comes in a shape at which the library's client ends for good, open and ready by its own account, and the
    next in another such shape, which we can read."""
    await server.dispatch("INTERACTION_CREATE", {"id": 7, "type": "three", "channel": []})
    await server.malform_next("thread_null")


async def handshake_failed(server: DiscordPlatform) -> None:
    """The library's client waits longer each time a handshake fails, up to 1024 s, and its old session is gone then."""
    await server.refuse_resumes(1)
    await server.fail_handshakes(2)
    await server.drop_gateway()


async def silent_gateway(server: DiscordPlatform) -> None:
    """The connection stands, and nothing at all comes through it until another one is made."""

    def left(sessions: list[SeenSession]) -> bool:
        return not any(session.connected for session in sessions)

    await server.freeze_gateway()
    await server.until(server.sessions, left, timeout_s=HEALED_WITHIN_S)
    await server.freeze_gateway(frozen=False)


async def used_ticket(server: SlackPlatform) -> None:
    """The library's client tries the address of a failed handshake for ever, though it works once."""
    await server.fault("handshake", times=2)
    await server.abort_sockets()


async def deaf_sockets(server: SlackPlatform) -> None:
    """The sockets stand and answer pings, and no envelope comes."""
    await server.deafen()


async def dead_sockets(server: SlackPlatform) -> None:
    """The sockets stand and no ping is answered."""
    await server.deafen()
    await server.mute_pongs()


TRAPS = (
    Trap(name="poll refused", platform="telegram", spring=poll_refused, told="Telegram answered 401", quick=True),
    Trap(name="poll not found", platform="telegram", spring=poll_not_found, told="Telegram answered 404"),
    Trap(name="unreadable press", platform="discord", spring=unreadable_press, told="could not be read", quick=True),
    Trap(name="handshake failed", platform="discord", spring=handshake_failed, told="Discord: the connection failed"),
    Trap(name="silent gateway", platform="discord", spring=silent_gateway, told="Discord: the connection ended"),
    Trap(name="used ticket", platform="slack", spring=used_ticket, told="Socket Mode could not be opened", quick=True),
    Trap(name="deaf sockets", platform="slack", spring=deaf_sockets, told="reported back"),
    Trap(name="dead sockets", platform="slack", spring=dead_sockets, told="degraded: socket"),
)


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "trap",
    [
        pytest.param(trap, id=trap.name.replace(" ", "-"), marks=[] if trap.quick else [pytest.mark.heavy])
        for trap in TRAPS
    ],
)
async def test_it_heals_and_tells(trap: Trap, tmp_path: Path) -> None:
    kinds = [kind for kind in STREAMS if kind.name.startswith(trap.platform)]
    async with several.opened(kinds) as chats:
        chat = chats[trap.platform]
        place = await chat.group()
        async with several.staged(chats, tmp_path) as stage:
            session = await stage.session("trapped", place)
            before = stage.work("deploy ./before", session)
            await chat.tapped("ana", await chat.card(place, "./before"), "Approve once")
            assert (await before).may_run

            history: list[str] = []

            async def healed() -> bool:
                health = await several.health(stage, trap.platform)
                history[:] = health["history"]
                return health["state"] == "ready" and any(trap.told in line for line in history)

            try:
                async with asyncio.timeout(HEALED_WITHIN_S):
                    await trap.spring(chat.server)
                    asked = stage.work("deploy ./after", session)
                    card = await chat.card(place, "./after")
                    assert "pproved once" in await chat.insist(await chat.tap("bo", card, "Approve once"))
                    assert (await asked).may_run
                    await soon(healed)
            except TimeoutError:
                pytest.fail(f"not healed within {HEALED_WITHIN_S:g} s: {history}")
            assert stage.gateway.starts == 1
