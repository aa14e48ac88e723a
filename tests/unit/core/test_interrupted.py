"""Whoever is interrupted takes back what it asked itself, and nothing that another asks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.core.harness import World

from signoff.broker import Ask, Broker
from signoff.errors import IdempotencyConflict
from signoff.model import ApprovalRequest, Command
from signoff.ports import Store, Tx


def question(command: str = "deploy x", session_id: str = "s") -> Ask:
    return Ask(action=Command(command=command), session_id=session_id, request_id="job-1")


def asked(world: World, ask: Ask) -> asyncio.Task[ApprovalRequest]:
    return asyncio.ensure_future(world.broker.ask("default", ask))


async def waits(world: World) -> None:
    """The question is stored, and its card stands."""
    for _ in range(20_000):
        if await world.rows():
            return await world.flush()
        await asyncio.sleep(0.001)
    raise AssertionError("nothing was asked")


class Slow:
    """The world's store, whose next commit is answered late: `came` is set, and then nothing comes."""

    def __init__(self, store: Store) -> None:
        self._store, self.came = store, asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def transact(self, change: Callable[[Tx], Any], *, bulk: bool = False) -> Any:
        """Commit what can be; keep the answer back."""
        if self.came.is_set():
            return await self._store.transact(change, bulk=bulk)
        with contextlib.suppress(IdempotencyConflict):
            await self._store.transact(change, bulk=bulk)
        self.came.set()
        return await asyncio.Future()


async def stopped(task: asyncio.Task[ApprovalRequest]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("ask", "stands"),
    [(question("deploy y"), True), (question(session_id="other"), True), (question(), False)],
)
async def test_a_question_under_the_same_id_stays(world: World, ask: Ask, stands: bool) -> None:
    await world.session("other")
    first = (await world.broker.submit("default", question())).row  # as over HTTP
    slow: Any = Slow(world.store)
    world.broker = Broker(slow, world.clock, {"default": world.profile}, lambda _: frozenset({"fake"}))
    second = asked(world, ask)
    await slow.came.wait()
    await stopped(second)
    assert ((await world.row(first)).outcome is None) is stands


async def test_a_question_of_two_callers_goes_with_the_last(world: World) -> None:
    first = asked(world, question())
    await waits(world)
    second = asked(world, question())
    for _ in range(100):
        await asyncio.sleep(0)
    await stopped(first)
    assert (await world.row("job-1")).outcome is None
    await stopped(second)
    assert (await world.row("job-1")).cause == "turn_interrupted"
