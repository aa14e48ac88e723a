"""The client's verbs for actions that were kept for a later yes."""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct

from signoff.client import _wire
from signoff.client._link import Link
from signoff.client.records import ActionRecord

T = TypeVar("T", bound=Struct)


class Actions:
    """What `Client` can do with kept actions. An agent's key lists its own; an approver's, an admin's or the local
    socket answers them."""

    _link: Link

    async def _list(self, call: _wire.Call, shape: type[T]) -> list[T]:
        rows: list[T] = []
        while True:
            found, cursor = _wire.page(await self._link.call(call), shape)
            rows += found
            if cursor is None:  # a page that holds nothing may have a next: the server looked at rows of others
                return rows
            call = _wire.next_page(call, cursor)

    async def actions(self) -> list[ActionRecord]:
        """Kept actions, ended ones too, oldest first."""
        return await self._list(_wire.actions(), ActionRecord)

    async def approve_action(self, action_id: str, reason: str | None = None) -> ActionRecord:
        """Approve one; its executor then runs it. Raises `ActionRefused`, `RequestNotFound`."""
        return await self._action(_wire.answer_action(action_id, "approve", reason))

    async def reject_action(self, action_id: str, reason: str | None = None) -> ActionRecord:
        """Deny one; it is not run. Raises `ActionRefused`, `RequestNotFound`."""
        return await self._action(_wire.answer_action(action_id, "reject", reason))

    async def replay_action(self, action_id: str, *, wait_s: float = 30.0) -> ActionRecord:
        """Run one that was approved and waits for its executor, and wait for its end, 60 s at most.

        Raises `ActionRefused` where it cannot be run now, with its `code`; `RequestNotFound`.
        """
        return await self._action(_wire.replay_action(action_id, wait_s, again=False, did_run=False))

    async def run_action_again(self, action_id: str) -> ActionRecord:
        """Have one run once more that is `unknown`: it may then have run twice. The new action. Raises
        `ActionRefused`, `RequestNotFound`."""
        return await self._action(_wire.replay_action(action_id, 0.0, again=True, did_run=False))

    async def action_did_run(self, action_id: str) -> ActionRecord:
        """Say of one that is `unknown` that it did run. Raises `ActionRefused`, `RequestNotFound`."""
        return await self._action(_wire.replay_action(action_id, 0.0, again=False, did_run=True))

    async def _action(self, call: _wire.Call) -> ActionRecord:
        return _wire.parsed(await self._link.call(call), ActionRecord)
