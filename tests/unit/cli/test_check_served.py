"""`signoff check --session` and `signoff why` ask the running gateway."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.front import Front
from tests.unit.server.world import World, world_on

RM = {"kind": "command", "command": "rm -rf build"}


@pytest.fixture
async def served(front: Front) -> AsyncIterator[World]:
    """A gateway on the local socket of the configuration, whose path must be short."""
    with tempfile.TemporaryDirectory(prefix="so-") as folder:
        state = Path(folder) / "state"
        front.write("signoff.toml", f'[gateway]\nstate_dir = "{state}"\n')
        async with world_on("memory://", state_dir=state) as world:
            yield world


async def told(front: Front, *arguments: str, code: int = 0) -> str:
    """A command, run while the gateway's loop goes on."""
    return await asyncio.to_thread(lambda: front(*arguments, code=code))


async def test_grants_of_the_session_count(front: Front, served: World) -> None:
    agent, approver = await served.pair()
    row = await agent.ask(action={**RM, "cwd": str(Path.cwd())})
    assert "Decided by the rung person" in await told(front, "check", "--session", "s1", "rm -rf dist")
    await approver("POST", f"/v1/approvals/{row['request_id']}/decision", {"choice": "session"})
    out = await told(front, "check", "--session", "s1", "--explain", "rm -rf dist")
    assert out.startswith("allow (high)")
    assert "grants     Covered by " in out
    found: Any = await asyncio.to_thread(lambda: front.json("check", "--session", "s1", "rm -rf dist"))
    assert (found["verdict"], found["rung"], len(found["grant_ids"])) == ("allow", "grants", 1)
    assert "ask (high)" in await told(front, "check", "rm -rf dist")


async def test_a_session_that_is_not_there(front: Front, served: World) -> None:
    assert "session" in await told(front, "check", "--session", "none", "ls", code=1)


async def test_why_of_a_request(front: Front, served: World) -> None:
    agent, _ = await served.pair()
    row = await agent.ask(action={"kind": "command", "command": "sudo rm -rf build"})
    lines = (await told(front, "why", row["short_id"].lower())).splitlines()
    assert lines[0] == (
        f"{row['short_id']} (high): Runs with the administrator's rights (rule privilege.root, delete.recursive)"
    )
    assert "  1.1 rm -rf build" in lines
    assert "    ask delete.recursive: deletes folders and everything in them" in lines
    assert lines[-1] == "Decided by the rung person."
    found: Any = await asyncio.to_thread(lambda: front.json("why", row["request_id"]))
    assert found["rung"] == "person"
    assert await told(front, "why", "7Q2MK", code=1)
