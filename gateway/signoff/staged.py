"""What people do with kept actions: list them, let them run, refuse them, and say what became of a lost one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Literal, Protocol

from msgspec import Struct

from signoff.broker import Broker
from signoff.changes import having, staging
from signoff.changes.staging import State, state_of
from signoff.errors import ActionRefused, RequestNotFound
from signoff.model import Actor, ApprovalRequest, Note
from signoff.ports import Clock, Store
from signoff.record import Approval, approval_of
from signoff.rows import to_run_key

__all__ = ["KeptAction", "Runs", "Staged", "State", "kept_action", "state_of"]


class KeptAction(Struct, frozen=True, kw_only=True):
    """An action that was kept for a later yes. Comparing `state` tells what became of it."""

    object: Literal["signoff.action"] = "signoff.action"
    id: str
    short_id: str
    state: State
    """`waits` for an answer, `approved` and waits for its executor, `running`, `succeeded`, `failed`, `not_run`,
    `unknown` (it may have run), `denied`, `expired`, or `gone` (taken back)."""
    executor: str | None
    again_as: str | None
    """The short id of the newer action, where a person had this one run once more."""
    executor_missing: bool = False
    """It was approved and waits, and no gateway has its executor now."""
    approval: Approval
    """The question about it, with who decided and how the run went."""


MOST_WAITING = 1000
"""So many are counted that wait for one executor."""


class Absent(Struct, frozen=True, kw_only=True):
    """An executor for which approved actions wait, and which no gateway has."""

    executor: str
    waiting: int
    """How many wait, `MOST_WAITING` at most."""


def kept_action(row: ApprovalRequest, now: datetime, *, exact: bool, had: Mapping[str, bool]) -> KeptAction:
    """How a kept action stands. `exact` shows it unmasked: only for the agent that asked. `had`: as `Staged.had`."""
    return KeptAction(
        id=row.request_id,
        short_id=row.short_id,
        state=state_of(row),
        executor=row.executor,
        again_as=row.again_as or None,
        executor_missing=state_of(row) == "approved" and having.missing(row.executor, had),
        approval=approval_of(row, now, exact=exact),
    )


class Runs(Protocol):
    """What starts an approved action in this process."""

    async def run(self, row: ApprovalRequest, wait_s: float | None = None) -> ApprovalRequest:
        """Claim and run it, once; the record after its end or after `wait_s` seconds. Raises `ActionRefused`."""
        ...

    def wake(self) -> None:
        """Look for approved actions now."""
        ...


class Staged:
    """Kept actions of all profiles. The rows here are the questions about them (`stages` is set)."""

    def __init__(self, store: Store, broker: Broker, runs: Runs, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._broker = broker
        self._runs = runs

    async def actions(self, profile: str, *, limit: int = 200, after: str | None = None) -> list[ApprovalRequest]:
        """The kept actions of a profile, ended ones too, oldest first."""
        return await self._store.find(ApprovalRequest, "staged", profile, limit=limit, after=after)

    async def had(self, profile: str) -> dict[str, bool]:
        """Every executor that a gateway of this store ever had for a profile, and whether one has it now."""
        return having.had(await self._store.get(Note, having.note_name(profile)), self._clock.now())

    async def absent(self, profile: str) -> list[Absent]:
        """The executors that approved actions wait for and that no gateway has."""
        found = []
        for executor, here in (await self.had(profile)).items():
            if not here:
                waiting = await self._waiting(profile, executor)
                found += [Absent(executor=executor, waiting=waiting)] if waiting else []
        return found

    async def _waiting(self, profile: str, executor: str) -> int:
        key = to_run_key(profile, executor)
        return len(await self._store.find(ApprovalRequest, "to_run", key, limit=MOST_WAITING))

    async def find(self, profile: str, reference: str) -> ApprovalRequest:
        """The question about a kept action, by its own id or short id or by those of the staged request.

        Raises `RequestNotFound`, also for a request that keeps nothing.
        """
        row = await self._broker.find(profile, reference)
        if row.kept_as is not None:
            row = await self._broker.get(profile, row.kept_as)
            while row.superseded_by is not None:  # it was run again; the newest stands for it
                row = await self._broker.get(profile, row.superseded_by)
        if row.stages is None:
            raise RequestNotFound
        return row

    async def approve(self, profile: str, reference: str, by: Actor, *, reason: str | None = None) -> ApprovalRequest:
        """Approve it; its executor then runs it. Raises `ActionRefused`, `RequestNotFound`."""
        return await self._answer(profile, reference, "once", by, reason)

    async def reject(self, profile: str, reference: str, by: Actor, *, reason: str | None = None) -> ApprovalRequest:
        """Deny it; it is not run. Raises `ActionRefused`, `RequestNotFound`."""
        return await self._answer(profile, reference, "deny", by, reason)

    async def replay(self, profile: str, reference: str, *, wait_s: float | None = None) -> ApprovalRequest:
        """Run an approved action now, in this process; the record after its end, or after `wait_s` seconds.

        Raises `RequestNotFound`, and `ActionRefused` with the code `not_approved`, `running`, `already_run`, `denied`,
        `expired`, `unknown`, `cancelled`, `changed_since_review`, `not_run` or `no_executor`.
        """
        return await self._runs.run(await self.find(profile, reference), wait_s)

    async def did_run(self, profile: str, reference: str, by: Actor) -> ApprovalRequest:
        """Say of one that is `unknown` that it did run. Raises `ActionRefused`, `RequestNotFound`."""
        row = await self.find(profile, reference)
        change = partial(staging.did_run, profile=profile, request_id=row.request_id, by=by)
        return await self._store.transact(change)

    async def run_again(self, profile: str, reference: str, by: Actor) -> ApprovalRequest:
        """Have one that is `unknown` run once more; the new record, which waits where more people must agree.

        Raises `ActionRefused`, `ChoiceNotOffered`, `RequestNotFound`.
        """
        row = await self.find(profile, reference)
        ruling = self._broker.ruled_for(row, self._broker.ruling(profile, "once", by))
        change = partial(staging.run_again, profile=profile, request_id=row.request_id, ruling=ruling)
        return await self._store.transact(change)

    async def _answer(
        self, profile: str, reference: str, choice: str, by: Actor, reason: str | None
    ) -> ApprovalRequest:
        row = await self.find(profile, reference)
        decided = await self._broker.decide(profile, row.request_id, choice, by, reason=reason)
        if decided.how == "lost":
            raise staging.refusal(decided.row) or ActionRefused(
                "It was approved already and waits for its executor.", code="already_approved", row=decided.row
            )
        return decided.row
