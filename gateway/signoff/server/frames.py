"""One event on its way to its readers: encoded once for each way to see it, and shared by all streams."""

from __future__ import annotations

import asyncio
from functools import cached_property, partial

import msgspec

from signoff import aside
from signoff.model import ApprovalRequest, Event
from signoff.ports import Clock
from signoff.record import approval_of
from signoff.server.views import EventView

_encode = msgspec.json.Encoder().encode


class Telling:
    """An event and the request that it is about.

    A reader sees either the action as its agent sent it or the action masked, so there are at most two frames however
    many read. Each is made when the first reader needs it, that of a long text on a thread.
    """

    def __init__(self, event: Event, request: ApprovalRequest | None, clock: Clock) -> None:
        self.event = event
        self.request = request
        self._clock = clock
        self._frames: dict[bool, bytes] = {}
        """By `exact`. No `cached_property`: that of Python 3.11 makes all events wait while a thread makes one."""
        self._making = asyncio.Lock()

    @cached_property
    def size_bytes(self) -> int:
        """About how much memory it holds while it waits for a reader."""
        return len(_encode(self.event)) + (0 if self.request is None else len(_encode(self.request)))

    async def sent(self, *, exact: bool) -> bytes:
        """The frame, made on a thread where there is much to mask, and once for all who want it meanwhile."""
        if self.request is None or exact in self._frames:
            return self.frame(exact=exact)
        async with self._making:
            return await aside.shown(self.request, partial(self.frame, exact=exact))

    def frame(self, *, exact: bool) -> bytes:
        """The server-sent event, with the action unmasked if `exact`."""
        frame = self._frames.get(exact)
        if frame is None:
            frame = self._frames[exact] = self._encoded(exact=exact)
        return frame

    def _encoded(self, *, exact: bool) -> bytes:
        event, row = self.event, self.request
        about = None
        if row is not None and event.type.startswith(("approval.", "tap.")):
            about = approval_of(row, self._clock.now(), exact=exact)
        view = EventView(seq=event.seq, type=event.type, at=event.at, session_id=event.session_id, approval=about)
        return b"id: %d\ndata: %s\n\n" % (event.seq, _encode(view))
