"""`BlockingClient`: the client's verbs for code without an event loop; safe to share between threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from msgspec import UNSET, UnsetType

from signoff.client.asking import Seen
from signoff.client.client import UNREACHABLE_AFTER_S, Client, Status
from signoff.client.records import (
    ActionRecord,
    AllowlistChanged,
    AllowlistRecord,
    ApprovalRecord,
    CheckRecord,
    EventRecord,
    GrantRecord,
    KeyRecord,
    NotifierRecord,
    SessionRecord,
)
from signoff.client.turns import DEFAULT_LEASE_S, Turn
from signoff.door import LoopDoor
from signoff.elicitation import Elicited
from signoff.model import Action, Operand
from signoff.shown_card import ShownCard

T = TypeVar("T")


class BlockingClient:
    """As `Client`; every verb waits. One background thread runs the connections of all callers.

    Ctrl-C during `request` withdraws the question. Close it, or use it in a `with` statement.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        profile: str | None = None,
        socket: Path | str | None = None,
        session_id: str | None = None,
        turn_id: str | None = None,
        unreachable_after_s: float = UNREACHABLE_AFTER_S,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._client = Client(
            url,
            key,
            profile=profile,
            socket=socket,
            session_id=session_id,
            turn_id=turn_id,
            unreachable_after_s=unreachable_after_s,
            environ=environ,
        )
        self._lock = threading.Lock()
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="signoff-client", daemon=True)
        self._door = LoopDoor(self._loop, "BlockingClient")
        started = threading.Event()
        self._loop.call_soon(started.set)
        self._thread.start()
        started.wait()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def __enter__(self) -> BlockingClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the turns that `request` opened, close the connections and end the thread. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._call(self._client.aclose)
        self._door.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _call(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return self._door.call(make)

    # --- asking ------------------------------------------------------------------------------

    def request(
        self,
        action: Action | Mapping[str, Any],
        *,
        session_id: str | None = None,
        turn_id: str | None = None,
        timeout_s: float | UnsetType | None = UNSET,
        reason: str | None = None,
        choices: Sequence[str] | None = None,
        request_id: str | None = None,
        tool_call_id: str | None = None,
        host: str | UnsetType | None = UNSET,
        seen: Seen | None = None,
        gate_token: str | None = None,
        want_gate_token: bool = False,
    ) -> ApprovalRecord:
        """As `Client.request`. `seen` is called on the background thread."""
        return self._call(
            lambda: self._client.request(
                action,
                session_id=session_id,
                turn_id=turn_id,
                timeout_s=timeout_s,
                reason=reason,
                choices=choices,
                request_id=request_id,
                tool_call_id=tool_call_id,
                host=host,
                seen=seen,
                gate_token=gate_token,
                want_gate_token=want_gate_token,
            )
        )

    def elicit(
        self,
        server: str,
        message: str,
        schema: Mapping[str, Any] | None = None,
        *,
        url: str | None = None,
        session_id: str | None = None,
        turn_id: str | None = None,
        timeout_s: float | UnsetType | None = UNSET,
        request_id: str | None = None,
    ) -> Elicited:
        """As `Client.elicit`. Ctrl-C withdraws the question."""
        return self._call(
            lambda: self._client.elicit(
                server,
                message,
                schema,
                url=url,
                session_id=session_id,
                turn_id=turn_id,
                timeout_s=timeout_s,
                request_id=request_id,
            )
        )

    def turn(
        self, session_id: str | None = None, *, turn_id: str | None = None, lease_s: float = DEFAULT_LEASE_S
    ) -> BlockingTurn:
        """As `Client.turn`, for the `with` statement."""
        return BlockingTurn(self._door, self._client.turn(session_id, turn_id=turn_id, lease_s=lease_s))

    def cancel(self, request_id: str, cause: str = "withdrawn") -> ApprovalRecord:
        """As `Client.cancel`."""
        return self._call(lambda: self._client.cancel(request_id, cause))

    def check(
        self,
        action: Action | Mapping[str, Any],
        *,
        session_id: str | None = None,
        turn_id: str | None = None,
        host: str | UnsetType | None = UNSET,
        explain: bool = False,
    ) -> CheckRecord:
        """As `Client.check`."""
        return self._call(
            lambda: self._client.check(action, session_id=session_id, turn_id=turn_id, host=host, explain=explain)
        )

    def get(self, request_id: str) -> ApprovalRecord:
        """As `Client.get`."""
        return self._call(lambda: self._client.get(request_id))

    def why(self, request_id: str) -> dict[str, Any]:
        """As `Client.why`."""
        return self._call(lambda: self._client.why(request_id))

    def wait(self, request_id: str, timeout_s: float) -> ApprovalRecord:
        """As `Client.wait`."""
        return self._call(lambda: self._client.wait(request_id, timeout_s))

    def claim(
        self, request_id: str, digest: str, *, claim_id: str | None = None, operands: Sequence[Operand] = ()
    ) -> ApprovalRecord:
        """As `Client.claim`."""
        return self._call(lambda: self._client.claim(request_id, digest, claim_id=claim_id, operands=operands))

    def result(
        self, request_id: str, status: Status, exit_code: int | None = None, *, patience_s: float | None = None
    ) -> ApprovalRecord:
        """As `Client.result`."""
        return self._call(lambda: self._client.result(request_id, status, exit_code, patience_s=patience_s))

    # --- showing -----------------------------------------------------------------------------

    def card(self, request_id: str) -> ShownCard:
        """As `Client.card`."""
        return self._call(lambda: self._client.card(request_id))

    def attach(self, session_id: str, name: str, *, lease_s: float | None = None) -> NotifierRecord:
        """As `Client.attach`."""
        return self._call(lambda: self._client.attach(session_id, name, lease_s=lease_s))

    def detach(self, session_id: str, name: str, cause: str = "notifier_gone") -> None:
        """As `Client.detach`."""
        return self._call(lambda: self._client.detach(session_id, name, cause))

    def find_session(self, session_id: str) -> SessionRecord:
        """As `Client.find_session`."""
        return self._call(lambda: self._client.find_session(session_id))

    # --- deciding ----------------------------------------------------------------------------

    def decide(
        self, request_id: str, choice: str, reason: str | None = None, *, content: Mapping[str, Any] | None = None
    ) -> ApprovalRecord:
        """As `Client.decide`."""
        return self._call(lambda: self._client.decide(request_id, choice, reason, content=content))

    def undo(self, request_id: str) -> ApprovalRecord:
        """As `Client.undo`."""
        return self._call(lambda: self._client.undo(request_id))

    def pending(self, session_id: str | None = None) -> list[ApprovalRecord]:
        """As `Client.pending`."""
        return self._call(lambda: self._client.pending(session_id))

    def actions(self) -> list[ActionRecord]:
        """As `Client.actions`."""
        return self._call(self._client.actions)

    def approve_action(self, action_id: str, reason: str | None = None) -> ActionRecord:
        """As `Client.approve_action`."""
        return self._call(lambda: self._client.approve_action(action_id, reason))

    def reject_action(self, action_id: str, reason: str | None = None) -> ActionRecord:
        """As `Client.reject_action`."""
        return self._call(lambda: self._client.reject_action(action_id, reason))

    def replay_action(self, action_id: str, *, wait_s: float = 30.0) -> ActionRecord:
        """As `Client.replay_action`."""
        return self._call(lambda: self._client.replay_action(action_id, wait_s=wait_s))

    def run_action_again(self, action_id: str) -> ActionRecord:
        """As `Client.run_action_again`."""
        return self._call(lambda: self._client.run_action_again(action_id))

    def action_did_run(self, action_id: str) -> ActionRecord:
        """As `Client.action_did_run`."""
        return self._call(lambda: self._client.action_did_run(action_id))

    # --- sessions, grants, keys, events ------------------------------------------------------

    def session(
        self,
        session_id: str | None = None,
        *,
        kind: str = "api",
        destination: str | None = None,
        user_id: str | None = None,
        parent: str | None = None,
    ) -> SessionRecord:
        """As `Client.session`."""
        return self._call(
            lambda: self._client.session(session_id, kind=kind, destination=destination, user_id=user_id, parent=parent)
        )

    def open_sessions(self) -> list[SessionRecord]:
        """As `Client.open_sessions`."""
        return self._call(self._client.open_sessions)

    def stop(self, session_id: str | None = None) -> dict[str, Any]:
        """As `Client.stop`."""
        return self._call(lambda: self._client.stop(session_id))

    def clear(self, session_id: str | None = None) -> dict[str, Any]:
        """As `Client.clear`."""
        return self._call(lambda: self._client.clear(session_id))

    def reset(self, session_id: str | None = None) -> dict[str, Any]:
        """As `Client.reset`."""
        return self._call(lambda: self._client.reset(session_id))

    def grants(self) -> list[GrantRecord]:
        """As `Client.grants`."""
        return self._call(self._client.grants)

    def bypass(self, session_id: str | None = None, *, minutes: float = 30.0) -> SessionRecord:
        """As `Client.bypass`."""
        return self._call(lambda: self._client.bypass(session_id, minutes=minutes))

    def end_bypass(self, session_id: str | None = None) -> SessionRecord:
        """As `Client.end_bypass`."""
        return self._call(lambda: self._client.end_bypass(session_id))

    def revoke(self, grant_id: str) -> GrantRecord:
        """As `Client.revoke`."""
        return self._call(lambda: self._client.revoke(grant_id))

    def health(self) -> dict[str, Any]:
        """As `Client.health`."""
        return self._call(self._client.health)

    def health_detailed(self) -> dict[str, Any]:
        """As `Client.health_detailed`."""
        return self._call(self._client.health_detailed)

    def start_drill(self, destinations: Sequence[str] = (), *, wait_s: float = 300.0) -> dict[str, Any]:
        """As `Client.start_drill`."""
        return self._call(lambda: self._client.start_drill(destinations, wait_s=wait_s))

    def drill(self, drill_id: str) -> dict[str, Any]:
        """As `Client.drill`."""
        return self._call(lambda: self._client.drill(drill_id))

    def allowlist(self, *, removed: bool = False) -> list[AllowlistRecord]:
        """As `Client.allowlist`."""
        return self._call(lambda: self._client.allowlist(removed=removed))

    def change_allowlist(
        self,
        *,
        commands: Sequence[str] = (),
        unattended_commands: Sequence[str] = (),
        remove: Sequence[str] = (),
        source: str = "",
        again: bool = True,
    ) -> AllowlistChanged:
        """As `Client.change_allowlist`."""
        return self._call(
            lambda: self._client.change_allowlist(
                commands=commands, unattended_commands=unattended_commands, remove=remove, source=source, again=again
            )
        )

    def keys(self) -> list[KeyRecord]:
        """As `Client.keys`."""
        return self._call(self._client.keys)

    def create_key(self, scope: str, *, agent: str | None = None, principal: str | None = None) -> dict[str, Any]:
        """As `Client.create_key`."""
        return self._call(lambda: self._client.create_key(scope, agent=agent, principal=principal))

    def revoke_key(self, key_id: str) -> None:
        """As `Client.revoke_key`."""
        self._call(lambda: self._client.revoke_key(key_id))

    def events(self, *, after: int | None = None, session_id: str | None = None) -> Iterator[EventRecord]:
        """As `Client.events`; leaving the loop over it closes the stream."""
        stream = self._client.events(after=after, session_id=session_id)

        async def following() -> EventRecord:
            return await anext(stream)

        async def end() -> None:
            await stream.aclose()  # type: ignore[attr-defined]  # an async generator, told as its wider protocol

        try:
            while True:
                yield self._call(following)
        finally:
            if not self._closed:
                self._call(end)


class BlockingTurn:
    """A turn for the `with` statement."""

    def __init__(self, door: LoopDoor, turn: Turn) -> None:
        self._door, self._turn = door, turn

    @property
    def turn_id(self) -> str:
        """The turn's id, to hand to `request`."""
        return self._turn.turn_id

    @property
    def ended_cause(self) -> str | None:
        """Why the gateway ended it; None while it lives."""
        return self._turn.ended_cause

    @property
    def waited_s(self) -> float:
        """As `Turn.waited_s`."""
        return self._turn.waited_s

    def __enter__(self) -> BlockingTurn:
        self._door.call(self._turn.open)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._door.call(lambda: self._turn.__aexit__(kind, error, trace))
