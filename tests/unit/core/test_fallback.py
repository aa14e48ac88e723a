"""A question whose own place does not take it goes to the profile's fallback, and both places read why."""

from __future__ import annotations

from collections.abc import Callable

from tests.unit.core.harness import OTHER_PLACE, PLACE, World
from tests.unit.core.test_delivery import REFUSED, outcome

from signoff.settings import ApprovalSettings, Profile


async def test_the_fallback_takes_a_card_whose_own_place_is_gone(make_world: Callable[..., World]) -> None:
    world = make_world(fallbacks={"default": OTHER_PLACE})
    await world.session()
    world.chat.fail(REFUSED)
    row = await world.ask()
    assert row.outcome is None
    assert row.delivered_to == (OTHER_PLACE,)
    assert row.destinations == (PLACE, OTHER_PLACE)
    places = (PLACE, OTHER_PLACE)
    told, card = [next(each for each in world.chat.shown() if each.destination == place) for place in places]
    assert told.card.rows == ()
    assert f"Asked here because Fake {PLACE.chat_id} did not take it." in card.text
    await world.tap(row, "deny")
    assert await outcome(world, row) == "denied"


async def test_a_fallback_that_refuses_too_is_the_end(make_world: Callable[..., World]) -> None:
    world = make_world(fallbacks={"default": OTHER_PLACE})
    await world.session()
    world.chat.fail(REFUSED, times=3)
    row = await world.ask()
    assert row.outcome == "notify_failed"
    assert [place for _, place in world.chat.calls].count(OTHER_PLACE) == 1


async def test_a_session_without_a_place_asks_at_the_fallback(make_world: Callable[..., World]) -> None:
    world = make_world(
        profile=Profile(approvers={"fake": ("1",)}, approvals=ApprovalSettings(fallback_destination=OTHER_PLACE))
    )
    await world.session(destination=None, kind="api")
    row = await world.ask()
    assert row.delivered_to == (OTHER_PLACE,)
