"""Whoever waits is let go when what they wait for ends: tasks, threads of the process, and clients over HTTP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.client.test_against_server import Pair, pair

from signoff.authorize import local_actor
from signoff.blocking import BlockingGateway
from signoff.broker import Ask
from signoff.client import BlockingClient
from signoff.config import load_config
from signoff.errors import ClaimRefused, Conflict, TurnEnded
from signoff.gateway import Gateway
from signoff.model import Command
from signoff.record import Approval
from signoff.testing.fake_adapter import FakeAdapter

__all__ = ["pair"]

ANN = local_actor(1000)
LIMIT_S = 30.0


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    environ = {"SIGNOFF_GATEWAY__STATE_DIR": str(tmp_path), "SIGNOFF_GATEWAY__STORE": "memory://"}
    async with Gateway(load_config(None, environ), adapters={("default", "fake"): FakeAdapter()}) as made:
        await made.session("s")
        await made.sessions.attach("default", "s", "desk", None)
        await made.sessions.open_turn("default", "s", "t", 600)
        await made.session("child", kind="child", parent="s")
        yield made


ENDS: dict[str, tuple[str, Callable[[Gateway], Awaitable[Any]]]] = {
    "stop": ("stop_requested", lambda gateway: gateway.stop("s", ANN)),
    "clear": ("session_ended", lambda gateway: gateway.clear("s", ANN)),
    "reset": ("session_ended", lambda gateway: gateway.reset("s", ANN)),
    "turn": ("turn_ended", lambda gateway: gateway.sessions.end_turn("default", "t", "turn_ended", None)),
    "client": ("notifier_gone", lambda gateway: gateway.sessions.detach("default", "s", "desk")),
}


@pytest.mark.parametrize("how", sorted(ENDS))
async def test_threads_that_wait_are_freed(gateway: Gateway, how: str) -> None:  # 2.3.3, #21899
    """Leaders and followers, in the turn and in a child that was made in it; each reads the same cause as its row."""
    door = BlockingGateway(gateway)
    answers: list[Approval] = []

    def work(session: str, turn: str | None, command: str) -> None:
        answers.append(door.request(Command(command=command), session_id=session, turn_id=turn))

    asked = [("s", "t", "deploy x"), ("s", "t", "deploy x"), ("s", "t", "deploy y"), ("child", None, "deploy z")]
    threads = [threading.Thread(target=work, args=each, daemon=True) for each in asked]
    for thread in threads:
        thread.start()
    async with asyncio.timeout(LIMIT_S):
        while len(await gateway.pending()) < len(asked):  # noqa: ASYNC110  # threads ask
            await asyncio.sleep(0.01)
    cause, end = ENDS[how]
    await end(gateway)
    await asyncio.gather(*(asyncio.to_thread(thread.join, LIMIT_S) for thread in threads))
    assert not any(thread.is_alive() for thread in threads)
    causes = {answer.session_id: answer.cause for answer in answers}
    assert causes == {"s": cause, "child": "parent_ended" if how == "turn" else cause}
    assert [answer.outcome for answer in answers] == ["cancelled"] * len(asked)
    assert not any(answer.may_run for answer in answers)
    assert len(gateway.broker.waiters) == 0


async def test_a_client_in_a_thread_is_freed(pair: Pair) -> None:
    def work() -> str | None:
        with BlockingClient(pair.world.bound.api, pair.key, environ={}) as client:
            return client.request(Command(command="deploy"), session_id="s").cause

    waiting = asyncio.create_task(asyncio.to_thread(work))
    await pair.waiting()
    await pair.agent.stop("s")
    async with asyncio.timeout(LIMIT_S):
        assert await waiting == "stop_requested"


# --- late results -------------------------------------------------------------------------------------


async def test_the_work_of_a_stopped_turn_comes_too_late(pair: Pair) -> None:  # G2-04, 3.9.5
    """Not started: refused at the claim, as 409. Started: what became of it may still be told, and once."""
    async with pair.agent.turn("s") as turn:
        task, started = await pair.ask(Command(command="deploy"), turn_id=turn.turn_id)
        await pair.approver.decide(started.request_id, "once")
        assert (await task).may_run
        made = await pair.world.core.broker.submit("default", ask_in(turn.turn_id))
        await pair.approver.decide(made.row.request_id, "once")
        stopped = await pair.agent.stop("s")
        assert stopped["turns"] == [turn.turn_id]
        assert stopped["voided"] == [made.row.request_id]
        with pytest.raises(ClaimRefused) as refused:
            await pair.agent.claim(made.row.request_id, made.row.digest)
        assert (refused.value.status, refused.value.claim_code) == (409, "cancelled")
        lost = await pair.agent.get(started.request_id)
        assert (lost.outcome, lost.execution.state) == ("approved", "unknown"), "it may have run"
        told = await pair.agent.result(started.request_id, "succeeded", 0)
        assert told.execution.state == "succeeded"
        with pytest.raises(Conflict):
            await pair.agent.result(started.request_id, "failed", 1)
        with pytest.raises(Conflict):
            await pair.agent.result(made.row.request_id, "succeeded", 0)
        late = await pair.agent.request(Command(command="deploy late"), session_id="s", turn_id=turn.turn_id)
        assert (late.outcome, late.cause, late.may_run) == ("cancelled", "stop_requested", False)
        with pytest.raises(TurnEnded):
            await pair.world.core.sessions.heartbeat("default", turn.turn_id)


def ask_in(turn_id: str) -> Ask:
    return Ask(action=Command(command="deploy unstarted"), session_id="s", turn_id=turn_id, agent="builder")


async def test_a_late_child_over_http_is_told_its_parents_cause(pair: Pair) -> None:  # #112026
    """Also where its client would have opened a turn for the question."""
    await pair.agent.session("child", kind="child", parent="s")
    await pair.agent.stop("s")
    late = await pair.agent.request(Command(command="deploy"), session_id="child")
    assert (late.outcome, late.cause, late.may_run) == ("cancelled", "stop_requested", False)
    assert late.message.startswith("BLOCKED: cancelled (stop_requested)")
    with pytest.raises(TurnEnded) as ended:
        async with pair.agent.turn("child"):
            pass
    assert ended.value.facts["cause"] == "stop_requested"


# --- reset --------------------------------------------------------------------------------------------


async def test_reset_starts_a_session_anew_and_keeps_it(pair: Pair) -> None:  # 3.9.6
    task, waiting = await pair.ask(Command(command="deploy"))
    second = await pair.world.core.broker.submit("default", ask_in_session("deploy granted"))
    await pair.approver.decide(second.row.request_id, "session")
    told = await pair.agent.reset("s")
    assert (told["cancelled"], told["voided"], told["grants"]) == ([waiting.request_id], [second.row.request_id], 1)
    assert (await task).cause == "session_ended"
    again, waits = await pair.ask(Command(command="deploy granted"))
    assert waits.pending, "the session and its answer client are still there, and the grant is not"
    await pair.approver.decide(waits.request_id, "deny")
    assert (await again).outcome == "denied"


def ask_in_session(command: str) -> Ask:
    return Ask(action=Command(command=command), session_id="s", agent="builder")
