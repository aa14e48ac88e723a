"""Every request that reached the server, with what became of it."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from .clock import ServerClock
from .model import JsonObject, LogEntry

KEPT_REQUESTS = 5_000
KEPT_POLLS = 500
"""Long polls repeat without end, so they are kept apart and cannot push out the rest."""


class RequestLog:
    """Bounded; entries are numbered in the order the requests came."""

    def __init__(self, clock: ServerClock) -> None:
        self._clock = clock
        self._next = 1
        self._requests: OrderedDict[int, LogEntry] = OrderedDict()
        self._polls: OrderedDict[int, LogEntry] = OrderedDict()

    def open(self, method: str, bot_id: int | None, parameters: JsonObject, chat_id: int | None) -> int:
        """Note a request that has come in; its number."""
        number = self._next
        self._next += 1
        table, kept = (self._polls, KEPT_POLLS) if method.lower() == "getupdates" else (self._requests, KEPT_REQUESTS)
        table[number] = LogEntry(
            number=number,
            at=self._clock.today(),
            bot_id=bot_id,
            method=method,
            parameters=parameters,
            chat_id=chat_id,
            status=0,
            outcome="pending",
            description="",
            effect=False,
        )
        if len(table) > kept:
            table.popitem(last=False)
        return number

    def close(self, number: int, *, status: int, outcome: str, description: str, effect: bool) -> None:
        """Note how it ended; status 0 when no answer was given."""
        for table in (self._requests, self._polls):
            if number in table:
                table[number] = msgspec.structs.replace(
                    table[number], status=status, outcome=outcome, description=description, effect=effect
                )

    def entries(self, method: str | None, chat_id: int | None) -> list[LogEntry]:
        """Requests in order, of one method (without regard to case) or chat; polls only when asked for by name."""
        wanted = None if method is None else method.lower()
        table = self._polls if wanted == "getupdates" else self._requests
        return [
            entry
            for entry in table.values()
            if wanted in (None, entry.method.lower()) and chat_id in (None, entry.chat_id)
        ]

    def clear(self) -> None:
        """Forget all."""
        self._requests.clear()
        self._polls.clear()
