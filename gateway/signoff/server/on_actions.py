"""Routes of kept actions: list them, approve, reject, and run what waits or say what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from signoff import aside
from signoff.clipping import cut_reason
from signoff.errors import ActionRefused, InvalidInput, RequestNotFound
from signoff.model import ApprovalRequest
from signoff.rows import request_key
from signoff.server.paging import page
from signoff.server.routes import DECIDE, READ, REPLAY, Call, Reply, Route, route
from signoff.server.views import ActionList
from signoff.server.wire import ActionsQuery, AnswerBody, ReplayBody, ReplayQuery
from signoff.staged import KeptAction, kept_action

ACTION_CODES = (
    "already_approved",
    "already_run",
    "running",
    "denied",
    "expired",
    "unknown",
    "cancelled",
    "not_run",
    "not_approved",
    "not_run_yet",
    "lapsed",
    "changed_since_review",
    "no_executor",
    "forbidden_now",
    "executor_changed",
)


async def _view(call: Call, row: ApprovalRequest, had: Mapping[str, bool] | None = None) -> KeptAction:
    exact = call.who.exact(row)
    had = await call.core.staged.had(row.profile) if had is None else had
    make = partial(kept_action, row, call.core.clock.now(), exact=exact, had=had)
    return make() if exact else await aside.shown(row, make)


async def _list(call: Call) -> Reply:
    query: ActionsQuery = call.query
    staged, profile = call.core.staged, call.who.profile
    found, following = await page(
        partial(staged.actions, profile),
        shown=call.who.sees,
        name=lambda row: row.request_id,
        key=partial(request_key, profile),
        limit=query.limit,
        after=query.after,
    )
    had = await staged.had(profile)
    return Reply(ActionList(data=[await _view(call, row, had) for row in found], next=following))


async def _approve(call: Call) -> Reply:
    done = await call.core.staged.approve(call.who.profile, call.id, call.who.actor, reason=_reason(call))
    return Reply(await _view(call, done))


async def _reject(call: Call) -> Reply:
    done = await call.core.staged.reject(call.who.profile, call.id, call.who.actor, reason=_reason(call))
    return Reply(await _view(call, done))


def _reason(call: Call) -> str | None:
    body: AnswerBody = call.body or AnswerBody()
    return cut_reason(body.reason or "").text or None


async def _replay(call: Call) -> Reply:
    body: ReplayBody = call.body or ReplayBody()
    if body.again and body.did_run:
        raise InvalidInput("It either did run or is to run again; send one of the two.", param="again")
    staged, profile = call.core.staged, call.who.profile
    if body.did_run:
        return Reply(await _view(call, await staged.did_run(profile, call.id, call.who.actor)))
    if body.again:
        return Reply(await _view(call, await staged.run_again(profile, call.id, call.who.actor)))
    query: ReplayQuery = call.query
    # The run goes on without whoever asked for it.
    return Reply(await _view(call, await staged.replay(profile, call.id, wait_s=query.wait)))


_ALL = "/v1/actions"
_ONE = "/v1/actions/{action_id}"

ROUTES: tuple[Route, ...] = (
    route(
        name="actions",
        method="GET",
        path=_ALL,
        handler=_list,
        scopes=READ,
        query=ActionsQuery,
        answer=ActionList,
        errors=(InvalidInput,),
        text="Actions that were kept for a later yes, ended ones too, oldest first; go on after `next`. An agent sees "
        "those of its own sessions.",
    ),
    route(
        name="approve_action",
        method="POST",
        path=f"{_ONE}/approve",
        handler=_approve,
        scopes=DECIDE,
        body=AnswerBody,
        body_needed=False,
        answer=KeptAction,
        errors=(InvalidInput, RequestNotFound, ActionRefused),
        error_codes=ACTION_CODES,
        text="Approve a kept action, by its id or short id or those of the staged request. Its executor then runs it, "
        "once.",
    ),
    route(
        name="reject_action",
        method="POST",
        path=f"{_ONE}/reject",
        handler=_reject,
        scopes=DECIDE,
        body=AnswerBody,
        body_needed=False,
        answer=KeptAction,
        errors=(InvalidInput, RequestNotFound, ActionRefused),
        error_codes=ACTION_CODES,
        text="Deny a kept action. It is not run.",
    ),
    route(
        name="replay_action",
        method="POST",
        path=f"{_ONE}/replay",
        handler=_replay,
        scopes=REPLAY,
        query=ReplayQuery,
        body=ReplayBody,
        body_needed=False,
        answer=KeptAction,
        errors=(InvalidInput, RequestNotFound, ActionRefused),
        error_codes=ACTION_CODES,
        text="Run an approved action that waits for its executor, and wait for its end; what has been started is not "
        "started again. Of one of which nobody knows whether it ran, say with `did_run` that it did, or with `again` "
        "have it run once more.",
    ),
)
