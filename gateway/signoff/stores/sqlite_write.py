"""Writing a change's rows: only the columns that changed, many rows a statement where there are many."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

from signoff.stores.sqlite_shapes import Shape, Values, update_sql, upsert_sql

_CHUNKS = (256, 16)
"""Rows a statement. SQLite takes 32,766 parameters (SQLITE_MAX_VARIABLE_NUMBER since 3.32) and a row has at most 12;
only two sizes, so that few statements are ever prepared."""


class Unknown(Enum):
    """The mark of what nobody has read."""

    UNKNOWN = 0


UNKNOWN = Unknown.UNKNOWN
Old = Values | Unknown | None
"""A row's columns in the file; None: it has no such row."""


Set = tuple[int, ...]
"""Which columns a statement sets, as indexes into the shape's."""


class Write(NamedTuple):
    """A row to write, or without a document to remove."""

    key: str
    document: bytes | None
    values: Values | None
    old: Old
    changed: Set
    """The columns that differ; all of them where the file may have no such row."""


def writing(shape: Shape[Any], key: str, document: bytes, values: Values, old: Old) -> Write:
    """A row to write, compared with the columns that the file has."""
    if old is None or isinstance(old, Unknown):
        return Write(key, document, values, old, shape.everything)
    return Write(key, document, values, old, tuple([i for i in shape.everything if old[i] != values[i]]))


def write_rows(db: sqlite3.Connection, shape: Shape[Any], writes: Sequence[Write]) -> None:
    """Write them all. What gives up a unique value goes first, so that another row can take it."""
    early: dict[Set, list[Write]] = {}
    late: dict[Set, list[Write]] = {}
    for write in writes:
        old, new = write.old, write.values
        if new is None:
            db.execute(shape.delete, (write.key,))
            continue
        if old is None or isinstance(old, Unknown):
            late.setdefault(write.changed, []).append(write)
            continue
        into = late
        for i in shape.unique:
            if old[i] is not None and i in write.changed:
                if new[i] is None:
                    into = early
                elif len(writes) > 1:
                    db.execute(shape.clear_unique, (write.key,))  # two rows may swap their values
        into.setdefault(write.changed, []).append(write)
    for sets in (early, late):
        for columns, same in sets.items():
            _write_alike(db, shape, columns, same)


def _write_alike(db: sqlite3.Connection, shape: Shape[Any], columns: Set, writes: list[Write]) -> None:
    """Write rows that set the same columns; all columns: rows that may be new."""
    new = len(columns) == len(shape.columns)
    start = 0
    if len(writes) >= _CHUNKS[-1]:
        # The columns that may not be null must be there, though an existing row keeps its values.
        fields = tuple(sorted({*shape.required, *columns}))
        names, sets = (tuple(shape.columns[i] for i in indexes) for indexes in (fields, columns))
        # An update by itself costs less than an insert that finds its row there, but a thread that writes thousands
        # of rows may wait for the interpreter lock after each statement.
        for size in _CHUNKS if new else _CHUNKS[:1]:
            while len(writes) - start >= size:
                sql = upsert_sql(shape.name, names, sets, size)
                db.execute(sql, _flat(writes[start : start + size], fields))
                start += size
    rest = writes[start:]
    if new:
        insert = upsert_sql(shape.name, shape.columns, shape.columns, 1)
        db.executemany(insert, [(key, document, *(values or ())) for key, document, values, *_ in rest])
        return
    update = shape.updates.get(columns)
    if update is None:
        update = shape.updates[columns] = update_sql(shape.name, tuple(shape.columns[i] for i in columns))
    db.executemany(
        update, [(document, *[(values or ())[i] for i in columns], key) for key, document, values, *_ in rest]
    )


def _flat(writes: Iterable[Write], fields: Set) -> list[Any]:
    flat: list[Any] = []
    for key, document, values, *_ in writes:
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
