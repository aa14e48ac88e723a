"""Routes of approval requests: ask, wait, list, decide, cancel, claim, report, undo."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import NamedTuple

from signoff import aside, ids
from signoff.broker import Ask
from signoff.changes.repeats import ASK_AGAIN
from signoff.clipping import cut_reason
from signoff.errors import (
    AlreadyResolved,
    Busy,
    ChoiceNotOffered,
    ClaimRefused,
    Conflict,
    GatePassRefused,
    IdempotencyConflict,
    InvalidInput,
    NotPermitted,
    RequestNotFound,
    SessionNotFound,
    TooManyKept,
    TurnNotFound,
    UndoTooLate,
)
from signoff.gate_pass import new_pass
from signoff.model import ApprovalRequest, Elicitation, Tool, replace
from signoff.record import Approval, approval_of
from signoff.rows import request_key, session_key, turn_key
from signoff.server.faults import TooManyPending
from signoff.server.limits import MAX_DEPTH, too_deep
from signoff.server.on_sessions import sendable
from signoff.server.paging import page
from signoff.server.routes import AGENT, DECIDE, READ, Call, Reply, Route, route
from signoff.server.views import ApprovalList
from signoff.server.wire import AskBody, CancelBody, ClaimBody, DecisionBody, ListQuery, NoBody, ResultBody, WaitQuery

CLAIM_CODES = ("not_approved", "already_claimed", "digest_mismatch", "changed_since_review", "cancelled", "lapsed")


async def record(call: Call, row: ApprovalRequest, *, started: bool = False) -> Approval:
    """The record as this caller may see it; `started` where it answers the claim itself."""
    exact = call.who.exact(row)
    make = partial(approval_of, row, call.core.clock.now(), exact=exact, started=started)
    return make() if exact else await aside.shown(row, make)


async def _ask(call: Call) -> Reply:
    body: AskBody = call.body
    query: WaitQuery = call.query
    who = call.who
    _check_depth(body)
    ask = Ask(
        action=body.action,
        session_id=body.session_id,
        request_id=ids.new_id("req") if body.request_id is None else body.request_id,
        turn_id=body.turn_id,
        tool_call_id=body.tool_call_id,
        host=body.host,
        reason=body.reason,
        choices=body.choices,
        timeout_s=body.timeout_s,
        claimed_for=body.claimed_for,
        gate_token=body.gate_token,
        agent=who.agent,
        may_keep=call.door.backlog.may_keep(who.profile, who.agent),
    )
    broker = call.core.broker
    await call.door.backlog.check(who.profile, who.agent, body.request_id)
    if not query.wait:
        asked = await broker.submit(who.profile, ask)
        return Reply(await record(call, asked.row), 200 if asked.repeated else 201)
    key = request_key(who.profile, ask.request_id or "")
    future = broker.waiters.register(key)
    try:
        asked = await broker.submit(who.profile, ask)
        row = asked.row if asked.row.outcome is not None else await _held(call, asked.row, future)
        return Reply(await record(call, row), 200 if asked.repeated else 201)
    finally:
        broker.waiters.forget(key, future)


def _check_depth(body: AskBody) -> None:
    action = body.action
    free = action.arguments if isinstance(action, Tool) else action.schema if isinstance(action, Elicitation) else None
    if free and too_deep(free):
        raise InvalidInput(f"The action nests deeper than {MAX_DEPTH} levels.", param="action")


async def _held(call: Call, row: ApprovalRequest, future: asyncio.Future[ApprovalRequest]) -> ApprovalRequest:
    """The ended row, or the row as it stands when the time is over or the server closes."""
    query: WaitQuery = call.query
    broker = call.core.broker
    turn = turn_key(row.profile, row.turn_id) if row.turn_id and call.who.agent is not None else None
    async with broker.waiters.keeping(turn):
        ended = await call.door.hall.poll(future, query.wait)
    return ended if ended is not None else await broker.get(row.profile, row.request_id)


async def _own(call: Call) -> ApprovalRequest:
    """The request that the path names, by its id or short id, if it exists for this caller."""
    row = await call.core.broker.find(call.who.profile, call.id)
    if not call.who.sees(row):
        raise RequestNotFound
    return row


async def _read(call: Call) -> Reply:
    query: WaitQuery = call.query
    row = await _own(call)
    if row.outcome is not None or not query.wait:
        return Reply(await record(call, row))
    waiters = call.core.broker.waiters
    key = request_key(row.profile, row.request_id)
    future = waiters.register(key)
    try:
        # Between the first read and the registration it may have ended, which wakes nobody any more.
        row = await call.core.broker.get(row.profile, row.request_id)
        if row.outcome is None:
            row = await _held(call, row, future)
        return Reply(await record(call, row))
    finally:
        waiters.forget(key, future)


class _Index(NamedTuple):
    path: str
    value: str


async def _list(call: Call) -> Reply:
    query: ListQuery = call.query
    index = _index(call, query)
    found, following = await page(
        partial(call.core.store.find, ApprovalRequest, index.path, index.value),
        shown=lambda row: call.who.sees(row) and query.status in ("all", "pending" if row.pending else "resolved"),
        name=lambda row: row.request_id,
        key=partial(request_key, call.who.profile),
        limit=query.limit,
        after=query.after,
    )
    return Reply(ApprovalList(data=[await record(call, row) for row in found], next=following))


def _index(call: Call, query: ListQuery) -> _Index:
    if query.session_id is not None:
        return _Index("session", session_key(call.who.profile, query.session_id))
    return _Index("pending_profile" if query.status == "pending" else "profile", call.who.profile)


async def _decide(call: Call) -> Reply:
    body: DecisionBody = call.body
    broker = call.core.broker
    row = await broker.find(call.who.profile, call.id)
    if body.choice == ASK_AGAIN:
        lifted = await broker.let_ask(row.profile, row.request_id, call.who.actor)
        if lifted is None:
            raise ChoiceNotOffered(f"{row.short_id} was not denied by a person. Nothing changed.", param="choice")
        return Reply(await record(call, lifted))
    cut = cut_reason(body.reason or "")
    decided = await broker.decide(
        row.profile, row.request_id, body.choice, call.who.actor, reason=cut.text or None, content=body.content
    )
    if decided.how == "lost":
        raise AlreadyResolved(row=decided.row)
    answer = await record(call, decided.row)
    if cut.hidden_chars:
        told = f"The reason was cut; {cut.hidden_chars} characters are left out."
        answer = replace(answer, warnings=(*answer.warnings, told))
    return Reply(answer)


async def _cancel(call: Call) -> Reply:
    body: CancelBody = call.body
    who = call.who
    row = await _own(call)
    cause = sendable(who, body.cause)
    done = await call.core.broker.cancel(who.profile, row.request_id, cause, who.actor, agent=who.agent)
    return Reply(await record(call, done))


async def _claim(call: Call) -> Reply:
    body: ClaimBody = call.body
    row = await _own(call)
    token, kept = new_pass(row.request_id) if body.want_gate_token else (None, None)
    sha256 = kept.sha256 if kept is not None else ""
    broker = call.core.broker
    done = await broker.claim(row.profile, row.request_id, body.digest, body.claim_id, body.operands, sha256)
    given = token if done.pass_sha256 == sha256 else None  # the one of an earlier answer was used meanwhile
    return Reply(replace(await record(call, done, started=True), gate_token=given))


async def _result(call: Call) -> Reply:
    body: ResultBody = call.body
    row = await _own(call)
    done = await call.core.broker.result(row.profile, row.request_id, body.status, body.exit_code)
    return Reply(await record(call, done))


async def _undo(call: Call) -> Reply:
    row = await _own(call)
    operator = call.who.scope == "admin"
    done = await call.core.broker.undo(row.profile, row.request_id, call.who.actor, any_person=operator)
    return Reply(await record(call, done))


_ALL = "/v1/approvals"
_ONE = "/v1/approvals/{request_id}"

ROUTES: tuple[Route, ...] = (
    route(
        name="ask",
        method="POST",
        path=_ALL,
        handler=_ask,
        scopes=AGENT,
        query=WaitQuery,
        body=AskBody,
        answer=Approval,
        statuses=(200, 201),
        errors=(
            InvalidInput,
            SessionNotFound,
            TurnNotFound,
            IdempotencyConflict,
            TooManyPending,
            TooManyKept,
            GatePassRefused,
            Busy,
        ),
        text="Ask for approval, and wait for the end for up to 60 s. 201 with the record, which may have ended; its "
        "outcome `staged` is no error: the action is kept for a later yes, and the agent goes on without it. 200 with "
        "the stored one when the same question was asked under this id before.",
    ),
    route(
        name="approvals",
        method="GET",
        path=_ALL,
        handler=_list,
        scopes=READ,
        query=ListQuery,
        answer=ApprovalList,
        errors=(InvalidInput,),
        text="Requests, oldest first; go on after `next`. A page may hold fewer than `limit` and still have a `next`.",
    ),
    route(
        name="approval",
        method="GET",
        path=_ONE,
        handler=_read,
        scopes=READ,
        query=WaitQuery,
        answer=Approval,
        errors=(RequestNotFound,),
        text="Read a request, by its id or short id, and wait for its end for up to 60 s.",
    ),
    route(
        name="decide",
        method="POST",
        path=f"{_ONE}/decision",
        handler=_decide,
        scopes=DECIDE,
        body=DecisionBody,
        answer=Approval,
        errors=(InvalidInput, ChoiceNotOffered, RequestNotFound, AlreadyResolved),
        text="Answer a request. What had ended already is 409 with the record as the winner left it.",
    ),
    route(
        name="cancel",
        method="POST",
        path=f"{_ONE}/cancel",
        handler=_cancel,
        scopes=AGENT,
        body=CancelBody,
        body_needed=False,
        answer=Approval,
        errors=(InvalidInput, RequestNotFound),
        text="Withdraw a question, or take back an approval that was not started. What has ended is returned as it is.",
    ),
    route(
        name="claim",
        method="POST",
        path=f"{_ONE}/claim",
        handler=_claim,
        scopes=AGENT,
        body=ClaimBody,
        answer=Approval,
        errors=(InvalidInput, RequestNotFound, ClaimRefused),
        error_codes=CLAIM_CODES,
        text="Start the approved action, once. Only this answer is permission to run.",
    ),
    route(
        name="result",
        method="POST",
        path=f"{_ONE}/result",
        handler=_result,
        scopes=AGENT,
        body=ResultBody,
        answer=Approval,
        errors=(InvalidInput, RequestNotFound, Conflict),
        text="Report how the started action went. The same result again changes nothing.",
    ),
    route(
        name="undo",
        method="POST",
        path=f"{_ONE}/undo",
        handler=_undo,
        scopes=DECIDE,
        body=NoBody,
        body_needed=False,
        answer=Approval,
        errors=(RequestNotFound, NotPermitted, UndoTooLate),
        text="Take an approval back before it is started. Only who decided may, or an admin.",
    ),
)
