"""Random lives of sessions of all kinds: the gateway and a small model of it tell the same of everything."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.unit.lives.living import DEEDS, WEIGHTS, Life, Step

from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock

PICK = st.integers(0, 10_000)
STEPS = st.tuples(st.sampled_from(DEEDS), PICK, PICK, PICK)


async def lived(program: Sequence[Step], url: str, *, sessions: int, look_every: int) -> Life:
    clock = FakeClock()
    threads = set(threading.enumerate())
    store = open_store(url, clock)
    life = Life(store, clock, sessions=sessions, look_every=look_every)
    try:
        await life.live(program)
    finally:
        await store.aclose()
    assert set(threading.enumerate()) == threads
    return life


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(program=st.lists(STEPS, max_size=70))
def test_a_few_sessions(program: list[Step]) -> None:
    asyncio.run(lived(program, "memory://?replay=2", sessions=3, look_every=1))


def drawn(seed: int, steps: int) -> list[Step]:
    """A long program; Hypothesis draws its seed, since it cannot draw so many numbers."""
    chance = random.Random(seed)
    far = 10**6
    return [
        (chance.choice(DEEDS), chance.randrange(far), chance.randrange(far), chance.randrange(far))
        for _ in range(steps)
    ]


def test_every_deed_is_done_and_refused() -> None:
    """That the random lives are not all about nothing."""
    lives = [asyncio.run(lived(drawn(seed, 500), "memory://", sessions=9, look_every=30)) for seed in range(5)]
    happened = sum((life.happened for life in lives), Counter[str]())
    done = set(happened)
    assert done >= {*WEIGHTS} - {"child", "advance"} | {"idle", "daily"}, happened
    kept = [each for life in lives for each in life.model.kept.actions.values()]
    states = {"waits", "denied", "expired", "running", "succeeded", "failed", "unknown", "lapsed", "gone", "not_run"}
    assert {each.state for each in kept} | {"waits", "running"} == states, happened
    assert any(each.name.endswith("+") and each.state == "succeeded" for each in kept)
    refused = ["answer_kept", "run_kept", "begin_and_die", "run_again", "say_it_did", "take_back"]
    refused += ["declare", "ask", "submit", "claim", "stop", "clear", "reset", "heartbeat", "open_turn", "attach"]
    assert done >= {f"{name} refused" for name in refused}, happened
    questions = [question for life in lives for question in life.model.questions.values()]
    outcomes = {(each.outcome, each.cause) for each in questions}
    causes = ("turn_ended", "turn_interrupted", "withdrawn", "parent_ended", "requester_gone", "stop_requested")
    expected = {("cancelled", cause) for cause in (*causes, "session_ended", "notifier_gone")}
    assert outcomes >= expected | {(word, None) for word in ("approved", "denied", "timeout", "blocked", "staged")}
    assert {each.ran for each in questions} >= {"not_run", "lapsed", "unknown", "succeeded", "failed"}
    assert any(each.kind == "child" and each.closed for life in lives for each in life.model.sessions.values())


def open_files() -> int:
    gc.collect()  # what an earlier test has left is not counted in the one place and gone in the other
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@settings(max_examples=2, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
@example(seed=1)
def test_a_thousand_sessions(seed: int) -> None:
    """In a file, with all of their questions, turns, children, clients and kept actions; and no handle is left."""
    program = [("declare", number, number, 0) for number in range(1000)] + drawn(seed, 10_000)
    before = open_files()
    with tempfile.TemporaryDirectory() as folder:
        life = asyncio.run(lived(program, f"sqlite://{folder}/lives.db", sessions=1000, look_every=3000))
    assert sum(each.parent is None for each in life.model.sessions.values()) == 1000
    assert len(life.model.sessions) > 1150
    assert len(life.model.kept.runs) > 20
    assert open_files() == before
