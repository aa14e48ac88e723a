"""Every type of event that the documentation names reaches a reader of the stream."""

from __future__ import annotations

from tests.docs.pages import ROOT, plain, rows
from tests.unit.server.world import World

from signoff.model import Event
from signoff.ports import Tx

TYPES = [plain(row[0]) for row in rows(ROOT / "docs" / "events.md", "type")]


async def test_every_documented_event_is_streamed(world: World) -> None:
    ops = await world.client("ops")

    def change(tx: Tx) -> None:
        for kind in TYPES:
            tx.emit(Event(profile="default", type=kind, at=tx.now, session_id="s"))

    async with ops.events() as reader:
        await world.core.store.transact(change)
        heard = [(await reader.next())["type"] for _ in TYPES]
    assert heard == TYPES
    assert "hook.failed" in heard
