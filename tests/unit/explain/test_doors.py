"""Each of the four doors checks an action, and tells why another was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.server.world import World, world_on

from signoff.blocking import BlockingGateway
from signoff.client import BlockingClient, CheckRecord, Client
from signoff.config import load_config
from signoff.errors import InvalidInput, SessionNotFound
from signoff.gateway import Gateway
from signoff.model import Command
from signoff.testing.fake_adapter import FakeAdapter

RM = Command(command="rm -rf build")


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    environ = {"SIGNOFF_GATEWAY__STATE_DIR": str(tmp_path), "SIGNOFF_GATEWAY__STORE": "memory://"}
    async with Gateway(load_config(None, environ), adapters={("default", "fake"): FakeAdapter()}) as made:
        await made.session("s")
        await made.sessions.attach("default", "s", "desk", None)
        yield made


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with world_on("memory://") as made:
        await made.pair()
        yield made


async def test_in_process(gateway: Gateway) -> None:
    found = await gateway.check(RM, session_id="s")
    assert (found.verdict, found.rung, found.explanation) == ("ask", "person", None)
    explained = await gateway.check({"kind": "command", "command": "ls"}, explain=True)
    assert explained.explanation is not None
    assert explained.explanation.commands[0].words == ("ls",)
    assert await gateway.pending() == []
    with pytest.raises(SessionNotFound):
        await gateway.check(RM, session_id="none")
    with pytest.raises(InvalidInput):
        await gateway.check({"kind": "nonsense"})
    with pytest.raises(InvalidInput):
        await gateway.check(RM, profile="none")


async def test_from_a_thread_of_the_process(gateway: Gateway) -> None:
    blocking = BlockingGateway(gateway)
    ran = await gateway.request(Command(command="ls"), session_id="s")

    def work() -> tuple[str, str]:
        return blocking.check(RM, session_id="s").verdict, blocking.why(ran.request_id).rung

    assert await asyncio.to_thread(work) == ("ask", "rules")


async def test_over_http(world: World) -> None:
    agent = await world.core.keys.create("default", "agent", agent="builder")
    async with Client(world.bound.api, agent.text) as client:
        found = await client.check(RM, session_id="s1", explain=True)
        assert (found.verdict, found.rule_keys) == ("ask", ("delete.recursive",))
        assert found.explanation is not None
        assert found.explanation["commands"][0]["words"] == ["rm", "-rf", "build"]
        assert (await client.check(RM)).explanation is None
        with pytest.raises(SessionNotFound):
            await client.check(RM, session_id="none")
        with pytest.raises(TypeError, match=r"compare \.verdict"):
            bool(found)

    def work() -> CheckRecord:
        with BlockingClient(world.bound.api, agent.text) as blocking:
            return blocking.check(RM)

    assert (await asyncio.to_thread(work)).verdict == "ask"


async def test_the_clients_own_session_counts(world: World) -> None:
    agent = await world.core.keys.create("default", "agent", agent="builder")
    async with Client(world.bound.api, agent.text, session_id="none") as client:
        with pytest.raises(SessionNotFound):
            await client.check(RM)
