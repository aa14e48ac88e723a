"""What embedders of a gateway call: the same verbs as the client's, without HTTP in between."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from signoff.broker import Ask, Broker, decode_action
from signoff.changes.bypassing import DEFAULT_MINUTES
from signoff.changes.stopping import Stopped
from signoff.checking import Check, check_of
from signoff.destinations import parse_destination
from signoff.ids import new_id
from signoff.model import (
    Action,
    Actor,
    ApprovalRequest,
    Cause,
    Command,
    Destination,
    Grant,
    Operand,
    Session,
    SessionKind,
    Turn,
)
from signoff.operands import collected_again
from signoff.ports import Clock
from signoff.record import Approval, approval_of
from signoff.sessions import Declaration, Sessions
from signoff.whys import Why, why_of

HOST = platform.node()


class Verbs:
    """The verbs, over a broker and sessions. Records show the action exactly: the caller is the asker's own process.

    `by` names who decides or stops, whom the caller has made sure of. `profile` is the tenant.
    """

    clock: Clock
    broker: Broker
    sessions: Sessions

    # --- asking ------------------------------------------------------------------------------

    async def request(
        self,
        action: Action | dict[str, Any],
        *,
        session_id: str,
        turn_id: str | None = None,
        timeout_s: float | UnsetType | None = UNSET,
        reason: str | None = None,
        choices: tuple[str, ...] | None = None,
        request_id: str | None = None,
        host: str | None = HOST,
        profile: str = "default",
    ) -> Approval:
        """Ask, wait, and claim: `may_run` of the answer is permission to run it once, now.

        Files that the action names as `operands` are read again before the claim. Cancelling the caller withdraws the
        question. Raises `InvalidInput`, `SessionNotFound`, `TurnNotFound`, `ClaimRefused`.
        """
        ask = Ask(
            action=decode_action(action) if isinstance(action, dict) else action,
            session_id=session_id,
            turn_id=turn_id,
            timeout_s=timeout_s,
            reason=reason,
            choices=choices,
            request_id=request_id,
            host=host,
        )
        return self._shown(await self.broker.ask(profile, ask, recollect=_recollect))

    async def check(
        self,
        action: Action | dict[str, Any],
        *,
        session_id: str | None = None,
        turn_id: str | None = None,
        explain: bool = False,
        profile: str = "default",
    ) -> Check:
        """What would become of an action if it were asked for now. Nobody is asked, and nothing is stored.

        Without a session it is judged as if somebody could answer. `explain` adds each command, rule and rung. Raises
        `InvalidInput`, `SessionNotFound`.
        """
        given = decode_action(action) if isinstance(action, dict) else action
        checked = await self.broker.check(profile, given, session_id=session_id, turn_id=turn_id)
        return check_of(checked, explained=explain)

    async def get(self, request_id: str, *, profile: str = "default") -> Approval:
        """The record by its id or short id. Raises `RequestNotFound`."""
        return self._shown(await self.broker.find(profile, request_id))

    async def why(self, request_id: str, *, profile: str = "default") -> Why:
        """Why it was asked, let run or forbidden: commands, rules, and what decided. Raises `RequestNotFound`."""
        return why_of(await self.broker.find(profile, request_id), self.broker.profile(profile))

    async def wait(self, request_id: str, timeout_s: float | None = None, *, profile: str = "default") -> Approval:
        """The record once it has ended, or as it stands after `timeout_s` seconds. Raises `RequestNotFound`."""
        return self._shown(await self.broker.wait(profile, request_id, timeout_s))

    async def cancel(
        self, request_id: str, cause: Cause = "withdrawn", by: Actor | None = None, *, profile: str = "default"
    ) -> Approval:
        """Withdraw a question, or take an unclaimed approval back. Raises `RequestNotFound`."""
        return self._shown(await self.broker.cancel(profile, request_id, cause, by))

    async def claim(
        self,
        request_id: str,
        digest: str,
        *,
        claim_id: str | None = None,
        operands: tuple[Operand, ...] | None = None,
        profile: str = "default",
    ) -> Approval:
        """Start an approved action, once. Raises `ClaimRefused`, `RequestNotFound`."""
        return self._shown(await self.broker.claim(profile, request_id, digest, claim_id or new_id("claim"), operands))

    async def result(
        self,
        request_id: str,
        status: Literal["succeeded", "failed", "not_run"],
        exit_code: int | None = None,
        *,
        profile: str = "default",
    ) -> Approval:
        """Report how a claimed action went. Raises `Conflict`, `RequestNotFound`."""
        return self._shown(await self.broker.result(profile, request_id, status, exit_code))

    # --- deciding ----------------------------------------------------------------------------

    async def decide(
        self, request_id: str, choice: str, by: Actor, *, reason: str | None = None, profile: str = "default"
    ) -> Approval:
        """Answer a question; the record as it stands after it. What had ended before stays as it was.

        Raises `ChoiceNotOffered`, `InvalidInput`, `RequestNotFound`.
        """
        decided = await self.broker.decide(profile, request_id, choice, by, reason=reason)
        return self._shown(decided.row)

    async def undo(self, request_id: str, by: Actor, *, profile: str = "default") -> Approval:
        """Take an approval back before its claim. Raises `NotPermitted`, `UndoTooLate`, `RequestNotFound`."""
        return self._shown(await self.broker.undo(profile, request_id, by))

    async def pending(self, *, profile: str = "default") -> list[Approval]:
        """What waits in the profile, oldest first."""
        return [self._shown(row) for row in await self.broker.pending(profile)]

    async def grants(self, *, profile: str = "default") -> list[Grant]:
        """The live grants, oldest first."""
        return await self.broker.grants(profile)

    async def revoke(self, grant_id: str, by: Actor, *, profile: str = "default") -> Grant:
        """End a grant at once. Raises `GrantNotFound`."""
        return await self.broker.revoke(profile, grant_id, by)

    # --- sessions and turns ------------------------------------------------------------------

    async def session(
        self,
        session_id: str,
        *,
        kind: SessionKind = "api",
        destination: Destination | str | None = None,
        user_id: str | None = None,
        parent: str | None = None,
        profile: str = "default",
    ) -> Session:
        """Declare a session. `destination` may be written `platform:chat[/thread]`.

        Raises `InvalidInput`, `DestinationNotAllowed`, `SessionNotFound`.
        """
        place = parse_destination(destination, "destination") if isinstance(destination, str) else destination
        declaration = Declaration(session_id=session_id, kind=kind, destination=place, user_id=user_id, parent=parent)
        return await self.sessions.declare(profile, declaration, None)

    async def stop(self, session_id: str, by: Actor | None = None, *, profile: str = "default") -> Stopped:
        """Stop a session's turns, questions, unstarted approvals and children. Raises `SessionNotFound`."""
        return await self.sessions.stop(profile, session_id, by)

    async def clear(self, session_id: str, by: Actor | None = None, *, profile: str = "default") -> Stopped:
        """As stop, and its grants go and its registration ends. Raises `SessionNotFound`."""
        return await self.sessions.clear(profile, session_id, by, close=True)

    async def bypass(
        self, session_id: str, by: Actor, *, minutes: float = DEFAULT_MINUTES, profile: str = "default"
    ) -> Session:
        """Ask nothing in a session for so many minutes, 1 to 1440. What waits goes on waiting; what is forbidden stays
        so. The session's place is told. Raises `InvalidInput`, `NotPermitted`, `SessionNotFound`."""
        return (await self.sessions.bypass(profile, session_id, by, minutes=minutes)).session

    async def end_bypass(self, session_id: str, by: Actor, *, profile: str = "default") -> Session:
        """Ask again in a session. Raises `SessionNotFound`."""
        return (await self.sessions.end_bypass(profile, session_id, by)).session

    @asynccontextmanager
    async def turn(self, session_id: str, *, lease_s: float = 60.0, profile: str = "default") -> AsyncIterator[Turn]:
        """A turn that lives as long as the block, and ends with the right cause."""
        turn = await self.sessions.open_turn(profile, session_id, lease_s=lease_s)
        cause: Cause = "turn_ended"
        try:
            async with self.broker.keep_turn(profile, turn.turn_id):
                yield turn
        except BaseException:
            cause = "turn_interrupted"
            raise
        finally:
            await asyncio.shield(self.sessions.end_turn(profile, turn.turn_id, cause, None))

    def _shown(self, row: ApprovalRequest) -> Approval:
        return approval_of(row, self.clock.now(), exact=True)


async def _recollect(action: Action) -> tuple[Operand, ...] | None:
    """The action's files as they are now, read off the event loop."""
    if not isinstance(action, Command) or not action.operands:
        return None
    return await asyncio.to_thread(collected_again, action)
