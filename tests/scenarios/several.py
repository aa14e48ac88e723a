"""One gateway on several platforms at once: their servers, the places everybody is asked in, and the stage."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.scenarios.gateways import GatewayProcess
from tests.scenarios.on_discord import DiscordGateway, DiscordHttp
from tests.scenarios.on_slack import SlackHttp, SlackSocket
from tests.scenarios.on_telegram import TelegramPoll, TelegramWebhook
from tests.scenarios.stage import AGENT, Stage
from tests.scenarios.transport import Transport

STREAMS: tuple[type[Transport], ...] = (TelegramPoll, DiscordGateway, SlackSocket)
HOOKS: tuple[type[Transport], ...] = (TelegramWebhook, DiscordHttp, SlackHttp)
TITLES = {"telegram": "Telegram", "discord": "Discord", "slack": "Slack"}
"""What people read of a platform."""
WITHOUT = """
import sys


class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {library!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, Missing())
"""
"""What the interpreter runs at its start so that a library that is there is not found."""


def platform_of(chat: Transport) -> str:
    """`telegram`, `discord` or `slack`."""
    return chat.name.partition("-")[0]


@asynccontextmanager
async def opened(kinds: Sequence[type[Transport]]) -> AsyncIterator[dict[str, Transport]]:
    """A fresh server of each kind, by platform."""
    async with AsyncExitStack() as stack:
        chats = [await stack.enter_async_context(kind.opened()) for kind in kinds]
        yield {platform_of(chat): chat for chat in chats}


async def groups(chats: Mapping[str, Transport]) -> dict[str, str]:
    """A new group on each platform."""
    return {platform: await chat.group() for platform, chat in chats.items()}


def also_to(places: Mapping[str, str]) -> str:
    """Settings by which everybody is asked in all of these places."""
    return f"[approvals]\nalso_to = {json.dumps(list(places.values()))}\n"


def without_library(folder: Path, library: str) -> str:
    """A folder for PYTHONPATH with which the interpreter does not find `library`, in front of what stands there."""
    made = folder / f"without-{library}"
    made.mkdir()
    (made / "sitecustomize.py").write_text(WITHOUT.format(library=library))
    return os.pathsep.join(filter(None, [str(made), os.environ.get("PYTHONPATH", "")]))


@asynccontextmanager
async def staged(
    chats: Mapping[str, Transport],
    folder: Path,
    *launch: str,
    settings: str = "",
    python_path: str = "",
    spoil: Callable[[str], str] = lambda config: config,
) -> AsyncIterator[Stage]:
    """A stage whose gateway serves all of them. `spoil` changes the configuration; `launch` goes to the launcher. At
    the end no platform may have been sent more than it takes, unless a launch lifted the budgets."""
    sections = "\n".join(chat.config() for chat in chats.values())
    gateway = GatewayProcess(
        folder, spoil(f"{settings}\n{sections}\n[agents.builder]\n{AGENT}\n"), python_path=python_path
    )
    stage = Stage(next(iter(chats.values())), gateway)
    try:
        for chat in chats.values():
            await chat.serves(gateway.hooks_url)
        await stage.open(*launch)
        yield stage
        if not launch:
            beyond = {name: await chat.server.limit_report() for name, chat in chats.items()}
            assert not any(report.total for report in beyond.values()), beyond
        assert gateway.defects() == [], gateway.defects()
    finally:
        await stage.aclose()
        await gateway.aclose()


async def health(stage: Stage, platform: str) -> dict[str, Any]:
    """What the gateway tells of one platform."""
    parts = (await stage.admin.health_detailed())["parts"]["platforms"]
    found: dict[str, Any] = parts[f"default/{platform}"]
    return found


def told(stage: Stage, platform: str) -> list[str]:
    """Lines of the log about one platform: what an operator must read."""
    log = stage.gateway.folder / f"gateway-{stage.gateway.starts}.log"
    return [line for line in log.read_text().splitlines() if platform in line.lower()]
