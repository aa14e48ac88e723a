"""A reason has one length, whoever gives it: a chat, the API, or the program that the gateway runs in."""

from __future__ import annotations

from tests.unit.core.harness import BY_ANN, World

from signoff.clipping import REASON_UNITS, units


async def test_a_program_gives_a_long_one(world: World) -> None:
    row = await world.ask()
    await world.broker.decide("default", row.request_id, "deny", BY_ANN, reason="no 🌍 " * 1000)
    found = await world.row(row)
    assert found.reason is not None
    assert found.reason.startswith("no 🌍 no")
    assert REASON_UNITS - 1 <= units(found.reason) <= REASON_UNITS
    assert [vote.reason for vote in found.votes] == [found.reason]
    await world.flush()
    assert "no 🌍 no" in (await world.card(row)).text
