"""The list of a digest, where one person opens it: every question that waits, page by page, each with its id."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.core.bursts import PRIVATE, burst, digest_of, labels, listed, message_of, own_card, token, world_of
from tests.unit.core.harness import ANN, BEN, GROUP, World

from signoff.model import Answer, ApprovalRequest, Card
from signoff.testing.fake_adapter import FakeMessage


@pytest.fixture
async def world(make_world: Callable[..., World]) -> World:
    """A group that takes twenty messages a minute, where panels are private."""
    world = world_of(make_world, info=PRIVATE)
    await world.session(destination=GROUP)
    return world


async def standing(world: World, count: int) -> tuple[list[ApprovalRequest], FakeMessage]:
    """What a digest lists, the gravest first, and its message."""
    rows = await burst(world, count)
    await world.advance(20)
    found = await listed(world, rows)
    return found, await message_of(world, found[0])


async def press_panel(world: World, panel: Card, label: str, by: str = ANN) -> Answer:
    """Press a button of a private panel, whose message has no id that counts."""
    (pressed,) = [each.token for row in panel.rows for each in row if each.label.startswith(label)]
    return await world.chat.press(pressed, by=by, destination=GROUP)


def shown(panel: Card) -> tuple[list[str], list[str]]:
    """The lines of a panel, and the labels of its buttons."""
    text = "\n".join("".join(span.text for span in block.spans) for block in panel.blocks)
    return text.splitlines(), [each.label for row in panel.rows for each in row]


async def test_the_list_names_every_question_with_a_button_for_its_id(world: World) -> None:
    found, message = await standing(world, 60)
    assert len(found) > 30
    assert labels(message)[:5] == [*(row.short_id for row in found[:4]), "Open list"]
    told = await world.press(token(message, "Open list"), message)
    seen: list[str] = []
    while told.panel is not None:
        lines, buttons = shown(told.panel)
        assert lines[0] == f"{len(found)} wait: {len(found)} medium"
        page = [label for label in buttons if label in {row.short_id for row in found}]
        assert [line.split()[0] for line in lines[2:]] == page
        seen += page
        more = [label for label in buttons if label.endswith(" more…")]
        if not more:
            assert buttons[-2:] == ["From the start", "Close"]
            break
        assert more == [f"{len(found) - len(seen)} more…"]
        told = await press_panel(world, told.panel, more[0])
    assert seen == [row.short_id for row in found]
    assert told.panel is not None
    again = await press_panel(world, told.panel, "From the start")
    assert again.panel is not None
    assert shown(again.panel)[1][0] == found[0].short_id
    last = found[-1]
    opened = await press_panel(world, told.panel, last.short_id)
    assert opened.text == f"{last.short_id}: its own card comes now."
    await world.flush()
    assert (await own_card(world, last)).text.startswith("Medium: ")
    closed = await press_panel(world, told.panel, "Close")
    assert closed.text == "Closed. Nothing was decided here."
    assert {(await world.row(row)).outcome for row in found} == {None}


async def test_a_page_keeps_its_place_while_others_end(world: World) -> None:
    found, message = await standing(world, 60)
    first = (await world.press(token(message, "Open list"), message)).panel
    assert first is not None
    page = [label for label in shown(first)[1] if label in {row.short_id for row in found}]
    for row in found[: len(page) - 1]:
        await world.cancel(row)
    await world.cancel(found[len(page) + 1])
    second = (await press_panel(world, first, f"{len(found) - len(page)} more")).panel
    assert second is not None
    assert shown(second)[1][:2] == [found[len(page)].short_id, found[len(page) + 2].short_id]


async def test_who_may_not_decide_reads_no_list(world: World) -> None:
    found, message = await standing(world, 30)
    opens = token(message, "Open list")
    told = await world.press(opens, message, "9")
    assert told.panel is None
    assert told.alert
    assert (await world.press(opens, message, BEN)).panel is not None
    elsewhere = await world.chat.press(opens, destination=GROUP, message_id="777777")
    assert elsewhere.panel is None
    for row in found:
        await world.cancel(row)
    assert await world.press(opens, message) == Answer("Nothing of it waits any more. Nothing changed.", lost=True)


async def test_few_need_no_list_and_where_lists_fold_there_is_none(make_world: Callable[..., World]) -> None:
    world = world_of(make_world)
    await world.session(destination=GROUP)
    found, message = await standing(world, 30)
    assert labels(message)[:5] == [row.short_id for row in found[:5]]
    assert "Open list" not in labels(message)
    digest = await digest_of(world, found[0])
    forged = world.signer.token(digest.copy_id, 0, "list", GROUP.platform, GROUP.chat_id)
    assert (await world.press(forged, message)).panel is None


async def test_up_to_five_stand_with_a_button_each(world: World) -> None:
    found, message = await standing(world, 30)
    for row in found[5:]:
        await world.cancel(row)
    await world.advance(20)
    message = await message_of(world, found[0])
    assert labels(message)[:5] == [row.short_id for row in found[:5]]
