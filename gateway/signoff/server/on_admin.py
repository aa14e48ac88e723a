"""Routes of grants and API keys."""

from __future__ import annotations

from functools import partial

from signoff import aside
from signoff.changes.grants import in_force
from signoff.errors import GrantNotFound, InvalidInput, KeyNotFound
from signoff.model import Grant
from signoff.rows import joined
from signoff.server.paging import page
from signoff.server.routes import ADMIN, DECIDE, WATCH, Call, Reply, Route, route
from signoff.server.views import GrantList, GrantView, KeyList, KeyView, NewKeyView, grant_view, key_view
from signoff.server.wire import KeyBody, PageQuery


async def _grants(call: Call) -> Reply:
    query: PageQuery = call.query
    profile, now = call.who.profile, call.core.clock.now()
    rows, following = await page(
        partial(call.core.store.find, Grant, "live_profile", profile),
        shown=partial(in_force, now=now),
        name=lambda row: row.grant_id,
        key=partial(joined, profile),
        limit=query.limit,
        after=query.after,
    )
    exact = (row.exact for row in rows)
    answer = await aside.masked(exact, lambda: GrantList(data=[grant_view(row) for row in rows], next=following))
    return Reply(answer)


async def _revoke_grant(call: Call) -> Reply:
    row = await call.core.broker.revoke(call.who.profile, call.id, call.who.actor)
    return Reply(await aside.masked([row.exact], lambda: grant_view(row)))


async def _keys(call: Call) -> Reply:
    query: PageQuery = call.query
    rows, following = await page(
        partial(call.core.keys.list, call.who.profile),
        shown=lambda row: True,
        name=lambda row: row.key_id,
        key=str,
        limit=query.limit,
        after=query.after,
    )
    return Reply(KeyList(data=[key_view(row) for row in rows], next=following))


async def _create_key(call: Call) -> Reply:
    body: KeyBody = call.body
    who = call.who
    made = await call.core.keys.create(
        who.profile, body.scope, agent=body.agent, principal=body.principal, by=who.actor
    )
    key = made.key
    return Reply(
        NewKeyView(
            id=key.key_id,
            profile=key.profile,
            scope=key.scope,
            agent=key.agent,
            principal=key.principal,
            created_at=key.created_at,
            revoked_at=None,
            key=made.text,
        ),
        201,
    )


async def _revoke_key(call: Call) -> Reply:
    return Reply(key_view(await call.core.keys.revoke(call.who.profile, call.id, call.who.actor)))


ROUTES: tuple[Route, ...] = (
    route(
        name="grants",
        method="GET",
        path="/v1/grants",
        handler=_grants,
        scopes=WATCH,
        query=PageQuery,
        answer=GrantList,
        errors=(InvalidInput,),
        text="The live grants, oldest first; go on after `next`.",
    ),
    route(
        name="revoke_grant",
        method="DELETE",
        path="/v1/grants/{grant_id}",
        handler=_revoke_grant,
        scopes=DECIDE,
        answer=GrantView,
        errors=(GrantNotFound,),
        text="End a grant at once.",
    ),
    route(
        name="keys",
        method="GET",
        path="/v1/keys",
        handler=_keys,
        scopes=ADMIN,
        query=PageQuery,
        answer=KeyList,
        errors=(InvalidInput,),
        text="The profile's API keys, revoked ones too, oldest first; go on after `next`.",
    ),
    route(
        name="create_key",
        method="POST",
        path="/v1/keys",
        handler=_create_key,
        scopes=ADMIN,
        body=KeyBody,
        answer=NewKeyView,
        statuses=(201,),
        errors=(InvalidInput,),
        text="Make an API key for this profile. Its text is in this answer and nowhere else.",
    ),
    route(
        name="revoke_key",
        method="DELETE",
        path="/v1/keys/{key_id}",
        handler=_revoke_key,
        scopes=ADMIN,
        answer=KeyView,
        errors=(KeyNotFound,),
        text="End an API key at once; its open streams are cut.",
    ),
)
