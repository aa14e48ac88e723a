"""`signoff serve` over PostgreSQL, from the question to the result, through the chat and back."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.scenarios.gateways import GatewayProcess, clean_environment, soon
from tests.scenarios.on_telegram import TelegramPoll
from tests.scenarios.stage import staged
from tests.services.postgres import PASSWORD, fresh_database, own_server

from signoff.client import Client

COMMAND = "deploy ./target"


@pytest.fixture
async def chat() -> AsyncIterator[TelegramPoll]:
    async with TelegramPoll.opened() as transport:
        yield transport


async def test_what_is_asked_is_answered_and_run_once_though_the_gateway_is_killed(
    chat: TelegramPoll, tmp_path: Path
) -> None:
    database = fresh_database()
    place = await chat.group()
    async with staged(chat, tmp_path, store=database.server.tcp_url(database.name)) as stage:
        session = await stage.session("one", place)
        agent = stage.work(COMMAND, session)
        card = await chat.card(place, COMMAND)
        await stage.delivered(1)
        await stage.gateway.kill()
        await stage.gateway.start()
        assert "Approved once" in await chat.tapped("ana", card, "Approve once")
        record = await agent
        assert (record.outcome, record.choice, stage.ran) == ("approved", "once", [COMMAND])
        await chat.becomes(card, "Succeeded: exit code 0")
        assert await stage.execution_steps(record.request_id) == 2
        health = (await stage.admin.health_detailed())["parts"]["store"]
        assert (health["status"], health["engine"], health["listening"]) == ("ok", "postgresql", True)
        assert await stage.gateway.stop() == 0
    assert not stage.gateway.logged(PASSWORD)
    assert database.execute("SELECT count(*) FROM signoff.requests") == [(1,)]


async def _said(gateway: GatewayProcess, *command: str) -> str:
    """What a command of an operator prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "signoff", *command, "--config", str(gateway.config)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=clean_environment(),
    )
    out, _ = await process.communicate()
    return out.decode()


@pytest.mark.heavy
async def test_a_database_that_is_away_is_told_of_in_few_lines(tmp_path: Path) -> None:
    with own_server() as server:
        gateway = GatewayProcess(tmp_path, "", store=server.tcp_url("postgres"))
        try:
            await gateway.start()
            for _ in range(2):
                server.stop("fast")
                # Each of these takes some seconds, in which every loop of the gateway fails several times.
                said = await _said(gateway, "pending")
                assert "runs, but its store does not answer" in said
                assert "Start one" not in said
                assert "cannot use its store" in await _said(gateway, "doctor")
                server.start()
                await soon(lambda: _serves(gateway))
                assert "keeps failing" not in await _said(gateway, "doctor")
        finally:
            await gateway.aclose()
    lines = (tmp_path / "gateway-1.log").read_text().splitlines()
    assert sum("the store serves again" in line for line in lines) == 2
    assert len(lines) <= 8, lines  # one more for each minute that a slow machine took


async def _serves(gateway: GatewayProcess) -> bool:
    """Whether its store answers and its log says so."""
    text = (gateway.folder / "gateway-1.log").read_text()
    return text.rstrip().endswith("the store serves again")


@pytest.mark.heavy
async def test_a_question_at_one_gateway_is_answered_at_another(tmp_path: Path) -> None:
    """Two gateways without a chat: whoever has an approver's key answers, at either."""
    database = fresh_database()
    config = '[agents.builder]\nkinds = ["api"]\n'
    gateways = [GatewayProcess(tmp_path / name, config, store=database.url) for name in ("one", "two")]
    try:
        for gateway in gateways:
            await gateway.start()
        async with Client(socket=gateways[0].socket, environ={}) as admin:
            agent_key = (await admin.create_key("agent", agent="builder"))["key"]
            approver_key = (await admin.create_key("approver", principal="ana"))["key"]
        async with (
            Client(gateways[0].url, agent_key, environ={}) as agent,
            Client(gateways[1].url, approver_key, environ={}) as approver,
        ):
            await agent.session("one", kind="api")
            await approver.attach("one", "desk")
            action = {"kind": "command", "command": COMMAND}
            asked = [
                asyncio.create_task(agent.request({**action, "command": f"deploy {n}"}, session_id="one"))
                for n in range(5)
            ]

            async def all_wait() -> bool:
                return len(await approver.pending()) == 5

            await soon(all_wait)
            for record in await approver.pending():
                await approver.decide(record.request_id, "once")
            async with asyncio.timeout(60):
                records = await asyncio.gather(*asked)
            assert {(record.outcome, record.may_run) for record in records} == {("approved", True)}
    finally:
        for gateway in gateways:
            await gateway.aclose()
    assert [gateway.defects() for gateway in gateways] == [[], []]
