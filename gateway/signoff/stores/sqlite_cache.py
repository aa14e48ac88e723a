"""What the writing connection knows of the committed rows, so that changes read and compare them without SQL.

Only the writer uses it, inside its transactions: nobody else can commit meanwhile, so what was committed stays as it
is known. A commit of another process is noticed when the next transaction begins, and then all is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from signoff.model import ApprovalRequest, Command, Elicitation, Tool
from signoff.stores.sqlite_shapes import Shape, Values
from signoff.stores.sqlite_write import Set, Unknown, Write

MAX_ROWS = 4_096
"""Rows of all tables; beyond it the next transaction begins with nothing known. Letting go of so many takes 5 to 10 ms
of the event loop; four times as many save an approval one of ten reads."""
MAX_BYTES = 8 * 1024 * 1024
"""The same for the bytes of the rows' documents, which are about the size of the rows."""
MAX_FOUND = 32
"""A longer answer to a look-up is not remembered."""


class Kept(NamedTuple):
    """A committed row, or None where there is none, with its columns unless nobody asked for them yet."""

    row: Any
    values: Values | None


ABSENT = Kept(None, None)


class Cache:
    """Rows by table and key, and answers to look-ups.

    A key in a remembered answer is always a known row too. A row that is not known is therefore in no answer.
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Kept]] = {}
        self._found: dict[str, dict[tuple[int, str], list[str]]] = {}
        """By the column's index in `Shape.columns` and its value: keys in the table's order."""
        self._bytes = 0

    def rows(self, name: str) -> dict[str, Kept]:
        """The known rows of a table. Not to be kept beyond the transaction."""
        rows = self._rows.get(name)
        if rows is None:
            rows = self._rows[name] = {}
        return rows

    def keep(self, name: str, key: str, row: Any, size: int) -> None:
        """A committed row (or None) was read; `size` is its document's."""
        self.rows(name)[key] = ABSENT if row is None else Kept(row, None)
        self._bytes += size

    def found(self, shape: Shape[Any], path: str, value: str) -> list[Any] | None:
        """The remembered answer to a look-up, or None."""
        answers = self._found.get(shape.name)
        if not answers or (keys := answers.get((shape.places[path], value))) is None:
            return None
        rows = self._rows[shape.name]
        return [rows[key].row for key in keys]

    def remember(self, shape: Shape[Any], path: str, value: str, rows: Sequence[Any]) -> None:
        """The whole answer to a look-up; its rows are known already."""
        if 0 < len(rows) <= MAX_FOUND:
            key_of = shape.table.key
            answers = self._found.setdefault(shape.name, {})
            answers[shape.places[path], value] = [key_of(row) for row in rows]

    def trim(self) -> None:
        """Forget all when it has become too much; between transactions only."""
        if self._bytes > MAX_BYTES or sum(map(len, self._rows.values())) > MAX_ROWS:
            self.clear()

    def clear(self) -> None:
        """Forget all."""
        self._rows.clear()
        self._found.clear()
        self._bytes = 0

    def apply(self, shape: Shape[Any], staged: Mapping[str, Any], writes: Iterable[Write]) -> None:
        """The transaction that wrote these is durable; `staged` has the rows themselves."""
        rows, answers = self.rows(shape.name), self._found.get(shape.name)
        for key, document, values, old, changed in writes:
            row = staged[key]
            if document is None:
                rows[key] = ABSENT
            else:
                rows[key] = Kept(row if reads_back_alike(row) else shape.decode(document), values)
                self._bytes += len(document)
            if answers:
                # A row that nobody has read is in no answer.
                self._move(shape, answers, key, None if isinstance(old, Unknown) else old, values, changed)

    def _move(
        self,
        shape: Shape[Any],
        answers: dict[tuple[int, str], list[str]],
        key: str,
        old: Values | None,
        new: Values | None,
        changed: Set,
    ) -> None:
        """Take a row out of the answers it no longer belongs to and into those it now does."""
        if changed and changed[0] == 0:  # it may have another place in every answer
            changed = shape.everything
        for place in changed:
            if place < shape.first:
                continue
            before, after = old[place] if old else None, new[place] if new else None
            if before is not None and (keys := answers.get((place, before))) is not None:
                keys.remove(key)
            if after is not None and (keys := answers.get((place, after))) is not None:
                if len(keys) >= MAX_FOUND:
                    del answers[place, after]
                else:
                    keys.append(key)
                    rows = self._rows[shape.name]
                    keys.sort(key=lambda each: (shape.order(rows[each].row), each))


def reads_back_alike(row: Struct) -> bool:
    """Whether the row, as it was put, is what its document says. Free JSON may hold a tuple that reads back as a list,
    and a dictionary may be changed by who holds it."""
    if not isinstance(row, ApprovalRequest):
        return True
    action = row.action
    return not (isinstance(action, Tool | Elicitation) or (isinstance(action, Command) and action.env is not None))
