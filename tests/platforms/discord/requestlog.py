"""Every REST request that reached the server, with what became of it."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from tests.platforms.telegram.clock import ServerClock

from .model import LogEntry
from .routes import Request

KEPT_REQUESTS = 5_000


class RequestLog:
    """Bounded; entries are numbered in the order the requests came."""

    def __init__(self, clock: ServerClock) -> None:
        self._clock = clock
        self._next = 1
        self._requests: OrderedDict[int, LogEntry] = OrderedDict()

    def open(self, request: Request) -> int:
        """Note a request that has come in; its number."""
        number = self._next
        self._next += 1
        self._requests[number] = LogEntry(
            number=number,
            at=self._clock.today(),
            bot_id=None if request.bot is None else request.bot.id,
            method=request.route.method,
            path=request.path,
            call=request.call,
            body=request.body,
            file_names=[each.file_name for each in request.files],
            channel_id=request.channel_id,
            status=0,
            code=0,
            outcome="pending",
            effect=False,
        )
        if len(self._requests) > KEPT_REQUESTS:
            self._requests.popitem(last=False)
        return number

    def close(self, number: int, *, status: int, code: int, outcome: str, effect: bool) -> None:
        """Note how it ended; status 0 when no answer was given."""
        if number in self._requests:
            self._requests[number] = msgspec.structs.replace(
                self._requests[number], status=status, code=code, outcome=outcome, effect=effect
            )

    def entries(self, call: str | None, channel_id: int | None) -> list[LogEntry]:
        """Requests in order, of one call or channel."""
        return [
            each
            for each in self._requests.values()
            if call in (None, each.call) and channel_id in (None, each.channel_id)
        ]

    def clear(self) -> None:
        """Forget all."""
        self._requests.clear()
