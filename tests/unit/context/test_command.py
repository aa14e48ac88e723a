"""`signoff run` as a job starts it: it is part of the job, and nobody is asked although somebody listens."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator

import pytest
from tests.unit.server.world import World, world_on

from signoff.context import bind, child_environment
from signoff.model import Notifier
from signoff.rows import EVERY_SESSION
from signoff.sessions import Declaration


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with world_on("memory://") as made:
        row = Notifier(profile="default", session_id=EVERY_SESSION, name="console", attached_at=made.core.clock.now())
        await made.core.store.transact(lambda tx: tx.put(row))
        yield made


async def run(world: World, environ: dict[str, str], *options: str) -> tuple[int | None, str]:
    """The exit code and what `signoff run` said of a command that needs a person."""
    key = (await world.core.keys.create("default", "agent", agent="builder")).text
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "signoff", "run", *options, "--", "rm", "-rf", "made-up"),
        env={**environ, "SIGNOFF_URL": world.bound.api, "SIGNOFF_KEY": key},
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        _, told = await process.communicate()
    return process.returncode, told.decode()


async def test_a_cron_jobs_command_is_cron(world: World) -> None:  # 2.3.2, 2.3.3
    """Without a session, and with one that the job's environment names and the gateway knows."""
    with bind("nightly", kind="cron", interactive=True, ask=True):
        environ = child_environment(os.environ)
    await world.core.sessions.declare("default", Declaration(session_id="nightly", kind="cron"), "builder")
    for given in (environ, {k: v for k, v in environ.items() if k != "SIGNOFF_SESSION_ID"}):
        code, told = await run(world, given)
        assert code == 75, told
        assert 'approvals.cron_mode = "deny"' in told
    assert await world.core.broker.pending("default") == []


async def test_a_worker_that_a_chat_starts_asks_nobody(world: World) -> None:  # 2.3.3, #110932
    """Though the chat is there, and somebody listens to it: the worker is no part of that talk."""
    await world.core.sessions.declare("default", Declaration(session_id="talk", kind="api"), "builder")
    await world.core.sessions.attach("default", "talk", "desk", "ann")
    with bind("talk", kind="api"):
        environ = child_environment(os.environ, kind="worker")
    code, told = await run(world, environ)
    assert code == 75, told
    assert 'approvals.unattended_mode = "deny"' in told
    assert await world.core.broker.pending("default") == []


async def test_a_job_that_names_a_chats_session_is_a_job(world: World) -> None:  # 2.3.2
    await world.core.sessions.declare("default", Declaration(session_id="talk", kind="api"), "builder")
    await world.core.sessions.attach("default", "talk", "desk", "ann")
    environ = {**os.environ, "SIGNOFF_SESSION_KIND": "cron", "SIGNOFF_SESSION_ID": "talk"}
    code, told = await run(world, environ)
    assert code == 75, told
    assert 'approvals.cron_mode = "deny"' in told
    assert await world.core.broker.pending("default") == []


async def test_without_a_job_somebody_is_asked(world: World) -> None:
    running = asyncio.create_task(run(world, dict(os.environ)))
    async with asyncio.timeout(60):
        while not (rows := await world.core.broker.pending("default")):  # noqa: ASYNC110  # another process asks
            await asyncio.sleep(0.01)
    assert rows[0].kind == "api"
    await world.core.broker.cancel("default", rows[0].request_id, "withdrawn", None)
    assert (await running)[0] == 77
