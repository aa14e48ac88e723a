"""An interrupted client takes back what it asked, and nothing that another asked under the same id."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.client.fake_gateway import FakeGateway

from signoff.client import Client
from signoff.model import Command

ACTION = Command(command="rm -rf build")


@pytest.mark.parametrize("another", [{"session_id": "other"}, {"digest": "00"}])
async def test_a_question_under_the_same_id_stays(another: dict[str, str]) -> None:
    gateway = FakeGateway()
    await gateway.up()
    gateway.sessions["s"] = {}
    async with Client(gateway.url, "sk_id_secret", session_id="s", environ={}) as client:
        first = asyncio.create_task(client.request(ACTION))
        request_id = await gateway.asked()
        gateway.approvals["again"] = gateway.approvals[request_id] | {"request_id": "again"} | another
        gateway.late = asyncio.Event()
        second = asyncio.create_task(client.request(ACTION, request_id="again"))
        await gateway.until(lambda: gateway.arrived == 2)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert gateway.approvals["again"]["outcome"] is None
        gateway.late.set()
        await gateway.decide(request_id, "denied")
        assert not (await first).may_run
    await gateway.down()
