"""What embedders of a gateway call: the same verbs as the client's, without HTTP in between."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from signoff import aside
from signoff.action_verbs import ActionVerbs
from signoff.broker import Ask, Broker
from signoff.changes.bypassing import DEFAULT_MINUTES
from signoff.changes.stopping import Stopped
from signoff.checking import Check, check_of
from signoff.destinations import parse_destination
from signoff.elicitation import Elicited, taken
from signoff.errors import InvalidInput
from signoff.expected import action_of, check_word
from signoff.ids import new_id
from signoff.model import (
    Action,
    Actor,
    ApprovalRequest,
    Cause,
    Command,
    Destination,
    Elicitation,
    Grant,
    Notifier,
    Operand,
    Session,
    SessionKind,
)
from signoff.operands import collected_again
from signoff.placing import Asker, NoContext, asker_of, declared, in_turn, profile_of, tell_outside, undeclared
from signoff.ports import Clock, Store
from signoff.record import Approval, approval_of, claimed_of
from signoff.reports import Reports
from signoff.rows import turn_key
from signoff.sessions import Declaration, Sessions
from signoff.showing import card_for
from signoff.shown_card import ShownCard
from signoff.waited import OpenTurn
from signoff.whys import Why, why_of

Status = Literal["succeeded", "failed", "not_run"]
"""How a claimed action went."""
HOST = platform.node()


class Verbs(ActionVerbs):
    """The verbs, over a broker and sessions. Records show the action exactly: the caller is the asker's own process.

    `by` names who decides or stops, whom the caller has made sure of. `profile` is the tenant: by default the bound one
    (`signoff.context`), else `default`.
    """

    clock: Clock
    broker: Broker
    sessions: Sessions
    store: Store
    reports: Reports
    no_context: NoContext

    # --- asking ------------------------------------------------------------------------------

    async def request(
        self,
        action: Action | dict[str, Any],
        *,
        session_id: str | None = None,
        turn_id: str | None = None,
        timeout_s: float | UnsetType | None = UNSET,
        reason: str | None = None,
        choices: tuple[str, ...] | None = None,
        request_id: str | None = None,
        tool_call_id: str | None = None,
        host: str | None = HOST,
        profile: str | None = None,
    ) -> Approval:
        """Ask, wait, and claim: `may_run` of the answer is permission to run it once, now.

        Without `session_id` it asks in the bound session (`signoff.context`), which is declared with its first
        question; where none is bound, the gateway's `no_context` decides and nobody is asked. Files that the action
        names as `operands` are read again before the claim. Cancelling the caller withdraws the question. Raises
        `InvalidInput`, `SessionNotFound`, `TurnNotFound`, `ClaimRefused`.
        """
        asker = await declared(self.sessions, self._asker(profile, session_id, turn_id, tool_call_id))
        ask = Ask(
            action=action_of(action),
            session_id=asker.session_id,
            turn_id=asker.turn_id,
            tool_call_id=asker.tool_call_id,
            timeout_s=timeout_s,
            reason=reason,
            choices=choices,
            request_id=request_id,
            host=host,
            no_context=self.no_context if asker.no_context else None,
        )
        asked = self.broker.ask(asker.profile, ask, recollect=_recollect)
        del action, ask, asker  # this frame lives as long as the question waits
        row = await asked
        tell_outside(row)
        return claimed_of(row, self.clock.now())

    async def elicit(
        self,
        server: str,
        message: str,
        schema: dict[str, Any] | None = None,
        *,
        url: str | None = None,
        session_id: str | None = None,
        turn_id: str | None = None,
        timeout_s: float | UnsetType | None = UNSET,
        request_id: str | None = None,
        profile: str | None = None,
    ) -> Elicited:
        """Put a tool server's question to a person: `accept` with the content, `decline` where a person said no,
        `cancel` with its `cause` for all else. `schema` is a flat JSON schema as MCP allows; `url` is a page to open.
        What was accepted comes from here, also while the store cannot keep that it was handed over.

        Raises what `request` raises, and `InvalidInput` for a form that nobody could fill in or a page that cannot be
        shown.
        """
        action = Elicitation(server=server, message=message, schema=schema, url=url)
        record = await self.request(
            action,
            session_id=session_id,
            turn_id=turn_id,
            timeout_s=timeout_s,
            request_id=request_id,
            profile=profile,
        )
        if record.may_run:
            report = partial(self.result, record.request_id, "succeeded", profile=profile)
            await self.reports.saved(record, report)
        return taken(record.elicitation, may_run=record.may_run)

    async def check(
        self,
        action: Action | dict[str, Any],
        *,
        session_id: str | None = None,
        turn_id: str | None = None,
        host: str | None = HOST,
        explain: bool = False,
        profile: str | None = None,
    ) -> Check:
        """What would become of an action if it were asked for now. Nobody is asked, and nothing is stored.

        Without `session_id` it is judged as a question of the bound session; where none is bound, as if somebody could
        answer. `explain` adds each command, rule and rung. Raises `InvalidInput`, `SessionNotFound`.
        """
        given = action_of(action)
        asker = self._asker(profile, session_id, turn_id)
        checked = await self.broker.check(
            asker.profile,
            given,
            session_id=None if asker.no_context else asker.session_id,
            turn_id=asker.turn_id,
            host=host,
            undeclared=await undeclared(self.sessions, asker, self.clock.now()),
        )
        return check_of(checked, explained=explain)

    async def get(self, request_id: str, *, profile: str | None = None) -> Approval:
        """The record by its id or short id. Raises `RequestNotFound`."""
        return self._shown(await self.broker.find(self._tenant(profile), request_id))

    async def why(self, request_id: str, *, profile: str | None = None) -> Why:
        """Why it was asked, let run or forbidden: commands, rules, and what decided. Raises `RequestNotFound`."""
        tenant = self._tenant(profile)
        row = await self.broker.find(tenant, request_id)
        return await aside.shown(row, partial(why_of, row, self.broker.profile(tenant)))

    async def wait(self, request_id: str, timeout_s: float | None = None, *, profile: str | None = None) -> Approval:
        """The record once it has ended, or as it stands after `timeout_s` seconds. Raises `RequestNotFound`."""
        return self._shown(await self.broker.wait(self._tenant(profile), request_id, timeout_s))

    async def cancel(
        self, request_id: str, cause: Cause = "withdrawn", by: Actor | None = None, *, profile: str | None = None
    ) -> Approval:
        """Withdraw a question, or take an unclaimed approval back. Raises `InvalidInput`, `RequestNotFound`."""
        check_word(cause, Cause, "cause")
        return self._shown(await self.broker.cancel(self._tenant(profile), request_id, cause, by))

    async def claim(
        self,
        request_id: str,
        digest: str,
        *,
        claim_id: str | None = None,
        operands: tuple[Operand, ...] | None = None,
        profile: str | None = None,
    ) -> Approval:
        """Start an approved action, once. Raises `ClaimRefused`, `RequestNotFound`."""
        claim_id = claim_id or new_id("claim")
        row = await self.broker.claim(self._tenant(profile), request_id, digest, claim_id, operands)
        return claimed_of(row, self.clock.now())

    async def result(
        self,
        request_id: str,
        status: Status,
        exit_code: int | None = None,
        *,
        profile: str | None = None,
    ) -> Approval:
        """Report how a claimed action went. Raises `Conflict`, `InvalidInput`, `RequestNotFound`."""
        check_word(status, Status, "status")
        return self._shown(await self.broker.result(self._tenant(profile), request_id, status, exit_code))

    # --- showing -----------------------------------------------------------------------------

    async def card(self, request_id: str, *, profile: str | None = None) -> ShownCard:
        """What a person must be shown before they answer, and the answers on offer. Raises `RequestNotFound`."""
        return await card_for(self.store, await self.broker.find(self._tenant(profile), request_id), self.clock.now())

    async def attach(
        self, session_id: str, name: str, *, lease_s: float | None = None, profile: str | None = None
    ) -> Notifier:
        """From now on something here puts the session's questions before a person. `name` is its own; with `lease_s`
        it counts as gone after so many seconds unless it is attached again. Raises `InvalidInput`, `SessionNotFound`.
        """
        return await self.sessions.attach(self._tenant(profile), session_id, name, None, lease_s)

    async def detach(
        self, session_id: str, name: str, cause: Cause = "notifier_gone", *, profile: str | None = None
    ) -> None:
        """It shows nothing any more: questions that nobody else can answer are withdrawn for that cause, never denied.
        Raises `InvalidInput`."""
        await self.sessions.detach(self._tenant(profile), session_id, name, cause)

    async def find_session(self, session_id: str, *, profile: str | None = None) -> Session:
        """An open session as it was declared. Raises `SessionNotFound`."""
        return await self.sessions.get(self._tenant(profile), session_id)

    # --- deciding ----------------------------------------------------------------------------

    async def decide(
        self,
        request_id: str,
        choice: str,
        by: Actor,
        *,
        reason: str | None = None,
        content: dict[str, Any] | None = None,
        profile: str | None = None,
    ) -> Approval:
        """Answer a question; the record as it stands after it. What had ended before stays as it was.

        A server's question may be answered with `accept` and `decline`, and with the `content` of its fields. Raises
        `ChoiceNotOffered`, `InvalidInput`, `RequestNotFound`.
        """
        tenant = self._tenant(profile)
        decided = await self.broker.decide(tenant, request_id, choice, by, reason=reason, content=content)
        return self._shown(decided.row)

    async def undo(self, request_id: str, by: Actor, *, profile: str | None = None) -> Approval:
        """Take an approval back before its claim. Raises `NotPermitted`, `UndoTooLate`, `RequestNotFound`."""
        return self._shown(await self.broker.undo(self._tenant(profile), request_id, by))

    async def pending(self, *, profile: str | None = None) -> list[Approval]:
        """What waits in the profile, oldest first."""
        return [self._shown(row) for row in await self.broker.pending(self._tenant(profile), limit=None)]

    async def grants(self, *, profile: str | None = None) -> list[Grant]:
        """The live grants, oldest first."""
        return await self.broker.grants(self._tenant(profile))

    async def revoke(self, grant_id: str, by: Actor, *, profile: str | None = None) -> Grant:
        """End a grant at once. Raises `GrantNotFound`."""
        return await self.broker.revoke(self._tenant(profile), grant_id, by)

    # --- sessions and turns ------------------------------------------------------------------

    async def session(
        self,
        session_id: str,
        *,
        kind: SessionKind = "api",
        destination: Destination | str | None = None,
        user_id: str | None = None,
        parent: str | None = None,
        profile: str | None = None,
    ) -> Session:
        """Declare a session. `destination` may be written `platform:chat[/thread]`.

        Raises `InvalidInput`, `DestinationNotAllowed`, `SessionNotFound`.
        """
        place = parse_destination(destination, "destination") if isinstance(destination, str) else destination
        declaration = Declaration(session_id=session_id, kind=kind, destination=place, user_id=user_id, parent=parent)
        return await self.sessions.declare(self._tenant(profile), declaration, None)

    async def stop(self, session_id: str, by: Actor | None = None, *, profile: str | None = None) -> Stopped:
        """Stop a session's turns, questions, unstarted approvals and children. Raises `SessionNotFound`."""
        return await self.sessions.stop(self._tenant(profile), session_id, by)

    async def clear(self, session_id: str, by: Actor | None = None, *, profile: str | None = None) -> Stopped:
        """As stop, and its grants go and its registration ends. Raises `SessionNotFound`."""
        return await self.sessions.clear(self._tenant(profile), session_id, by, close=True)

    async def reset(self, session_id: str, by: Actor | None = None, *, profile: str | None = None) -> Stopped:
        """Start a session anew, as with `/new`: as clear, and it stays declared. Raises `SessionNotFound`."""
        return await self.sessions.clear(self._tenant(profile), session_id, by, close=False)

    async def bypass(
        self, session_id: str, by: Actor, *, minutes: float = DEFAULT_MINUTES, profile: str | None = None
    ) -> Session:
        """Ask nothing in a session for so many minutes, 1 to 1440. What waits goes on waiting; what is forbidden stays
        so. The session's place is told. Raises `InvalidInput`, `NotPermitted`, `SessionNotFound`."""
        return (await self.sessions.bypass(self._tenant(profile), session_id, by, minutes=minutes)).session

    async def end_bypass(self, session_id: str, by: Actor, *, profile: str | None = None) -> Session:
        """Ask again in a session. Raises `SessionNotFound`."""
        return (await self.sessions.end_bypass(self._tenant(profile), session_id, by)).session

    @asynccontextmanager
    async def turn(
        self, session_id: str | None = None, *, lease_s: float = 60.0, profile: str | None = None
    ) -> AsyncIterator[OpenTurn]:
        """A turn that lives as long as the block, and ends with the right cause. Its `waited_s` tells how long it
        waited for people. Without `session_id` it is one of the bound session, and in the bound session it is itself
        bound inside the block: what is asked there is asked in it. Raises `SessionNotFound`, and `InvalidInput` where
        no session is named or bound."""
        asker = self._asker(profile, session_id)
        if asker.no_context:
            raise InvalidInput("Which session? Give session_id, or bind one (signoff.context).", param="session_id")
        asker = await declared(self.sessions, asker)
        turn = await self.sessions.open_turn(asker.profile, asker.session_id, lease_s=lease_s)
        cause: Cause = "turn_ended"
        try:
            with self.broker.waiters.metered(turn_key(asker.profile, turn.turn_id)) as meter:
                async with self.broker.keep_turn(asker.profile, turn.turn_id):
                    opened = OpenTurn(
                        turn_id=turn.turn_id, session_id=asker.session_id, lease_s=turn.lease_s, meter=meter
                    )
                    with in_turn(asker, turn.turn_id):
                        yield opened
        except BaseException:
            cause = "turn_interrupted"
            raise
        finally:
            await asyncio.shield(self.sessions.end_turn(asker.profile, turn.turn_id, cause, None))

    def _asker(
        self, profile: str | None, session_id: str | None, turn_id: str | None = None, tool_call_id: str | None = None
    ) -> Asker:
        asker = asker_of(profile, session_id, turn_id, tool_call_id)
        self.broker.profile(asker.profile)
        return asker

    def _tenant(self, profile: str | None) -> str:
        name = profile_of(profile)
        self.broker.profile(name)
        return name

    def _shown(self, row: ApprovalRequest) -> Approval:
        return approval_of(row, self.clock.now(), exact=True)


async def _recollect(action: Action) -> tuple[Operand, ...] | None:
    """The action's files as they are now, read off the event loop."""
    if not isinstance(action, Command) or not action.operands:
        return None
    return await asyncio.to_thread(collected_again, action)
