"""The verbs of kept actions, for embedders of a gateway: as the client's, without HTTP in between."""

from __future__ import annotations

from signoff.model import Actor, ApprovalRequest
from signoff.placing import profile_of
from signoff.ports import Clock
from signoff.rows import request_key
from signoff.staged import KeptAction, Staged, kept_action

PAGE = 500
"""Rows that are read at one time."""


class ActionVerbs:
    """Kept actions. `by` names who answers, whom the caller has made sure of; an id may be a short one, or that of the
    staged request."""

    clock: Clock
    staged: Staged

    async def actions(self, *, profile: str | None = None) -> list[KeptAction]:
        """Kept actions, ended ones too, oldest first."""
        tenant = profile_of(profile)
        found: list[KeptAction] = []
        after: str | None = None
        while rows := await self.staged.actions(tenant, limit=PAGE, after=after):
            had = await self.staged.had(tenant)
            found += [kept_action(row, self.clock.now(), exact=True, had=had) for row in rows]
            after = request_key(tenant, rows[-1].request_id)
        return found

    async def approve_action(
        self, action_id: str, by: Actor, reason: str | None = None, *, profile: str | None = None
    ) -> KeptAction:
        """Approve one; its executor then runs it. Raises `ActionRefused`, `RequestNotFound`."""
        return await self._kept(await self.staged.approve(profile_of(profile), action_id, by, reason=reason))

    async def reject_action(
        self, action_id: str, by: Actor, reason: str | None = None, *, profile: str | None = None
    ) -> KeptAction:
        """Deny one; it is not run. Raises `ActionRefused`, `RequestNotFound`."""
        return await self._kept(await self.staged.reject(profile_of(profile), action_id, by, reason=reason))

    async def replay_action(
        self, action_id: str, *, wait_s: float | None = None, profile: str | None = None
    ) -> KeptAction:
        """Run one that was approved and waits for its executor, and wait for its end; as it stands after `wait_s`.

        Raises `ActionRefused` where it cannot be run now, with its `code`; `RequestNotFound`.
        """
        return await self._kept(await self.staged.replay(profile_of(profile), action_id, wait_s=wait_s))

    async def run_action_again(self, action_id: str, by: Actor, *, profile: str | None = None) -> KeptAction:
        """Have one run once more that is `unknown`: it may then have run twice. The new action. Raises
        `ActionRefused`, `RequestNotFound`."""
        return await self._kept(await self.staged.run_again(profile_of(profile), action_id, by))

    async def action_did_run(self, action_id: str, by: Actor, *, profile: str | None = None) -> KeptAction:
        """Say of one that is `unknown` that it did run. Raises `ActionRefused`, `RequestNotFound`."""
        return await self._kept(await self.staged.did_run(profile_of(profile), action_id, by))

    async def _kept(self, row: ApprovalRequest) -> KeptAction:
        return kept_action(row, self.clock.now(), exact=True, had=await self.staged.had(row.profile))
