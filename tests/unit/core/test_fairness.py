"""Where a place takes few messages: whose card goes next, and how a question ends whose card never got its turn."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.unit.core.harness import GROUP, PLACE, World

from signoff.errors import SendAmbiguous
from signoff.model import ApprovalRequest
from signoff.ports import AdapterInfo

SLOW = AdapterInfo(platform="fake", title="Fake", per_second=1e6, per_chat_s=1.0, group_per_minute=20)
NEVER = AdapterInfo(platform="fake", title="Fake", per_second=1e6, per_chat_s=10_000.0, group_per_minute=10**6)
"""Three messages, and no more within a test."""


async def flood(world: World, session_id: str, count: int) -> list[ApprovalRequest]:
    rows = []
    for n in range(count):
        await world.clock.advance(0.001)
        rows.append(await world.submit(f"deploy {session_id} {n}", session_id))
    return rows


async def shown_order(world: World) -> list[str]:
    """The sessions of the cards, in the order they were posted."""
    sessions = {}
    for name in ("loud", "quiet", "third"):
        for row in await world.rows(name):
            for message in await world.cards(row):
                sessions[message.order] = name
    return [sessions[order] for order in sorted(sessions)]


@pytest.fixture
async def slow(make_world: Callable[..., World]) -> World:
    world = make_world(info=SLOW)
    for name in ("loud", "quiet", "third"):
        await world.session(name, destination=GROUP)
    return world


@pytest.mark.parametrize("cards", [40, 400])
async def test_a_flood_does_not_keep_anothers_first_card_back(slow: World, cards: int) -> None:
    await flood(slow, "loud", cards)
    await slow.advance(10)
    (row,) = await flood(slow, "quiet", 1)
    for _ in range(12):
        await slow.advance(10)
        if (await slow.row(row)).delivered_to:
            break
    waited = slow.clock.now() - row.created_at
    assert (await slow.row(row)).delivered_to
    assert waited <= timedelta(seconds=70), waited


async def test_sessions_take_turns_oldest_first(slow: World) -> None:
    loud = await flood(slow, "loud", 10)
    quiet = await flood(slow, "quiet", 3)
    third = await flood(slow, "third", 3)
    await slow.advance(60)
    order = await shown_order(slow)
    assert sorted(order[:6]) == ["loud", "loud", "quiet", "quiet", "third", "third"]
    for rows in (loud, quiet, third):
        orders = [m.order for row in rows for m in await slow.cards(row)]
        assert orders == sorted(orders)


async def test_answers_and_final_edits_keep_their_precedence(slow: World) -> None:
    (first,) = await flood(slow, "loud", 1)
    await slow.flush()
    await flood(slow, "loud", 30)
    await flood(slow, "quiet", 2)
    await slow.decide(await slow.row(first), "deny")
    await slow.flush()
    assert "Denied" in (await slow.card(first)).text


# --- a question that was never seen --------------------------------------------------------------


async def full(make_world: Callable[..., World]) -> World:
    """A world whose place takes no more cards."""
    world = make_world(info=NEVER)
    await world.session()
    await world.session("other")
    for n in range(3):
        await world.ask(f"deploy {n}")
    return world


async def test_a_card_that_never_got_its_turn_is_not_a_timeout(make_world: Callable[..., World]) -> None:
    world = await full(make_world)
    row = await world.ask("deploy unseen", "other", timeout_s=100)
    twin = await world.ask("deploy unseen", "other", timeout_s=100)
    assert twin.leader_id == row.request_id
    await world.advance(60 + 100)
    for one in (row, twin):
        ended = await world.row(one)
        assert ended.outcome == "notify_failed"
        assert ended.delivery_error == f"the rate limit of {PLACE} left no room for the card in time"
    assert "not consent" in await world.message(row)


async def test_what_was_seen_or_may_have_been_still_times_out(make_world: Callable[..., World]) -> None:
    world = make_world()
    await world.session()
    seen = await world.ask("deploy seen", timeout_s=100)
    world.chat.fail(SendAmbiguous())
    doubtful = await world.ask("deploy doubtful", timeout_s=100)
    await world.advance(200)
    assert (await world.row(seen)).outcome == "timeout"
    assert (await world.row(doubtful)).outcome == "timeout"


async def test_an_attached_client_could_have_answered(make_world: Callable[..., World]) -> None:
    world = await full(make_world)
    await world.sessions.attach("default", "other", "app", "ann")
    row = await world.ask("deploy unseen", "other", timeout_s=100)
    await world.advance(60 + 100)
    assert (await world.row(row)).outcome == "timeout"
