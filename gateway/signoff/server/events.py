"""The event stream: `GET /v1/events`, server-sent events of one profile's log.

A frame is written in pieces, so that of a large one only a little waits in each connection. A reader that takes nothing
for a while is cut; the last `id:` it saw is where to go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web

from signoff import ids
from signoff.errors import InsufficientScope, InvalidInput, SessionNotFound
from signoff.model import Session, Turn
from signoff.rows import key_of, session_key
from signoff.server.faults import InvalidPosition, ShuttingDown, TooManyStreams
from signoff.server.hall import Hall
from signoff.server.routes import DECIDE, READ, Call, Route, route
from signoff.server.streams import Stream, Streams
from signoff.server.wire import EventsQuery

log = logging.getLogger("signoff.server")

RENEW_S = 1.0
"""Between two looks at a session's open turns, whose shortest lease is 2 s."""
_PIECE_BYTES = 32 * 1024
"""Half of what a connection takes before its writer has to wait."""
_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


async def _events(call: Call) -> web.StreamResponse:
    query: EventsQuery = call.query
    if call.door.hall.closing:
        raise ShuttingDown
    await _check(call, query)
    streams: Streams = call.door.streams
    given = _position(call, query)
    # Fed before the log's end is read, so that nothing falls between the two.
    stream = Stream(call.core, call.who, query.session_id, given or 0)
    streams.add(stream)
    try:
        last = await call.core.store.last_seq(call.who.profile)
        if given is None:
            stream.position = last
        elif given > last:
            raise InvalidPosition
        async with _answering(call, query) as renew:
            return await _serve(call, stream, streams, renew)
    finally:
        streams.remove(stream)


async def _check(call: Call, query: EventsQuery) -> None:
    who = call.who
    if query.role == "answer":
        if who.scope not in DECIDE:
            raise InsufficientScope(f"role=answer needs a key of scope approver or admin; this one is {who.scope}.")
        if query.session_id is None:
            raise InvalidInput("role=answer needs the session whose requests you show.", param="session_id")
    if query.session_id is not None:
        session = await call.core.store.get(Session, session_key(who.profile, query.session_id))
        if session is None or (who.agent is not None and session.agent != who.agent):
            raise SessionNotFound


def _position(call: Call, query: EventsQuery) -> int | None:
    """Where to go on. A reconnecting reader repeats its first address, so its header counts more."""
    header = call.request.headers.get("Last-Event-ID")
    if header is None or header == "":
        return query.after
    if not (header.isascii() and header.isdigit() and len(header) <= 18):
        raise InvalidPosition
    return int(header)


class _Renewal:
    """What an open stream keeps alive: its session's turns for an agent, its own lease for an answer client."""

    def __init__(self, call: Call, query: EventsQuery) -> None:
        self._core = call.core
        self._who = call.who
        self._session_id = query.session_id or ""
        self._name = f"stream-{ids.random_text(9)}" if query.role == "answer" else ""
        self._turns = call.who.agent is not None and query.session_id is not None
        self._kept: set[str] = set()
        self._stack = AsyncExitStack()

    @property
    def name(self) -> str:
        """The answer client's name; empty for others."""
        return self._name

    @property
    def every_s(self) -> float | None:
        """How often `renew` is due beside the keep-alive."""
        return RENEW_S if self._turns else None

    async def begin(self) -> None:
        """Attach the answer client; what fails to be renewed lapses by itself, should this process be killed."""
        if self._name:
            sessions, who = self._core.sessions, self._who
            await sessions.attach(who.profile, self._session_id, self._name, who.principal)
        await self.renew()

    async def renew(self) -> None:
        """Show that the other end is still there."""
        if self._name:
            await self._core.sessions.dropped(self._who.profile, self._session_id, self._name)
        if self._turns:
            key = session_key(self._who.profile, self._session_id)
            for turn in await self._core.store.find(Turn, "open_session", key):
                name = key_of(turn)
                if name not in self._kept:
                    self._kept.add(name)
                    await self._stack.enter_async_context(self._core.broker.waiters.keeping(name))

    async def end(self) -> None:
        """Let go of the turns."""
        await self._stack.aclose()


@asynccontextmanager
async def _answering(call: Call, query: EventsQuery) -> AsyncIterator[_Renewal]:
    """While inside, the stream keeps alive what it is there for."""
    renewal = _Renewal(call, query)
    hall: Hall = call.door.hall
    try:
        await renewal.begin()
        yield renewal
    finally:
        if renewal.name:
            # This task is being cancelled when the reader has gone; its leaving must be written nevertheless.
            hall.spawn(call.core.sessions.dropped(call.who.profile, query.session_id or "", renewal.name))
        await renewal.end()


async def _serve(call: Call, stream: Stream, streams: Streams, renewal: _Renewal) -> web.StreamResponse:
    request = call.request
    response = web.StreamResponse(headers=_HEADERS)
    await response.prepare(request)
    loop = asyncio.get_running_loop()
    nap_s = min(streams.keepalive_s, renewal.every_s or streams.keepalive_s)
    try:
        await _write(response, b"retry: 1000\nid: %d\n\n" % stream.position, streams.write_within_s)
        quiet_until = loop.time() + streams.keepalive_s
        while not stream.ended:
            async for frame in stream.frames():
                await _write(response, frame, streams.write_within_s)
            await stream.woken(nap_s)
            if renewal.every_s is not None:
                await renewal.renew()
            if loop.time() >= quiet_until:
                quiet_until = loop.time() + streams.keepalive_s
                await renewal.renew()
                await _write(response, b": alive\n\n", streams.write_within_s)
    except TimeoutError:
        log.info("events.slow_reader cut at %d", stream.position)
        if request.transport is not None:
            request.transport.abort()
    except ConnectionError:
        return response
    return response


async def _write(response: web.StreamResponse, frame: bytes, within_s: float) -> None:
    view = memoryview(frame)
    for start in range(0, len(view), _PIECE_BYTES):
        if start:
            # A connection that takes all at once never makes its writer wait; others come in between.
            await asyncio.sleep(0)
        async with asyncio.timeout(within_s):
            await response.write(view[start : start + _PIECE_BYTES])


ROUTES: tuple[Route, ...] = (
    route(
        name="events",
        method="GET",
        path="/v1/events",
        handler=_events,
        scopes=READ,
        query=EventsQuery,
        content_type="text/event-stream",
        errors=(InvalidPosition, SessionNotFound, TooManyStreams, ShuttingDown),
        text="The event log as server-sent events, from now or from after a position (`after`, or `Last-Event-ID`). "
        "Each `data` line is an `EventView`; `id` is a number that rises by one for each event of the profile. An "
        "agent's stream of a session renews that session's turns; an approver's with `role=answer` shows its requests "
        "to a person.",
    ),
)
