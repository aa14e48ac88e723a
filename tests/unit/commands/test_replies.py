"""Who shows the reply to a typed command: the gateway, or the adapter, privately or to all."""

from __future__ import annotations

from typing import Literal

import pytest
from tests.unit.commands.world import ANA, EVE, ROOM, World

from signoff.model import Person
from signoff.testing.fake_adapter import FakeMessage

Replies = Literal["posted", "private", "all"]


def text(world: World) -> str:
    """The last reply that was left to the adapter."""
    return "\n".join("".join(span.text for span in block.spans) for block in world.adapter.replies[-1].card.blocks)


async def posted(world: World, said: str, replies: Replies, by: str = ANA) -> list[FakeMessage]:
    """Say it; what the gateway posted for it."""
    before = len(world.adapter.messages)
    await world.adapter.say(said, where=ROOM, by=by, replies=replies)
    await world.dispatcher.idle()
    return [each for each in world.adapter.messages[before:] if each.reply_to is not None]


@pytest.mark.parametrize("replies", ["private", "all"])
async def test_a_list_is_for_who_asked(world: World, replies: Replies) -> None:
    row = await world.ask()
    assert await posted(world, "/pending", replies) == []
    assert world.adapter.replies[-1].private
    assert row.short_id in text(world)


async def test_a_refusal_is_for_who_asked(world: World) -> None:
    row = await world.ask()
    assert await posted(world, f"/approve {row.short_id}", "private", by=EVE) == []
    assert world.adapter.replies[-1].private
    assert (await world.row(row)).outcome is None


async def test_a_decision_is_told_to_the_place(world: World) -> None:
    row = await world.ask()
    told = await posted(world, f"/approve {row.short_id}", "private")
    assert [each.text for each in told] == [f"{row.short_id} approved once. The agent is told."]
    assert world.adapter.replies == []


@pytest.mark.parametrize("said", ["/approve", "/deny", "/approve all", "/stop", "/new"])
async def test_an_adapter_that_shows_all_shows_decisions_to_all(world: World, said: str) -> None:
    await world.ask()
    assert await posted(world, said, "all") == []
    assert not world.adapter.replies[-1].private


async def test_suggestions_are_what_waits_here(world: World) -> None:
    rows = [await world.ask("deploy one"), await world.ask("deploy two")]
    inbox_pending = await world.commands.pending("default", ROOM, Person(platform="fake", user_id=ANA))
    assert [each.short_id for each in inbox_pending] == [row.short_id for row in rows]
    assert "deploy one" in inbox_pending[0].line
    assert await world.commands.pending("default", ROOM, Person(platform="fake", user_id=EVE)) == []
