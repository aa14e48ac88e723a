"""`Client`: the gateway's verbs from another process, over HTTP or the local administration socket."""

from __future__ import annotations

import asyncio
import os
import socket as sockets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from signoff.client import _sse, _wire, jobs
from signoff.client._link import Address, Backoff, Link, Lost, OnOutage, address_of, header_text
from signoff.client.actions import Actions
from signoff.client.allowlist import Allowlists
from signoff.client.asking import Asking, Seen, claimed
from signoff.client.records import (
    ApprovalRecord,
    CheckRecord,
    EventRecord,
    GrantRecord,
    KeyRecord,
    NotifierRecord,
    Question,
    SessionRecord,
)
from signoff.client.turns import DEFAULT_LEASE_S, Turn
from signoff.context import VARIABLES, Context, current
from signoff.destinations import parse_destination
from signoff.digest import digest_of
from signoff.elicitation import Elicited, taken
from signoff.errors import InvalidInput, SignoffError, TurnEnded
from signoff.expected import action_of
from signoff.ids import ONE, new_id
from signoff.model import Action, Elicitation, Operand
from signoff.presence import JOBS
from signoff.shown_card import ShownCard
from signoff.waited import Meter

RESULT_WITHIN_S = 3600.0
"""A turn that `request` opened is renewed so long for a result; then it lapses, and the run counts as unknown."""
DEFAULT_URL = "http://127.0.0.1:8787"
UNREACHABLE_AFTER_S = 30.0
"""How long a gateway that never answered is looked for: longer than its restart takes."""

Status = Literal["succeeded", "failed", "not_run"]
T = TypeVar("T", bound=Struct)


class Client(Actions, Allowlists):
    """Asks, decides and administers. Use it as `async with Client() as client`.

    Unset arguments come from SIGNOFF_URL, SIGNOFF_KEY, SIGNOFF_PROFILE, SIGNOFF_SESSION_ID and SIGNOFF_TURN_ID. What is
    bound with `signoff.context` counts before these variables: the profile as it is now, the rest at each call.
    `socket` is the gateway's local administration socket, which needs no key. `on_outage` is called with True when a
    gateway that took a question has not answered for a second, and with False once it answers again. Raises
    `InvalidInput` for an address that is no `http://HOST:PORT`, or a key or profile that cannot stand in a header.
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
        on_outage: OnOutage | None = None,
    ) -> None:
        variables = os.environ if environ is None else environ
        self._session_id, self._turn_id = session_id, turn_id
        self._environ = {name: variables[name] for name in VARIABLES.values() if name in variables}
        bound = {"SIGNOFF_PROFILE": current(self._environ).profile or ""}
        address = Address(
            url=address_of(url or variables.get("SIGNOFF_URL") or DEFAULT_URL, "url" if url else "SIGNOFF_URL"),
            key=None if socket else _header(key, variables, "SIGNOFF_KEY"),
            socket=Path(socket) if socket else None,
            profile=_header(profile, bound, "SIGNOFF_PROFILE"),
        )
        self._link = Link(address, unreachable_after_s=unreachable_after_s, on_outage=on_outage)
        self._meters: dict[str, Meter] = {}
        """What counts how long each open turn waits for people."""
        self._running: dict[str, Turn] = {}
        """Turns that `request` opened, by the request that was claimed in them and has no result yet."""

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the turns that `request` opened, then close the connections. Idempotent."""
        held = list(self._running.values())
        self._running.clear()
        await asyncio.gather(*(turn.end("turn_ended") for turn in held))
        await self._link.aclose()

    # --- asking ------------------------------------------------------------------------------

    async def request(
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
        """Ask, wait for the end and claim; run the action only if the record's `may_run` is true.

        `timeout_s` unset takes the profile's window, None asks for no deadline. `host` is this machine's name by
        default. `seen` is called with each state of the record on the way. `gate_token` is what a gate gave that let
        this very call through already; `want_gate_token` has the record bring one for a further gate. Without a turn
        one is opened; it ends at once where nothing may run, else with the `result`.

        When the caller is cancelled the question is withdrawn. Raises `GatewayUnreachable` when no gateway answered
        for `unreachable_after_s`, or one went away for longer than its turns can outlive it; `SessionNotFound`,
        `TurnNotFound`, `InvalidInput`, `IdempotencyConflict`, and `ClaimRefused` with the code `digest_mismatch`.
        """
        checked = action_of(action)
        where = await self._asking(session_id, turn_id)
        machine = sockets.gethostname() if isinstance(host, UnsetType) else host
        question = Question(
            action=checked,
            digest=digest_of(checked, machine),
            request_id=request_id or new_id("req"),
            session_id=_named(where.session_id),
            turn_id=where.turn_id,
            tool_call_id=tool_call_id or where.tool_call_id,
            host=machine,
            reason=reason,
            choices=tuple(choices) if choices is not None else None,
            timeout_s=-1.0 if isinstance(timeout_s, UnsetType) else _seconds(timeout_s),
            gate_token=gate_token,
            want_gate_token=want_gate_token,
        )
        if question.turn_id is not None:
            # How long a turn of somebody else lives without us is not known; a lease is at most an hour.
            meter = self._meters.get(question.turn_id)
            return await Asking(self._link, question, lease_s=3600.0, known=False, seen=seen, meter=meter).run()
        return await self._in_own_turn(question, seen)

    async def _in_own_turn(self, question: Question, seen: Seen | None) -> ApprovalRecord:
        turn = Turn(self._link, question.session_id, turn_id=new_id(ONE), lease_s=DEFAULT_LEASE_S)
        # One whose opening was never answered is open nowhere, or lapses.
        try:
            await turn.open()
        except TurnEnded:
            # A child that ended with its parent. What it asks is told so, as a record like any other.
            return await Asking(self._link, question, lease_s=DEFAULT_LEASE_S, known=True, seen=seen).run()
        cause = "turn_interrupted"
        keep = False
        try:
            question = msgspec.structs.replace(question, turn_id=turn.turn_id)
            record = await Asking(self._link, question, lease_s=DEFAULT_LEASE_S, known=True, seen=seen).run()
            keep, cause = record.may_run, "turn_ended"
        except SignoffError:
            cause = "turn_ended"
            raise
        finally:
            if not keep:
                await turn.end(cause)
        self._running[question.request_id] = turn
        turn.renew_for(RESULT_WITHIN_S, lambda: self._running.pop(question.request_id, None))
        return record

    async def elicit(
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
        """Put a tool server's question to a person: `accept` with the content, `decline` where a person said no,
        `cancel` with its `cause` for all else. `schema` is a flat JSON schema as MCP allows; `url` is a page to open.

        Raises what `request` raises, and `InvalidInput` for a form that nobody could fill in or a page that cannot be
        shown.
        """
        form = None if schema is None else dict(schema)
        action = Elicitation(server=server, message=message, schema=form, url=url)
        record = await self.request(
            action, session_id=session_id, turn_id=turn_id, timeout_s=timeout_s, request_id=request_id
        )
        if record.may_run:
            with suppress(SignoffError):  # what a person accepted is the asker's, whether or not that can be told
                await self.result(record.request_id, "succeeded")
        return taken(record.elicitation, may_run=record.may_run)

    def turn(
        self, session_id: str | None = None, *, turn_id: str | None = None, lease_s: float = DEFAULT_LEASE_S
    ) -> Turn:
        """A turn as an async context manager: opened, renewed in the background, ended with the right cause.

        `lease_s` (2 to 3600 seconds) is how long it outlives a client that vanished.
        """
        session = self._session(session_id)
        return Turn(self._link, session, turn_id=turn_id, lease_s=lease_s, meters=self._meters)

    async def cancel(self, request_id: str, cause: str = "withdrawn") -> ApprovalRecord:
        """Withdraw a question, or take an unclaimed approval back. Raises `RequestNotFound`."""
        return _wire.record(await self._link.call(_wire.cancel(request_id, cause)))

    async def check(
        self,
        action: Action | Mapping[str, Any],
        *,
        session_id: str | None = None,
        turn_id: str | None = None,
        host: str | UnsetType | None = UNSET,
        explain: bool = False,
    ) -> CheckRecord:
        """What would become of an action if it were asked for now. Nobody is asked, and nothing is stored.

        Without a session (here, bound, or in SIGNOFF_SESSION_ID) it is judged as if somebody could answer. `host` is as
        for `request`: a denial holds for the same one. `explain` adds each command, rule and rung. Raises
        `InvalidInput`, `SessionNotFound`.
        """
        where = await self._asking(session_id, turn_id)
        machine = sockets.gethostname() if isinstance(host, UnsetType) else host
        call = _wire.check(action_of(action), where.session_id, where.turn_id, machine, explain=explain)
        return _wire.parsed(await self._link.call(call), CheckRecord)

    async def get(self, request_id: str) -> ApprovalRecord:
        """The record by its id or short id. Raises `RequestNotFound`."""
        return _wire.record(await self._link.call(_wire.get(request_id)))

    async def why(self, request_id: str) -> dict[str, Any]:
        """Why it was asked, let run or forbidden: commands, rules, and what decided. Raises `RequestNotFound`."""
        return _facts(await self._link.call(_wire.why(request_id)))

    async def wait(self, request_id: str, timeout_s: float) -> ApprovalRecord:
        """The record once it has ended, or as it stands after `timeout_s` seconds. Raises `RequestNotFound`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while True:
            left_s = max(0.0, deadline - loop.time())
            record = _wire.record(await self._link.call(_wire.get(request_id, left_s)))
            if not record.pending or left_s < 1:
                return record

    async def claim(
        self, request_id: str, digest: str, *, claim_id: str | None = None, operands: Sequence[Operand] = ()
    ) -> ApprovalRecord:
        """Start an approved action, once. Raises `ClaimRefused`, `RequestNotFound`."""
        call = _wire.claim(request_id, digest, claim_id or new_id("claim"), operands)
        return claimed(_wire.record(await self._link.call(call)))

    async def result(
        self, request_id: str, status: Status, exit_code: int | None = None, *, patience_s: float | None = None
    ) -> ApprovalRecord:
        """Report how a claimed action went; the turn that `request` opened for it ends. A gateway that is away is tried
        again for `patience_s`, or for `unreachable_after_s`. Raises `Conflict`, `GatewayUnreachable`."""
        call = _wire.result(request_id, status, exit_code)
        try:
            return _wire.record(await self._link.call(call, patience_s=patience_s, watched=True))
        finally:
            turn = self._running.pop(request_id, None)
            if turn is not None:
                await turn.end("turn_ended")

    # --- showing -----------------------------------------------------------------------------

    async def card(self, request_id: str) -> ShownCard:
        """What a person must be shown before they answer, and the answers on offer. Raises `RequestNotFound`."""
        return _wire.parsed(await self._link.call(_wire.card(request_id)), ShownCard)

    async def attach(self, session_id: str, name: str, *, lease_s: float | None = None) -> NotifierRecord:
        """From now on this puts the session's questions before a person. `name` is its own; with `lease_s` it counts as
        gone after so many seconds unless it is attached again. Needs an approver's key, or the local socket.

        Raises `InvalidInput`, `SessionNotFound`.
        """
        return _wire.parsed(await self._link.call(_wire.attach(session_id, name, lease_s)), NotifierRecord)

    async def detach(self, session_id: str, name: str, cause: str = "notifier_gone") -> None:
        """It shows nothing any more: questions that nobody else can answer are withdrawn for that cause, never denied.

        `cause` is `notifier_gone`, `client_cannot_answer`, `prompt_failed`, `no_prompt` or `prompt_interrupted`. Raises
        `InvalidInput`.
        """
        await self._link.call(_wire.detach(session_id, name, cause))

    async def find_session(self, session_id: str) -> SessionRecord:
        """An open session as it was declared. Raises `SessionNotFound`."""
        return _wire.parsed(await self._link.call(_wire.find_session(session_id)), SessionRecord)

    # --- deciding ----------------------------------------------------------------------------

    async def decide(
        self, request_id: str, choice: str, reason: str | None = None, *, content: Mapping[str, Any] | None = None
    ) -> ApprovalRecord:
        """Answer a question; a server's also with `accept` and `decline`, and the `content` of its fields.

        Raises `AlreadyResolved`, `ChoiceNotOffered`, `InsufficientScope`, `RequestNotFound`,
        `InvalidInput`.
        """
        return _wire.record(await self._link.call(_wire.decide(request_id, choice, reason, content)))

    async def undo(self, request_id: str) -> ApprovalRecord:
        """Take an approval back before its claim. Raises `UndoTooLate`, `NotPermitted`, `RequestNotFound`."""
        return _wire.record(await self._link.call(_wire.undo(request_id)))

    async def pending(self, session_id: str | None = None) -> list[ApprovalRecord]:
        """What waits, oldest first."""
        rows = await self._list(_wire.pending(session_id), ApprovalRecord)
        return [_wire.unclaimed(row) for row in rows]

    # --- sessions, grants, keys --------------------------------------------------------------

    async def session(
        self,
        session_id: str | None = None,
        *,
        kind: str = "api",
        destination: str | None = None,
        user_id: str | None = None,
        parent: str | None = None,
    ) -> SessionRecord:
        """Declare a session. `destination` is written `platform:chat[/thread]`.

        Raises `KindNotAllowed`, `DestinationNotAllowed`, `InvalidInput`, `SessionNotFound`.
        """
        place = parse_destination(destination, "destination") if destination else None
        facts = {
            "kind": kind,
            "platform": place.platform if place else None,
            "chat_id": place.chat_id if place else None,
            "thread_id": place.thread_id if place else None,
            "user_id": user_id,
            "parent": parent,
        }
        body = await self._link.call(_wire.session(self._session(session_id), facts))
        return _wire.parsed(body, SessionRecord)

    async def open_sessions(self) -> list[SessionRecord]:
        """The open sessions, oldest first. Needs a key of an operator or a person, or the local socket."""
        return await self._list(_wire.sessions(), SessionRecord)

    async def stop(self, session_id: str | None = None) -> dict[str, Any]:
        """Stop the session's turns, questions, unstarted approvals and children; what was stopped."""
        return _facts(await self._link.call(_wire.stop(self._session(session_id))))

    async def clear(self, session_id: str | None = None) -> dict[str, Any]:
        """As stop, and the session's grants and registration go."""
        return _facts(await self._link.call(_wire.clear(self._session(session_id))))

    async def reset(self, session_id: str | None = None) -> dict[str, Any]:
        """Start the session anew, as with `/new`: as clear, and it stays declared."""
        return _facts(await self._link.call(_wire.reset(self._session(session_id))))

    async def bypass(self, session_id: str | None = None, *, minutes: float = 30.0) -> SessionRecord:
        """Ask nothing in the session for so many minutes, 1 to 1440. What waits goes on waiting; what is forbidden
        stays so. The session's place is told. Raises `InvalidInput`, `NotPermitted`, `SessionNotFound`."""
        call = _wire.bypass(self._session(session_id), minutes)
        return _wire.parsed(await self._link.call(call), SessionRecord)

    async def end_bypass(self, session_id: str | None = None) -> SessionRecord:
        """Ask again in the session. Raises `SessionNotFound`."""
        return _wire.parsed(await self._link.call(_wire.end_bypass(self._session(session_id))), SessionRecord)

    async def grants(self) -> list[GrantRecord]:
        """The live grants, oldest first."""
        return await self._list(_wire.grants(), GrantRecord)

    async def revoke(self, grant_id: str) -> GrantRecord:
        """End a grant at once. Raises `GrantNotFound`."""
        return _wire.parsed(await self._link.call(_wire.revoke(grant_id)), GrantRecord)

    async def health(self) -> dict[str, Any]:
        """That the gateway answers. Raises `GatewayUnreachable`."""
        return _facts(await self._link.call(_wire.health()))

    async def health_detailed(self) -> dict[str, Any]:
        """How the store and each platform are, as far as the gateway knows. Needs an `ops` key."""
        return _facts(await self._link.call(_wire.health_detailed()))

    async def keys(self) -> list[KeyRecord]:
        """The profile's API keys, without their secrets."""
        return await self._list(_wire.keys(), KeyRecord)

    async def create_key(self, scope: str, *, agent: str | None = None, principal: str | None = None) -> dict[str, Any]:
        """Make an API key: `{"id", "key"}`. The key is told this once. Raises `InvalidInput`."""
        return _facts(await self._link.call(_wire.create_key(scope, agent, principal)))

    async def start_drill(self, destinations: Sequence[str] = (), *, wait_s: float = 300.0) -> dict[str, Any]:
        """Send a rehearsal card to these places, or to all that the settings name. Raises `InvalidInput`."""
        return _facts(await self._link.call(_wire.start_drill(destinations, wait_s)))

    async def drill(self, drill_id: str) -> dict[str, Any]:
        """What came of a drill so far, by place. Raises `NotFound`."""
        return _facts(await self._link.call(_wire.drill(drill_id)))

    async def revoke_key(self, key_id: str) -> None:
        """End an API key at once. Raises `KeyNotFound`."""
        await self._link.call(_wire.revoke_key(key_id))

    # --- events ------------------------------------------------------------------------------

    async def events(self, *, after: int | None = None, session_id: str | None = None) -> AsyncIterator[EventRecord]:
        """The event log from `after` on (from now on by default), for ever: it resumes where a connection broke.

        Raises `GatewayUnreachable` after `unreachable_after_s` without a connection, and what the gateway refuses.
        """
        parser = _sse.Parser("" if after is None else str(after))
        loop = asyncio.get_running_loop()
        lost_at: float | None = None
        backoff = Backoff()
        while True:
            after = int(parser.last_id) if parser.last_id.isdecimal() else None
            try:
                async with self._link.stream(_wire.events(after, session_id), parser.last_id) as content:
                    lost_at, backoff = None, Backoff()
                    parser = _sse.Parser(parser.last_id)
                    async for chunk in content.iter_any():
                        for sent in parser.feed(chunk):
                            yield _wire.parsed(sent.data.encode(), EventRecord)
                    raise Lost("the stream ended", sent=True)
            except Lost as lost:
                lost_at = loop.time() if lost_at is None else lost_at
                if loop.time() - lost_at >= self._link.unreachable_after_s:
                    raise self._link.given_up(lost, loop.time() - lost_at) from lost
                pause_s = backoff.pause_s(lost.after_s)
            await asyncio.sleep(pause_s)

    # --- helpers -----------------------------------------------------------------------------

    def _where(self, session_id: str | None, turn_id: str | None) -> Context:
        """What a call names, then what this client was made with, then what is bound or in the environment. The turn
        and the tool call of another session than the call's are not its own."""
        context = current(self._environ)
        session = session_id or self._session_id or context.session_id
        own = context.session_id in (None, session)
        return Context(
            session_id=session,
            turn_id=turn_id or self._turn_id or (context.turn_id if own else None),
            tool_call_id=context.tool_call_id if own else None,
        )

    async def _asking(self, session_id: str | None, turn_id: str | None) -> Context:
        """The same of what asks. Raises `InvalidInput` for a job that is bound under the id of a session which is none:
        there it would be asked about and wait."""
        where, bound = self._where(session_id, turn_id), current(self._environ)
        if bound.kind in JOBS and where.session_id is not None and where.session_id == bound.session_id:
            why = await jobs.why_not(bound.kind, where.session_id, self.find_session)
            if why is not None:
                raise InvalidInput(why, param="session_id")
        return where

    def _session(self, session_id: str | None) -> str:
        return _named(self._where(session_id, None).session_id)


def _named(session_id: str | None) -> str:
    if not session_id:
        raise InvalidInput(
            "Which session? Give session_id, bind one (signoff.context) or set SIGNOFF_SESSION_ID.", param="session_id"
        )
    return session_id


def _facts(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    found = msgspec.json.decode(body)
    return found if isinstance(found, dict) else {"data": found}


def _seconds(timeout_s: float | None) -> float | None:
    if timeout_s is not None and not timeout_s > 0:
        raise InvalidInput("timeout_s must be a number of seconds above 0, or None.", param="timeout_s")
    return timeout_s


def _header(given: str | None, variables: Mapping[str, str], variable: str) -> str | None:
    param = variable.removeprefix("SIGNOFF_").lower()
    return header_text(given or variables.get(variable) or None, param if given else variable, param)
