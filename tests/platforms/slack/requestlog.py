"""Every request that reached the server, with what became of it."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from tests.platforms.telegram.clock import ServerClock

from .model import JsonObject, LogEntry

KEPT_REQUESTS = 5_000


class RequestLog:
    """Bounded; entries are numbered in the order the requests came."""

    def __init__(self, clock: ServerClock) -> None:
        self._clock = clock
        self._next = 1
        self._requests: OrderedDict[int, LogEntry] = OrderedDict()

    def open(self, method: str, bot: str | None, parameters: JsonObject, channel: str | None) -> int:
        """Note a request that has come in; its number."""
        number = self._next
        self._next += 1
        self._requests[number] = LogEntry(
            number=number,
            at=self._clock.today(),
            bot=bot,
            method=method,
            parameters=parameters,
            channel=channel,
            status=0,
            outcome="pending",
            error="",
            effect=False,
        )
        if len(self._requests) > KEPT_REQUESTS:
            self._requests.popitem(last=False)
        return number

    def close(self, number: int, *, status: int, outcome: str, error: str = "", effect: bool) -> None:
        """Note how it ended; status 0 when no answer was given."""
        if number in self._requests:
            self._requests[number] = msgspec.structs.replace(
                self._requests[number], status=status, outcome=outcome, error=error, effect=effect
            )

    def entries(self, method: str | None, channel: str | None) -> list[LogEntry]:
        """Requests in order, of one method (without regard to case) or channel."""
        wanted = None if method is None else method.lower()
        return [
            entry
            for entry in self._requests.values()
            if wanted in (None, entry.method.lower()) and channel in (None, entry.channel)
        ]

    def clear(self) -> None:
        """Forget all."""
        self._requests.clear()
