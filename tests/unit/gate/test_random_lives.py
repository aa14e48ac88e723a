"""Kept actions under whatever can happen to them, in any order: a model of what may be, and never a second run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from tests.unit.core.harness import BY_ANN
from tests.unit.gate.kept import BY_BEN, KeptWorld

from signoff.changes import staging
from signoff.errors import ActionRefused
from signoff.model import Tool
from signoff.staged import state_of
from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock

T = TypeVar("T")
ANSWERS = st.sampled_from(["approve", "reject"])
ENDED = ("succeeded", "denied", "expired")
REFUSED = {
    "waits": "not_approved",
    "running": "running",
    "succeeded": "already_run",
    "unknown": "unknown",
    "denied": "denied",
    "expired": "expired",
    "not_run": "lapsed",
    "superseded": "already_run",
}


class Lives(RuleBasedStateMachine):
    """Keeps, answers, starts, kills, lets time pass, and says what became of it."""

    actions = Bundle("actions")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.states: dict[str, str] = {}
        self.made: dict[str, float] = {}
        self.approved: dict[str, float] = {}
        self.claimed: dict[str, float] = {}
        self.started: set[str] = set()
        """Those that a claimant began which then died."""
        self.count = 0
        self.now_s = 0.0
        self.world = self.run(self._open())

    async def _open(self) -> KeptWorld:
        clock = FakeClock()
        world = KeptWorld(open_store("memory://", clock), clock)
        await world.job()
        return world

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it on the machine's loop."""
        return self.loop.run_until_complete(work)

    @rule(target=actions)
    def keep(self) -> str:
        """Keep one more."""
        self.count += 1
        row = self.run(self.world.keep(Tool(name="send_email", arguments={"n": self.count})))
        self.states[row.request_id] = "waits"
        self.made[row.request_id] = self.now_s
        return row.request_id

    @rule(action=actions, answer=ANSWERS)
    def answer(self, action: str, answer: str) -> None:
        """Somebody approves or rejects."""
        deed = getattr(self.world.staged, answer)
        if self.states[action] != "waits":
            expected = REFUSED.get(self.states[action], "already_approved")
            assert self.refusal(deed("default", action, BY_ANN)) == expected
            return
        self.run(deed("default", action, BY_ANN))
        self.states[action] = "approved" if answer == "approve" else "denied"
        self.approved[action] = self.now_s

    @rule(action=actions)
    def replay(self, action: str) -> None:
        """Run it now."""
        deed = self.world.staged.replay("default", action)
        if self.states[action] != "approved":
            assert self.refusal(deed) == REFUSED[self.states[action]]
            return
        assert state_of(self.run(deed)) == "succeeded"
        self.states[action] = "succeeded"

    @rule(action=actions)
    def die(self, action: str) -> None:
        """Another process claims it and dies."""
        change = lambda tx: staging.start(tx, "default", action, "dead")  # noqa: E731  # one line
        if self.states[action] != "approved":
            assert self.refusal(self.world.store.transact(change)) == REFUSED[self.states[action]]
            return
        self.run(self.world.store.transact(change))
        self.states[action] = "running"
        self.claimed[action] = self.now_s
        self.started.add(action)

    @rule(seconds=st.sampled_from([1.0, 59.0, 61.0, 36 * 3600.0, 73 * 3600.0]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.run(self.world.advance(seconds))
        self.now_s += seconds
        for action, state in self.states.items():
            if state == "waits" and self.now_s - self.made[action] >= 72 * 3600:
                self.states[action] = "expired"
            elif state == "approved" and self.now_s - self.approved[action] >= 72 * 3600:
                self.states[action] = "not_run"
            elif state == "running" and self.now_s - self.claimed[action] >= staging.LEASE_S:
                self.states[action] = "unknown"

    @rule(action=actions)
    def say_that_it_did(self, action: str) -> None:
        """Somebody says that it did run."""
        deed = self.world.staged.did_run("default", action, BY_BEN)
        if self.states[action] != "unknown":
            assert self.refusal(deed) == REFUSED.get(self.states[action], "not_run_yet")
            return
        self.run(deed)
        self.states[action] = "succeeded"

    @rule(target=actions, action=consumes(actions))
    def run_again(self, action: str) -> str:
        """Somebody has it run again, where that is possible."""
        deed = self.world.staged.run_again("default", action, BY_BEN)
        if self.states[action] != "unknown":
            assert self.refusal(deed) == REFUSED.get(self.states[action], "not_run_yet")
            return action
        again = self.run(deed)
        self.states[action] = "superseded"
        self.states[again.request_id] = "approved"
        self.approved[again.request_id] = self.now_s
        return again.request_id

    @rule()
    def stop(self) -> None:
        """The session is stopped, which leaves what is kept."""
        self.run(self.world.sessions.stop("default", "job", BY_ANN))

    def refusal(self, work: Coroutine[Any, Any, Any]) -> str:
        """The code that it is refused with."""
        try:
            found = self.run(work)
        except ActionRefused as error:
            return error.code
        raise AssertionError(f"it was not refused: {found}")

    @invariant()
    def agrees(self) -> None:
        """The gateway and the model say the same, and no action ran twice."""
        rows = self.run(self.world.staged.actions("default", limit=1000))
        found = {row.request_id: "superseded" if row.superseded_by else state_of(row) for row in rows}
        assert found == self.states
        ran = [call.id for call in self.world.ran]
        assert len(ran) == len(set(ran))
        assert not self.started & set(ran)

    def teardown(self) -> None:
        """Leave nothing running."""
        self.run(self.world.aclose())
        self.run(self.world.store.aclose())
        self.loop.close()


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
