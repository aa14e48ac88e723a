"""`BlockingGateway`: the one door for threads of the gateway's own process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from msgspec import UNSET, UnsetType

from signoff.changes.bypassing import DEFAULT_MINUTES
from signoff.changes.stopping import Stopped
from signoff.checking import Check
from signoff.door import LoopDoor
from signoff.elicitation import Elicited
from signoff.gate import Called, RunsTool
from signoff.model import (
    Action,
    Actor,
    Cause,
    Destination,
    Grant,
    Notifier,
    Operand,
    Session,
    SessionKind,
)
from signoff.placing import asker_of, in_turn
from signoff.record import Approval
from signoff.shown_card import ShownCard
from signoff.staged import KeptAction
from signoff.verbs import HOST
from signoff.waited import OpenTurn
from signoff.whys import Why

if TYPE_CHECKING:
    from signoff.gateway import Gateway

T = TypeVar("T")


class BlockingGateway:
    """A gateway's verbs for its other threads; each waits for its answer.

    Make it on the gateway's event loop, or name that loop: `BlockingGateway(gateway, loop)`. A call on the loop's own
    thread raises `RuntimeError`, since it would wait for itself; after the loop has stopped, calls raise `DoorClosed`.
    `profile` is the tenant of every call; by default the one that is bound where the call is made (`signoff.context`).
    """

    def __init__(
        self, gateway: Gateway, loop: asyncio.AbstractEventLoop | None = None, *, profile: str | None = None
    ) -> None:
        self._gateway = gateway
        self._profile = profile
        self._door = LoopDoor(loop or asyncio.get_running_loop(), "BlockingGateway")

    def close(self) -> None:
        """Refuse further calls, as before the gateway is stopped. Idempotent."""
        self._door.close()

    def _call(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return self._door.call(make)

    # --- asking ------------------------------------------------------------------------------

    def request(
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
    ) -> Approval:
        """As `Gateway.request`; without `session_id` in what is bound on the calling thread. Ctrl-C withdraws it."""
        return self._call(
            lambda: self._gateway.request(
                action,
                session_id=session_id,
                turn_id=turn_id,
                timeout_s=timeout_s,
                reason=reason,
                choices=choices,
                request_id=request_id,
                tool_call_id=tool_call_id,
                host=host,
                profile=self._profile,
            )
        )

    @contextmanager
    def turn(self, session_id: str | None = None, *, lease_s: float = 60.0) -> Iterator[OpenTurn]:
        """As `Gateway.turn`, for the `with` statement."""
        turn = self._gateway.turn(session_id, lease_s=lease_s, profile=self._profile)
        opened = self._call(turn.__aenter__)
        try:
            # The gateway's own binding is on its thread; this is the one that asks.
            with in_turn(asker_of(self._profile, session_id), opened.turn_id):
                yield opened
        except BaseException as error:
            kind, found = type(error), error
            self._call(lambda: turn.__aexit__(kind, found, found.__traceback__))
            raise
        self._call(lambda: turn.__aexit__(None, None, None))

    def session(
        self,
        session_id: str,
        *,
        kind: SessionKind = "api",
        destination: Destination | str | None = None,
        user_id: str | None = None,
        parent: str | None = None,
    ) -> Session:
        """As `Gateway.session`."""
        return self._call(
            lambda: self._gateway.session(
                session_id,
                kind=kind,
                destination=destination,
                user_id=user_id,
                parent=parent,
                profile=self._profile,
            )
        )

    def elicit(
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
    ) -> Elicited:
        """As `Gateway.elicit`. Ctrl-C withdraws the question."""
        return self._call(
            lambda: self._gateway.elicit(
                server,
                message,
                schema,
                url=url,
                session_id=session_id,
                turn_id=turn_id,
                timeout_s=timeout_s,
                request_id=request_id,
                profile=self._profile,
            )
        )

    def check(
        self,
        action: Action | dict[str, Any],
        *,
        session_id: str | None = None,
        turn_id: str | None = None,
        host: str | None = HOST,
        explain: bool = False,
    ) -> Check:
        """As `Gateway.check`."""
        return self._call(
            lambda: self._gateway.check(
                action, session_id=session_id, turn_id=turn_id, host=host, explain=explain, profile=self._profile
            )
        )

    def get(self, request_id: str) -> Approval:
        """The record by its id or short id. Raises `RequestNotFound`."""
        return self._call(lambda: self._gateway.get(request_id, profile=self._profile))

    def why(self, request_id: str) -> Why:
        """Why it was asked, let run or forbidden. Raises `RequestNotFound`."""
        return self._call(lambda: self._gateway.why(request_id, profile=self._profile))

    def wait(self, request_id: str, timeout_s: float | None = None) -> Approval:
        """The record once it has ended, or as it stands after `timeout_s` seconds. Raises `RequestNotFound`."""
        return self._call(lambda: self._gateway.wait(request_id, timeout_s, profile=self._profile))

    def cancel(self, request_id: str, cause: Cause = "withdrawn", by: Actor | None = None) -> Approval:
        """Withdraw a question, or take an unclaimed approval back. Raises `RequestNotFound`."""
        return self._call(lambda: self._gateway.cancel(request_id, cause, by, profile=self._profile))

    def claim(
        self,
        request_id: str,
        digest: str,
        *,
        claim_id: str | None = None,
        operands: tuple[Operand, ...] | None = None,
    ) -> Approval:
        """Start an approved action, once. Raises `ClaimRefused`, `RequestNotFound`."""
        return self._call(
            lambda: self._gateway.claim(request_id, digest, claim_id=claim_id, operands=operands, profile=self._profile)
        )

    def result(
        self, request_id: str, status: Literal["succeeded", "failed", "not_run"], exit_code: int | None = None
    ) -> Approval:
        """Report how a claimed action went. Raises `Conflict`, `RequestNotFound`."""
        return self._call(lambda: self._gateway.result(request_id, status, exit_code, profile=self._profile))

    # --- showing -----------------------------------------------------------------------------

    def card(self, request_id: str) -> ShownCard:
        """As `Gateway.card`."""
        return self._call(lambda: self._gateway.card(request_id, profile=self._profile))

    def attach(self, session_id: str, name: str, *, lease_s: float | None = None) -> Notifier:
        """As `Gateway.attach`."""
        return self._call(lambda: self._gateway.attach(session_id, name, lease_s=lease_s, profile=self._profile))

    def detach(self, session_id: str, name: str, cause: Cause = "notifier_gone") -> None:
        """As `Gateway.detach`."""
        return self._call(lambda: self._gateway.detach(session_id, name, cause, profile=self._profile))

    def find_session(self, session_id: str) -> Session:
        """As `Gateway.find_session`."""
        return self._call(lambda: self._gateway.find_session(session_id, profile=self._profile))

    # --- deciding ----------------------------------------------------------------------------

    def decide(
        self,
        request_id: str,
        choice: str,
        by: Actor,
        *,
        reason: str | None = None,
        content: dict[str, Any] | None = None,
    ) -> Approval:
        """Answer a question as `by`, whom the caller has made sure of; the record as it stands after it.

        What had ended before stays as it was. Raises `ChoiceNotOffered`, `InvalidInput`, `RequestNotFound`.
        """
        return self._call(
            lambda: self._gateway.decide(request_id, choice, by, reason=reason, content=content, profile=self._profile)
        )

    def undo(self, request_id: str, by: Actor) -> Approval:
        """Take an approval back before its claim. Raises `NotPermitted`, `UndoTooLate`, `RequestNotFound`."""
        return self._call(lambda: self._gateway.undo(request_id, by, profile=self._profile))

    def actions(self) -> list[KeptAction]:
        """Kept actions, ended ones too, oldest first."""
        return self._call(lambda: self._gateway.actions(profile=self._profile))

    def approve_action(self, action_id: str, by: Actor, reason: str | None = None) -> KeptAction:
        """Approve one; its executor then runs it. Raises `ActionRefused`, `RequestNotFound`."""
        return self._call(lambda: self._gateway.approve_action(action_id, by, reason, profile=self._profile))

    def reject_action(self, action_id: str, by: Actor, reason: str | None = None) -> KeptAction:
        """Deny one; it is not run. Raises `ActionRefused`, `RequestNotFound`."""
        return self._call(lambda: self._gateway.reject_action(action_id, by, reason, profile=self._profile))

    def replay_action(self, action_id: str, *, wait_s: float | None = None) -> KeptAction:
        """Run one that was approved and waits for its executor. Raises `ActionRefused`, `RequestNotFound`."""
        return self._call(lambda: self._gateway.replay_action(action_id, wait_s=wait_s, profile=self._profile))

    def run_action_again(self, action_id: str, by: Actor) -> KeptAction:
        """Have one run once more that is `unknown`. Raises `ActionRefused`, `RequestNotFound`."""
        return self._call(lambda: self._gateway.run_action_again(action_id, by, profile=self._profile))

    def action_did_run(self, action_id: str, by: Actor) -> KeptAction:
        """Say of one that is `unknown` that it did run. Raises `ActionRefused`, `RequestNotFound`."""
        return self._call(lambda: self._gateway.action_did_run(action_id, by, profile=self._profile))

    def call_tool(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        session_id: str | None = None,
        turn_id: str | None = None,
        run: RunsTool | None = None,
        reason: str | None = None,
        request_id: str | None = None,
        gate_token: str | None = None,
    ) -> Called:
        """Call a tool through the gate, as `Gateway.gate.call`. A blocking function runs in another thread."""
        return self._call(
            lambda: self._gateway.gate.call(
                tool,
                arguments,
                session_id=session_id,
                turn_id=turn_id,
                run=run,
                reason=reason,
                request_id=request_id,
                gate_token=gate_token,
                profile=self._profile,
            )
        )

    def stop(self, session_id: str, by: Actor | None = None) -> Stopped:
        """Stop a session's turns, questions, unstarted approvals and children. Raises `SessionNotFound`."""
        return self._call(lambda: self._gateway.stop(session_id, by, profile=self._profile))

    def clear(self, session_id: str, by: Actor | None = None) -> Stopped:
        """As stop, and its grants go and its registration ends. Raises `SessionNotFound`."""
        return self._call(lambda: self._gateway.clear(session_id, by, profile=self._profile))

    def reset(self, session_id: str, by: Actor | None = None) -> Stopped:
        """Start a session anew: as clear, and it stays declared. Raises `SessionNotFound`."""
        return self._call(lambda: self._gateway.reset(session_id, by, profile=self._profile))

    def bypass(self, session_id: str, by: Actor, *, minutes: float = DEFAULT_MINUTES) -> Session:
        """Ask nothing in a session for so many minutes, 1 to 1440. What waits goes on waiting; what is forbidden stays
        so. Raises `InvalidInput`, `NotPermitted`, `SessionNotFound`."""
        return self._call(lambda: self._gateway.bypass(session_id, by, minutes=minutes, profile=self._profile))

    def end_bypass(self, session_id: str, by: Actor) -> Session:
        """Ask again in a session. Raises `SessionNotFound`."""
        return self._call(lambda: self._gateway.end_bypass(session_id, by, profile=self._profile))

    def pending(self) -> list[Approval]:
        """What waits in the profile, oldest first."""
        return self._call(lambda: self._gateway.pending(profile=self._profile))

    def grants(self) -> list[Grant]:
        """The live grants, oldest first."""
        return self._call(lambda: self._gateway.grants(profile=self._profile))

    def revoke(self, grant_id: str, by: Actor) -> Grant:
        """End a grant at once. Raises `GrantNotFound`."""
        return self._call(lambda: self._gateway.revoke(grant_id, by, profile=self._profile))
