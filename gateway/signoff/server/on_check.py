"""Routes that tell how an action is judged, or was: nobody is asked."""

from __future__ import annotations

from functools import partial

from signoff import aside
from signoff.checking import Check, check_of
from signoff.errors import InvalidInput, RequestNotFound, SessionNotFound
from signoff.model import Elicitation, Tool
from signoff.server.limits import MAX_DEPTH, too_deep
from signoff.server.routes import AGENT, READ, WATCH, Call, Reply, Route, route
from signoff.server.wire import CheckBody
from signoff.showing import card_for
from signoff.shown_card import ShownCard
from signoff.whys import Why, why_of


async def _check(call: Call) -> Reply:
    body: CheckBody = call.body
    who, action = call.who, body.action
    free = action.arguments if isinstance(action, Tool) else action.schema if isinstance(action, Elicitation) else None
    if free and too_deep(free):
        raise InvalidInput(f"The action nests deeper than {MAX_DEPTH} levels.", param="action")
    checked = await call.core.broker.check(
        who.profile,
        action,
        session_id=body.session_id,
        turn_id=body.turn_id,
        agent=who.agent,
        host=body.host,
    )
    return Reply(check_of(checked, explained=body.explain))


async def _why(call: Call) -> Reply:
    row = await call.core.broker.find(call.who.profile, call.id)
    if not call.who.sees(row):
        raise RequestNotFound
    return Reply(await aside.shown(row, partial(why_of, row, call.core.profiles.get(row.profile))))


async def _card(call: Call) -> Reply:
    row = await call.core.broker.find(call.who.profile, call.id)
    return Reply(await card_for(call.core.store, row, call.core.clock.now()))


ROUTES: tuple[Route, ...] = (
    route(
        name="check",
        method="POST",
        path="/v1/check",
        handler=_check,
        scopes=READ | AGENT,
        body=CheckBody,
        answer=Check,
        errors=(InvalidInput, SessionNotFound),
        text="Judge an action without asking anybody and without storing anything. With a session its bypass, grants "
        "and denials count; without one it is judged as if somebody could answer.",
    ),
    route(
        name="why",
        method="GET",
        path="/v1/approvals/{request_id}/why",
        handler=_why,
        scopes=READ,
        answer=Why,
        errors=(RequestNotFound,),
        text="Why a request was put to a person, let run or forbidden: each command, each rule, and what decided. "
        "Texts are masked.",
    ),
    route(
        name="card",
        method="GET",
        path="/v1/approvals/{request_id}/card",
        handler=_card,
        scopes=WATCH,
        answer=ShownCard,
        errors=(RequestNotFound,),
        text="What a person must be shown before they answer a request, for answer clients: the card's parts in their "
        "order, the answers on offer, and the fields that a server's question asks for. Texts are masked.",
    ),
)
