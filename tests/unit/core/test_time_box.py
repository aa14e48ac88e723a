"""A time box among the choices: allowed wherever the session is, and with a button of its own where it stands alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.core.harness import World, choices_of

from signoff.errors import ChoiceNotOffered, InvalidInput
from signoff.settings import GrantSettings, Profile


async def test_it_alone_narrows_what_the_session_would_be(world: World) -> None:
    row = await world.ask(choices=("30m", "deny"))
    assert row.choices == ("30m", "deny")
    assert "30m" in choices_of(await world.card(row))
    for choice in ("once", "session", "always", "2h"):
        with pytest.raises(ChoiceNotOffered):
            await world.decide(row, choice)
    await world.tap(row, "more")
    await world.flush()
    assert {"30m", "session"} & {c for m in world.chat.shown() for c in choices_of(m)} == {"30m"}
    await world.tap(row, "30m")
    done = await world.row(row)
    assert (done.outcome, done.choice) == ("approved", "30m")
    assert (await world.ask()).outcome == "approved"


async def test_beside_others_it_stands_where_the_session_would(world: World) -> None:
    row = await world.ask(choices=("once", "2h", "deny"))
    assert row.choices == ("once", "2h", "deny")
    with pytest.raises(ChoiceNotOffered):
        await world.decide(row, "session")
    assert await world.decide(row, "2h") == "won"


async def test_a_card_that_could_only_be_denied_is_refused(world: World) -> None:
    for choices in (("2h", "deny"), ("deny",)):
        with pytest.raises(InvalidInput, match="add once or 30m"):
            await world.submit(choices=choices)


async def test_a_profile_may_offer_it_in_place_of_the_session(make_world: Callable[..., World]) -> None:
    grants = GrantSettings(command=("once", "30m", "deny"))
    world = make_world(profile=Profile(approvers={"fake": ("1",)}, grants=grants))
    await world.session()
    row = await world.ask()
    assert "30m" in choices_of(await world.card(row))
    with pytest.raises(ChoiceNotOffered):
        await world.decide(row, "session")
    await world.tap(row, "30m")
    assert (await world.row(row)).choice == "30m"
