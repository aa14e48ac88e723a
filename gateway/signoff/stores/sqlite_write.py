"""Writing a change's rows: only the columns that changed, many rows a statement where there are many."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from signoff.stores.sqlite_shapes import Shape, Values, update_sql, upsert_sql

_CHUNKS = (256, 16)
"""Rows a statement. SQLite takes 32,766 parameters (SQLITE_MAX_VARIABLE_NUMBER since 3.32) and a row has at most 12;
only two sizes, so that few statements are ever prepared."""


class Write(NamedTuple):
    """A row to write, or without a document to remove. `old` are its stored columns, where they are known."""

    key: str
    document: bytes | None
    values: Values | None
    old: Values | None


Set = tuple[int, ...]
"""Which columns a statement sets, as indexes into the shape's."""


def write_rows(db: sqlite3.Connection, shape: Shape[Any], writes: Sequence[Write]) -> None:
    """Write them all. What gives up a unique value goes first, so that another row of the change can take it."""
    if len(writes) < _CHUNKS[-1] and (len(writes) == 1 or not shape.unique):
        for write in writes:
            _write_one(db, shape, write)
        return
    everything = shape.everything
    early: dict[Set, list[Write]] = {}
    late: dict[Set, list[Write]] = {}
    for write in writes:
        if write.values is None:
            db.execute(shape.delete, (write.key,))
            continue
        if write.old is None:
            late.setdefault(everything, []).append(write)
            continue
        old, new = write.old, write.values
        changed = tuple([i for i in everything if old[i] != new[i]])
        gives = bool(shape.unique) and any(i in changed and old[i] is not None for i in shape.unique)
        if gives and any(new[i] is not None for i in shape.unique):
            db.execute(shape.clear_unique, (write.key,))  # two rows may swap their values
            gives = False
        (early if gives else late).setdefault(changed, []).append(write)
    for sets in (early, late):
        for columns, same in sets.items():
            _write_alike(db, shape, columns, same)


def _write_one(db: sqlite3.Connection, shape: Shape[Any], write: Write) -> None:
    """The common case, without grouping: measured at half the time."""
    key, document, new, old = write
    if new is None:
        db.execute(shape.delete, (key,))
    elif old is None:
        db.execute(shape.insert, (key, document, *new))
    else:
        changed = tuple([i for i in shape.everything if old[i] != new[i]])
        sql = shape.updates.get(changed)
        if sql is None:
            sql = shape.updates[changed] = update_sql(shape.name, tuple(shape.columns[i] for i in changed))
        db.execute(sql, (document, *[new[i] for i in changed], key))


def _write_alike(db: sqlite3.Connection, shape: Shape[Any], columns: Set, writes: list[Write]) -> None:
    """Write rows that set the same columns."""
    start = 0
    if len(writes) >= _CHUNKS[-1]:
        # The columns that may not be null must be there, though an existing row keeps its values.
        fields = tuple(sorted({*shape.required, *columns}))
        names = tuple(shape.columns[i] for i in fields)
        for size in _CHUNKS:
            sql = upsert_sql(shape.name, names, size)
            while len(writes) - start >= size:
                db.execute(sql, _flat(writes[start : start + size], fields))
                start += size
    if len(columns) == len(shape.columns):
        sql = upsert_sql(shape.name, shape.columns, 1)
        for key, document, values, _ in writes[start:]:
            db.execute(sql, (key, document, *(values or ())))
        return
    sql = update_sql(shape.name, tuple(shape.columns[i] for i in columns))
    for key, document, values, _ in writes[start:]:
        db.execute(sql, (document, *((values or ())[i] for i in columns), key))


def _flat(writes: Iterable[Write], fields: Set) -> list[Any]:
    flat: list[Any] = []
    for key, document, values, _ in writes:
        flat.append(key)
        flat.append(document)
        flat.extend((values or ())[i] for i in fields)
    return flat


_EVENTS = "INSERT INTO events (pos, profile, seq, session, event) VALUES "


def write_events(db: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Append to the event log."""
    start = 0
    for size in (*_CHUNKS, 4, 1):
        sql = _EVENTS + ", ".join(["(?, ?, ?, ?, ?)"] * size)
        while len(rows) - start >= size:
            db.execute(sql, [value for row in rows[start : start + size] for value in row])
            start += size
