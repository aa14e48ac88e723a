"""Readers of the event log and what waits for each of them.

Every stream has a queue, bounded in number and in bytes, that the change feed fills. When it is full, or the feed skips
a number because another process committed in between, the stream reads on from the store at its own pace: nothing is
lost and nothing is sent twice. How many streams may be open is bounded for each key and for the server.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence

from signoff.model import ApprovalRequest, Change, Event, Session
from signoff.rows import request_key, session_key
from signoff.server.bounds import Bounds
from signoff.server.caller import Caller
from signoff.server.core import Core
from signoff.server.faults import TooManyStreams
from signoff.server.frames import Telling

KEEPALIVE_S = 10.0
"""Between two comments on an idle stream: proxies cut idle connections at 30 to 60 s, and an answer client's lease is
renewed with it."""
WRITE_WITHIN_S = 20.0
"""A reader whose connection takes nothing for so long is cut."""
QUEUE_CHANGES = 1024
"""Changes that wait for one reader before it is sent to the store instead: a stop of a long queue fits."""
QUEUE_BYTES = 4 * 1024**2
"""As much of them at most, which is four questions of the largest size."""
PAGE = 100
SESSIONS_KNOWN = 4096
"""Of so many sessions it is remembered whose they are, for each stream of an agent."""


class Stream:
    """One reader's place in a profile's log."""

    def __init__(self, core: Core, who: Caller, session_id: str | None, position: int) -> None:
        self.who = who
        self.position = position
        """Everything up to this `seq` was sent or is not for this reader."""
        self._core = core
        self._session_id = session_id
        self._queue: deque[Telling] = deque()
        self._queued_bytes = 0
        self._heard = position
        self._behind = True
        self._wake = asyncio.Event()
        self._own: dict[str, bool] = {}
        self.ended = False

    def offer(self, told: Telling) -> None:
        """A change of the profile was committed."""
        seq = told.event.seq
        if seq <= self._heard:
            return
        if seq != self._heard + 1 or not self._fits(told):
            self._behind = True
            self._queue.clear()
            self._queued_bytes = 0
        elif not self._behind:
            self._queue.append(told)
            self._queued_bytes += told.size_bytes
        self._heard = max(self._heard, seq)
        self._wake.set()

    def _fits(self, told: Telling) -> bool:
        if not self._queue:
            return True
        return len(self._queue) < QUEUE_CHANGES and self._queued_bytes + told.size_bytes <= QUEUE_BYTES

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
                frame = await self._frame(Telling(event, await self._request(event), self._core.clock))
                self.position = event.seq
                if frame:
                    yield frame
            self._behind = self._behind or len(page) == PAGE
        while self._queue and not self.ended:
            told = self._queue.popleft()
            self._queued_bytes -= told.size_bytes
            if told.event.seq <= self.position:
                continue
            frame = await self._frame(told)
            self.position = told.event.seq
            if frame:
                yield frame

    async def _request(self, event: Event) -> ApprovalRequest | None:
        if event.request_id is None or not self._wanted(event):
            return None
        return await self._core.store.get(ApprovalRequest, request_key(event.profile, event.request_id))

    def _wanted(self, event: Event) -> bool:
        return self._session_id is None or event.session_id == self._session_id

    async def _frame(self, told: Telling) -> bytes:
        row = told.request
        if not self._wanted(told.event) or not await self._may_see(told.event, row):
            return b""
        return await told.sent(exact=row is not None and self.who.exact(row))

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
            if session is None:
                return False  # whoever declares it later will see what is about it then
            known = session.agent == self.who.agent
            if len(self._own) >= SESSIONS_KNOWN:
                self._own.clear()
            self._own[event.session_id] = known
        return known


class Streams:
    """All open streams of one server, fed by one subscription."""

    def __init__(
        self,
        core: Core,
        *,
        keepalive_s: float = KEEPALIVE_S,
        write_within_s: float = WRITE_WITHIN_S,
        bounds: Bounds | None = None,
    ) -> None:
        self._core = core
        self._open: dict[str, set[Stream]] = {}
        self._bounds = bounds or Bounds()
        self.keepalive_s = keepalive_s
        self.write_within_s = write_within_s
        self._unsubscribe: Callable[[], None] = core.store.subscribe(self._heard)
        core.listening.append(self.listens)

    def __len__(self) -> int:
        return sum(len(streams) for streams in self._open.values())

    def listens(self, profile: str, agent: str) -> bool:
        """Whether this agent reads a stream now."""
        return any(stream.who.agent == agent for stream in self._open.get(profile, ()))

    def add(self, stream: Stream) -> None:
        """Feed this stream from now on. Raises `TooManyStreams`."""
        who = stream.who
        most = self._bounds.streams_per_agent_key if who.agent is not None else self._bounds.streams_per_key
        of_key = sum(other.who.key_id == who.key_id for other in self._open.get(who.profile, ()))
        if of_key >= most:
            raise TooManyStreams(
                f"This key has {most} event streams open, which is the most. Close one, or read with fewer: one stream "
                "without session_id tells of every session."
            )
        if len(self) >= self._bounds.streams:
            raise TooManyStreams(
                f"The gateway has {self._bounds.streams} event streams open, which is the most. Close some, or try "
                "again later."
            )
        self._open.setdefault(who.profile, set()).add(stream)

    def remove(self, stream: Stream) -> None:
        """Feed it no more."""
        streams = self._open.get(stream.who.profile, set())
        streams.discard(stream)
        if not streams:
            self._open.pop(stream.who.profile, None)

    def close(self) -> None:
        """End every stream."""
        self._unsubscribe()
        self._core.listening.remove(self.listens)
        for streams in self._open.values():
            for stream in streams:
                stream.end()

    def _heard(self, changes: Sequence[Change]) -> None:
        for change in changes:
            streams = self._open.get(change.event.profile)
            if not streams:
                continue
            told = Telling(change.event, change.request, self._core.clock)
            for stream in streams:
                stream.offer(told)
                if change.event.type == "key.revoked" and change.event.data.get("key_id") == stream.who.key_id:
                    stream.end()
