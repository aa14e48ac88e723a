"""The console as a place where cards go: `console:NAME`, any name. Its pages draw the rows themselves, so a card stands
there as soon as it is saved, and an edit has nothing to do."""

from __future__ import annotations

import asyncio

from signoff.model import Card, Destination, Health, Posted
from signoff.ports import AdapterInfo, Clock, HookRoute, Inbox

PLATFORM = "console"


class ConsoleAdapter:
    """A `ChatAdapter` without anything to send. Answers come in through the pages, never through the inbox."""

    info = AdapterInfo(
        platform=PLATFORM,
        title="Console",
        per_second=1e6,
        per_chat_s=0.0,
        group_per_minute=10**6,
        resend_ambiguous=False,
    )

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0

    async def run(self, inbox: Inbox) -> None:
        """Nothing arrives here; returns when cancelled."""
        await asyncio.Event().wait()

    async def ready(self) -> None:
        """It always is."""

    def hooks(self) -> HookRoute | None:
        """It has none."""
        return None

    def is_group(self, destination: Destination) -> bool:
        """Budgets do not apply."""
        return False

    async def post(self, destination: Destination, card: Card, *, reply_to: str | None = None) -> Posted:
        """Give the card its place. Ids are microseconds, so they go on rising over a restart."""
        self._last = max(self._last + 1, int(self._clock.now().timestamp() * 1_000_000))
        return Posted(str(self._last), self._last)

    async def update(self, destination: Destination, message_id: str, card: Card) -> None:
        """The pages show what the row says."""

    async def delete(self, destination: Destination, message_id: str) -> None:
        """There is no message to remove."""

    def health(self) -> Health:
        """Ready, as long as the gateway serves."""
        return Health(state="ready")

    async def aclose(self) -> None:
        """There is no connection."""
