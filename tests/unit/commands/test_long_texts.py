"""Commands about a question with a very long text are answered without masking it on the event loop."""

from __future__ import annotations

import pytest
from tests.unit.commands.world import World
from tests.unit.core.long_texts import LONG, Watch, watch

__all__ = ["watch"]


@pytest.mark.parametrize("text", ["/why", "/pending", "/deny because it is long"])
async def test_a_command_about_a_long_one(world: World, watch: Watch, text: str) -> None:
    row = await world.ask("rm -rf build\n" + LONG)
    reply = await world.type(text)
    assert row.short_id in reply or "enied" in reply
    watch.holds()
