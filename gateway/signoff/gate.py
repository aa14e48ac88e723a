"""The tool gate: the one function through which a program calls its tools, whichever way the call came about.

A call of a tool that the operator named needs a person: it is asked about at once, or kept for a later yes. All others
run. A second gate further down the same call is told by a one-time token that the first one let it through.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from msgspec import Struct

from signoff.broker import Broker
from signoff.changes import claiming, passing
from signoff.changes.common import load_request
from signoff.digest import digest_of
from signoff.drafting import Ask
from signoff.errors import ClaimRefused, InvalidInput
from signoff.exact_json import check_exact
from signoff.executors import Call, Executors, call_of, called
from signoff.gate_pass import new_pass, read_pass
from signoff.gating import gate_mode
from signoff.held_pass import HeldPass, holding, take
from signoff.ids import new_id
from signoff.model import ApprovalRequest, Tool
from signoff.placing import Asker, NoContext, asker_of, declared, profile_of, tell_outside
from signoff.ports import Store, Tx
from signoff.record import Approval, approval_of, claimed_of
from signoff.reports import Reports
from signoff.sessions import Sessions

HOST = platform.node()

RunsTool = Callable[[dict[str, Any]], Any]
"""Runs a tool with its arguments, asynchronous or not."""


class Called(Struct, frozen=True, kw_only=True):
    """What became of a call. `value` is what the tool gave; `message` is for the agent where it did not run, and begins
    with `STAGED:` where the call is kept, which is no error."""

    outcome: Literal["ran", "staged", "refused"]
    value: Any = None
    message: str = ""
    record: Approval | None = None
    """The record of the question; None where nothing was asked."""

    def __bool__(self) -> bool:
        """It has no truth value: read `outcome`. Raises TypeError."""
        raise TypeError("a call has no truth value; compare .outcome")


class Gate:
    """The tool gate of a gateway, for all of its profiles."""

    def __init__(
        self, store: Store, broker: Broker, sessions: Sessions, executors: Executors, no_context: NoContext
    ) -> None:
        self._store = store
        self._broker = broker
        self._sessions = sessions
        self._executors = executors
        self._no_context = no_context
        self.reports = Reports()

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        session_id: str | None = None,
        turn_id: str | None = None,
        tool_call_id: str | None = None,
        run: RunsTool | None = None,
        reason: str | None = None,
        request_id: str | None = None,
        gate_token: str | None = None,
        host: str | None = HOST,
        profile: str | None = None,
    ) -> Called:
        """Call a tool. `run` is the program's own function for it; without one, the registered executor's is used.

        Without `session_id` it is asked in the bound session (`signoff.context`). `arguments` of a call that needs
        a person must be plain JSON values, since they are kept exactly. `gate_token` is what a gate
        elsewhere gave for this call. What the tool gives or raises comes from here, also while the store cannot keep
        how it went. Raises `InvalidInput`, `SessionNotFound`, `TurnNotFound`, `ClaimRefused`, `GatePassRefused`.
        """
        action = Tool(name=tool, arguments=arguments)
        asker = asker_of(profile_of(profile), session_id, turn_id, tool_call_id)
        runs = self._runner(asker.profile, tool, run)
        wanted = gate_mode(self._broker.profile(asker.profile).approvals.tool_gate, tool)
        if wanted:
            check_exact(action)
        held = take(asker.profile, action) if wanted and gate_token is None else None
        if held is not None:
            await self._use(held)
        if held is not None or not wanted:
            return Called(outcome="ran", value=await runs(_unasked(asker, action)))
        asker = await declared(self._sessions, asker)
        ask = Ask(
            action=action,
            session_id=asker.session_id,
            request_id=request_id or new_id("req"),
            turn_id=asker.turn_id,
            tool_call_id=asker.tool_call_id,
            host=host,
            reason=reason,
            gate_token=gate_token,
            no_context=self._no_context if asker.no_context else None,
        )
        return await self._asked(asker.profile, ask, runs)

    async def _asked(self, profile: str, ask: Ask, runs: Callable[[Call], Any]) -> Called:
        token, kept = new_pass(ask.request_id or "")
        row = await self._broker.ask(profile, ask, pass_sha256=kept.sha256)
        tell_outside(row)
        if not row.may_run:
            return self._not_run(row)
        call = call_of(row, token)
        try:
            with holding(HeldPass(profile, row.action, row.host, token)):
                value = await runs(call)
        except asyncio.CancelledError:
            lost = partial(_lost, profile=profile, request_id=row.request_id)
            await asyncio.shield(self.reports.saved(row, partial(self._store.transact, lost)))
            raise
        except BaseException:
            await self.reports.saved(row, partial(self._broker.result, profile, row.request_id, "failed"))
            raise
        done = await self.reports.saved(row, partial(self._broker.result, profile, row.request_id, "succeeded"))
        return Called(outcome="ran", value=value, record=self._shown(done))

    async def aclose(self) -> None:
        """Tell the store no more how calls went that it did not take. Idempotent."""
        await self.reports.aclose()

    def _not_run(self, row: ApprovalRequest) -> Called:
        if row.outcome == "approved" and row.execution.state in ("succeeded", "failed", "unknown"):
            raise ClaimRefused("This call was made already under this id.", code="already_claimed", row=row)
        record = claimed_of(row, self._broker.waiters.now())
        outcome: Literal["staged", "refused"] = "staged" if row.outcome == "staged" else "refused"
        return Called(outcome=outcome, message=record.message, record=record)

    async def _use(self, held: HeldPass) -> None:
        """Use the token of the gate above up, in the store, where nobody else can use it any more."""
        use = partial(
            passing.use,
            profile=held.profile,
            given=read_pass(held.token),
            digest=digest_of(held.action, held.host),
            used_by="held",
        )
        await self._store.transact(use)

    def _runner(self, profile: str, tool: str, run: RunsTool | None) -> Callable[[Call], Any]:
        if run is not None:
            return lambda call: called(run, call.arguments)
        function = self._executors.function_for(profile, tool)
        if function is None:
            raise InvalidInput(f"Nothing runs tool {tool!r}: give run, or register an executor for it.", param="tool")
        return lambda call: called(function, call)

    def _shown(self, row: ApprovalRequest) -> Approval:
        return approval_of(row, self._broker.waiters.now(), exact=True)


def _lost(tx: Tx, *, profile: str, request_id: str) -> ApprovalRequest:
    """How far a call got that was cancelled while it ran is not known."""
    row = load_request(tx, profile, request_id)
    return claiming.lapse(tx, row) if row.execution.state == "claimed" else row


def _unasked(asker: Asker, action: Tool) -> Call:
    """A call that needs no question of its own."""
    return Call(
        id=new_id("call"),
        profile=asker.profile,
        executor="",
        action=action,
        digest="",
        session_id=asker.session_id,
    )
