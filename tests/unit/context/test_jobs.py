"""A job never asks in a chat, whichever of its facts it inherited: through a gateway, a client and the command."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.context.room import ASKED, refused, room
from tests.unit.context.test_command import run
from tests.unit.server.world import World, world_on

from signoff.client import Client
from signoff.context import bind, child, current
from signoff.errors import InvalidInput, SessionNotFound
from signoff.model import Session, SessionKind
from signoff.presence import JOBS
from signoff.sessions import Declaration

TALK = "fake:100"


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A gateway over HTTP where `desk` listens to the chat `talk`, whose child is `sub`, and to the job `nightly`,
    whose child is `part`."""
    async with world_on("memory://") as made:
        declare, attach = made.core.sessions.declare, made.core.sessions.attach
        for name, kind, below in (("talk", "api", "sub"), ("nightly", "cron", "part")):
            await declare("default", Declaration(session_id=name, kind=kind), "builder")  # type: ignore[arg-type]
            await declare("default", Declaration(session_id=below, kind="child", parent=name), "builder")
            await attach("default", name, "desk", "ann")
        yield made


# --- in the gateway's process ------------------------------------------------------------------------


@pytest.mark.parametrize("named", [None, "nightly"])
@pytest.mark.parametrize("kind", sorted(JOBS))
async def test_a_stale_parent_makes_no_child_of_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: SessionKind, named: str | None
) -> None:  # 2.3.3
    """A job's process that inherited the variables of a chat's child is no part of that chat."""
    monkeypatch.setenv("SIGNOFF_SESSION_KIND", kind)
    monkeypatch.setenv("SIGNOFF_PARENT_SESSION", "talk")
    for flag in ("SIGNOFF_ASK", "SIGNOFF_INTERACTIVE"):
        monkeypatch.setenv(flag, "1")
    if named is not None:
        monkeypatch.setenv("SIGNOFF_SESSION_ID", named)
    async with room(tmp_path) as here:
        await here.gateway.session("talk", kind="chat", destination=TALK)
        await here.gateway.attach("talk", "desk")
        assert current().parent is None
        assert (await here.gateway.check(ASKED)).verdict == "block"
        record = await refused(here.gateway.request(ASKED))
        assert (record.outcome, record.kind) == ("blocked", kind)
        assert here.chat.messages == []


async def test_a_job_bound_under_the_id_of_a_chats_child(tmp_path: Path) -> None:  # 2.3.2
    """However deep the child is, and whether or not the call repeats the bound id."""
    async with room(tmp_path) as here:
        await here.gateway.session("talk", kind="chat", destination=TALK)
        for name, parent in (("sub", "talk"), ("deep", "sub")):
            await here.gateway.session(name, kind="child", parent=parent)
        for name in ("talk", "sub", "deep"):
            with bind(name, kind="cron"):
                for again in (None, name):
                    with pytest.raises(InvalidInput, match=r"chat.* id of its own"):
                        await here.gateway.request(ASKED, session_id=again)
                    with pytest.raises(InvalidInput, match="id of its own"):
                        await here.gateway.check(ASKED, session_id=again)
        assert await here.gateway.pending() == []


async def test_a_jobs_child_whose_parent_turns_out_to_be_a_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `child_environment` tells a job's child, with the parent's variable of somebody else's chat."""
    monkeypatch.setenv("SIGNOFF_SESSION_KIND", "cron child")
    monkeypatch.setenv("SIGNOFF_SESSION_ID", "sub")
    monkeypatch.setenv("SIGNOFF_PARENT_SESSION", "talk")
    async with room(tmp_path) as here:
        await here.gateway.session("talk", kind="chat", destination=TALK)
        with pytest.raises(InvalidInput, match="child of one that is declared as chat"):
            await here.gateway.request(ASKED)
        await here.gateway.session("talk", kind="cron", destination=TALK)
        assert (await refused(here.gateway.request(ASKED))).outcome == "blocked"


async def test_a_jobs_own_child_is_the_job(tmp_path: Path) -> None:  # 2.2 child
    async with room(tmp_path) as here:
        with bind("nightly", kind="cron"), child("sub"), child("deep"):
            assert (await refused(here.gateway.request(ASKED))).outcome == "blocked"
        with bind("deep", kind="worker"):
            assert (await refused(here.gateway.request(ASKED))).outcome == "blocked"


async def test_a_jobs_child_costs_no_more_to_ask_for_than_a_chats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose child it is was read on the way to it."""
    async with room(tmp_path) as here:
        known, read = here.gateway.sessions.known, list[str]()

        async def counted(profile: str, session_id: str) -> Session | None:
            read.append(session_id)
            return await known(profile, session_id)

        with bind("nightly", kind="cron"), child("sub"), child("deep"):
            await here.gateway.request(ASKED)
            monkeypatch.setattr(here.gateway.sessions, "known", counted)
            await here.gateway.request(ASKED)
        assert read == ["nightly", "sub", "deep"]


# --- over HTTP -----------------------------------------------------------------------------------------


async def test_a_job_bound_around_a_client(world: World) -> None:  # 2.3.2, 2.3.3
    key = (await world.core.keys.create("default", "agent", agent="builder")).text
    async with Client(world.bound.api, key, environ={}) as agent:
        for name in ("talk", "sub"):
            with bind(name, kind="cron"):
                for call in (agent.request, agent.check):
                    with pytest.raises(InvalidInput, match=r"api.* id of its own"):
                        await call(ASKED)
        for name in ("nightly", "part"):
            with bind(name, kind="cron"):
                assert (await agent.check(ASKED)).verdict == "block"
                assert (await agent.request(ASKED)).outcome == "blocked"
        with bind("unheard", kind="cron"), pytest.raises(SessionNotFound):
            await agent.request(ASKED)
        # A child that ended with its parent is told so, whoever asks in it.
        await agent.stop("talk")
        with bind("sub", kind="cron"):
            assert (await agent.request(ASKED)).cause == "stop_requested"
    assert await world.core.broker.pending("default") == []


async def test_a_child_below_a_session_that_the_key_does_not_know(world: World) -> None:
    """Nobody can tell its kind, so a job does not ask there."""
    await world.core.sessions.declare("default", Declaration(session_id="theirs", kind="chat"), None)
    await world.core.sessions.declare("default", Declaration(session_id="sub", kind="child", parent="theirs"), None)
    await world.core.sessions.attach("default", "theirs", "desk", "ann")
    key = (await world.core.keys.create("default", "agent", agent="builder")).text
    async with Client(world.bound.api, key, environ={}) as agent:
        with bind("sub", kind="cron"), pytest.raises(InvalidInput, match="id of its own"):
            await agent.request(ASKED)


async def test_the_environment_of_a_client_tells_of_a_job(world: World) -> None:
    key = (await world.core.keys.create("default", "agent", agent="builder")).text
    environ = {"SIGNOFF_SESSION_KIND": "cron", "SIGNOFF_SESSION_ID": "talk"}
    async with Client(world.bound.api, key, environ=environ) as agent:
        with pytest.raises(InvalidInput, match="id of its own"):
            await agent.request(ASKED)


@pytest.mark.parametrize(("named", "told"), [("sub", "cron_mode"), ("part", "cron_mode")])
async def test_a_command_of_a_job_with_the_id_of_a_child(world: World, named: str, told: str) -> None:  # 2.3.2
    environ = {**os.environ, "SIGNOFF_SESSION_KIND": "cron", "SIGNOFF_SESSION_ID": named}
    code, said = await run(world, environ)
    assert (code, f'approvals.{told} = "deny"' in said) == (75, True), said
    assert await world.core.broker.pending("default") == []


async def test_a_job_names_a_session_that_nobody_declared(world: World) -> None:
    """On the command line, so that it is declared as the job's."""
    environ = {**os.environ, "SIGNOFF_SESSION_KIND": "cron"}
    code, said = await run(world, environ, "--session", "new")
    assert (code, 'approvals.cron_mode = "deny"' in said) == (75, True), said
    session = await world.core.sessions.get("default", "new")
    assert session.kind == "cron"
