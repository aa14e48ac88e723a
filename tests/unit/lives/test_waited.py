"""Waiting for a person is no time of the agent's: it is told by question and by turn, and no lease lapses over it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.client.test_against_server import Pair, pair
from tests.unit.core.harness import World

from signoff.authorize import local_actor
from signoff.blocking import BlockingGateway
from signoff.broker import Ask
from signoff.client import BlockingClient
from signoff.config import load_config
from signoff.gateway import Gateway
from signoff.model import Command, Turn
from signoff.rows import turn_key
from signoff.testing.clock import FakeClock, settle
from signoff.testing.fake_adapter import FakeAdapter
from signoff.waited import Meter

__all__ = ["pair"]

ANN = local_actor(1000)
LIMIT_S = 30.0


# --- the meter ----------------------------------------------------------------------------------------


@given(spans=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), max_size=8), until=st.integers(0, 45))
def test_overlapping_waits_count_once(spans: list[tuple[int, int]], until: int) -> None:
    """As many seconds as lie in at least one of the spans that have begun."""
    now = 0.0
    meter = Meter(lambda: now)
    waits = [(begin, meter.waiting(), begin + length) for begin, length in spans]
    for second in range(until + 1):
        now = float(second)
        for begin, wait, _ in waits:
            if begin == second:
                wait.__enter__()
        for begin, wait, end in waits:
            if begin <= second == end:
                wait.__exit__(None, None, None)
    covered = {second for begin, length in spans for second in range(begin, begin + length) if second < until}
    assert meter.waited_s == len(covered)


def test_a_clock_that_is_set_back_takes_nothing_away() -> None:
    now = 100.0
    meter = Meter(lambda: now)
    with meter.waiting():
        now = 110.0
    with meter.waiting():
        now = 50.0
        assert meter.waited_s == 10
    assert meter.waited_s == 10


# --- in process -----------------------------------------------------------------------------------------


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    environ = {"SIGNOFF_GATEWAY__STATE_DIR": str(tmp_path), "SIGNOFF_GATEWAY__STORE": "memory://"}
    clock = FakeClock()
    async with Gateway(load_config(None, environ), clock=clock, adapters={("default", "fake"): FakeAdapter()}) as made:
        await made.session("s")
        await made.sessions.attach("default", "s", "desk", None)
        yield made


async def advance(gateway: Gateway, seconds: float) -> None:
    assert isinstance(gateway.clock, FakeClock)
    await gateway.clock.advance(seconds)


async def test_a_turn_tells_how_long_it_waited_for_people(gateway: Gateway) -> None:  # 3.4.2
    async with gateway.turn("s") as turn:
        await advance(gateway, 7)
        assert turn.waited_s == 0, "work is no wait"
        asking = [
            asyncio.create_task(gateway.request(Command(command=f"deploy {n}"), session_id="s", turn_id=turn.turn_id))
            for n in range(2)
        ]
        await settle()
        await advance(gateway, 10)
        assert turn.waited_s == 10, "so far"
        first, second = sorted(await gateway.pending(), key=lambda row: str(row.action))  # both came at one instant
        await gateway.decide(first.request_id, "once", ANN)
        await settle()
        await advance(gateway, 5)
        assert (await gateway.get(second.request_id)).waited_s == 15
        await gateway.decide(second.request_id, "deny", ANN)
        await settle()
        await advance(gateway, 100)
        answers = [await each for each in asking]
        assert [answer.waited_s for answer in answers] == [10, 15]
        assert turn.waited_s == 15
        at_once = await gateway.request(Command(command="ls"), session_id="s", turn_id=turn.turn_id)
        assert (at_once.may_run, at_once.waited_s) == (True, 0)
    assert gateway.broker.waiters._meters == {}


async def test_a_thread_reads_it_while_it_waits(gateway: Gateway) -> None:
    """A watchdog of the agent's runs in another thread than the question."""
    blocking = BlockingGateway(gateway)
    with_turn = blocking.turn("s")
    turn = await asyncio.to_thread(with_turn.__enter__)
    asking = asyncio.create_task(
        asyncio.to_thread(blocking.request, Command(command="deploy"), session_id="s", turn_id=turn.turn_id)
    )
    async with asyncio.timeout(LIMIT_S):
        while not (rows := await gateway.pending()):  # noqa: ASYNC110  # a thread asks
            await asyncio.sleep(0.01)
        while gateway.broker.waiters._open[turn_key("default", turn.turn_id)] < 2:  # noqa: ASYNC110  # the same
            await asyncio.sleep(0.01)
    await advance(gateway, 40)
    assert await asyncio.to_thread(lambda: turn.waited_s) == 40
    await gateway.decide(rows[0].request_id, "deny", ANN)
    assert (await asking).waited_s == 40
    await asyncio.to_thread(with_turn.__exit__, None, None, None)


@pytest.mark.parametrize("door", ["ask", "wait"])
@pytest.mark.parametrize("engine", ["memory-replay"])
async def test_a_lease_is_kept_alive_while_somebody_is_waited_for(world: World, door: str) -> None:  # 3.4.1
    """However short it is, and however long the person takes; it runs on from the answer."""
    await world.turn("short", lease_s=2)
    ask = Ask(action=Command(command="deploy"), session_id="s", turn_id="short", timeout_s=900)
    if door == "ask":
        waiting = asyncio.create_task(world.broker.ask("default", ask))
        await settle()
    else:
        asked = await world.broker.submit("default", ask)
        waiting = asyncio.create_task(world.broker.wait("default", asked.row.request_id))
        await settle()
    await world.advance(800)
    (row,) = await world.rows()
    assert row.outcome is None
    await world.decide(row, "once")
    await waiting
    await world.advance(1.9)
    assert await is_open(world)
    await world.advance(2)
    assert not await is_open(world)


async def is_open(world: World) -> bool:
    turn = await world.store.get(Turn, turn_key("default", "short"))
    assert turn is not None
    return turn.ended_at is None


# --- over HTTP ------------------------------------------------------------------------------------------


async def test_over_http_a_turn_tells_the_same(pair: Pair) -> None:
    """Two questions that wait at once: the turn waited as long as both together, not as their sum."""
    loop = asyncio.get_running_loop()
    async with pair.agent.turn("s") as turn:
        begun = loop.time()
        asking = [
            asyncio.create_task(
                pair.agent.request(Command(command=f"deploy {n}"), session_id="s", turn_id=turn.turn_id)
            )
            for n in range(2)
        ]
        async with asyncio.timeout(LIMIT_S):
            # Until the waits are most of the time there was, so that their sum would be more than that.
            while len(waiting := await pair.approver.pending()) < 2 or turn.waited_s < 0.8 * (loop.time() - begun):  # noqa: ASYNC110  # time passes for nobody
                await asyncio.sleep(0.01)
        for each in waiting:
            await pair.approver.decide(each.request_id, "deny")
        answers = [await each for each in asking]
        total = turn.waited_s
        assert 0 < total <= loop.time() - begun
        assert all(answer.waited_s > 0 for answer in answers)
        alone = await pair.agent.request(Command(command="ls"), session_id="s", turn_id=turn.turn_id)
        assert alone.waited_s == 0
    assert pair.agent._meters == {}


async def test_the_blocking_client_tells_it_too(pair: Pair) -> None:
    def work() -> tuple[float, float]:
        with BlockingClient(pair.world.bound.api, pair.key, environ={}) as client, client.turn("s") as turn:
            answer = client.request(Command(command="deploy"), session_id="s", turn_id=turn.turn_id)
            return answer.waited_s, turn.waited_s

    asking = asyncio.create_task(asyncio.to_thread(work))
    waiting = await pair.waiting()
    await pair.approver.decide(waiting.request_id, "deny")
    answer_s, turn_s = await asking
    assert answer_s > 0
    assert turn_s > 0
