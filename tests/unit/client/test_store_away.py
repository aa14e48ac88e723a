"""What a client tells of a gateway that runs and whose store does not, and of one that is back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.unit.client.fake_gateway import FakeGateway
from tests.unit.client.test_client import ask

from signoff.client import Client
from signoff.elicitation import Elicited
from signoff.errors import GatewayUnreachable, SaveUnknown
from signoff.model import Command


@pytest.fixture
async def gateway() -> AsyncIterator[FakeGateway]:
    fake = FakeGateway()
    await fake.up()
    yield fake
    await fake.down()


async def test_a_gateway_whose_store_is_away_is_not_told_to_be_started(gateway: FakeGateway) -> None:
    gateway.fail = [("GET /health", 503)] * 100
    gateway.failure = '{"error": {"code": "store_unavailable", "message": "The store cannot be written right now."}}'
    async with Client(gateway.url, unreachable_after_s=0.3, environ={}) as client:
        with pytest.raises(
            GatewayUnreachable, match=f"The gateway at {gateway.url} runs, but its store does not answer"
        ):
            await client.health()


async def test_what_may_have_been_saved_is_not_asked_for_again(gateway: FakeGateway) -> None:
    gateway.fail = [("POST /v1/keys", 500)] * 2
    gateway.failure = '{"error": {"code": "save_unknown", "message": "It is not known whether that was saved."}}'
    async with Client(gateway.url, unreachable_after_s=5, environ={}) as client:
        with pytest.raises(SaveUnknown, match="not known"):
            await client.create_key("agent", agent="builder")
    assert len(gateway.fail) == 1


async def test_whoever_answers_is_back_whatever_it_says_of_its_health(gateway: FakeGateway) -> None:
    told: list[bool] = []
    away = asyncio.Event()

    def tell(is_away: bool) -> None:
        told.append(is_away)
        away.set()

    gateway.sessions["s"] = {}
    async with Client(gateway.url, session_id="s", environ={}, on_outage=tell) as client, asyncio.timeout(60):
        task, request_id = await ask(client, gateway)
        await gateway.down()
        await away.wait()
        gateway.fail = [("GET /health", 404)]
        await gateway.up()
        await gateway.decide(request_id, "approved")
        assert (await task).may_run
    assert (told, gateway.fail) == ([True, False], [])


@pytest.mark.parametrize("status", [503, 409])
async def test_what_was_accepted_is_handed_over_though_it_cannot_be_reported(gateway: FakeGateway, status: int) -> None:
    gateway.sessions["s"] = {}
    async with Client(gateway.url, unreachable_after_s=0.05, environ={}) as client:
        asking = asyncio.create_task(client.elicit("jira", "Which?", session_id="s"))
        request_id = await gateway.asked()
        gateway.fail += [(f"POST /v1/approvals/{request_id}/result", status)] * 9
        await gateway.decide(request_id, "approved", elicitation={"action": "accept", "content": {"a": 1}})
        assert await asking == Elicited(action="accept", content={"a": 1})


async def test_a_result_may_wait_longer_than_other_calls(gateway: FakeGateway) -> None:
    gateway.sessions["s"] = {}
    gateway.outcome = "approved"
    async with Client(gateway.url, unreachable_after_s=0.05, environ={}) as client:
        record = await client.request(Command(command="rm -rf build"), session_id="s")
        gateway.fail += [(f"POST /v1/approvals/{record.request_id}/result", 503)] * 2
        done = await client.result(record.request_id, "succeeded", patience_s=30)
        assert done.execution.state == "succeeded"
