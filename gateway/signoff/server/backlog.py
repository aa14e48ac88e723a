"""How many questions of each agent wait, and how many actions are kept for it, counted from the change feed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from signoff.model import ApprovalRequest, Change
from signoff.rows import joined, key_of, request_key
from signoff.server.core import Core
from signoff.server.faults import TooManyPending

_PAGE = 500


class Backlog:
    """The waiting requests by agent. Call `begin` once before asking `check`."""

    def __init__(self, core: Core, most: int, most_kept: int) -> None:
        self._core = core
        self._most = most
        self._most_kept = most_kept
        self._waiting: dict[str, set[str]] = {}
        self._kept: dict[str, set[str]] = {}
        """Those about kept actions, which wait for days: an agent that keeps many must not lose its live questions."""
        self._ended: set[str] | None = set()
        """What ended while `begin` was reading, which its pages may still show as waiting."""
        self._unsubscribe: Callable[[], None] = core.store.subscribe(self._heard)

    async def begin(self) -> None:
        """Count what waits already. Raises `StoreError`."""
        for profile in self._core.profiles:
            after: str | None = None
            while True:
                rows = await self._core.store.find(
                    ApprovalRequest, "pending_profile", profile, limit=_PAGE, after=after
                )
                for row in rows:
                    if self._ended is None or key_of(row) not in self._ended:
                        self._add(row)
                if len(rows) < _PAGE:
                    break
                after = key_of(rows[-1])
        self._ended = None

    def close(self) -> None:
        """Count no more."""
        self._unsubscribe()

    async def check(self, profile: str, agent: str | None, request_id: str | None) -> None:
        """Raise `TooManyPending` when this agent may ask no further question now.

        What is asked under the id of a stored request is no further question. Questions that are under way at the same
        time are not counted yet, so a few more may get through.
        """
        if agent is None or len(self._waiting.get(joined(profile, agent), ())) < self._most:
            return
        if request_id is not None and await self._stored(profile, request_id):
            return
        raise TooManyPending(
            f"{self._most} questions of this agent wait, which is the most. Wait for answers, or withdraw some."
        )

    def may_keep(self, profile: str, agent: str | None) -> bool:
        """Whether one more action of this agent may be kept now."""
        return agent is None or len(self._kept.get(joined(profile, agent), ())) < self._most_kept

    async def _stored(self, profile: str, request_id: str) -> bool:
        return await self._core.store.get(ApprovalRequest, request_key(profile, request_id)) is not None

    def _heard(self, changes: Sequence[Change]) -> None:
        for change in changes:
            row = change.request
            if row is None:
                continue
            if change.event.type == "approval.requested" and row.outcome is None:
                self._add(row)
            elif change.event.type == "approval.resolved":
                self._drop(row)

    def _add(self, row: ApprovalRequest) -> None:
        if row.agent is not None:
            self._counted(row).setdefault(joined(row.profile, row.agent), set()).add(row.request_id)

    def _counted(self, row: ApprovalRequest) -> dict[str, set[str]]:
        return self._waiting if row.stages is None else self._kept

    def _drop(self, row: ApprovalRequest) -> None:
        if self._ended is not None:
            self._ended.add(key_of(row))
        if row.agent is None:
            return
        name = joined(row.profile, row.agent)
        counted = self._counted(row)
        waiting = counted.get(name, set())
        waiting.discard(row.request_id)
        if not waiting:
            counted.pop(name, None)
