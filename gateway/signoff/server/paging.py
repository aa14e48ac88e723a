"""One page of a list of which not every row is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

_Row = TypeVar("_Row")

SCAN, MOST_SCANNED = 200, 5000
"""Rows that are read at once, and that one page looks through at most: it may end early with a name to go on from."""


class Read(Protocol[_Row]):
    """Reads the rows behind a key, in order."""

    async def __call__(self, *, limit: int, after: str | None) -> list[_Row]: ...


async def page(
    read: Read[_Row],
    *,
    shown: Callable[[_Row], bool],
    name: Callable[[_Row], str],
    key: Callable[[str], str],
    limit: int,
    after: str | None,
) -> tuple[list[_Row], str | None]:
    """At most `limit` of the rows that are `shown`, and the name to go on after; None at the end of the list. `key` is
    the key of the row of a name."""
    found: list[_Row] = []
    scanned, last = 0, after
    while len(found) < limit and scanned < MOST_SCANNED:
        rows = await read(limit=SCAN, after=None if last is None else key(last))
        for row in rows:
            if len(found) == limit:
                break
            scanned, last = scanned + 1, name(row)
            if shown(row):
                found.append(row)
        else:
            if len(rows) < SCAN:
                return found, None
    return found, last
