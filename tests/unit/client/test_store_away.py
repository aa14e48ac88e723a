"""What a client tells of a gateway that runs and whose store does not."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.unit.client.fake_gateway import FakeGateway

from signoff.client import Client
from signoff.errors import GatewayUnreachable, SaveUnknown


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
