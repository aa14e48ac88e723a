"""An ending of which nothing can be told, or a place that cannot be told, keeps no other from being told."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.catch_up.world import PLACE, Absent
from tests.unit.core.harness import OTHER_PLACE

from signoff.changes import catching_up as changes
from signoff.model import ApprovalRequest, Destination
from signoff.ports import Tx


async def test_an_ending(world: Absent, monkeypatch: pytest.MonkeyPatch) -> None:
    kind_of, bad = changes.kind_of, await world.ask("deploy bad")

    def kind(row: ApprovalRequest) -> Any:
        if row.request_id == bad.request_id:
            raise TypeError("a defect")
        return kind_of(row)

    monkeypatch.setattr("signoff.catching_up.kind_of", kind)
    good = await world.unanswered("deploy good")
    await world.passes(3600)
    await world.life()
    told = await world.only()
    assert good.short_id in told.text
    assert bad.short_id not in told.text
    assert world.defects == [1]


async def test_a_place(world: Absent, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.session("other", destination=OTHER_PLACE)
    await world.ask("deploy here")
    await world.unanswered("deploy there", "other")
    returned, untold_in = changes.returned, changes.untold_in

    def back(tx: Tx, *, place: Destination, **facts: Any) -> str | None:
        if place == PLACE:
            raise TypeError("a defect")
        return returned(tx, place=place, **facts)

    def untold(tx: Tx, *, place: Destination, **facts: Any) -> Any:
        if place == PLACE:
            raise TypeError("a defect")
        return untold_in(tx, place=place, **facts)

    await world.passes(3600)
    monkeypatch.setattr(changes, "returned", back)
    monkeypatch.setattr(changes, "untold_in", untold)
    assert [each.place for each in await world.catch_ups.untold("default")] == [OTHER_PLACE]
    monkeypatch.setattr(changes, "untold_in", untold_in)
    await world.life()
    await world.life(OTHER_PLACE)
    assert world.messages() == []
    assert "1 timeout" in (await world.only(OTHER_PLACE)).text
    assert world.defects == [1, 1]
