"""The client against the real server and core: the two halves of the contract meet."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.forked import fork_module
from tests.unit.server.world import World, world_on

from signoff.client import BlockingClient, Client, operands_of
from signoff.client.records import ApprovalRecord
from signoff.errors import (
    AlreadyResolved,
    ChoiceNotOffered,
    ClaimRefused,
    InsufficientScope,
    RequestNotFound,
    SessionNotFound,
    TurnEnded,
    Unauthenticated,
)
from signoff.model import Command

PUSH = Command(command="git push origin main", cwd="/srv")


class Pair:
    """A running gateway, an agent with session `s`, and somebody who decides."""

    def __init__(self, world: World, agent: Client, approver: Client, key: str) -> None:
        self.world, self.agent, self.approver, self.key = world, agent, approver, key

    async def ask(self, action: Command = PUSH, **facts: Any) -> tuple[asyncio.Task[ApprovalRecord], ApprovalRecord]:
        """A question under way, once it waits."""
        task = asyncio.create_task(self.agent.request(action, session_id="s", **facts))
        return task, await self.waiting()

    async def waiting(self) -> ApprovalRecord:
        """The question that waits, once there is one."""
        async with asyncio.timeout(30):
            while not (waiting := await self.approver.pending()):  # noqa: ASYNC110  # another process could not tell
                await asyncio.sleep(0.01)
        return waiting[-1]


async def pair_in(world: World, stack: AsyncExitStack) -> Pair:
    agent_key = (await world.core.keys.create("default", "agent", agent="builder")).text
    approver_key = (await world.core.keys.create("default", "approver", principal="ann")).text
    agent = await stack.enter_async_context(Client(world.bound.api, agent_key, environ={}))
    approver = await stack.enter_async_context(Client(world.bound.api, approver_key, environ={}))
    await agent.session("s", kind="api")
    await world.core.sessions.attach("default", "s", "desk", "ann")
    return Pair(world, agent, approver, agent_key)


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(world_on("memory://"))
        yield await pair_in(world, stack)


async def test_ask_approve_claim_report(pair: Pair) -> None:
    task, waiting = await pair.ask(reason="release")
    decided = await pair.approver.decide(waiting.short_id, "once")
    assert decided.outcome == "approved"
    assert not decided.may_run, "who decides gets no permission to run"
    record = await task
    assert record.may_run
    assert record.message.startswith("Approved")
    assert record.action["command"] == PUSH.command
    done = await pair.agent.result(record.request_id, "failed", 3)
    assert (done.execution.state, done.execution.exit_code, done.may_run) == ("failed", 3, False)
    assert record.turn_id is not None
    with pytest.raises(TurnEnded):
        await pair.world.core.sessions.heartbeat("default", record.turn_id)


async def test_ask_deny(pair: Pair) -> None:
    task, waiting = await pair.ask()
    await pair.approver.decide(waiting.request_id, "deny", "wrong target")
    record = await task
    assert not record.may_run
    assert record.message.startswith("BLOCKED: denied.")
    assert record.reason == "wrong target"
    assert record.decided_by[0].principal == "ann"
    with pytest.raises(AlreadyResolved) as caught:
        await pair.approver.decide(waiting.request_id, "once")
    assert caught.value.facts["approval"]["outcome"] == "denied"
    again = await pair.agent.request(PUSH, session_id="s")
    assert (again.outcome, again.repeat_of) == ("denied", record.request_id), "without another card"


async def test_errors_cross_the_wire_as_themselves(pair: Pair) -> None:
    with pytest.raises(SessionNotFound):
        await pair.agent.request(PUSH, session_id="unknown")
    with pytest.raises(InsufficientScope):
        await pair.agent.grants()
    with pytest.raises(RequestNotFound):
        await pair.agent.get("nothing")
    async with Client(pair.world.bound.api, "sk_no_key", environ={}) as stranger:
        with pytest.raises(Unauthenticated):
            await stranger.pending()
    task, waiting = await pair.ask(choices=["once", "deny"])
    with pytest.raises(ChoiceNotOffered):
        await pair.approver.decide(waiting.request_id, "always")
    with pytest.raises(ClaimRefused) as refused:
        await pair.agent.claim(waiting.request_id, waiting.digest)
    assert refused.value.claim_code == "not_approved"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_cancelling_withdraws_and_interrupts(pair: Pair) -> None:
    task, waiting = await pair.ask()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    record = await pair.approver.get(waiting.request_id)
    assert (record.outcome, record.cause) == ("cancelled", "withdrawn")
    assert record.message.startswith("BLOCKED: cancelled (withdrawn)")


async def test_stopping_the_session_ends_the_question(pair: Pair) -> None:
    task, waiting = await pair.ask()
    stopped = await pair.approver.stop("s")
    assert stopped["cancelled"] == [waiting.request_id]
    record = await task
    assert (record.outcome, record.cause, record.may_run) == ("cancelled", "stop_requested", False)


async def test_undo_before_the_claim(pair: Pair) -> None:
    agent, approver = pair.agent, pair.approver
    async with agent.turn("s") as turn:
        from signoff.client import _wire
        from signoff.client.records import Question
        from signoff.digest import digest_of

        question = Question(
            action=PUSH, digest=digest_of(PUSH, None), request_id="mine", session_id="s", turn_id=turn.turn_id
        )
        await agent._link.call(_wire.submit(question))
        await approver.decide("mine", "once")
        assert (await approver.undo("mine")).execution.cause == "undone"
        record = await agent.request(PUSH, session_id="s", turn_id=turn.turn_id, request_id="mine", host=None)
    assert not record.may_run
    assert record.message.startswith("BLOCKED:")


async def test_the_same_request_in_two_places_runs_once(pair: Pair) -> None:
    async with pair.agent.turn("s") as turn:
        asking = [pair.agent.request(PUSH, session_id="s", turn_id=turn.turn_id, request_id="one") for _ in range(2)]
        both = [asyncio.create_task(each) for each in asking]
        await pair.waiting()
        await pair.approver.decide("one", "once")
        records = await asyncio.gather(*both)
    assert sorted(record.may_run for record in records) == [False, True]
    assert [r.message.split(".")[0] for r in records if not r.may_run] == ["BLOCKED: already_claimed"]


async def test_files_that_changed_are_not_run(pair: Pair, tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("git push --force\n")
    operands = tuple(operands_of(["run.sh"], tmp_path))
    action = Command(command="git push --force; sh run.sh", cwd=str(tmp_path), operands=operands)
    task, waiting = await pair.ask(action)
    script.write_text("rm -rf /\n")
    await pair.approver.decide(waiting.request_id, "once")
    record = await task
    assert not record.may_run
    assert record.execution.cause == "changed_since_review"


async def test_grants_are_listed_and_revoked(pair: Pair) -> None:
    task, waiting = await pair.ask()
    await pair.approver.decide(waiting.request_id, "session")
    assert (await task).may_run
    [grant] = await pair.approver.grants()
    assert grant.session_id == "s"
    assert (await pair.approver.revoke(grant.grant_id)).grant_id == grant.grant_id
    assert await pair.approver.grants() == []


async def test_events_are_followed(pair: Pair) -> None:
    seen: list[str] = []
    following = asyncio.Event()

    async def follow() -> None:
        async for event in pair.approver.events(after=0, session_id="s"):
            seen.append(event.type)
            following.set()
            if event.type == "approval.resolved":
                assert event.approval is not None
                assert event.approval["outcome"] == "denied"
                return

    follower = asyncio.create_task(follow())
    task, waiting = await pair.ask()
    await following.wait()
    await pair.approver.decide(waiting.request_id, "deny")
    await task
    async with asyncio.timeout(30):
        await follower
    assert "approval.requested" in seen


async def test_a_restart_of_the_real_gateway(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/store.db"
    async with AsyncExitStack() as outer:
        async with AsyncExitStack() as first:
            world = await first.enter_async_context(world_on(url))
            port = urlsplit(world.bound.api).port
            pair = await pair_in(world, outer)
            task, waiting = await pair.ask()
        assert not task.done()
        async with world_on(url, port=port):
            await pair.approver.decide(waiting.request_id, "once")
            record = await task
            assert record.may_run
            await pair.agent.result(record.request_id, "succeeded", 0)
            await pair.agent.aclose()


async def test_blocking_over_the_real_gateway(pair: Pair) -> None:
    def work() -> tuple[bool, str | None]:
        made = BlockingClient(pair.world.bound.api, pair.key, session_id="s", environ={})
        with made as client, client.turn() as turn:
            record = client.request(PUSH, turn_id=turn.turn_id)
            return record.may_run, client.result(record.request_id, "succeeded", 0).execution.state

    task = asyncio.create_task(asyncio.to_thread(work))
    await pair.approver.decide((await pair.waiting()).request_id, "once")
    assert await task == (True, "succeeded")


@pytest.mark.skipif(os.name != "posix", reason="the local socket")
async def test_the_command_line_over_the_local_socket(tmp_path: Path) -> None:
    (tmp_path / "signoff.toml").write_text('[gateway]\nstate_dir = "."\n')
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    async def signoff(*arguments: str) -> tuple[int, str]:
        process = await fork_module("signoff", *arguments, cwd=tmp_path, env=environ)
        out, errors = await process.communicate()
        return await process.wait(), (out + errors).decode()

    async with world_on(f"sqlite://{tmp_path}/signoff.db", state_dir=tmp_path) as world:
        code, made = await signoff("key", "create", "--scope", "agent", "--agent", "builder", "--json")
        assert code == 0, made
        assert set(json.loads(made)) == {"id", "key"}
        assert await world.core.keys.verify(json.loads(made)["key"]) is not None
        code, listed = await signoff("key", "list", "--json")
        assert [row["id"] for row in json.loads(listed)["data"]] == [json.loads(made)["id"]]
        code, said = await signoff("run", "--shell", "git push --force")
        assert code == 75, (code, said)
        await world.core.sessions.declare("default", _session("s"), None)
        await world.core.sessions.attach("default", "s", "desk", "ann")
        running = asyncio.create_task(signoff("run", "--session", "s", "--shell", "git push --force || exit 4"))
        while not (waiting := await world.core.broker.pending("default")):
            assert not running.done(), running.result()
            await asyncio.sleep(0.02)
        code, said = await signoff("approve", waiting[0].short_id)
        assert code == 0, said
        assert (await running)[0] == 4
        done = await world.core.broker.get("default", waiting[0].request_id)
        assert (done.execution.state, done.execution.exit_code) == ("failed", 4)
        assert (done.decided_by[0].platform, done.decided_by[0].user_id) == ("local", str(os.getuid()))


def _session(session_id: str) -> Any:
    from signoff.sessions import Declaration

    return Declaration(session_id=session_id)
