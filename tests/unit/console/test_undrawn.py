"""A question that a defect keeps from being drawn leaves every other one on its page."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.console.world import Person, place
from tests.unit.core.harness import BY_ANN

from signoff.actions import one_line
from signoff.console.cards import card_view
from signoff.model import Action, ApprovalRequest, Command

BAD, GOOD = "rm -rf ./bad", "rm -rf ./good"


async def test_the_others_are_listed(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:

    def view(row: ApprovalRequest, *given: Any, **words: Any) -> Any:
        if isinstance(row.action, Command) and row.action.command == BAD:
            raise TypeError("a defect")
        return card_view(row, *given, **words)

    def line(action: Action) -> str:
        if isinstance(action, Command) and action.command == BAD:
            raise TypeError("a defect")
        return one_line(action)

    monkeypatch.setattr("signoff.console.reading.card_view", view)
    monkeypatch.setattr("signoff.console.history.one_line", line)
    async with place() as here:
        agent, ann = await here.agent(), await here.person()
        rows = [await agent.ask(action={"kind": "command", "command": command}) for command in (BAD, GOOD)]
        told = f"Something in the gateway went wrong. Its log tells more under {rows[0]['short_id']}."
        await seen(ann, ("/console",), told)
        for row in rows:
            await here.core.broker.decide("default", row["request_id"], "deny", BY_ANN)
        await seen(ann, ("/console/history", "/console/history.csv", "/console/history?q=rm"), told)
    assert caplog.text.count("console.undrawn") >= 4


async def seen(ann: Person, paths: tuple[str, ...], told: str) -> None:
    for path in paths:
        found = await ann.get(path)
        assert found.status == 200
        assert told in found.text
        assert "./good" in found.text
        assert "./bad" not in found.text
