"""Records, events, cards and errors about a very long text: what is masked for a reader is masked beside the loop."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.long_texts import LONG, QUESTIONS, Watch, body_of, watch
from tests.unit.server.world import World

from signoff.aside import LONG_CHARS

__all__ = ["watch"]


async def asked(agent: Any, name: str) -> dict[str, Any]:
    return dict(await agent.ask(action=body_of(name)))


@pytest.mark.parametrize("name", QUESTIONS)
async def test_a_record_a_card_and_why(quick: World, watch: Watch, name: str) -> None:
    agent, approver = await quick.pair()
    async with approver.events() as reader:
        record = await asked(agent, name)
        path = f"/v1/approvals/{record['request_id']}"
        told = await reader.next()
        assert told["approval"]["request_id"] == record["request_id"]
    for place in (path, f"{path}/card", f"{path}/why", "/v1/approvals"):
        assert (await approver("GET", place)).status == 200
    again = await approver("POST", f"{path}/decision", {"choice": "deny", "reason": "It is long."})
    assert again.status == 200
    late = await approver("POST", f"{path}/decision", {"choice": "once"})
    assert (late.status, late.body["approval"]["request_id"]) == (409, record["request_id"])
    watch.holds()
    assert watch.longest_beside > 0


async def test_many_readers_of_one_event_share_its_frame(quick: World, watch: Watch) -> None:
    agent, approver = await quick.pair()
    async with approver.events() as one, approver.events() as two:
        await asked(agent, "message")
        first, second = await one.next(), await two.next()
    assert first == second
    watch.holds()


async def test_grants_for_a_long_command(quick: World, watch: Watch) -> None:
    agent, approver = await quick.pair()
    record = await agent.ask(action={"kind": "command", "command": "rm -rf build\n" + LONG})
    answer = await approver("POST", f"/v1/approvals/{record['request_id']}/decision", {"choice": "always"})
    assert answer.status == 200, answer
    grants = (await approver("GET", "/v1/grants")).body["data"]
    assert any(grant["exact"] for grant in grants)
    for grant in grants:
        await approver("DELETE", f"/v1/grants/{grant['grant_id']}")
    watch.holds()
    assert watch.longest_beside > LONG_CHARS
