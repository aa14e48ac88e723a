"""Rows and events as JSON documents, and the questions an engine asks of a table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from signoff.errors import InvalidInput, StoreError
from signoff.model import Event
from signoff.rows import Table

R = TypeVar("R", bound=Struct)

_encode = msgspec.json.Encoder().encode
decode_event = msgspec.json.Decoder(Event).decode
decode_events = msgspec.json.Decoder(list[Event]).decode


def pack(row: Struct) -> bytes:
    """The row as JSON. Raises `InvalidInput` for what JSON cannot hold, before anything is saved."""
    try:
        return _encode(row)
    except UnicodeEncodeError as error:
        raise InvalidInput(
            "the text holds half of a UTF-16 surrogate pair, which is no character; send valid Unicode",
            row=type(row).__name__,
        ) from error
    except (TypeError, RecursionError) as error:
        raise InvalidInput(f"a {type(row).__name__} cannot be kept as JSON: {error}") from error


def require_column(table: Table[Any], path: str) -> None:
    """Raise `StoreError` unless the table is looked up by `path`."""
    if path not in table.columns:
        known = ", ".join(table.columns) or "none"
        raise StoreError(f"{table.name} are not looked up by {path!r}; columns: {known}")


def order_of(table: Table[R], row: R) -> float:
    """The row's place in the table's own order; 0 where a table has none but its keys."""
    return table.order(row) if table.order else 0.0


def due_of(table: Table[R], row: R) -> float | None:
    """The row's due time in seconds since the epoch, or None."""
    when = table.due(row) if table.due else None
    return None if when is None else when.timestamp()


def urgency_of(table: Table[R], row: R) -> int:
    """The row's urgency, 0 the most urgent; 0 where a table knows none."""
    return table.urgency(row) if table.urgency else 0


def instant(timestamp: float) -> datetime:
    """Seconds since the epoch as an aware instant."""
    return datetime.fromtimestamp(timestamp, UTC)


def unknown_place(table: Table[Any]) -> InvalidInput:
    """What is raised when a page is to begin after a row that does not exist."""
    return InvalidInput(f"there is no such row in {table.name} to continue after", param="after")
