"""What a transaction has staged, as statements."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from signoff.stores.postgres_shapes import SHAPES, Shape, Statement
from signoff.stores.postgres_tx import Group
from signoff.stores.staged import Staged

CHUNK = 500
"""Rows a statement. The driver packs parameters on the event loop: a few milliseconds."""
CHANNEL = "signoff"
"""Where commits are announced."""

_EVENTS = (
    "INSERT INTO signoff.events (pos, profile, seq, session, request, event)"
    " SELECT * FROM unnest(%s::int8[], %s::text[], %s::int8[], %s::text[], %s::text[], %s::bytea[])"
)
_HEAD = "UPDATE signoff.head SET pos = %s::int8"
# What is to be read stands in the log; the number is for a person who listens.
_NOTIFY = "SELECT pg_notify(%s::text, %s::text)"


def writes(group: Group) -> Iterator[Statement]:
    """The statements that write it all, in an order in which no unique value is ever taken twice.

    What a usual change writes is one statement, since each costs the driver and the server more than its rows.
    """
    together: list[Statement] = []
    for row, staged in group.layers.staged.items():
        shape = SHAPES[row]
        gone = [key for key, kept in staged.rows.items() if kept is None]
        if gone:
            yield shape.delete, (gone,)
        put = [key for key, kept in staged.rows.items() if kept is not None]
        if len(put) > 1:
            for place, statement in zip(shape.unique, shape.let_go, strict=True):
                yield statement, (put, [shape.values(staged.rows[key])[place] for key in put])
        chunks = list(_puts(shape, staged, put))
        yield from chunks[:-1]
        together += chunks[-1:]
    if group.events:
        chunks = list(_log(group))
        yield from chunks[:-1]
        together += [chunks[-1], (_HEAD, (group.pos,))]
    if together:
        yield _together(together, group)


def _together(statements: list[Statement], group: Group) -> Statement:
    parts = ", ".join(f"w{place} AS ({sql})" for place, (sql, _) in enumerate(statements))
    values = [value for _, given in statements for value in given]
    if not group.events:
        return f"WITH {parts} SELECT", values
    return f"WITH {parts} {_NOTIFY}", [*values, CHANNEL, str(group.pos)]


def _puts(shape: Shape[Any], staged: Staged[Any], keys: list[str]) -> Iterator[Statement]:
    left = iter(keys)
    while some := list(islice(left, CHUNK)):
        columns = zip(*(shape.values(staged.rows[key]) for key in some), strict=True)
        yield shape.upsert, (some, [staged.documents[key] for key in some], *map(list, columns))


def _log(group: Group) -> Iterator[Statement]:
    left = iter(group.events)
    while some := list(islice(left, CHUNK)):
        yield _EVENTS, [list(column) for column in zip(*some, strict=True)]
