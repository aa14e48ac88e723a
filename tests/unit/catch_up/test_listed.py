"""What is not told yet: which places are listed, and how much is counted there."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.unit.catch_up.world import FALLBACK, Absent, kept

from signoff.changes import catching_up
from signoff.model import Destination, Note


async def test_a_place_is_listed_as_long_as_something_is_to_be_told_there(world: Absent) -> None:
    await world.session("mail", kind="cron", destination=None, agent="mailer")
    question = await kept(world, "mail")
    await world.passes(600)
    await world.looked()
    assert (await world.catch_ups.index("default")).places == (FALLBACK,)
    assert await world.decide(question, "deny") == "won"
    assert await world.catch_ups.untold("default") == []
    assert (await world.catch_ups.index("default")).places == ()
    assert await world.store.get(Note, catching_up.place_name("default", FALLBACK)) is None


@pytest.mark.parametrize("by_id", [1000, 1])
async def test_older_ones_that_were_answered_meanwhile_are_not_counted(
    world: Absent, monkeypatch: pytest.MonkeyPatch, by_id: int
) -> None:
    monkeypatch.setattr(catching_up, "KEPT", 1)
    monkeypatch.setattr(catching_up, "OLDER_STAGED", by_id)
    await world.session("mail", kind="cron", destination=None, agent="mailer")
    rows = [await kept(world, "mail", f"req_{number}") for number in range(5)]
    await world.passes(600)
    await world.looked()
    assert await counts(world) == {"staged": 5}
    for row in (rows[3], rows[4]):
        await world.decide(row, "deny")
    assert await counts(world) == {"staged": 3}
    await world.life(place=FALLBACK)
    assert "3 staged" in (await world.only(FALLBACK)).text


async def counts(world: Absent) -> dict[str, int]:
    """How much of what the fallback place was not told."""
    (missed,) = await world.catch_ups.untold("default")
    told = Counter(entry.kind for entry in missed.entries)
    return dict(told + Counter(missed.older))


async def test_so_many_places_are_listed_the_newest(world: Absent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catching_up, "PLACES", 2)
    places = [Destination("fake", "100", str(number)) for number in range(3)]
    for number, place in enumerate(places):
        await world.session(f"s{number}", destination=place)
        await world.unanswered("deploy build", f"s{number}")
        await world.looked()
    await world.unanswered("deploy again", "s1")
    await world.looked()
    assert (await world.catch_ups.index("default")).places == (places[2], places[1])
    await world.passes(600)
    await world.life(places[0])  # told all the same
    assert len(world.messages(places[0])) == 1
