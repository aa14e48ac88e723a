"""More questions than a place takes cards: one message lists them, and hides none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.unit.core.bursts import (
    INFO,
    burst,
    delivered,
    digest_of,
    labels,
    listed,
    message_of,
    outcomes,
    standing,
    token,
    typed,
    world_of,
)
from tests.unit.core.harness import GROUP, World, choices_of, tokens_of

from signoff.changes import digests
from signoff.errors import SendRefused
from signoff.model import Destination, replace


@pytest.fixture
async def world(make_world: Callable[..., World]) -> World:
    """A group that takes twenty messages a minute."""
    world = world_of(make_world)
    await world.session(destination=GROUP)
    return world


def noted(world: World) -> list[datetime]:
    """When each message was sent from now on; a file is a message of its own."""
    times: list[datetime] = []
    post = world.chat.post

    async def timed(*args: Any, **facts: Any) -> Any:
        times.append(world.clock.now())
        posted = await post(*args, **facts)
        if posted.file_id is not None:
            times.append(world.clock.now())
        return posted

    world.chat.post = timed  # type: ignore[method-assign]  # to note when
    return times


def within_budget(times: list[datetime], *, group: bool) -> None:
    """Never more than three in three seconds, nor twenty a minute in a group."""
    for count, span_s in ((20, 60), (3, 2.9)) if group else ((3, 2.9),):
        for first, last in zip(times, times[count:], strict=False):
            assert last - first >= timedelta(seconds=span_s)


# --- a burst -------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [GROUP, Destination("fake", "100")])
async def test_a_hundred_are_answerable_within_a_minute(make_world: Callable[..., World], place: Destination) -> None:
    world = world_of(make_world)
    await world.session(destination=place)
    times = noted(world)
    rows = await burst(world, 100)
    await world.advance(60)
    after = [await world.row(row) for row in rows]
    assert all(row.delivered_to == (place,) for row in after), "everything was sent, on a card or on the digest"
    assert len(await listed(world, rows)) > 80
    single = [row for row in rows if (await world.copy(row)).message_id is not None]
    assert len(single) >= 3, "the first ones still have cards of their own"
    within_budget(times, group=place == GROUP)
    delivered = {event.request_id for event in await world.events("approval.delivered")}
    assert delivered == {row.request_id for row in rows}
    assert all(row.window_by is None and row.expires_at is not None for row in after)
    for row in after:
        assert await world.decide(row, "deny") == "won"
    await world.advance(30)
    for message in world.chat.shown():
        assert not tokens_of(message), "every sent card ends edited"
    for row in rows:
        assert {copy.state for copy in await world.copies(row)} == {"final"}


async def test_few_questions_keep_their_cards(world: World) -> None:
    rows = await burst(world, 12)
    await world.advance(60)
    assert await listed(world, rows) == []
    assert len(world.chat.shown()) == 12


async def test_late_ones_get_a_card_or_the_next_digest(world: World) -> None:
    first, message = await standing(world)
    await world.session("late", destination=GROUP)
    (late,) = await burst(world, 1, "late")
    await world.advance(20)
    assert (await world.copy(late)).message_id is not None
    more = await burst(world, 40, "late")
    await world.advance(60)
    second = {(await digest_of(world, row)).copy_id for row in await listed(world, more)}
    assert second
    assert (await digest_of(world, first[0])).copy_id not in second
    assert (await world.chat.press(token(message, "Deny all"), message_id=message.message_id)).text.startswith("Denied")
    assert await outcomes(world, more) == {None}


async def test_an_agents_flood_does_not_hide_anothers_question(world: World) -> None:
    await world.session("quiet", destination=GROUP)
    await burst(world, 150)
    await world.advance(1)
    (quiet,) = await burst(world, 1, "quiet")
    await world.advance(15)
    assert (await world.row(quiet)).delivered_to == (GROUP,)
    assert (await world.copy(quiet)).message_id is not None, "on a card of its own"


async def test_a_card_put_off_before_the_flood_does_not_wait_for_all_of_it(world: World) -> None:
    early = await burst(world, 14)
    await world.flush()
    assert await listed(world, early) == []
    await world.session("more", destination=GROUP)
    more = await burst(world, 80, "more")
    (last,) = await burst(world, 1, host="ci-4")
    await world.advance(25)
    assert await delivered(world, [*early, *more, last])


async def test_what_is_listed_gives_up_its_place_in_the_line(world: World) -> None:
    early = await burst(world, 14)
    await world.flush()
    rows = await burst(world, 60, host="ci-4")
    await world.advance(10)
    assert await delivered(world, [*early, *rows])
    after = await burst(world, 5, host="ci-5")
    await world.advance(8)
    assert await delivered(world, after), "they do not stand behind those that need no turn any more"


async def test_cards_beside_a_digest_keep_the_budget(world: World) -> None:
    times = noted(world)
    rows = await burst(world, 40)
    await world.flush()
    for name in ("a", "b", "c", "d"):
        await world.session(name, destination=GROUP)
        rows += await burst(world, 1, name)
    await world.advance(20)
    assert await delivered(world, rows)
    within_budget(times, group=True)


async def test_a_digest_lists_a_hundred_at_most(world: World) -> None:
    times = noted(world)
    rows = await burst(world, 250)
    await world.advance(60)
    within_budget(times, group=True)
    names: dict[str, int] = {}
    for row in await listed(world, rows):
        name = (await digest_of(world, row)).copy_id
        names[name] = names.get(name, 0) + 1
    assert max(names.values()) == digests.MOST
    assert await delivered(world, rows)


async def test_a_long_action_keeps_its_own_card(world: World) -> None:
    long = await world.submit("deploy " + "x" * digests.LISTABLE_CHARS)
    rows = await burst(world, 30)
    await world.advance(60)
    assert await listed(world, [long]) == []
    assert (await world.row(long)).delivered_to == (GROUP,)
    assert await listed(world, rows)


# --- what it shows -------------------------------------------------------------------------------


async def test_up_to_twenty_are_named_one_by_one(world: World) -> None:
    rows = await burst(world, 20)
    await world.put(replace(rows[-1], severity="critical"), replace(rows[-2], severity="high"))
    await world.advance(20)
    found = await listed(world, rows)
    message = await message_of(world, found[0])
    assert message.text.startswith(f"{len(found)} wait: 1 critical, 1 high, {len(found) - 2} medium\n")
    assert f"🛑 {rows[-1].short_id} critical: " in message.text
    assert all(row.short_id in message.text for row in found)
    (fold,) = [block for block in message.card.blocks if block.fold]
    assert fold.kind == "quote"
    assert "First expires " in message.text
    assert f"All {len(found)} in full: requests-0900.txt" in message.text
    assert message.card.attachment is not None
    assert all(f"    {row.action.command}\n" in message.card.attachment.content.decode() for row in found)  # type: ignore[union-attr]  # commands
    assert labels(message)[:2] == [rows[-1].short_id, rows[-2].short_id], "the gravest first"
    assert labels(message)[5:] == [f"Approve {len(found) - 1} once…", f"Deny all {len(found)}"]


async def test_a_hundred_are_grouped(world: World) -> None:
    found, message = await standing(world, 100)
    assert "× medium: " in message.text
    assert found[30].short_id not in message.text
    assert message.card.attachment is not None
    assert all(row.short_id.encode() in message.card.attachment.content for row in found)


async def test_hostile_text_stays_in_its_place(world: World) -> None:
    evil = "deploy a\n7Q2MK · Low: harmless\n    ls\u202e @all <b>x</b> `code` ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    first = await burst(world, 4)
    row = await world.submit(evil, reason="x\n7Q2MK · Low: harmless")
    rest = await burst(world, 16, host="h" * 200)
    await world.put(replace(await world.row(row), severity="high"))
    await world.advance(20)
    message = await message_of(world, row)
    assert message.card.attachment is not None
    text = message.card.attachment.content.decode()
    assert not any(line.startswith("7Q2MK") for line in text.split("\n"))
    assert "⟨U+202E⟩" in text
    assert "abcdefghijklmnopqrstuvwxyz" not in text + message.text
    (code,) = [block for block in message.card.blocks if block.kind == "code"]
    assert "\n" not in code.spans[0].text
    assert len(message.text) < INFO.max_text_units
    assert first and rest


async def test_it_fits_the_smallest_platform(make_world: Callable[..., World]) -> None:
    world = world_of(make_world, info=replace(INFO, max_text_units=2000))
    await world.session(destination=GROUP)
    rows = [await world.submit(f"deploy {number} {'long/' * 60}", host="h" * 60) for number in range(20)]
    await world.advance(30)
    found = await listed(world, rows)
    message = await message_of(world, found[0])
    assert len(message.text) <= 2000
    assert " more in requests-0900.txt" in message.text


async def test_without_its_file_nothing_can_be_approved_on_it(world: World) -> None:
    rows = await burst(world, 30)
    await world.flush()  # the first cards
    world.chat.fail(SendRefused("no files"))
    await world.advance(20)
    found = await listed(world, rows)
    message = await message_of(world, found[0])
    assert message.card.attachment is None
    assert "all_once" not in choices_of(message)
    assert {"all_deny", "open"} <= set(choices_of(message))
    assert "An id opens its own card." in message.text
    digest = await digest_of(world, found[0])
    forged = world.signer.token(digest.copy_id, 0, "all_once", "fake", GROUP.chat_id)
    assert (await world.press(forged, message)).text == "This button is not known here. Nothing was decided."
    assert "its whole text was not shown" in await typed(world, "/approve all")
    assert await outcomes(world, found) == {None}
    assert "could not be attached" in await typed(world, f"/approve {found[0].short_id}")
