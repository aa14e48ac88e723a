"""Platforms that show a panel to one person only, and ask for a typed reason in a dialog."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.core.harness import ANN, BEN, PLACE, World

from signoff.model import Answer, Button, Copy
from signoff.ports import AdapterInfo

INFO = AdapterInfo(
    platform="fake",
    title="Fake",
    private_panels=True,
    dialogs=True,
    per_second=1e6,
    per_chat_s=0.0,
    group_per_minute=10**6,
)


@pytest.fixture
async def world(make_world: Callable[..., World]) -> World:
    """A world on such a platform."""
    world = make_world(info=INFO)
    await world.session()
    await world.turn()
    return world


def button(answer: Answer, label: str) -> Button:
    """The panel's button whose label begins so."""
    assert answer.panel is not None
    buttons = [each for row in answer.panel.rows for each in row if each.label.startswith(label)]
    assert len(buttons) == 1, [each.label for row in answer.panel.rows for each in row]
    return buttons[0]


async def press(world: World, token: str, by: str = ANN, text: str | None = None) -> Answer:
    """A press on an ephemeral message, whose id nobody keeps."""
    return await world.chat.press(token, by=by, destination=PLACE, message_id="777777", text=text)


async def test_a_panel_is_the_answer_to_the_tap(world: World) -> None:
    row = await world.ask()
    before = len(world.chat.shown())
    opened = await world.tap(row, "because")
    await world.flush()
    assert opened.text == ""
    assert len(world.chat.shown()) == before, "nothing was posted"
    assert (await press(world, button(opened, "Not now").token)).text == "Denied. The agent reads: “not now”."
    assert (await world.row(row)).outcome == "denied"
    await world.settle()
    assert world.chat.messages[before:] == [], "and nothing is removed"


async def test_a_panel_obeys_who_opened_it(world: World) -> None:
    row = await world.ask()
    opened = await world.tap(row, "more")
    told = await press(world, button(opened, "Wait").token, by=BEN)
    assert told.text.endswith("opened this one. Use the buttons of the card.")
    assert (await world.row(row)).outcome is None


async def test_a_panel_outlives_a_restart_and_tells_the_truth(world: World, make_world: Callable[..., World]) -> None:
    row = await world.ask()
    opened = await world.tap(row, "because")
    later = make_world(info=INFO, chat=world.chat)
    await later.tap(row, "deny", by=BEN)
    told = await press(later, button(opened, "Not now").token)
    assert told.text.startswith("Already denied by")
    assert told.lost


async def test_a_panel_opens_another(world: World) -> None:
    row = await world.ask()
    opened = await world.tap(row, "more")
    why = await press(world, button(opened, "Why").token)
    assert why.panel is not None
    assert (await press(world, button(why, "Close").token)).text == "Closed. Nothing was decided here."


async def test_closing_and_waiting_leave_nothing_due(world: World) -> None:
    row = await world.ask()
    opened = await world.tap(row, "more")
    assert "now waits until" in (await press(world, button(opened, "Wait").token)).text
    await world.flush()
    copies = await world.store.find(Copy, "request", f"default/{row.request_id}")
    panels = [copy for copy in copies if copy.kind == "panel"]
    assert all(copy.private and copy.due_at is None and copy.message_id is None for copy in panels)


async def test_a_dialog_asks_for_the_reason(world: World) -> None:
    row = await world.ask()
    opened = await world.tap(row, "because")
    asked = await press(world, button(opened, "Type it").token)
    assert asked.dialog is not None
    assert (asked.dialog.title, asked.dialog.max_units) == (f"Deny {row.short_id}", 280)
    assert (await world.row(row)).outcome is None
    told = await press(world, asked.dialog.token, text="wrong  folder\nplease " + "x" * 300)
    after = await world.row(row)
    assert after.outcome == "denied"
    assert (after.reason or "").startswith("wrong folder please xxx")
    assert "were cut" in told.text or "cut" in told.text


async def test_a_dialog_without_words_denies_without_a_reason(world: World) -> None:
    row = await world.ask()
    asked = await press(world, button(await world.tap(row, "because"), "Type it").token)
    assert asked.dialog is not None
    assert (await press(world, asked.dialog.token, text="  ")).text == "Denied. The agent is told."
    assert (await world.row(row)).reason is None


async def test_a_dialog_obeys_who_opened_it(world: World) -> None:
    row = await world.ask()
    opened = await world.tap(row, "because")
    type_it = button(opened, "Type it").token
    assert (await press(world, type_it, by=BEN)).dialog is None
    asked = await press(world, type_it)
    assert asked.dialog is not None
    await press(world, asked.dialog.token, by=BEN, text="mine")
    assert (await world.row(row)).outcome is None


async def test_an_ended_question_opens_no_dialog(world: World) -> None:
    row = await world.ask()
    type_it = button(await world.tap(row, "because"), "Type it").token
    await world.tap(row, "deny", by=BEN)
    told = await press(world, type_it)
    assert told.dialog is None
    assert told.text.startswith("Already denied by")
