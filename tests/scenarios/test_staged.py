"""Kept actions through the front door of a real gateway: run by a program, and never twice, whatever is killed."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from signoff.client import Client
from tests.scenarios.gateways import GatewayProcess, soon

CALL = {"kind": "tool", "name": "send_email", "arguments": {"to": ["ana", "ben"], "n": 1.5}}
LAPSE_WITHIN_S = 150.0
"""A claim holds 60 s, and the time in which no gateway was up is made up for."""


def settings(folder: Path, *, slow: bool) -> str:
    """A tool gate, and an executor that appends a line to a file, then ends or not."""
    program = folder / "program.py"
    program.write_text(
        "import json, sys, time\n"
        "call = json.load(sys.stdin)\n"
        f"open({str(folder / 'lines')!r}, 'a').write(json.dumps(call['action']['arguments']) + '\\n')\n"
        f"time.sleep({20 if slow else 0})\n"
    )
    (folder / "lines").touch()
    return f"""
[approvals.tool_gate]
require_approval = ["send_*"]
[agents.mailer]
kinds = ["cron"]
[executors.mailer]
tools = ["send_*"]
command = ["{sys.executable}", "{program}"]
"""


@asynccontextmanager
async def served(folder: Path, *, slow: bool = False) -> AsyncIterator[tuple[GatewayProcess, Client]]:
    """A running gateway and its operator's client."""
    gateway = GatewayProcess(folder, settings(folder, slow=slow))
    await gateway.start()
    try:
        async with Client(socket=gateway.socket, environ={}) as admin:
            yield gateway, admin
        assert gateway.defects() == []
    finally:
        await gateway.aclose()


async def kept(gateway: GatewayProcess, admin: Client) -> str:
    """Ask from a cron session; the id of what is kept."""
    key = (await admin.create_key("agent", agent="mailer"))["key"]
    async with Client(gateway.url, key, environ={}) as agent:
        await agent.session("weekly-mail", kind="cron")
        record = await agent.request(CALL, session_id="weekly-mail")
        assert record.outcome == "staged"
        assert record.message.startswith("STAGED:")
        return record.kept_as or ""


async def state(admin: Client, action_id: str) -> str:
    """Where it stands."""
    return next(each.state for each in await admin.actions() if each.id == action_id)


async def test_a_program_runs_what_a_person_approved(tmp_path: Path) -> None:  # 1.4.10
    async with served(tmp_path) as (gateway, admin):
        action = await kept(gateway, admin)
        assert await state(admin, action) == "waits"
        assert (tmp_path / "lines").read_text() == ""
        await admin.approve_action(action)

        async def done() -> bool:
            return await state(admin, action) == "succeeded"

        await soon(done)
        assert (tmp_path / "lines").read_text() == '{"to": ["ana", "ben"], "n": 1.5}\n'


@pytest.mark.heavy
async def test_a_gateway_that_is_killed_while_it_runs_leaves_unknown(tmp_path: Path) -> None:  # 1.4.9
    async with served(tmp_path, slow=True) as (gateway, admin):
        action = await kept(gateway, admin)
        await admin.approve_action(action)

        async def running() -> bool:
            return (tmp_path / "lines").read_text() != ""

        await soon(running)
        await gateway.kill()
        await gateway.start()

        async def lapsed() -> bool:
            return await state(admin, action) == "unknown"

        await soon(lapsed, LAPSE_WITHIN_S)
        assert len((tmp_path / "lines").read_text().splitlines()) == 1
        again = await admin.run_action_again(action)

        async def twice() -> bool:
            return len((tmp_path / "lines").read_text().splitlines()) == 2

        await soon(twice)  # since a person wanted it, and knew
        assert again.id != action
