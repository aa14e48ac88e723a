"""Random lives of two sessions: whatever people, agents, time and a failing platform do, these things hold."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections import Counter
from collections.abc import Coroutine, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.core.harness import ANN, BEN, OTHER_PLACE, PLACE, SIGNER, World

from signoff import ids
from signoff.changes.deciding import offered
from signoff.errors import (
    AdapterError,
    AdapterUnavailable,
    ChoiceNotOffered,
    ClaimRefused,
    Conflict,
    RateLimited,
    SendRefused,
    SignoffError,
    UndoTooLate,
)
from signoff.model import Actor, ApprovalRequest, Copy
from signoff.settings import ApprovalSettings, Profile
from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock

SESSIONS = ("s", "s2")
CHOICES = ("once", "once_all", "session", "always", "30m", "deny")
DECIDING = frozenset({*CHOICES, "more", "because"})
BOTH = Profile(
    approvers={"fake": (ANN, BEN)}, approvals=ApprovalSettings(timeout_s=40, claim_within_s=30, also_to=(OTHER_PLACE,))
)


PICK = st.integers(0, 10_000)
"""Which of several things is meant. A number, not a choice among them: what there is depends on the life so far."""
T = TypeVar("T")


def picked(things: Sequence[T], pick: int) -> T:
    return things[pick % len(things)]


class Drawn:
    """In place of `secrets`: the same ids in every run, so that a failing life can be lived again."""

    def __init__(self) -> None:
        self._random = random.Random(0)
        self.choice = self._random.choice
        self.randbits = self._random.getrandbits
        self.randbelow = self._random.randrange
        self.token_bytes = self._random.randbytes


class Life(RuleBasedStateMachine):
    """The core and what was seen of it so far."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        setattr(ids, "secrets", Drawn())  # noqa: B010  # until the life is over; no public name of the module
        setattr(ids, "time", SimpleNamespace(time_ns=lambda: int(self.clock.now().timestamp() * 1e9)))  # noqa: B010  # the same
        self.runner = asyncio.Runner()
        self.ended: dict[str, ApprovalRequest] = {}
        self.turns = 0
        self.claims: Counter[str] = Counter()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    @initialize()
    def begin(self) -> None:
        async def make() -> None:
            self.store = open_store("memory://?replay=2", self.clock)
            self.world = World(self.store, self.clock, profile=BOTH)
            await self.world.session("s")
            await self.world.session("s2", destination=OTHER_PLACE)

        self.run(make())

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.run(self.world.aclose())
        self.runner.close()
        setattr(ids, "secrets", secrets)  # noqa: B010  # as it was
        setattr(ids, "time", time)  # noqa: B010  # as it was

    # --- looking -------------------------------------------------------------------------------

    def rows(self) -> list[ApprovalRequest]:
        async def read() -> list[ApprovalRequest]:
            return [row for name in SESSIONS for row in await self.world.rows(name)]

        found: list[ApprovalRequest] = self.run(read())
        return found

    def some(self, pick: int) -> ApprovalRequest | None:
        """Any request, most often one that is not over."""
        rows = self.rows()
        live = [row for row in rows if row.outcome is None or row.execution.state in ("none", "claimed")]
        pending = [row for row in live if row.outcome is None]
        return picked([*pending, *pending, *live, *rows], pick) if rows else None

    # --- agents --------------------------------------------------------------------------------

    @rule(
        session=st.sampled_from(["s", "s", "s2"]),
        action=st.sampled_from(["deploy a", "deploy a", "deploy b"]),
        timeout_s=st.sampled_from([5, 40, 90]),
        in_turn=st.booleans(),
        narrow=st.sampled_from([False, False, False, True]),
    )
    def submit(self, session: str, action: str, timeout_s: float, in_turn: bool, narrow: bool) -> None:
        async def ask() -> None:
            turn_id = None
            if in_turn:
                turn_id = f"{session}-{self.turns // 3}"  # several questions share a turn
                self.turns += 1
                try:
                    await self.world.turn(turn_id, session, 60)
                except SignoffError:
                    turn_id = None
            choices = ("once", "session") if narrow else None
            await self.world.submit(action, session, timeout_s=timeout_s, turn_id=turn_id, choices=choices)

        self.run(ask())

    @rule(pick=PICK, claim_id=st.sampled_from(["c1", "c2"]))
    def claim(self, pick: int, claim_id: str) -> None:
        row = self.some(pick)
        if row is None:
            return
        fresh = row.execution.claim_id is None
        try:
            after = self.run(self.world.claim(row, claim_id))
        except ClaimRefused:
            return
        assert row.outcome == "approved"
        self.claims[row.request_id] += fresh
        assert self.claims[row.request_id] == 1, "started twice"
        assert after.execution.claim_id == claim_id

    @rule(pick=PICK, status=st.sampled_from(["succeeded", "failed", "not_run"]))
    def result(self, pick: int, status: Any) -> None:
        row = self.some(pick)
        if row is None:
            return
        try:
            self.run(self.world.broker.result("default", row.request_id, status, None))
        except Conflict:
            assert row.execution.state not in ("claimed", "unknown")

    @rule(pick=PICK)
    def cancel(self, pick: int) -> None:
        row = self.some(pick)
        if row is not None:
            self.run(self.world.cancel(row))

    @rule(pick=PICK, session=st.sampled_from(SESSIONS))
    def end_turn(self, pick: int, session: str) -> None:
        turns = sorted({row.turn_id for row in self.rows() if row.turn_id and row.session_id == session})
        if turns:
            turn_id = picked(turns, pick)
            self.run(self.world.sessions.end_turn("default", turn_id, "turn_ended", None))
            for row in self.rows():
                if row.turn_id == turn_id:
                    assert row.outcome is not None
                    assert row.execution.state != "claimed"

    # --- people --------------------------------------------------------------------------------

    @rule(pick=PICK, by=st.sampled_from([ANN, BEN, "666"]), stale=st.booleans())
    def tap(self, pick: int, by: str, stale: bool) -> None:
        """Press a button that stands or once stood somewhere. No press changes anything but its own question and what
        the tables say goes with it."""
        pressable = [
            (message, button.token)
            for message in self.world.chat.messages
            for form in (message.cards if stale else message.cards[-1:])
            for line in form.rows
            for button in line
        ]
        if not pressable:
            return
        message, token = picked(pressable, pick)
        before = {row.request_id: row for row in self.rows()}
        parts = SIGNER.verify(token, "fake", message.destination.chat_id)
        assert parts is not None
        copy = self.run(self.store.get(Copy, parts.copy_id))
        told = self.run(self.world.press(token, message, by))
        assert told.text or parts.choice in ("more", "because", "why", "type")
        after = {row.request_id: row for row in self.rows()}
        target = before[copy.request_id]
        # What the button stands on ended or was handed on meanwhile, so its own question may be another now.
        changed = {name for name, row in after.items() if _facts(row) != _facts(before[name])}
        allowed = {target.request_id, *(n for n, r in before.items() if r.leader_id == target.request_id)}
        if parts.choice in ("session", "always", "30m", "confirm", "undo"):
            allowed |= {n for n, r in before.items() if r.digest == target.digest}
        if parts.choice == "undo":
            allowed |= {n for n, r in before.items() if r.leader_id == target.request_id}
        assert changed <= allowed
        if by == "666":
            assert not changed
        if parts.choice in ("more", "why", "close", "wait", "type", "because") and by != "666":
            assert not {n for n in changed if after[n].outcome not in (before[n].outcome, "timeout")}

    @rule(pick=PICK, choice=st.sampled_from(CHOICES))
    def decide(self, pick: int, choice: str) -> None:
        row = self.some(pick)
        if row is None:
            return
        by = Actor(type="person", platform="fake", user_id=BEN, via="api")
        try:
            how = self.run(self.world.decide(row, choice, by))
        except ChoiceNotOffered:
            assert choice not in offered(row)
            return
        assert how == ("won" if row.outcome is None and not _over(row, self.clock) else "lost")

    @rule(pick=PICK)
    def undo(self, pick: int) -> None:
        row = self.some(pick)
        if row is None:
            return
        try:
            self.run(self.world.broker.undo("default", row.request_id, Actor(type="person"), any_person=True))
        except UndoTooLate:
            assert row.outcome != "approved" or row.execution.state != "none"

    @rule(session=st.sampled_from(SESSIONS), clear=st.booleans())
    def stop(self, session: str, clear: bool) -> None:
        if clear:
            self.run(self.world.sessions.clear("default", session, None, close=False))
        else:
            self.run(self.world.sessions.stop("default", session, None))
        for row in self.rows():
            if row.session_id == session:
                assert row.outcome is not None
                assert row.outcome != "approved" or row.execution.state != "none"

    # --- time and the platform -----------------------------------------------------------------

    @rule(seconds=st.sampled_from([0.5, 2, 5, 10, 30, 61]))
    def advance(self, seconds: float) -> None:
        self.run(self.world.advance(seconds))

    @rule(seconds=st.sampled_from([1, 40]))
    def busy(self, seconds: float) -> None:
        """Time passes and nothing of ours gets to run."""
        self.run(self.clock.advance(seconds))

    @rule()
    def flush(self) -> None:
        self.run(self.world.flush())

    @rule(
        how=st.sampled_from(["refuse", "down", "limit", "lose"]),
        call=st.sampled_from(["post", "update"]),
        times=st.integers(1, 3),
    )
    def fail(self, how: str, call: Any, times: int) -> None:
        if how == "lose":
            self.world.chat.lose_answer(call=call, times=times)
            return
        errors: dict[str, AdapterError] = {
            "refuse": SendRefused("no"),
            "down": AdapterUnavailable("down"),
            "limit": RateLimited(retry_after_s=7),
        }
        self.world.chat.fail(errors[how], call=call, times=times)

    @rule(pick=PICK)
    def remove(self, pick: int) -> None:
        shown = self.world.chat.shown()
        if shown:
            self.world.chat.remove(picked(shown, pick).message_id)

    @rule(posted=st.booleans())
    def crash(self, posted: bool) -> None:
        """The process dies while it sends; what was on its way may have arrived."""

        async def die() -> None:
            chat = self.world.chat
            if not posted:
                chat.stall("post")
                chat.stall("update")
            await self.world.dispatcher.crash()
            if not posted:
                chat.go_on("post")
                chat.go_on("update")
            await self.world.aclose()
            self.world = World(self.store, self.clock, profile=BOTH, chat=chat)

        self.run(die())

    # --- what holds ----------------------------------------------------------------------------

    @invariant()
    def an_ending_never_changes(self) -> None:
        if not hasattr(self, "world"):
            return
        for row in self.rows():
            known = self.ended.get(row.request_id)
            if known is not None:
                kept = ("outcome", "choice", "cause", "decided_by", "ended_by", "decided_at", "reason", "grant_id")
                assert [getattr(row, name) for name in kept] == [getattr(known, name) for name in kept]
            if row.outcome is not None:
                self.ended[row.request_id] = row

    @invariant()
    def every_ending_is_told_once(self) -> None:
        if not hasattr(self, "world"):
            return
        told = Counter(event.request_id for event in self.run(self.world.events("approval.resolved")))
        asked = Counter(event.request_id for event in self.run(self.world.events("approval.requested")))
        rows = self.rows()
        assert told == Counter(row.request_id for row in rows if row.outcome is not None)
        assert asked == Counter(row.request_id for row in rows)

    @invariant()
    def leaders_and_those_that_wait(self) -> None:
        if not hasattr(self, "world"):
            return
        pending = {row.request_id: row for row in self.rows() if row.outcome is None}
        leaders = [row for row in pending.values() if row.leader_id is None]
        assert max(Counter(row.coalesce_key for row in leaders).values(), default=0) <= 1
        waiting = Counter(row.leader_id for row in pending.values() if row.leader_id)
        assert {row.request_id: row.waiters for row in leaders if row.waiters} == dict(waiting)
        for row in pending.values():
            if row.leader_id is not None:
                assert pending[row.leader_id].coalesce_key == row.coalesce_key
                assert pending[row.leader_id].last_follow_no >= row.follow_no

    @invariant()
    def nobody_waits_in_front_of_nothing(self) -> None:
        if not hasattr(self, "world"):
            return
        for row in self.rows():
            if row.outcome is None and row.leader_id is None:
                states = {copy.state for copy in self.run(self.world.copies(row)) if copy.kind == "card"}
                assert states & {"queued", "sending", "sent", "ambiguous"}
                assert row.window_by is not None or row.expires_at is not None, "it would wait for ever"

    @precondition(lambda self: hasattr(self, "world"))
    @rule()
    def calm(self) -> None:
        """When the platform works again and all is sent, every known message tells the truth."""

        async def look() -> None:
            self.world.chat._failures.clear()
            await self.world.advance(61)
            for row in [row for name in SESSIONS for row in await self.world.rows(name)]:
                if row.outcome is None:
                    assert not _over(row, self.clock)
                for copy in await self.world.copies(row):
                    assert copy.state not in ("queued", "sending")
                    assert copy.due_at is None or copy.due_at > self.clock.now()
                    await self._true(row, copy)

        self.run(look())

    async def _true(self, row: ApprovalRequest, copy: Copy) -> None:
        shown = [m for m in self.world.chat.shown() if m.message_id == copy.message_id and copy.state != "failed"]
        if not shown or row.outcome is None:
            return
        assert copy.kind == "card", "panels went with their question"
        (message,) = shown
        buttons = [b.token for line in message.card.rows for b in line]
        parts = [SIGNER.verify(token, "fake", message.destination.chat_id) for token in buttons]
        live = {part.choice for part in parts if part is not None}
        assert not live & DECIDING
        assert ("undo" in live) <= (row.outcome == "approved" and row.execution.state == "none")
        assert (row.outcome or "").replace("_", " ") in message.text.splitlines()[0].lower()


def _facts(row: ApprovalRequest) -> tuple[object, ...]:
    """What no foreign press may change."""
    return row.outcome, row.choice, row.cause, row.decided_by, row.execution.state, row.grant_id, row.reason


def _over(row: ApprovalRequest, clock: FakeClock) -> bool:
    return row.outcome is None and row.expires_at is not None and row.expires_at <= clock.now()


TestLife = pytest.mark.timeout(300)(Life.TestCase)
TestLife.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
assert PLACE != OTHER_PLACE
