"""Which platforms do not work now. No event tells of it, so the gateway is asked, for all pages together."""

from __future__ import annotations

import asyncio

from signoff.server.core import Core
from signoff.wording import t

BAD = frozenset({"degraded", "stopped"})


class Troubles:
    """What the pages say of platforms that do not work, asked for at most every so often."""

    def __init__(self, core: Core, *, every_s: float) -> None:
        self._core = core
        self._every_s = every_s
        self._asking = asyncio.Lock()
        self._asked_at = -float("inf")
        self._found: dict[str, dict[str, str]] = {}

    async def of(self, profile: str) -> dict[str, str]:
        """The platforms of the profile that do not work, each with a sentence."""
        async with self._asking:
            now = asyncio.get_running_loop().time()
            if now - self._asked_at >= self._every_s:
                self._found = await self._ask()
                self._asked_at = now
        return self._found.get(profile, {})

    async def _ask(self) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {}
        for name, each in (await self._core.health()).get("platforms", {}).items():
            profile, _, platform = name.partition("/")
            if each.get("state") in BAD:
                text = t("console.pending.trouble", platform=title_of(self._core, profile, platform))
                found.setdefault(profile, {})[platform] = text
        return found


def title_of(core: Core, profile: str, platform: str) -> str:
    """A platform's name for people; one that was given up has no adapter any more."""
    adapter = core.adapters.get((profile, platform))
    return adapter.info.title if adapter is not None else platform.capitalize()
