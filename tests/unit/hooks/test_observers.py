"""Hooks in the gateway's process: whatever they do, nothing else is changed or held up."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.core.harness import World
from tests.unit.hooks.receiver import WITHIN_S, eventually

from signoff.errors import InvalidInput
from signoff.hooks import Hooks, PostApprovalResponse
from signoff.hooks.observers import MAX_HOOKS
from signoff.model import Event
from signoff.ports import Store, Tx
from signoff.testing.clock import FakeClock

SHORT_S = 1.0
"""What a call may take where one hangs; the others, which do nothing, have as long, also on a busy machine."""


class Calls(Counter[str]):
    """How the calls went."""

    def count(self, _hook: str, result: str) -> None:
        self[result] += 1

    async def until(self, result: str, times: int) -> None:
        await eventually(lambda: self[result] >= times)


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def within_s() -> float:
    """What a call may take."""
    return WITHIN_S


@pytest.fixture
async def hooks(store: Store, calls: Calls, within_s: float) -> AsyncIterator[Hooks]:
    found = Hooks(timeout_s=within_s, counted=calls.count)
    found.follow(store)
    yield found
    await found.aclose()
    assert [task for task in asyncio.all_tasks() if task.get_name().startswith("signoff-hook")] == []


async def ends(store: Store, count: int = 1) -> None:
    """So many turns end in one commit."""

    def change(tx: Tx) -> None:
        for number in range(count):
            data = {"turn_id": f"t{number}", "cause": "turn_ended"}
            tx.emit(Event(profile="default", type="turn.ended", at=tx.now, session_id="s", data=data))

    await store.transact(change)


async def test_a_callable_in_a_thread_and_a_coroutine_function(hooks: Hooks, calls: Calls, store: Store) -> None:
    heard: list[tuple[str, int, bool]] = []
    main = threading.get_ident()

    def plain(payload: Any) -> None:
        heard.append(("plain", payload.seq, threading.get_ident() == main))

    async def on_loop(payload: Any) -> None:
        heard.append(("async", payload.seq, threading.get_ident() == main))

    hooks.on("agent_end", plain)
    hooks.on("agent_end", on_loop)
    hooks.on("agent_end", lambda payload: on_loop(payload))  # noqa: PLW0108  # a callable that is no coroutine function and gives a coroutine
    await ends(store, 3)
    await calls.until("ok", 9)
    assert [seq for name, seq, _ in heard if name == "plain"] == [1, 2, 3]
    assert Counter((name, own) for name, _, own in heard) == {("plain", False): 3, ("async", True): 6}


async def test_a_payload_cannot_be_changed(hooks: Hooks, calls: Calls, store: Store) -> None:
    def change(payload: Any) -> None:
        payload.cause = "another"

    hooks.on("agent_end", change)
    await ends(store)
    await calls.until("raised", 1)


def raises(payload: Any) -> None:
    raise RuntimeError("no")


async def raises_later(payload: Any) -> None:
    await asyncio.sleep(0)
    raise ValueError("no")


def leaves(payload: Any) -> None:
    sys.exit(3)


async def leaves_later(payload: Any) -> None:
    sys.exit(3)


async def cancels_itself(payload: Any) -> None:
    raise asyncio.CancelledError


async def takes_nothing() -> None:
    """Its call fails."""


@pytest.mark.parametrize("fn", [raises, raises_later, leaves, leaves_later, cancels_itself, takes_nothing])
async def test_what_a_hook_raises_changes_nothing(
    hooks: Hooks, calls: Calls, store: Store, world: World, fn: Any, caplog: pytest.LogCaptureFixture
) -> None:  # 9.1
    hooks.on("post_approval_response", fn)
    for number in range(3):
        row = await world.ask(f"deploy {number}")
        assert await world.decide(row, "once") == "won"
    await calls.until("raised", 3)
    assert "hook.raised post_approval_response" in caplog.text


@pytest.mark.parametrize("within_s", [SHORT_S])
async def test_a_coroutine_that_hangs_is_cancelled_and_the_next_is_told(
    hooks: Hooks, calls: Calls, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[int] = []

    async def hang(payload: Any) -> None:
        heard.append(payload.seq)
        if payload.seq == 1:
            await asyncio.Event().wait()

    hooks.on("agent_end", hang)
    await ends(store, 2)
    await calls.until("ok", 1)
    assert (heard, calls["timeout"]) == ([1, 2], 1)
    assert "hook.late agent_end" in caplog.text


@pytest.mark.parametrize("within_s", [SHORT_S])
async def test_a_thread_that_hangs_delays_no_decision_and_no_other_hook(
    hooks: Hooks, calls: Calls, store: Store, world: World
) -> None:
    go = threading.Event()
    heard: dict[str, list[int]] = {"hanging": [], "other": []}

    def hang(payload: PostApprovalResponse) -> None:
        heard["hanging"].append(payload.seq)
        go.wait(WITHIN_S)

    hooks.on("post_approval_response", hang)
    hooks.on("post_approval_response", lambda payload: heard["other"].append(payload.seq))
    began = time.perf_counter()
    waits = [await world.ask(f"deploy {number}") for number in range(5)]
    waiting = [asyncio.ensure_future(world.broker.wait("default", row.request_id, None)) for row in waits]
    for row in waits:
        await world.decide(row, "once")
    ended = await asyncio.gather(*waiting)
    assert {row.outcome for row in ended} == {"approved"}
    assert time.perf_counter() - began < WITHIN_S / 2, "the thread hangs for all of it"
    await calls.until("timeout", 1)
    await calls.until("ok", 5)
    assert len(heard["hanging"]) == 1, "a second thread would hang too"
    go.set()
    await calls.until("ok", 9)
    assert heard["hanging"] == heard["other"], "late, and nothing is lost"


async def test_nothing_is_lost_or_kept_in_memory_in_a_storm(hooks: Hooks, calls: Calls, store: Store) -> None:
    heard: list[int] = []

    async def hear(payload: Any) -> None:
        heard.append(payload.seq)

    hooks.on("agent_end", hear)
    for _ in range(5):
        await ends(store, 200)
    await calls.until("ok", 1000)
    assert heard == list(range(1, 1001))


async def test_a_removed_hook_hears_no_more(hooks: Hooks, calls: Calls, store: Store) -> None:
    heard: list[str] = []
    removed: list[Any] = []

    def once(payload: Any) -> None:
        removed[0]()
        heard.append("once")

    removed.append(hooks.on("agent_end", once))
    hooks.on("agent_end", lambda payload: heard.append("always"))
    await ends(store, 2)
    await ends(store, 2)
    await calls.until("ok", 5)
    assert Counter(heard) == {"once": 1, "always": 4}


async def test_another_profiles_events_are_not_told(hooks: Hooks, calls: Calls, store: Store) -> None:
    heard: list[str] = []
    hooks.on("agent_end", lambda payload: heard.append("other"), profile="other")
    hooks.on("agent_end", lambda payload: heard.append("default"))
    await ends(store)
    await calls.until("ok", 1)
    assert heard == ["default"]


async def test_a_hook_has_nobodys_context(hooks: Hooks, calls: Calls, store: Store) -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
    heard: list[str] = []

    async def hear(payload: Any) -> None:
        heard.append(who.get())

    token = who.set("ann")
    hooks.on("agent_end", hear)
    hooks.on("agent_end", lambda payload: heard.append(who.get()))
    await ends(store)
    who.reset(token)
    await calls.until("ok", 2)
    assert heard == ["nobody", "nobody"]


async def test_what_is_no_hook_is_refused(hooks: Hooks) -> None:
    name: Any = "agent:end"
    with pytest.raises(InvalidInput, match="pre_approval_request, post_approval_response, agent_end"):
        hooks.on(name, raises)
    for _ in range(MAX_HOOKS):
        hooks.on("agent_end", raises)
    with pytest.raises(InvalidInput, match="at most"):
        hooks.on("agent_end", raises)


async def test_the_end_waits_for_what_is_left_and_leaves_no_thread(store: Store, clock: FakeClock) -> None:
    calls = Calls()
    hooks = Hooks(counted=calls.count)
    hooks.follow(store)
    heard: list[int] = []
    hooks.on("agent_end", lambda payload: heard.append(payload.seq))
    await ends(store, 3)
    await hooks.aclose()
    assert heard == [1, 2, 3]
    await eventually(lambda: all(thread.name != "signoff-hook-agent_end" for thread in threading.enumerate()))
    await hooks.aclose()


async def test_the_end_does_not_wait_for_a_hook_that_hangs(store: Store) -> None:
    hooks, go = Hooks(), threading.Event()
    hooks.follow(store)
    hooks.on("agent_end", lambda payload: go.wait(WITHIN_S))
    await ends(store)
    began = time.perf_counter()
    await hooks.aclose()
    assert time.perf_counter() - began < WITHIN_S / 2
    go.set()
