"""The event stream: `GET /v1/events`, server-sent events of one profile's log.

Every stream has a queue of bounded length that the change feed fills. When it is full, or the feed skips a number
because another process committed in between, the stream reads on from the store at its own pace: nothing is lost and
nothing is sent twice. A reader that takes nothing for a while is cut; the last `id:` it saw is where to go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec
from aiohttp import web

from signoff import ids
from signoff.errors import InsufficientScope, InvalidInput, SessionNotFound
from signoff.model import ApprovalRequest, Change, Event, Session, Turn
from signoff.record import approval_of
from signoff.rows import key_of, request_key, session_key
from signoff.server.caller import Caller
from signoff.server.core import Core
from signoff.server.faults import InvalidPosition, ShuttingDown
from signoff.server.hall import Hall
from signoff.server.routes import DECIDE, READ, Call, Route, route
from signoff.server.views import EventView
from signoff.server.wire import EventsQuery

log = logging.getLogger("signoff.server")

KEEPALIVE_S = 10.0
"""Between two comments on an idle stream: proxies cut idle connections at 30 to 60 s, and an answer client's lease is
renewed with it."""
RENEW_S = 1.0
"""Between two looks at a session's open turns, whose shortest lease is 2 s."""
QUEUE_CHANGES = 1024
"""Changes that wait for one reader before it is sent to the store instead: a stop of a long queue fits."""
WRITE_WITHIN_S = 20.0
"""A reader whose connection takes nothing for so long is cut."""
PAGE = 100
_encode = msgspec.json.Encoder().encode
_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class Stream:
    """One reader's place in a profile's log."""

    def __init__(self, core: Core, who: Caller, session_id: str | None, position: int) -> None:
        self.who = who
        self.position = position
        """Everything up to this `seq` was sent or is not for this reader."""
        self._core = core
        self._session_id = session_id
        self._queue: deque[Change] = deque()
        self._heard = position
        self._behind = True
        self._wake = asyncio.Event()
        self._own: dict[str, bool] = {}
        self.ended = False

    def offer(self, change: Change) -> None:
        """A change of the profile was committed."""
        seq = change.event.seq
        if seq <= self._heard:
            return
        if seq != self._heard + 1 or len(self._queue) >= QUEUE_CHANGES:
            self._behind = True
            self._queue.clear()
        elif not self._behind:
            self._queue.append(change)
        self._heard = max(self._heard, seq)
        self._wake.set()

    def end(self) -> None:
        """No further events: the server closes, or the key was revoked."""
        self.ended = True
        self._wake.set()

    async def woken(self, timeout_s: float) -> None:
        """Return when there is something to do, or after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()
        except TimeoutError:
            return

    async def frames(self) -> AsyncIterator[bytes]:
        """What there is to send now."""
        self._wake.clear()
        while self._behind and not self.ended:
            # From here on the queue collects again; what it and the page share is dropped by number.
            self._behind = False
            self._heard = max(self._heard, self.position)
            page = await self._core.store.events(self.who.profile, self.position, limit=PAGE)
            for event in page:
                self._heard = max(self._heard, event.seq)
                frame = await self._frame(event, await self._request(event))
                self.position = event.seq
                if frame:
                    yield frame
            self._behind = self._behind or len(page) == PAGE
        while self._queue and not self.ended:
            change = self._queue.popleft()
            if change.event.seq <= self.position:
                continue
            frame = await self._frame(change.event, change.request)
            self.position = change.event.seq
            if frame:
                yield frame

    async def _request(self, event: Event) -> ApprovalRequest | None:
        if event.request_id is None or not self._wanted(event):
            return None
        return await self._core.store.get(ApprovalRequest, request_key(event.profile, event.request_id))

    def _wanted(self, event: Event) -> bool:
        return self._session_id is None or event.session_id == self._session_id

    async def _frame(self, event: Event, row: ApprovalRequest | None) -> bytes:
        if not self._wanted(event) or not await self._may_see(event, row):
            return b""
        about = None
        if row is not None and event.type.startswith(("approval.", "tap.")):
            about = approval_of(row, self._core.clock.now(), exact=self.who.exact(row))
        view = EventView(seq=event.seq, type=event.type, at=event.at, session_id=event.session_id, approval=about)
        return b"id: %d\ndata: %s\n\n" % (event.seq, _encode(view))

    async def _may_see(self, event: Event, row: ApprovalRequest | None) -> bool:
        """An agent sees what is about its own sessions; keys are nobody's business but an operator's."""
        if self.who.agent is None:
            return not event.type.startswith("key.") or self.who.scope in ("ops", "admin")
        if row is not None:
            return self.who.sees(row)
        if event.session_id is None:
            return False
        known = self._own.get(event.session_id)
        if known is None:
            session = await self._core.store.get(Session, session_key(event.profile, event.session_id))
            known = session is not None and session.agent == self.who.agent
            self._own[event.session_id] = known
        return known


class Streams:
    """All open streams of one server, fed by one subscription."""

    def __init__(self, core: Core, *, keepalive_s: float = KEEPALIVE_S, write_within_s: float = WRITE_WITHIN_S) -> None:
        self._core = core
        self._open: dict[str, set[Stream]] = {}
        self.keepalive_s = keepalive_s
        self.write_within_s = write_within_s
        self._unsubscribe: Callable[[], None] = core.store.subscribe(self._heard)

    def __len__(self) -> int:
        return sum(len(streams) for streams in self._open.values())

    def add(self, stream: Stream) -> None:
        """Feed this stream from now on."""
        self._open.setdefault(stream.who.profile, set()).add(stream)

    def remove(self, stream: Stream) -> None:
        """Feed it no more."""
        streams = self._open.get(stream.who.profile, set())
        streams.discard(stream)
        if not streams:
            self._open.pop(stream.who.profile, None)

    def close(self) -> None:
        """End every stream."""
        self._unsubscribe()
        for streams in self._open.values():
            for stream in streams:
                stream.end()

    def _heard(self, changes: Sequence[Change]) -> None:
        for change in changes:
            for stream in self._open.get(change.event.profile, ()):
                stream.offer(change)
                if change.event.type == "key.revoked" and change.event.data.get("key_id") == stream.who.key_id:
                    stream.end()


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
    async with asyncio.timeout(within_s):
        await response.write(frame)


ROUTES: tuple[Route, ...] = (
    route(
        name="events",
        method="GET",
        path="/v1/events",
        handler=_events,
        scopes=READ,
        query=EventsQuery,
        content_type="text/event-stream",
        errors=(InvalidPosition, SessionNotFound, ShuttingDown),
        text="The event log as server-sent events, from now or from after a position (`after`, or `Last-Event-ID`). "
        "Each `data` line is an `EventView`; `id` is a number that rises by one for each event of the profile. An "
        "agent's stream of a session renews that session's turns; an approver's with `role=answer` shows its requests "
        "to a person.",
    ),
)
