"""Routes of sessions, turns and answer clients."""

from __future__ import annotations

from functools import partial

from signoff.changes.bypassing import live
from signoff.changes.stopping import Stopped
from signoff.destinations import at_place
from signoff.errors import (
    Conflict,
    DestinationNotAllowed,
    InvalidInput,
    KindNotAllowed,
    NotPermitted,
    SessionNotFound,
    TurnEnded,
    TurnNotFound,
)
from signoff.model import AGENT_CAUSES, Cause, Destination, Session, replace
from signoff.routing import MAX_PARENTS
from signoff.rows import session_key
from signoff.server.caller import Caller
from signoff.server.core import Core
from signoff.server.paging import page
from signoff.server.routes import AGENT, BYPASS, DECIDE, READ, WATCH, WORK, Call, Reply, Route, route
from signoff.server.views import (
    Deleted,
    NotifierView,
    SessionList,
    SessionView,
    StoppedView,
    TurnView,
    notifier_view,
    session_view,
    turn_view,
)
from signoff.server.wire import (
    BypassBody,
    CauseQuery,
    DetachQuery,
    NoBody,
    NotifierBody,
    SessionBody,
    SessionsQuery,
    TurnBody,
)
from signoff.sessions import Declaration


async def _declare(call: Call) -> Reply:
    body: SessionBody = call.body
    declaration = Declaration(
        session_id=call.id,
        kind=body.kind,
        destination=_destination(body),
        user_id=body.user_id,
        parent=body.parent,
    )
    session = await call.core.sessions.declare(call.who.profile, declaration, call.who.agent)
    return Reply(session_view(session))


def _destination(body: SessionBody) -> Destination | None:
    """The place that the body names, whole or not at all."""
    if body.platform and body.chat_id:
        return at_place(body.platform, body.chat_id, body.thread_id or None)
    for name in ("platform", "chat_id", "thread_id"):
        if getattr(body, name) is not None:
            raise InvalidInput("A place is a platform and a chat_id, and perhaps a thread_id.", param=name)
    return None


async def _list(call: Call) -> Reply:
    query: SessionsQuery = call.query
    core, profile = call.core, call.who.profile
    found, following = await page(
        partial(core.store.find, Session, "profile", profile),
        shown=lambda session: session.closed_at is None,
        name=lambda session: session.session_id,
        key=partial(session_key, profile),
        limit=query.limit,
        after=query.after,
    )
    return Reply(SessionList(data=[await _as_it_is(core, row) for row in found], next=following))


async def _as_it_is(core: Core, session: Session) -> SessionView:
    """The session, with its bypass only where that counts now."""
    if session.bypass_until is not None:
        root = session
        for _ in range(MAX_PARENTS):
            parent = root.parent and await core.store.get(Session, session_key(root.profile, root.parent))
            if not parent:
                break
            root = parent
        if not live(core.profiles[session.profile], session, root, core.clock.now()):
            session = replace(session, bypass_until=None, bypass_by=None)
    return session_view(session)


async def _read(call: Call) -> Reply:
    return Reply(session_view(await call.core.sessions.get(call.who.profile, call.id, call.who.agent)))


async def _clear(call: Call) -> Reply:
    who = call.who
    stopped = await call.core.sessions.clear(who.profile, call.id, who.actor, close=True, agent=who.agent)
    return Reply(_stopped(call.id, stopped))


async def _stop(call: Call) -> Reply:
    who = call.who
    stopped = await call.core.sessions.stop(who.profile, call.id, who.actor, who.agent)
    return Reply(_stopped(call.id, stopped))


async def _reset(call: Call) -> Reply:
    who = call.who
    stopped = await call.core.sessions.clear(who.profile, call.id, who.actor, close=False, agent=who.agent)
    return Reply(_stopped(call.id, stopped))


async def _bypass(call: Call) -> Reply:
    body: BypassBody = call.body
    who = call.who
    done = await call.core.sessions.bypass(who.profile, call.id, who.actor, minutes=body.minutes)
    return Reply(session_view(done.session))


async def _end_bypass(call: Call) -> Reply:
    done = await call.core.sessions.end_bypass(call.who.profile, call.id, call.who.actor)
    return Reply(session_view(done.session))


def _stopped(session_id: str, stopped: Stopped) -> StoppedView:
    return StoppedView(
        session_id=session_id,
        sessions=stopped.sessions,
        turns=stopped.turns,
        cancelled=[row.request_id for row in stopped.cancelled],
        voided=[row.request_id for row in stopped.voided],
        running=[row.request_id for row in stopped.running],
        grants=stopped.grants,
    )


async def _open_turn(call: Call) -> Reply:
    body: TurnBody = call.body
    who = call.who
    turn = await call.core.sessions.open_turn(who.profile, call.id, body.turn_id, body.lease_s, who.agent)
    return Reply(turn_view(turn), 201)


async def _heartbeat(call: Call) -> Reply:
    return Reply(turn_view(await call.core.sessions.heartbeat(call.who.profile, call.id, call.who.agent)))


async def _end_turn(call: Call) -> Reply:
    query: CauseQuery = call.query
    who = call.who
    cause = sendable(who, query.cause)
    return Reply(turn_view(await call.core.sessions.end_turn(who.profile, call.id, cause, who.actor, who.agent)))


def sendable(who: Caller, cause: Cause) -> Cause:
    """The cause, if this caller may send it: an agent tells only what it did itself. Raises `InvalidInput`."""
    if who.scope == "agent" and cause not in AGENT_CAUSES:
        allowed = ", ".join(sorted(AGENT_CAUSES))
        raise InvalidInput(f"An agent may not send the cause {cause}. It may send {allowed}.", param="cause")
    return cause


async def _attach(call: Call) -> Reply:
    session_id, name = call.params
    body: NotifierBody = call.body
    notifier = await call.core.sessions.attach(call.who.profile, session_id, name, call.who.principal, body.lease_s)
    return Reply(notifier_view(notifier))


async def _detach(call: Call) -> Reply:
    session_id, name = call.params
    query: DetachQuery = call.query
    await call.core.sessions.detach(call.who.profile, session_id, name, query.cause)
    return Reply(Deleted(id=name))


_SESSION = "/v1/sessions/{session_id}"
_ONE_TURN = "/v1/turns/{turn_id}"

ROUTES: tuple[Route, ...] = (
    route(
        name="sessions",
        method="GET",
        path="/v1/sessions",
        handler=_list,
        scopes=WATCH,
        query=SessionsQuery,
        answer=SessionList,
        text="The open sessions, oldest first; go on after `next`. `bypass_until` is set where nothing is asked now.",
    ),
    route(
        name="declare_session",
        method="PUT",
        path=_SESSION,
        handler=_declare,
        scopes=AGENT,
        body=SessionBody,
        body_needed=False,
        answer=SessionView,
        errors=(InvalidInput, KindNotAllowed, DestinationNotAllowed, SessionNotFound),
        text="Make or change a session. An agent names only what its registration allows.",
    ),
    route(
        name="session",
        method="GET",
        path=_SESSION,
        handler=_read,
        scopes=READ,
        answer=SessionView,
        errors=(SessionNotFound,),
        text="Read an open session.",
    ),
    route(
        name="clear_session",
        method="DELETE",
        path=_SESSION,
        handler=_clear,
        scopes=AGENT,
        answer=StoppedView,
        errors=(SessionNotFound,),
        text="End a session: its turns, questions, unstarted approvals, children, grants and bypass go with it.",
    ),
    route(
        name="stop_session",
        method="POST",
        path=f"{_SESSION}/stop",
        handler=_stop,
        scopes=WORK,
        body=NoBody,
        body_needed=False,
        answer=StoppedView,
        errors=(SessionNotFound,),
        text="Stop a session: its turns, questions, unstarted approvals, children and bypass end; its grants stay.",
    ),
    route(
        name="reset_session",
        method="POST",
        path=f"{_SESSION}/reset",
        handler=_reset,
        scopes=WORK,
        body=NoBody,
        body_needed=False,
        answer=StoppedView,
        errors=(SessionNotFound,),
        text="Start a session anew, as with `/new`: as deleting it, and it stays declared.",
    ),
    route(
        name="bypass_session",
        method="POST",
        path=f"{_SESSION}/bypass",
        handler=_bypass,
        scopes=BYPASS,
        body=BypassBody,
        body_needed=False,
        answer=SessionView,
        errors=(InvalidInput, NotPermitted, SessionNotFound),
        text="Ask nothing in a session for a while. What waits goes on waiting, and what is forbidden stays so. The "
        "session's place is told, now and at the end.",
    ),
    route(
        name="end_bypass",
        method="DELETE",
        path=f"{_SESSION}/bypass",
        handler=_end_bypass,
        scopes=BYPASS,
        answer=SessionView,
        errors=(SessionNotFound,),
        text="Ask again in a session. Again, nothing changes.",
    ),
    route(
        name="attach_notifier",
        method="PUT",
        path=f"{_SESSION}/notifiers/{{name}}",
        handler=_attach,
        scopes=DECIDE,
        body=NotifierBody,
        body_needed=False,
        answer=NotifierView,
        errors=(InvalidInput, SessionNotFound),
        text="An answer client can put this session's requests before a person from now on, until it is deleted.",
    ),
    route(
        name="detach_notifier",
        method="DELETE",
        path=f"{_SESSION}/notifiers/{{name}}",
        handler=_detach,
        scopes=DECIDE,
        query=DetachQuery,
        answer=Deleted,
        errors=(InvalidInput,),
        text="The answer client is gone; what only it could show is withdrawn, for the cause that it gives. Again, "
        "nothing changes.",
    ),
    route(
        name="open_turn",
        method="POST",
        path=f"{_SESSION}/turns",
        handler=_open_turn,
        scopes=AGENT,
        body=TurnBody,
        body_needed=False,
        answer=TurnView,
        statuses=(201,),
        errors=(InvalidInput, SessionNotFound, Conflict, TurnEnded),
        text="Open a turn. It lives while its lease is renewed by heartbeats, waits or a stream of its session.",
    ),
    route(
        name="turn_heartbeat",
        method="POST",
        path=f"{_ONE_TURN}/heartbeat",
        handler=_heartbeat,
        scopes=AGENT,
        body=NoBody,
        body_needed=False,
        answer=TurnView,
        errors=(TurnNotFound, TurnEnded),
        text="Renew a turn's lease.",
    ),
    route(
        name="end_turn",
        method="DELETE",
        path=_ONE_TURN,
        handler=_end_turn,
        scopes=AGENT,
        query=CauseQuery,
        answer=TurnView,
        errors=(InvalidInput, TurnNotFound),
        text="End a turn and withdraw what it still asks. Again, nothing changes.",
    ),
)
