"""The SQL of each table, made once from `rows.TABLES`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec import Struct

from signoff.errors import StoreCorrupt
from signoff.rows import TABLES, Columns, Table
from signoff.stores.packing import due_of, urgency_of

R = TypeVar("R", bound=Struct)
D = TypeVar("D")
Values = tuple[Any, ...]

WHOLE = "SELECT CAST('[' || group_concat(row, ',') || ']' AS BLOB) FROM ({})"
"""All rows of a query as one JSON list, hence in one step. Python's module gives up the interpreter lock around each
step; beside a busy event loop a thread waits up to 5 ms to get it back, a thousand rows would cost seconds.
SQLite keeps the inner order for `group_concat` (its flattener leaves an ordered subquery of an aggregate alone)."""


class Shape(Generic[R]):
    """One table: its statements, and how a row becomes their parameters."""

    def __init__(self, table: Table[R]) -> None:
        self.table = table
        self.name = table.name
        self.columns: tuple[str, ...] = (
            "ord",
            *(("due_at",) if table.due else ()),
            *(("urgency",) if table.urgency else ()),
            *table.columns,
        )
        self.everything = tuple(range(len(self.columns)))
        self.updates: dict[tuple[int, ...], str] = {}
        """The statements that set only these columns, by their indexes; made when first needed."""
        self.unique = tuple(self.columns.index(path) for path in sorted(table.unique))
        self.required = tuple(self.columns.index(name) for name in ("ord", "urgency") if name in self.columns)
        self.decode = cast("Callable[[bytes], R]", msgspec.json.Decoder(table.row).decode)
        self.decode_list = cast("Callable[[bytes], list[R]]", msgspec.json.Decoder(list[table.row]).decode)  # type: ignore[name-defined]  # built at run time
        self.places = {path: self.columns.index(path) for path in table.columns}
        """Where each look-up column stands in `columns`."""
        self.order: Callable[[R], float] = table.order or (lambda row: 0.0)
        self.around = _around(table, self.order)
        """The row's columns in the order of `columns`, given those of the table."""
        self.first = len(self.columns) - len(table.columns)
        """Where the table's own columns begin in `columns`."""
        self.select = f"SELECT row FROM {self.name} WHERE key = ?"  # noqa: S608  # names from rows.TABLES
        self.delete = f"DELETE FROM {self.name} WHERE key = ?"  # noqa: S608  # the same
        cleared = ", ".join(f"{path} = NULL" for path in sorted(table.unique))
        self.clear_unique = f"UPDATE {self.name} SET {cleared} WHERE key = ?"  # noqa: S608  # the same
        self.place = f"SELECT ord FROM {self.name} WHERE key = ?"  # noqa: S608  # the same
        urgent = "urgency = ? AND " if table.urgency else ""
        self.due = WHOLE.format(
            f"SELECT row FROM {self.name} WHERE {urgent}due_at <= ? ORDER BY due_at, key LIMIT ?"  # noqa: S608  # the same
        )
        self.first_due = f"SELECT min(due_at) FROM {self.name} WHERE {urgent}due_at IS NOT NULL"  # noqa: S608  # the same
        self.next_urgency = f"SELECT min(urgency) FROM {self.name} WHERE due_at IS NOT NULL AND urgency > ?"  # noqa: S608  # the same
        self._finds = {path: self._find(path) for path in table.columns}
        self._finds_after = {path: self._find(path, after=True) for path in table.columns}

    def values(self, row: R) -> Values:
        """The row's columns, in the order of `columns`."""
        return self.around(row, self.table.values(row))

    def find(self, path: str, *, after: bool = False) -> str:
        """Rows of (value, limit), or of (value, order, key, limit) after a place, as one JSON list."""
        return (self._finds_after if after else self._finds)[path]

    def _find(self, path: str, *, after: bool = False) -> str:
        page = " AND (ord, key) > (?, ?)" if after else ""
        index = f"{self.name}_{path}"
        # A unique index holds one row a value and needs no order.
        order = "" if path in self.table.unique else " ORDER BY ord, key"
        return WHOLE.format(
            f"SELECT row FROM {self.name} INDEXED BY {index} WHERE {path} = ?{page}{order} LIMIT ?"  # noqa: S608  # the same
        )


def _around(table: Table[R], order: Callable[[R], float]) -> Callable[[R, Columns], Values]:
    due, urgency = table.due, table.urgency

    def with_urgency(row: R, columns: Columns) -> Values:
        return order(row), due_of(table, row), urgency_of(table, row), *columns

    def with_due(row: R, columns: Columns) -> Values:
        return order(row), due_of(table, row), *columns

    def plain(row: R, columns: Columns) -> Values:
        return order(row), *columns

    # Written out, since they run at every put; a table with an urgency also has a due time.
    return with_urgency if urgency else with_due if due else plain


@cache
def upsert_sql(name: str, columns: tuple[str, ...], sets: tuple[str, ...], count: int) -> str:
    """Insert `count` rows of (key, row, *columns), or set the row and the columns `sets` of those that exist.

    SQLite rewrites every index over a column that is set, also where it is set to what it was.
    """
    fields = ("key", "row", *columns)
    marks = "(" + ", ".join("?" * len(fields)) + ")"
    changes = ", ".join(f"{field} = excluded.{field}" for field in ("row", *sets))
    return (
        f"INSERT INTO {name} ({', '.join(fields)}) VALUES {', '.join([marks] * count)}"  # noqa: S608  # names from rows.TABLES
        f" ON CONFLICT (key) DO UPDATE SET {changes}"
    )


@cache
def update_sql(name: str, columns: tuple[str, ...]) -> str:
    """Set (row, *columns) of the row with the key that comes last."""
    changes = "".join(f", {column} = ?" for column in columns)
    return f"UPDATE {name} SET row = ?{changes} WHERE key = ?"  # noqa: S608  # names from rows.TABLES


def decoded(decode: Callable[[bytes], D], document: bytes, name: str) -> D:
    """What a stored document says. Raises `StoreCorrupt` for one that this version cannot read."""
    try:
        return decode(document)
    except msgspec.MsgspecError as error:
        raise StoreCorrupt(f"a document in {name} cannot be read ({error}). Restore a backup of the store.") from error


SHAPES: dict[type[Struct], Shape[Any]] = {table.row: Shape(table) for table in TABLES}
