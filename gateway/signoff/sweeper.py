"""The loop that lets time act: deadlines, lapses and leases, taken from an index and raced through the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct

from signoff.changes import sweeping
from signoff.errors import StoreError
from signoff.model import ApprovalRequest, Change, Note, Notifier, Turn
from signoff.ports import Clock, Store, Tx
from signoff.rows import key_of, table_of
from signoff.timing import wait_until
from signoff.waiters import Waiters

log = logging.getLogger(__name__)

BATCH = 500
"""Rows of one sweep; a long queue is swept in several commits so that taps get in between."""
IDLE_S = 1.0
"""The longest sleep: a turn or another process may have made something due meanwhile."""
HEARTBEAT = "heartbeat"
HEARTBEAT_S = 5.0
MAX_SHIFT = timedelta(hours=1)
"""Deadlines are moved on by at most this much after an outage."""
ALL = 10_000_000


class Sweeper:
    """Runs what is due. `run` is one task of the gateway."""

    def __init__(self, store: Store, clock: Clock, waiters: Waiters) -> None:
        self._store = store
        self._clock = clock
        self._waiters = waiters
        self._wake = asyncio.Event()
        self._next: datetime | None = None
        self._beat: datetime | None = None

    async def resume(self) -> timedelta:
        """At start: move every deadline on by the time no gateway was up; returns that time."""
        now = self._clock.now()
        beat = await self._store.get(Note, HEARTBEAT)
        down = now - datetime.fromisoformat(beat.value) if beat else timedelta(0)
        # Within a heartbeat another process may be up. Beyond it the whole time is made up for, since how much of the
        # last beat's period the gateway still lived is not known and no window may be cut.
        by = min(down, MAX_SHIFT) if down > timedelta(seconds=HEARTBEAT_S) else timedelta(0)
        if by > timedelta(0):
            far = now + timedelta(days=36500)
            requests = [key_of(r) for r in await self._store.due(ApprovalRequest, far, limit=ALL)]
            turns = [key_of(t) for t in await self._store.due(Turn, far, limit=ALL)]
            notifiers = [key_of(n) for n in await self._store.due(Notifier, far, limit=ALL)]
            change = partial(sweeping.shift, requests=requests, turns=turns, notifiers=notifiers, by=by)
            await self._store.transact(change, bulk=True)
        await self._heartbeat(now)
        return by

    async def run(self) -> None:
        """Sweep until cancelled. A store that cannot be written is tried again; nothing is lost by waiting."""
        unsubscribe = self._store.subscribe(self._on_changes)
        try:
            while True:
                try:
                    await self._round()
                except StoreError as error:
                    log.error("sweep failed: %s", error)
                    await self._clock.sleep_until(self._clock.now() + timedelta(seconds=IDLE_S))
        finally:
            unsubscribe()

    async def _round(self) -> None:
        self._wake.clear()
        now = self._clock.now()
        if self._beat is None or now - self._beat >= timedelta(seconds=HEARTBEAT_S):
            await self._heartbeat(now)
        more = await self.sweep()
        if more:
            return
        self._next = await self._next_due()
        idle = self._clock.now() + timedelta(seconds=IDLE_S)
        await wait_until(self._clock, min(self._next, idle) if self._next else idle, self._wake)

    async def sweep(self) -> bool:
        """Run one batch of everything due now; True if there may be more."""
        now = self._clock.now()
        requests = await self._store.due(ApprovalRequest, now, limit=BATCH)
        if requests:
            await self._store.transact(partial(sweeping.sweep_requests, keys=[key_of(r) for r in requests]))
        turns = await self._store.due(Turn, now, limit=BATCH)
        if turns:
            keys = [key_of(t) for t in turns]
            seen = self._waiters.seen(keys)
            await self._store.transact(partial(sweeping.sweep_turns, keys=keys, seen=seen))
        notifiers = await self._store.due(Notifier, now, limit=BATCH)
        if notifiers:
            await self._store.transact(partial(sweeping.sweep_notifiers, keys=[key_of(n) for n in notifiers]))
        return BATCH in (len(requests), len(turns), len(notifiers))

    async def _next_due(self) -> datetime | None:
        rows: tuple[type[Struct], ...] = (ApprovalRequest, Turn, Notifier)
        times = [await self._store.next_due(row) for row in rows]
        known = [time for time in times if time is not None]
        return min(known) if known else None

    def _on_changes(self, changes: Sequence[Change]) -> None:
        due = table_of(ApprovalRequest).due
        for change in changes:
            when = due(change.request) if change.request is not None and due is not None else None
            if when is not None and (self._next is None or when < self._next):
                self._next = when
                self._wake.set()

    async def _heartbeat(self, now: datetime) -> None:
        self._beat = now

        def change(tx: Tx) -> None:
            tx.put(Note(name=HEARTBEAT, value=now.isoformat()))

        await self._store.transact(change)
