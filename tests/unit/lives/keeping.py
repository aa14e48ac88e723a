"""Random deeds to kept actions: answered, run, lost, run again, taken back, by gateways with an executor and without.

What is kept is asked for in sessions in which nobody can answer, and outlives them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

from tests.unit.core.harness import BY_ANN
from tests.unit.gate.kept import BY_BEN, KeptWorld
from tests.unit.lives.model import Model

from signoff.changes import having, staging
from signoff.executing import Executing
from signoff.executors import Executors
from signoff.model import ApprovalRequest, Copy
from signoff.ports import Store
from signoff.rows import request_key, to_run_key
from signoff.staged import Staged, kept_action, state_of

T = TypeVar("T")
EXECUTOR = "runner"
LATE_WORDS = ("not_run", "succeeded", "failed")
KEPT_WEIGHTS = {
    "answer_kept": 4,
    "run_kept": 3,
    "begin_and_die": 3,
    "tell_late": 2,
    "say_it_did": 1,
    "run_again": 2,
    "take_back": 1,
    "tell_executors": 1,
}


def picked(things: Sequence[T], pick: int) -> T:
    return things[pick % len(things)]


class KeptDeeds:
    """The part of a life that has to do with kept actions."""

    world: KeptWorld
    store: Store
    model: Model
    both: Any
    happened: Counter[str]

    def begin_keeping(self) -> None:
        """Before the first step."""
        self.ids: dict[str, str] = {}
        """The gateway's ids by the model's names."""
        without = Executing(self.store, self.world.clock, Executors(self.world.settings, self.world.clock))
        self.elsewhere = Staged(self.store, self.world.broker, without, self.world.clock)
        """Another gateway of the store, which does not have the executor."""

    def _kept(self, pick: int, *states: str) -> str | None:
        """Most often one that is in one of these states."""
        actions = list(self.model.kept.actions.values())
        wanted = [kept for kept in actions if kept.state in states and kept.again is None]
        found = [*wanted, *wanted, *wanted, *actions[-3:]]
        return picked(found, pick).name if found else None

    async def was_kept(self, name: str) -> None:
        """Note under which id a question's action is kept."""
        row = await self.world.row(name)
        assert row.kept_as is not None
        self.ids[name] = row.kept_as

    async def answer_kept(self, pick: int, word: int, _: int) -> None:
        name, approve = self._kept(pick, "waits"), word % 4 != 0
        if name is not None:
            deed = self.world.staged.approve if approve else self.world.staged.reject
            theirs = partial(self.model.kept.answer, name, approve=approve, now=self.model.now)
            await self.both("answer_kept", deed("default", self.ids[name], BY_ANN), theirs)

    async def run_kept(self, pick: int, how: int, _: int) -> None:
        name = self._kept(pick, "approved")
        if name is not None:
            here, fails = how % 4 != 0, how % 3 == 0
            self.world.fails = ValueError("the work went wrong") if fails else None
            replay = (self.world.staged if here else self.elsewhere).replay("default", self.ids[name])
            await self.both("run_kept", replay, partial(self.model.kept.run, name, here=here, fails=fails))

    async def begin_and_die(self, pick: int, _a: int, _b: int) -> None:
        """Another process claims it and dies."""
        name = self._kept(pick, "approved")
        if name is not None:
            start = partial(staging.start, profile="default", request_id=self.ids[name], claim_id="dead")
            begun = self.store.transact(start)
            await self.both("begin_and_die", begun, partial(self.model.kept.start, name, self.model.now))

    async def tell_late(self, pick: int, word: int, _: int) -> None:
        name, state = self._kept(pick, "running", "unknown"), picked(LATE_WORDS, word)
        if name is not None:
            ran = staging.Ran(state=state)  # type: ignore[arg-type]  # one of three of its words
            settle = partial(staging.settle, profile="default", request_id=self.ids[name], claim_id="dead", ran=ran)
            await self.both("tell_late", self.store.transact(settle), partial(self.model.kept.late, name, state))

    async def say_it_did(self, pick: int, _a: int, _b: int) -> None:
        name = self._kept(pick, "unknown")
        if name is not None:
            said = self.world.staged.did_run("default", self.ids[name], BY_BEN)
            await self.both("say_it_did", said, partial(self.model.kept.did_run, name))

    async def run_again(self, pick: int, _a: int, _b: int) -> None:
        name = self._kept(pick, "unknown")
        if name is not None:
            again = self.world.staged.run_again("default", self.ids[name], BY_BEN)
            await self.both("run_again", again, partial(self.model.kept.run_again, name, self.model.now))
            newer = self.model.kept.actions[name].again
            if newer is not None and newer not in self.ids:
                self.ids[newer] = (await self.world.row(self.ids[name])).superseded_by or ""

    async def take_back(self, pick: int, _a: int, _b: int) -> None:
        name = self._kept(pick, "approved")
        if name is not None:
            undone = self.world.broker.undo("default", self.ids[name], BY_ANN, any_person=True)
            await self.both("take_back", undone, partial(self.model.kept.take_back, name))

    async def tell_executors(self, _a: int, _b: int, _c: int) -> None:
        """A gateway's round: it has the executor."""
        await self.store.transact(partial(having.tell, have=[("default", EXECUTOR)]))
        self.model.kept.told = self.model.now
        self.happened["tell_executors"] += 1

    async def look_at_kept(self) -> None:
        """Both sides tell the same of every kept action, and each was run as often as it says."""
        had = await self.world.staged.had("default")
        assert set(self.ids) == set(self.model.kept.actions)
        for name, kept in self.model.kept.actions.items():
            row = await self.world.row(self.ids[name])
            assert (row.outcome, row.execution.state, row.execution.cause) == kept.ending, kept
            assert row.superseded_by == (None if kept.again is None else self.ids[kept.again]), kept
            assert state_of(row) == ("not_run" if kept.state == "lapsed" else kept.state), kept
            told = kept_action(row, self.world.clock.now(), exact=False, had=had)
            assert told.executor_missing is self.model.kept.missing(name, self.model.now), kept
        assert [call.id for call in self.world.ran] == [self.ids[name] for name in self.model.kept.runs]
        assert len(set(self.model.kept.runs)) == len(self.model.kept.runs)

    async def nothing_kept_is_left(self) -> None:
        """At the very end: nothing waits, runs or is to be told of, but for what only a person can tell."""
        key = to_run_key("default", EXECUTOR)
        assert await self.store.find(ApprovalRequest, "to_run", key) == []
        assert self.world.executing._runs == {}
        assert {kept.due for kept in self.model.kept.actions.values()} <= {None}
        for name, kept in self.model.kept.actions.items():
            copies = await self.store.find(Copy, "request", request_key("default", self.ids[name]))
            live = [copy for copy in copies if copy.state not in ("final", "failed")]
            assert not live or (kept.state == "unknown" and kept.again is None), (kept, live)
