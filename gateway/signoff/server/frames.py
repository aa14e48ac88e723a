"""One event on its way to its readers: encoded once for each way to see it, and shared by all streams."""

from __future__ import annotations

from functools import cached_property

import msgspec

from signoff.model import ApprovalRequest, Event
from signoff.ports import Clock
from signoff.record import approval_of
from signoff.server.views import EventView

_encode = msgspec.json.Encoder().encode


class Telling:
    """An event and the request that it is about.

    A reader sees either the action as its agent sent it or the action masked, so there are at most two frames however
    many read. Each is made when the first reader needs it.
    """

    def __init__(self, event: Event, request: ApprovalRequest | None, clock: Clock) -> None:
        self.event = event
        self.request = request
        self._clock = clock

    @cached_property
    def size_bytes(self) -> int:
        """About how much memory it holds while it waits for a reader."""
        return len(_encode(self.event)) + (0 if self.request is None else len(_encode(self.request)))

    def frame(self, *, exact: bool) -> bytes:
        """The server-sent event, with the action unmasked if `exact`."""
        return self._exact if exact else self._masked

    @cached_property
    def _exact(self) -> bytes:
        return self._encoded(exact=True)

    @cached_property
    def _masked(self) -> bytes:
        return self._encoded(exact=False)

    def _encoded(self, *, exact: bool) -> bytes:
        event, row = self.event, self.request
        about = None
        if row is not None and event.type.startswith(("approval.", "tap.")):
            about = approval_of(row, self._clock.now(), exact=exact)
        view = EventView(seq=event.seq, type=event.type, at=event.at, session_id=event.session_id, approval=about)
        return b"id: %d\ndata: %s\n\n" % (event.seq, _encode(view))
