"""With a console address, the id on every card links to the request's story there."""

from __future__ import annotations

from tests.unit.core.harness import SIGNER, World

from signoff.maker import Maker
from signoff.model import ApprovalRequest, Copy, Span
from signoff.rows import request_key


async def link(world: World, row: ApprovalRequest, console: str | None) -> list[Span]:
    """The links on the card of a question."""
    maker = Maker(world.store, world.clock, SIGNER, {"fake": world.chat.info}, console)
    copy = (await world.store.find(Copy, "request", request_key("default", row.request_id)))[0]
    card = await maker.card(copy, row, attach=True)
    return [span for block in card.blocks for span in block.spans if span.style == "link"]


async def test_the_id_links_to_the_story(world: World) -> None:
    row = await world.ask()
    [span] = await link(world, row, "https://signoff.example")
    assert (span.text, span.href) == (row.short_id, f"https://signoff.example/console/r/{row.short_id}")


async def test_without_an_address_there_is_no_link(world: World) -> None:
    row = await world.ask()
    assert await link(world, row, None) == []


async def test_an_ended_card_keeps_it(world: World) -> None:
    row = await world.ask()
    await world.tap(row, "deny")
    assert len(await link(world, await world.row(row), "https://signoff.example")) == 1
