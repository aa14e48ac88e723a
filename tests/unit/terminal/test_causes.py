"""An answering side that goes says why, and never refuses in a person's place."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.server.world import World, world_on

from signoff.model import ANSWERING_CAUSES, CAUSES, Notifier


@pytest.mark.parametrize("cause", sorted(ANSWERING_CAUSES))
async def test_an_answer_client_goes_for_a_cause(cause: str) -> None:  # 2.8.3 #22992
    async with world_on("memory://") as world:
        agent, approver = await world.pair()
        record = await agent.ask()
        gone = await approver("DELETE", f"/v1/sessions/s1/notifiers/desk?cause={cause}")
        assert gone.status == 200
        row = (await agent("GET", f"/v1/approvals/{record['request_id']}")).body
        assert (row["outcome"], row["cause"], row["decided_by"]) == ("cancelled", cause, [])
        assert row["message"].startswith(f"BLOCKED: cancelled ({cause}).")
        assert "A person denied" not in row["message"]


async def test_another_way_keeps_the_question() -> None:
    async with world_on("memory://") as world:
        agent, approver = await world.pair()
        assert (await approver("PUT", "/v1/sessions/s1/notifiers/phone")).status == 200
        record = await agent.ask()
        await approver("DELETE", "/v1/sessions/s1/notifiers/desk?cause=no_prompt")
        assert (await agent("GET", f"/v1/approvals/{record['request_id']}")).body["status"] == "pending"


@pytest.mark.parametrize("cause", [*sorted(CAUSES - ANSWERING_CAUSES), "denied", ""])
async def test_it_gives_no_other_cause(cause: str) -> None:
    async with world_on("memory://") as world:
        agent, approver = await world.pair()
        record = await agent.ask()
        answer = await approver("DELETE", f"/v1/sessions/s1/notifiers/desk?cause={cause}")
        assert answer.status in (400, 422)
        assert (await agent("GET", f"/v1/approvals/{record['request_id']}")).body["status"] == "pending"


async def test_an_agent_gives_none_of_them() -> None:
    async with world_on("memory://") as world:
        agent, _ = await world.pair()
        record = await agent.ask()
        refused = await agent("DELETE", "/v1/sessions/s1/notifiers/desk?cause=prompt_interrupted")
        assert refused.code == "insufficient_scope"
        body = {"cause": "prompt_interrupted"}
        assert (await agent("POST", f"/v1/approvals/{record['request_id']}/cancel", body)).status == 422
        assert (await agent("GET", f"/v1/approvals/{record['request_id']}/card")).code == "insufficient_scope"
        assert (await agent("PUT", "/v1/sessions/s1/notifiers/me")).code == "insufficient_scope"


async def gone(world: World) -> bool:
    notifier = (await world.core.store.find(Notifier, "session", "default\x1fs1"))[0]
    return notifier.gone_at is not None


async def test_one_with_a_lease_is_there_until_it_lapses() -> None:
    async with world_on("memory://") as world:
        _, approver = await world.pair()
        for lease, status in ((1, 422), (3601, 422), (30, 200)):
            body = {"lease_s": lease}
            assert (await approver("PUT", "/v1/sessions/s1/notifiers/desk", body)).status == status
        assert await gone(world)
        assert (await approver("PUT", "/v1/sessions/s1/notifiers/desk")).status == 200
        assert not await gone(world)


async def test_the_card_for_an_answer_client() -> None:
    async with world_on("memory://") as world:
        agent, approver = await world.pair()
        record = await agent.ask(reason="a new release")
        await agent.ask()
        card = (await approver("GET", f"/v1/approvals/{record['short_id']}/card")).body
        assert card["pending"]
        assert card["digest"] == record["digest"]
        kinds = [part["kind"] for part in card["parts"]]
        assert kinds[0] == "text"
        assert {"code", "quote", "small"} <= set(kinds)
        assert "2 identical requests wait." in [part["text"] for part in card["parts"]]
        assert [way["choice"] for way in card["ways"]] == ["once", "deny", "once_all", "session", "30m", "always"]
        assert (await approver("GET", "/v1/approvals/7Q2MK/card")).status == 404
        await asyncio.gather(
            *(approver("POST", f"/v1/approvals/{record['request_id']}/decision", {"choice": "deny"}) for _ in range(2))
        )
        ended = (await approver("GET", f"/v1/approvals/{record['short_id']}/card")).body
        assert (ended["pending"], ended["ways"]) == (False, [])
        assert "Denied by ann" in ended["parts"][0]["text"]
