"""What the buttons of a digest decide, for whom, and what typed commands do with what it lists."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.unit.core.bursts import (
    PRIVATE,
    burst,
    digest_of,
    labels,
    listed,
    message_of,
    outcomes,
    own_card,
    standing,
    token,
    typed,
    world_of,
)
from tests.unit.core.harness import ANN, BEN, GROUP, OTHER_PLACE, World, choices_of, tokens_of

from signoff.model import Answer, Button, Elicitation, replace
from signoff.testing.fake_adapter import FakeMessage


@pytest.fixture
async def world(make_world: Callable[..., World]) -> World:
    """A group that takes twenty messages a minute."""
    world = world_of(make_world)
    await world.session(destination=GROUP)
    return world


# --- its buttons ---------------------------------------------------------------------------------


async def confirmed(world: World, message: FakeMessage, by: str = ANN) -> Answer:
    """Press approve, and yes on the panel."""
    await world.press(token(message, "Approve "), message, by)
    await world.flush()
    panel = world.chat.shown()[-1]
    return await world.press(token(panel, "Yes, approve these"), panel, by)


async def test_approving_takes_a_second_tap_and_leaves_what_is_critical(world: World) -> None:
    rows = await burst(world, 30)
    await world.put(*(replace(row, severity="critical") for row in rows[-2:]))
    await world.advance(20)
    found = await listed(world, rows)
    message = await message_of(world, found[0])
    count = len(found) - 2
    told = await world.press(token(message, f"Approve {count} once…"), message)
    assert told.text == f"Confirm with “Yes, approve these {count}”."
    await world.flush()
    panel = world.chat.shown()[-1]
    assert panel.reply_to == message.message_id
    assert panel.text.startswith(f"{count} runs on ci-3: ")
    assert "Critical ones stay." in panel.text
    assert await outcomes(world, found) == {None}
    told = await world.press(token(panel, "Yes"), panel)
    assert told.text == f"Approved {count} once. The agents are told. 2 left: 2 critical."
    await world.flush()
    assert panel.message_id not in [each.message_id for each in world.chat.shown()]
    message = await message_of(world, found[0])
    first, second, *_ = message.text.splitlines()
    assert first == f"✅ {count} approved once by “Ann” [fake 1] · 09:00 UTC · 2 left (critical)"
    assert second == "2 wait: 2 critical"
    assert labels(message) == [rows[-2].short_id, rows[-1].short_id, "Deny all 2"]
    # Then it counts what became of them, in edits that keep their distance.
    approved = [row for row in found if row.short_id not in (rows[-1].short_id, rows[-2].short_id)]
    edits = len([call for call, _ in world.chat.calls if call == "update"])
    for number, row in enumerate(approved[:5]):
        await world.claim(row, f"c{number}")
        if number < 4:
            await world.broker.result("default", row.request_id, "succeeded" if number else "failed", 0)
        await world.advance(1)
    await world.advance(10)
    message = await message_of(world, found[0])
    assert f"Succeeded 3, failed 1, running 1, not started {count - 5}." in message.text
    assert len([call for call, _ in world.chat.calls if call == "update"]) - edits <= 2
    await world.press(token(message, "Deny all 2"), message)
    await world.advance(700)
    message = await message_of(world, found[0])
    assert "⛔ 2 denied by “Ann” [fake 1]" in message.text
    assert not tokens_of(message)


async def test_what_a_person_accepts_for_itself_is_not_counted(world: World) -> None:
    rows = await burst(world, 28)
    page = Elicitation(server="jira", message="Please log in.", url="https://auth.example.com/in")
    rows += [await world.submit(page, host="ci-3") for _ in range(2)]
    await world.advance(20)
    found = await listed(world, rows)
    single = [row for row in found if isinstance(row.action, Elicitation)]
    assert single
    message = await message_of(world, found[0])
    await world.press(token(message, f"Approve {len(found) - len(single)} once…"), message)
    await world.flush()
    assert "an answer of its own and stays." in world.chat.shown()[-1].text
    assert await outcomes(world, single) == {None}


async def test_denying_all_takes_one_tap(world: World) -> None:
    found, message = await standing(world)
    told = await world.press(token(message, "Deny all"), message)
    assert told.text == f"Denied {len(found)}. The agents are told."
    await world.flush()
    assert await outcomes(world, found) == {"denied"}
    after = await message_of(world, found[0])
    assert after.text.startswith(f"⛔ {len(found)} denied by “Ann” [fake 1] · 09:00 UTC · not run")
    assert not tokens_of(after)
    assert (await digest_of(world, found[0])).state == "final"
    again = await world.press(token(message, "Deny all"), message, BEN)
    assert again.lost
    assert again.text == "Nothing of it waits any more. Nothing changed."


async def test_an_id_opens_its_own_card(world: World) -> None:
    found, message = await standing(world)
    (row,) = [each for each in found if each.short_id == labels(message)[0]]
    told = await world.press(token(message, row.short_id), message)
    assert told.text == f"{row.short_id}: its own card comes now."
    await world.flush()
    card = await own_card(world, row)
    assert "once" in choices_of(card)
    assert (await world.press(token(message, row.short_id), message)).text.startswith(f"{row.short_id} has a card")
    await world.tap(row, "session")
    assert (await world.row(row)).choice == "session"
    await world.advance(20)
    assert "1 approved by “Ann”" in (await message_of(world, row)).text
    late = await world.press(token(message, row.short_id), message, BEN)
    assert late.lost
    assert late.text.startswith("Already approved by")
    await world.broker.undo("default", row.request_id, (await world.row(row)).decided_by[0])
    await world.advance(20)
    assert "not run 1" in (await message_of(world, row)).text


async def test_strangers_and_forgers_decide_nothing(world: World) -> None:
    found, message = await standing(world)
    for label in ("Approve ", "Deny all", labels(message)[0]):
        told = await world.press(token(message, label), message, "9")
        assert told.text.startswith("You may not decide here"), label
    deny = token(message, "Deny all")
    forged = deny[:20] + ("A" if deny[20] != "A" else "B") + deny[21:]
    assert (await world.press(forged, message)).text.startswith("This button is not known")
    elsewhere = await world.chat.press(token(message, "Deny all"), destination=OTHER_PLACE, message_id="5")
    assert elsewhere.text.startswith("This button is not known")
    other = next(each for each in world.chat.shown() if each.message_id != message.message_id)
    for label in ("Deny all", "Approve ", labels(message)[0]):
        assert (await world.press(token(message, label), other)).text.startswith("This button is not known"), label
    digest = await digest_of(world, found[0])
    for choice in ("once", "undo", "open", "confirm", "typed", "more"):
        forged = world.signer.token(digest.copy_id, 0, choice, "fake", GROUP.chat_id)
        await world.press(forged, message, "9")
    assert await outcomes(world, found) == {None}
    assert len(await world.events("tap.refused")) >= 3


async def test_a_panel_obeys_who_opened_it(world: World) -> None:
    found, message = await standing(world)
    await world.press(token(message, "Approve "), message)
    await world.flush()
    panel = world.chat.shown()[-1]
    told = await world.press(token(panel, "Yes"), panel, BEN)
    assert "opened this one" in told.text
    assert await outcomes(world, found) == {None}
    assert (await world.press(token(panel, "Close"), panel)).text == "Closed. Nothing was decided here."
    await world.flush()
    assert panel.message_id not in [each.message_id for each in world.chat.shown()]
    await world.press(token(message, "Approve "), message)
    await world.flush()
    second = world.chat.shown()[-1]
    await world.press(token(message, "Approve "), message)
    await world.flush()
    assert second.message_id not in [each.message_id for each in world.chat.shown()], "one panel a person"
    await world.press(token(message, "Deny all"), message, BEN)
    await world.advance(10)
    assert not [each for each in world.chat.shown() if "Yes, approve" in " ".join(labels(each))], "it goes with the end"


async def test_a_private_panel_is_the_answer(make_world: Callable[..., World]) -> None:
    world = world_of(make_world, info=PRIVATE)
    await world.session(destination=GROUP)
    found, message = await standing(world)
    before = len(world.chat.messages)
    opened = await world.press(token(message, "Approve "), message)
    assert opened.panel is not None
    await world.flush()
    assert len(world.chat.messages) == before
    yes: Button = opened.panel.rows[0][0]
    assert yes.label == f"Yes, approve these {len(found)}"
    told = await world.chat.press(yes.token, by=BEN, destination=GROUP, message_id="777777")
    assert "opened this one" in told.text
    told = await world.chat.press(yes.token, destination=GROUP, message_id="777777")
    assert told.text == f"Approved {len(found)} once. The agents are told."
    assert await outcomes(world, found) == {"approved"}


async def test_opening_the_panel_gives_two_minutes(world: World) -> None:
    rows = await burst(world, 30, timeout_s=60)
    await world.advance(10)
    found = await listed(world, rows)
    message = await message_of(world, found[0])
    now = world.clock.now()
    await world.press(token(message, "Approve "), message)
    for row in found:
        assert (await world.row(row)).expires_at == now + timedelta(seconds=120)


async def test_a_tap_decides_what_its_revision_counted(world: World) -> None:
    found, message = await standing(world)
    row = found[0]
    twins = [await world.submit(row.action, host="ci-3") for _ in range(2)]
    assert twins[0].leader_id == row.request_id
    told = await confirmed(world, message)
    assert told.text == f"Approved {len(found)} once. The agents are told."
    assert await outcomes(world, twins) == {None}, "nobody had seen them"


async def test_followers_count_as_runs_once_shown(world: World) -> None:
    found, _ = await standing(world)
    twin = await world.submit(found[0].action, host="ci-3")
    await world.advance(15)
    message = await message_of(world, found[0])
    assert message.text.startswith(f"{len(found) + 1} wait: ")
    told = await confirmed(world, message)
    assert told.text == f"Approved {len(found) + 1} once. The agents are told."
    assert (await world.row(twin)).outcome == "approved"


async def test_a_question_taken_over_is_not_decided_by_an_older_button(world: World) -> None:
    found, message = await standing(world)
    row = found[0]
    twin = await world.submit(row.action, host="ci-3")
    await world.cancel(row)
    told = await world.press(token(message, "Deny all"), message)
    assert told.text == f"Denied {len(found) - 1}. The agents are told. 1 left: 1 only one by one."
    assert (await world.row(twin)).outcome is None
    await world.advance(15)
    message = await message_of(world, twin)
    assert message.text.splitlines()[1].startswith("1 waits: ")
    assert (await world.press(token(message, "Deny all 1"), message)).text == "Denied 1. The agent is told."
    assert (await world.row(twin)).outcome == "denied"


# --- typed commands ------------------------------------------------------------------------------


async def test_commands_cover_what_is_listed(world: World) -> None:
    found, message = await standing(world)
    assert f"{len(found) + 3} wait here" in await typed(world, "/pending")
    assert "decided" in (await typed(world, "/approve", reply_to=message.message_id)).lower()
    assert await outcomes(world, found) == {None}, "a reply to the digest names none of them"
    assert found[1].short_id in await typed(world, f"/deny {found[1].short_id} not now")
    assert "29 of 30 approved once" in await typed(world, "/approve all")
    assert await outcomes(world, found) == {"approved", "denied"}
    await world.advance(15)
    after = await message_of(world, found[0])
    assert f"✅ {len(found) - 1} approved once by “Ann” [fake 1]" in after.text
    assert "⛔ 1 denied by “Ann” [fake 1] · 09:00 UTC · not run · Reason given: “not now”" in after.text
    assert not tokens_of(after)


async def test_stop_ends_what_is_listed(world: World) -> None:
    found, _ = await standing(world)
    await typed(world, "/stop")
    assert await outcomes(world, found) == {"cancelled"}
    await world.advance(15)
    after = await message_of(world, found[0])
    assert after.text.startswith(f"⏹ {len(found)} cancelled · 09:00 UTC · “Ann” [fake 1] stopped the session · not run")
    assert not tokens_of(after)


async def test_what_times_out_is_told(world: World) -> None:
    found, message = await standing(world)
    await world.advance(400)
    assert await outcomes(world, found) == {"timeout"}
    assert f"⌛ {len(found)} timeout" in (await message_of(world, found[0])).text
    told = await world.press(token(message, "Deny all"), message)
    assert told.text == "Nothing of it waits any more. Nothing changed."
