"""What people and agents read of a length of time is what it was."""

from __future__ import annotations

import pytest
from tests.unit.core.harness import World


async def test_a_window_that_people_stretched(world: World) -> None:
    row = await world.ask(timeout_s=60)
    await world.tap(row, "more")
    await world.flush()
    await world.tap(row, "wait")
    await world.advance(2000)
    done = await world.row(row)
    assert (done.outcome, done.timeout_s) == ("timeout", 60)
    stretched = done.expires_at and round((done.expires_at - row.created_at).total_seconds() / 60)
    assert f"Nobody answered within {stretched} minutes" in await world.message(row)
    assert f"{stretched} min" in (await world.card(row)).text


@pytest.mark.parametrize(("lease_s", "said"), [(3600, "1 h"), (4, "4 s"), (60, "60 s")])
async def test_the_silence_of_an_agent_that_is_gone(world: World, lease_s: float, said: str) -> None:
    await world.turn("leased", lease_s=lease_s)
    row = await world.ask(turn_id="leased", timeout_s=80_000)
    await world.advance(lease_s + 1)
    late = await world.ask("deploy late", turn_id="leased")
    for each in (row, late):
        assert (await world.row(each)).cause == "requester_gone"
        assert f"no heartbeat for {said}" in await world.message(each)
    assert f"no heartbeat for {said}" in (await world.card(row)).text
