"""A question that waits costs a row and a coroutine, never a thread, and the coroutine keeps nothing of the row."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import CoroutineType
from typing import Any

import pytest
from tests.unit.core.harness import World

from signoff.broker import Ask
from signoff.config import load_config
from signoff.gateway import Gateway
from signoff.model import ApprovalRequest, Command
from signoff.placing import Asker
from signoff.testing.fake_adapter import FakeAdapter

ACTION = Command(command="rm -rf build")
KEPT = (ApprovalRequest, Ask, Asker, Command)
WAITS: dict[str, Callable[[Gateway], Coroutine[Any, Any, Any]]] = {
    "request": lambda gateway: gateway.request(ACTION, session_id="s", turn_id="t", request_id="r1"),
    "ask": lambda gateway: gateway.broker.ask("default", Ask(action=ACTION, session_id="s", request_id="r1")),
    "wait": lambda gateway: gateway.broker.wait("default", "r1"),
}


async def test_two_hundred_that_wait_take_no_thread(world: World) -> None:
    before = set(threading.enumerate())
    rows = [await world.submit(f"deploy build-{number}") for number in range(200)]
    waits = [asyncio.create_task(world.broker.wait("default", row.request_id, None)) for row in rows]
    await world.flush()
    assert set(threading.enumerate()) == before
    assert not any(wait.done() for wait in waits)
    await world.sessions.stop("default", "s", None)
    assert {row.cause for row in await asyncio.gather(*waits)} == {"stop_requested"}


def kept(frame: Any) -> list[Any]:
    """The rows and questions that a suspended coroutine, and those it awaits, refer to by a local name."""
    found: list[Any] = []
    while isinstance(frame, CoroutineType) and frame.cr_frame is not None:
        found += [each for each in frame.cr_frame.f_locals.values() if isinstance(each, KEPT)]
        frame = frame.cr_await
    return found


@pytest.mark.parametrize("how", sorted(WAITS))
async def test_what_waits_keeps_neither_row_nor_question(how: str, tmp_path: Path) -> None:
    environ = {"SIGNOFF_GATEWAY__STATE_DIR": str(tmp_path), "SIGNOFF_GATEWAY__STORE": "memory://"}
    async with Gateway(load_config(None, environ), adapters={("default", "fake"): FakeAdapter()}) as gateway:
        await gateway.session("s")
        await gateway.sessions.attach("default", "s", "desk", None)
        await gateway.sessions.open_turn("default", "s", "t", 600)
        if how == "wait":
            await gateway.broker.submit("default", Ask(action=ACTION, session_id="s", request_id="r1"))
        waiting = WAITS[how](gateway)
        task = asyncio.create_task(waiting)
        for _ in range(10_000):
            if gateway.broker.waiters and await gateway.broker.pending("default") and not kept(waiting):
                break
            await asyncio.sleep(0)
        assert kept(waiting) == []
        assert len(await gateway.broker.pending("default")) == 1
        await gateway.stop("s", None)
        assert (await task).cause == "stop_requested"
