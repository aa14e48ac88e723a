"""Random changes over an engine and over the memory store side by side: same answers, rows, events and feed."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.services.postgres import worker_database

from signoff.errors import StoreError
from signoff.model import ApprovalRequest, Change, Copy, Note
from signoff.ports import Store, Tx
from signoff.rows import TABLES, joined, key_of
from signoff.stores.memory import MemoryStore
from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock
from signoff.testing.rows import at, make_copy, make_event, make_request

Op = tuple[str, Any]
IDS = ("a", "b", "c", "d", "e", "f")
SECONDS = st.integers(0, 5)

requests = st.builds(
    lambda name, second, outcome, leader, turn, due: make_request(
        name,
        created_at=at(second),
        outcome=outcome,
        leader_id=leader,
        coalesce_key="same" if leader or name in "ab" else name,
        turn_id=turn,
        expires_at=None if due is None else at(due),
    ),
    st.sampled_from(IDS),
    SECONDS,
    st.sampled_from([None, None, "denied", "approved"]),
    st.sampled_from([None, "a", "b"]),
    st.sampled_from([None, "t1"]),
    st.none() | SECONDS,
)
copies = st.builds(
    lambda name, request, second, state, due, priority: make_copy(
        name,
        request_id=request,
        created_at=at(second),
        state=state,
        due_at=None if due is None else at(due),
        priority=priority,
        message_id=None if state == "queued" else f"m{name}",
    ),
    st.sampled_from(IDS),
    st.sampled_from([None, *IDS]),
    SECONDS,
    st.sampled_from(["queued", "sent", "final"]),
    st.none() | SECONDS,
    st.integers(0, 3),
)
notes = st.builds(lambda name, value: Note(name=name, value=value), st.sampled_from(IDS), st.text(max_size=3))
rows = requests | copies | notes
look_ups = st.sampled_from(
    [
        (ApprovalRequest, "pending_profile", "default"),
        (ApprovalRequest, "leader_key", joined("default", "same")),
        (ApprovalRequest, "follower_of", joined("default", "a")),
        (ApprovalRequest, "live_turn", joined("default", "t1")),
        (Copy, "request", joined("default", "a")),
        (Copy, "open_chat", joined("default", "telegram", "100")),
    ]
)
events = st.builds(
    lambda profile, session, request: make_event(profile=profile, session_id=session, request_id=request),
    st.sampled_from(["default", "other"]),
    st.none() | st.sampled_from(["s1", "s2"]),
    st.none() | st.sampled_from(IDS),
)
ops = (
    st.tuples(st.just("put"), rows)
    | st.tuples(st.just("delete"), rows)
    | st.tuples(st.just("get"), rows)
    | st.tuples(st.just("find"), st.tuples(look_ups, st.none() | st.integers(0, 3)))
    | st.tuples(st.just("emit"), events)
)


class Refused(Exception):
    """A change of the machine that gives up at its end."""


@dataclass(frozen=True)
class Script:
    """One random change."""

    ops: tuple[Op, ...]
    refuse: bool
    bulk: bool

    def __call__(self, tx: Tx) -> list[Any]:
        answers: list[Any] = []
        for verb, what in self.ops:
            if verb == "put":
                tx.put(what)
            elif verb == "delete":
                tx.delete(what)
            elif verb == "emit":
                tx.emit(what)
            elif verb == "get":
                answers.append(tx.get(type(what), key_of(what)))
            else:
                (row, path, value), limit = what
                answers.append(tx.find(row, path, value, limit=limit))
        if self.refuse:
            raise Refused(answers)
        return answers


scripts = st.builds(
    Script, st.lists(ops, min_size=1, max_size=8).map(tuple), st.integers(0, 5).map(lambda n: n == 0), st.booleans()
)


class Side:
    """One store with what its feed told."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.heard: list[Change] = []
        store.subscribe(self.heard.extend)

    async def run(self, group: list[Script]) -> list[Any]:
        """Run the changes at once; an exception is compared by its type and content."""
        calls = (self.store.transact(script, bulk=script.bulk) for script in group)
        return [_told(answer) for answer in await asyncio.gather(*calls, return_exceptions=True)]

    async def everything(self) -> dict[str, Any]:
        """All that can be read from outside."""
        seen: dict[str, Any] = {"events": await self.store.events("default", 0, limit=1000)}
        seen["other"] = await self.store.events("other", 0, limit=3, session_id="s1")
        seen["seq"] = [await self.store.last_seq(profile) for profile in ("default", "other")]
        for table in TABLES:
            seen[f"due {table.name}"] = await self.store.due(table.row, at(3), limit=3)
            seen[f"next {table.name}"] = await self.store.next_due(table.row)
        for row in (ApprovalRequest, Copy, Note):
            for name in IDS:
                key = joined("default", name) if row is ApprovalRequest else name
                seen[f"{row} {name}"] = await self.store.get(row, key)
        every: tuple[tuple[Any, str, str], ...] = (
            (ApprovalRequest, "profile", "default"),
            (ApprovalRequest, "pending_profile", "default"),
            (Copy, "open_chat", joined("default", "telegram", "100")),
        )
        for row, path, value in every:
            found: list[Any] = await self.store.find(row, path, value)
            seen[path] = found
            if found:
                seen[f"{path} after"] = await self.store.find(row, path, value, limit=2, after=key_of(found[0]))
        return seen


def _told(answer: Any) -> Any:
    if isinstance(answer, StoreError):
        return type(answer)
    if isinstance(answer, BaseException):
        return type(answer), answer.args
    return answer


class StoreMachine(RuleBasedStateMachine):
    """An engine against the memory store."""

    def open(self, folder: Path, clock: FakeClock) -> Store:
        raise AssertionError("each engine's machine says how it opens")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()

    @initialize()
    def begin(self) -> None:
        self.clock = FakeClock()

        async def begin() -> None:
            self.engine = Side(self.open(Path(self.folder.name), self.clock))
            self.model = Side(MemoryStore(self.clock))

        self.loop.run_until_complete(begin())

    @rule(group=st.lists(scripts, min_size=1, max_size=5))
    def change(self, group: list[Script]) -> None:
        async def both() -> tuple[list[Any], list[Any]]:
            return await self.engine.run(group), await self.model.run(group)

        engine, model = self.loop.run_until_complete(both())
        assert engine == model

    @rule()
    def reopen(self) -> None:
        async def reopen() -> None:
            if not isinstance(self.engine.store, MemoryStore):
                heard = self.engine.heard
                await self.engine.store.aclose()
                self.engine = Side(self.open(Path(self.folder.name), self.clock))
                self.engine.heard[:0] = heard

        self.loop.run_until_complete(reopen())

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "engine"):
            return

        async def both() -> tuple[dict[str, Any], dict[str, Any]]:
            return await self.engine.everything(), await self.model.everything()

        engine, model = self.loop.run_until_complete(both())
        assert engine == model
        assert self.engine.heard == self.model.heard

    def teardown(self) -> None:
        if hasattr(self, "engine"):
            self.loop.run_until_complete(self.engine.store.aclose())
        self.loop.close()
        self.folder.cleanup()


class SqliteMachine(StoreMachine):
    def open(self, folder: Path, clock: FakeClock) -> Store:
        return open_store(f"sqlite://{folder}/model.db", clock)


class PostgresMachine(StoreMachine):
    def open(self, folder: Path, clock: FakeClock) -> Store:
        kept = folder / "url"
        if not kept.exists():  # else it is opened again
            kept.write_text(worker_database().url)
        return open_store(kept.read_text(), clock)


class ReplayMachine(StoreMachine):
    def open(self, folder: Path, clock: FakeClock) -> Store:
        return MemoryStore(clock, replay=3)


def _test_case(machine: type[StoreMachine], examples: int) -> Any:
    case = machine.TestCase
    case.settings = settings(
        max_examples=examples,
        stateful_step_count=12,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    return case


TestSqliteModel = _test_case(SqliteMachine, 40)
TestReplayModel = _test_case(ReplayMachine, 30)
TestPostgresModel = _test_case(PostgresMachine, 4)


@pytest.mark.heavy
@pytest.mark.timeout(900)
class TestSqliteModelLong(_test_case(type("Long", (SqliteMachine,), {}), 500)):  # type: ignore[misc]  # made above
    """The same, for longer."""


@pytest.mark.heavy
@pytest.mark.timeout(900)
class TestPostgresModelLong(_test_case(type("LongToo", (PostgresMachine,), {}), 150)):  # type: ignore[misc]  # made above
    """The same, for longer."""
