"""The SQL of each table, made once from `rows.TABLES`. Tables stand in the schema `signoff`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec import Struct

from signoff.errors import InvalidInput, StoreCorrupt
from signoff.rows import TABLES, Table
from signoff.stores.packing import due_of, order_of, urgency_of

R = TypeVar("R", bound=Struct)
Statement = tuple[str, Sequence[Any]]
"""SQL and its parameters."""

MAX_KEY_BYTES = 500
LONG_VALUE = 500
"""Characters of a column that are kept as they are; a longer text is found by its digest. An index takes 2,704 bytes an
entry (a third of a page, BTMaxItemSize in PostgreSQL's nbtree.h), and a character has at most 4."""


def kept_value(value: str) -> str:
    """A column's value as it stands in the database."""
    return value if len(value) <= LONG_VALUE else "sha256:" + hashlib.sha256(value.encode()).hexdigest()


def can_be_kept(value: str) -> bool:
    """Whether PostgreSQL can hold this text at all; what it cannot hold is not there."""
    return "\x00" not in value and not any("\ud800" <= char <= "\udfff" for char in value)


class Shape(Generic[R]):
    """One table: its statements, and how a row becomes their parameters."""

    def __init__(self, table: Table[R]) -> None:
        self.table = table
        self.name = table.name
        where = f"signoff.{table.name}"
        types = {"ord": "float8", "due_at": "float8", "urgency": "int8"}
        self.columns = (
            "ord",
            *(("due_at",) if table.due else ()),
            *(("urgency",) if table.urgency else ()),
            *table.columns,
        )
        self.decode = cast("Callable[[bytes], R]", msgspec.json.Decoder(table.row).decode)
        names = ("key", "row", *self.columns)
        arrays = ", ".join(f"%s::{types.get(name, 'bytea' if name == 'row' else 'text')}[]" for name in names)
        changes = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
        self.upsert = (
            f"INSERT INTO {where} ({', '.join(names)}) SELECT * FROM unnest({arrays})"
            f" ON CONFLICT (key) DO UPDATE SET {changes}"
        )
        self.delete = f"DELETE FROM {where} WHERE key = ANY(%s::text[])"
        self.let_go = tuple(
            f"UPDATE {where} AS t SET {path} = NULL FROM unnest(%s::text[], %s::text[]) AS w (key, value)"
            f" WHERE t.key = w.key AND t.{path} IS NOT NULL AND t.{path} IS DISTINCT FROM w.value"
            for path in sorted(table.unique)
        )
        """Of (keys, new values): rows that put a unique value aside, so that another row can take it."""
        self.unique = tuple(self.columns.index(path) for path in sorted(table.unique))
        self.rows = f"SELECT key, row FROM {where} WHERE key = ANY(%s::text[])"
        self.place = f"SELECT ord FROM {where} WHERE key = %s::text"
        self.due = self._due(where)
        self.next_due = self._next_due(where)

    def values(self, row: R) -> tuple[Any, ...]:
        """The row's columns, in the order of `columns`."""
        table = self.table
        front: list[Any] = [order_of(table, row)]
        if table.due:
            front.append(due_of(table, row))
        if table.urgency:
            front.append(urgency_of(table, row))
        return (*front, *(None if value is None else kept_value(value) for value in table.values(row)))

    def found(self, path: str) -> str:
        """Of (values, limits): each value with the first rows in the table's order that have it, in any order."""
        return (
            "SELECT w.value, t.row FROM unnest(%s::text[], %s::int8[]) AS w (value, most) CROSS JOIN LATERAL"
            f" (SELECT ord, key, row FROM signoff.{self.name} WHERE {path} = w.value ORDER BY ord, key LIMIT w.most) t"
        )

    def page(self, path: str, *, after: bool) -> str:
        """Rows of (value, limit), or of (value, order, key, limit) after a place."""
        page = " AND (ord, key) > (%s::float8, %s::text)" if after else ""
        return f"SELECT row FROM signoff.{self.name} WHERE {path} = %s::text{page} ORDER BY ord, key LIMIT %s::int8"

    def _due(self, where: str) -> str:
        """Rows of (now, limit), most urgent first."""
        if not self.table.urgency:
            return f"SELECT row FROM {where} WHERE due_at <= %s::float8 ORDER BY due_at, key LIMIT %s::int8"
        return (
            f"WITH RECURSIVE wanted (now, most) AS (SELECT %s::float8, %s::int8), {self._urgencies(where)} SELECT d.row"
            " FROM urgencies u CROSS JOIN LATERAL (SELECT urgency, due_at, key, row"
            f" FROM {where} WHERE urgency = u.n AND due_at <= (SELECT now FROM wanted)"
            " ORDER BY due_at, key LIMIT (SELECT most FROM wanted)) d"
            " ORDER BY d.urgency, d.due_at, d.key LIMIT (SELECT most FROM wanted)"
        )

    def _next_due(self, where: str) -> str:
        if not self.table.urgency:
            return f"SELECT min(due_at) FROM {where} WHERE due_at IS NOT NULL"
        return (
            f"WITH RECURSIVE {self._urgencies(where)} SELECT min((SELECT min(due_at)"
            f" FROM {where} WHERE urgency = u.n AND due_at IS NOT NULL)) FROM urgencies u"
        )

    def _urgencies(self, where: str) -> str:
        """The urgencies there are, by a seek each: there are four, and an index scan would pass every row."""
        return (
            f"urgencies (n) AS (SELECT min(urgency) FROM {where} WHERE due_at IS NOT NULL UNION ALL"
            f" SELECT (SELECT min(urgency) FROM {where} WHERE due_at IS NOT NULL AND urgency > urgencies.n)"
            " FROM urgencies WHERE urgencies.n IS NOT NULL)"
        )

    def read(self, document: bytes) -> R:
        """The row of a stored document. Raises `StoreCorrupt` for one that this version cannot read."""
        try:
            return self.decode(document)
        except msgspec.MsgspecError as error:
            raise StoreCorrupt(
                f"a document in {self.name} cannot be read ({error}). Restore a backup of the database."
            ) from error

    def require_keepable(self, row: R) -> None:
        """Raise `InvalidInput` for a row whose key or columns PostgreSQL cannot hold."""
        key = self.table.key(row)
        if len(key.encode()) > MAX_KEY_BYTES:
            raise InvalidInput(f"the key of a row in {self.name} is longer than {MAX_KEY_BYTES} bytes")
        if "\x00" in key or any(value is not None and "\x00" in value for value in self.table.values(row)):
            raise InvalidInput(f"a name in {self.name} holds the character U+0000, which PostgreSQL cannot keep")


SHAPES: dict[type[Struct], Shape[Any]] = {table.row: Shape(table) for table in TABLES}
