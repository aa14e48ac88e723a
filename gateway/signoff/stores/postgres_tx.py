"""The changes of one transaction: run over what was read, again and again until nothing they ask for is missing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from msgspec import Struct

from signoff.errors import StoreError
from signoff.ids import repeatable, seed
from signoff.model import ApprovalRequest, Change, Event, replace
from signoff.ports import Tx
from signoff.rows import request_key
from signoff.stores.packing import pack, require_column
from signoff.stores.postgres_answers import Answers
from signoff.stores.postgres_shapes import SHAPES, Shape
from signoff.stores.staged import UNSTAGED, Before, Staged

R = TypeVar("R", bound=Struct)

EventRow = tuple[int, str, int, str | None, str | None, bytes]
"""pos, profile, seq, session, request, event: a row of the event log."""


class Job:
    """One queued change and what came of it."""

    __slots__ = ("alone", "blank", "bulk", "change", "changes", "error", "events", "future", "result", "seed")

    def __init__(self, change: Callable[[Tx], Any], future: asyncio.Future[Any], *, bulk: bool) -> None:
        self.change = change
        self.future = future
        self.bulk = bulk
        self.alone = bulk
        """It shares its transaction with no other."""
        self.seed = seed()
        self.clear()

    def clear(self) -> None:
        """Forget what came of it: it runs again in another transaction."""
        self.blank = True
        """Its last run lacked an answer, or there was none yet."""
        self.result: Any = None
        self.error: BaseException | None = None
        self.events: list[Event] = []
        self.changes: list[Change] = []


class Layers:
    """What the changes of a transaction have staged so far, over what was read."""

    def __init__(self) -> None:
        self.answers = Answers()
        self.staged: dict[type[Struct], Staged[Any]] = {}

    def of(self, row: type[R]) -> Staged[R]:
        """What is staged of that table."""
        staged = self.staged.get(row)
        if staged is None:
            staged = self.staged[row] = Staged(SHAPES[row].table)
        return staged

    def get(self, row: type[R], key: str) -> R | None:
        """The row as the changes so far left it, or None."""
        staged = self.staged.get(row)
        if staged is not None:
            found = staged.rows.get(key, UNSTAGED)
            if found is not UNSTAGED:
                known: R | None = found
                return known
        return self.answers.get(row, key)

    def find(self, shape: Shape[R], path: str, value: str, limit: int | None) -> list[R]:
        """The rows as the changes so far left them."""
        staged = self.staged.get(shape.table.row)
        below = self.answers.find(shape, path, value, limit)
        if staged is None:
            return below[:limit]
        if limit is not None and len(below) >= limit:  # there may be more, which count where these are staged over
            key_of = shape.table.key
            if sum(key_of(row) not in staged.rows for row in below) < limit:
                below = self.answers.find(shape, path, value, limit + len(staged.rows))
        return staged.over(below, path, value, limit)

    def check(self, journal: list[Before]) -> None:
        """Raise `StoreError` when a row that a change staged takes a unique value that another row holds after it."""
        for before in journal:
            table = before.staged.table
            row = before.staged.rows[before.key]
            for path in table.unique:
                value = None if row is None else table.columns[path](row)
                if value is not None and len(self.find(SHAPES[table.row], path, value, None)) > 1:
                    raise StoreError(f"two {table.name} have the same {path}; nothing was saved")


class PostgresTx:
    """The `Tx` port over the layers of its transaction."""

    __slots__ = ("_layers", "_over", "events", "journal", "now")

    def __init__(self, layers: Layers, now: datetime) -> None:
        self.now = now
        self.journal: list[Before] = []
        """What stood there for each row that this change staged, in order."""
        self.events: list[Event] = []
        self._layers = layers
        self._over = False

    def get(self, row: type[R], key: str) -> R | None:
        """The row as this change sees it, or None."""
        self._check()
        return self._layers.get(row, key)

    def find(self, row: type[R], path: str, value: str, *, limit: int | None = None) -> list[R]:
        """The rows as this change sees them, in the table's order."""
        self._check()
        shape: Shape[R] = SHAPES[row]
        require_column(shape.table, path)
        return self._layers.find(shape, path, value, limit)

    def put(self, row: Struct) -> None:
        """Stage a row. Raises `InvalidInput` for one that cannot be kept."""
        self._check()
        before = self._layers.of(type(row)).put(row)
        self.journal.append(before)
        SHAPES[type(row)].require_keepable(row)

    def delete(self, row: Struct) -> None:
        """Stage a removal."""
        self._check()
        self.journal.append(self._layers.of(type(row)).delete(row))

    def emit(self, event: Event) -> None:
        """Stage an event. Raises `InvalidInput` for one that cannot be kept."""
        self._check()
        pack(event)
        self.events.append(event)

    def end(self) -> None:
        """No further use: a change that kept the transaction must not write into the next one."""
        self._over = True

    def take_back(self) -> None:
        """Leave no trace in the transaction."""
        for before in reversed(self.journal):
            before.staged.restore(before)
        self.journal.clear()

    def _check(self) -> None:
        if self._over:
            raise StoreError("this transaction is over; a change must not keep it")


class Group:
    """The changes that share a transaction, in order. A change counts once it ran without missing an answer and all
    before it count; runs before that are taken back, whatever they came to."""

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs = jobs
        self.layers = Layers()
        self.events: list[EventRow] = []
        self.first_pos = self.pos = 0
        self.wrote = False
        self._seqs: dict[str, int] = {}
        self._settled = 0
        for job in jobs:
            job.clear()

    @property
    def settled(self) -> bool:
        """Every change counts."""
        return self._settled == len(self.jobs)

    def begin(self, pos: int) -> None:
        """The log ends at `pos`."""
        self.pos = pos
        self.first_pos = pos + 1

    def passes(self, now: datetime, slice_s: float, *, count: bool = True) -> Callable[[], bool]:
        """One pass over the changes that do not count yet, in slices of so many seconds: call it until it says True.

        Without `count` none comes to count: the pass only finds out what they ask for first.
        """
        place = self._settled
        in_order = count

        def run() -> bool:
            nonlocal place, in_order
            until = time.perf_counter() + slice_s
            while place < len(self.jobs):
                job = self.jobs[place]
                if in_order or job.blank:
                    self._run(job, now, count=in_order)
                    in_order = in_order and not job.blank
                place += 1
                if time.perf_counter() >= until:
                    break
            return place == len(self.jobs)

        return run

    def _run(self, job: Job, now: datetime, *, count: bool) -> None:
        tx = PostgresTx(self.layers, now)
        answers = self.layers.answers
        answers.missed = False
        job.error = None
        rows: list[EventRow] = []
        try:
            with repeatable(job.seed):
                job.result = job.change(tx)
            self.layers.check(tx.journal)
            rows, job.changes = self._numbered(tx)
        except StopIteration as error:  # a future cannot carry it
            job.error = RuntimeError("the change raised StopIteration")
            job.error.__cause__ = error
        except Exception as error:  # whatever a change raises is its caller's
            job.error = error
        finally:
            tx.end()
            job.blank = answers.missed
            if job.blank or job.error is not None or not count:
                wrote = False
                tx.take_back()
            else:
                wrote = bool(tx.journal or tx.events)
        if job.blank or not count:
            return
        self._settled += 1
        if job.error is None:
            self.wrote = self.wrote or wrote
            self.events.extend(rows)
            self.pos += len(rows)
            for event in rows:
                self._seqs[event[1]] = event[2]

    def _numbered(self, tx: PostgresTx) -> tuple[list[EventRow], list[Change]]:
        """The rows of a change's events, and what the feed will tell."""
        rows: list[EventRow] = []
        changes: list[Change] = []
        seqs: dict[str, int] = {}
        for event in tx.events:
            profile = event.profile
            last = seqs.get(profile, self._seqs.get(profile))
            seq = seqs[profile] = 1 + (self.layers.answers.last_seq(profile) if last is None else last)
            numbered = replace(event, seq=seq)
            key = None if event.request_id is None else request_key(profile, event.request_id)
            pos = self.pos + len(rows) + 1
            rows.append((pos, profile, seq, event.session_id, key, pack(numbered)))
            request = None if key is None else self.layers.get(ApprovalRequest, key)
            changes.append(Change(numbered, request))
        return rows, changes
