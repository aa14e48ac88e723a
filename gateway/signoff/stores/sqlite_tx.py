"""One change's transaction on the writing connection: it reads and stages through its group's layers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from msgspec import Struct

from signoff.errors import StoreError
from signoff.model import ApprovalRequest, Change, Event, replace
from signoff.rows import request_key
from signoff.stores.packing import pack, require_column
from signoff.stores.sqlite_ahead import FROM_ROWS, ReadAhead
from signoff.stores.sqlite_layers import Layers
from signoff.stores.sqlite_shapes import SHAPES, Shape
from signoff.stores.staged import Before

R = TypeVar("R", bound=Struct)

EventRow = tuple[int, str, int, str | None, bytes]
"""pos, profile, seq, session, event: a row of the event log."""


class SqliteTx:
    """The `Tx` port. It stages rows in its group, which takes them back from a change that raises."""

    __slots__ = ("_ahead", "_events", "_layers", "_over", "journal", "now")

    def __init__(self, layers: Layers, now: datetime, ahead: ReadAhead | None = None) -> None:
        self.now = now
        self.journal: list[Before] = []
        """What stood in the group for each row that this change staged, in order."""
        self._layers = layers
        self._ahead = ahead
        self._over = False
        self._events: list[Event] = []

    def get(self, row: type[R], key: str) -> R | None:
        """The row as this change sees it, or None."""
        if self._over:
            raise _ended()
        return self._layers.get(row, key)

    def find(self, row: type[R], path: str, value: str, *, limit: int | None = None) -> list[R]:
        """The rows as this change sees them, in the table's order."""
        if self._over:
            raise _ended()
        shape: Shape[R] = SHAPES[row]
        require_column(shape.table, path)
        if self._ahead is None:
            return self._layers.find(shape, path, value, limit)
        fetched = self._ahead.found(shape.name, path, value)
        if fetched is not None:
            return self._layers.of(row).over(fetched, path, value, limit)
        found = self._layers.find(shape, path, value, limit)
        if len(found) >= FROM_ROWS:
            self._ahead.follow(shape, found)
        return found

    def put(self, row: Struct) -> None:
        """Stage a row."""
        if self._over:
            raise _ended()
        self.journal.append(self._layers.of(type(row)).put(row))

    def delete(self, row: Struct) -> None:
        """Stage a removal."""
        if self._over:
            raise _ended()
        self.journal.append(self._layers.of(type(row)).delete(row))

    def emit(self, event: Event) -> None:
        """Stage an event."""
        if self._over:
            raise _ended()
        self._events.append(event)

    @property
    def wrote(self) -> bool:
        """Something of it has to be made durable."""
        return bool(self.journal or self._events)

    def end(self) -> None:
        """No further use: a change that kept the transaction must not write into the next one."""
        self._over = True

    def numbered(self, number: Callable[[str], tuple[int, int]]) -> tuple[list[EventRow], list[Change]]:
        """The event rows, still to be written, and what the feed will tell.

        `number` gives a profile's next event its `pos` and `seq`. Raises `InvalidInput` for what JSON cannot hold.
        """
        log: list[EventRow] = []
        changes: list[Change] = []
        for event in self._events:
            pos, seq = number(event.profile)
            numbered = replace(event, seq=seq)
            log.append((pos, event.profile, seq, event.session_id, pack(numbered)))
            request = None
            if event.request_id is not None:
                request = self.get(ApprovalRequest, request_key(event.profile, event.request_id))
            changes.append(Change(numbered, request))
        return log, changes


def _ended() -> StoreError:
    return StoreError("this transaction is over; a change must not keep it")
