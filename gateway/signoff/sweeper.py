"""The loop that lets time act: deadlines, lapses and leases, taken from an index and raced through the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct

from signoff.bypass_notes import over_card
from signoff.changes import expiring, sweeping
from signoff.changes.staging import lost_ids
from signoff.errors import StoreError
from signoff.model import ApprovalRequest, Change, Copy, Note, Notifier, Session, Turn
from signoff.ports import Clock, Store, Tx
from signoff.rows import joined, key_of, table_of
from signoff.settings import Profile, SessionSettings
from signoff.timing import wait_until
from signoff.waiters import Waiters

log = logging.getLogger(__name__)

BATCH = 500
"""Rows of one sweep; a long queue is swept in several commits so that taps get in between."""
IDLE_S = 1.0
"""The longest sleep: a turn or another process may have made something due meanwhile."""
HEARTBEAT = "heartbeat"
EXPIRY = "expiry"
"""The note of what the settings said when sessions were last made to expire by them, by profile."""
HEARTBEAT_S = 5.0
MAX_SHIFT = timedelta(hours=1)
"""Deadlines are moved on by at most this much after an outage."""
LEAP = timedelta(seconds=5)
"""A clock that went so far ahead of the time that passed tells of a machine that slept, or was set."""
ALL = 10_000_000
SKIP_FOR = timedelta(seconds=30)
"""A row whose change failed is tried again after this long; meanwhile the others are swept."""
OTHERS_S = 20.0
"""So long a turn that is due is left to the other gateways of a shared store, which alone know of their waits. They
look every second; 20 s is what one that stands still, or could not reach the store, has to come back."""
LEAST_OTHERS_S = 5.0
"""A turn with a shorter lease is left to them for that, at least for this long."""

R = TypeVar("R", bound=Struct)


class Sweep(Protocol):
    """A change that lets time act on these rows."""

    def __call__(self, tx: Tx, /, keys: Sequence[str]) -> object: ...


class Sweeper:
    """Runs what is due. `run` is one task of the gateway."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        waiters: Waiters,
        *,
        profiles: Mapping[str, Profile] | None = None,
        alone: bool = False,
        on_defect: Callable[[], None] = lambda: None,
        on_failure: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        """`profiles` say when their sessions expire. `alone`: while this one has the store open, no other gateway can
        be up. `on_defect` is called for each row that had to be skipped, `on_failure` for each round the store
        failed."""
        self._store = store
        self._clock = clock
        self._waiters = waiters
        self._alone = alone
        self._settings = {name: profile.sessions for name, profile in (profiles or {}).items()}
        self._wake = asyncio.Event()
        self._next: datetime | None = None
        self._beat: datetime | None = None
        self._looked: tuple[datetime, float] | None = None
        """When the last round began, by the clock and by the time that passed."""
        self.down = timedelta(0)
        """How long no gateway was up before this one."""
        self._on_defect = on_defect
        self._on_failure = on_failure
        self._skipped: dict[str, datetime] = {}
        """The rows that failed, by table and key, and until when they are left alone."""
        self._due_since: dict[str, datetime] = {}
        """The turns that are left to other gateways, and since when."""

    async def resume(self) -> timedelta:
        """At start: move every deadline on by the time no gateway was up; returns that time.

        It is negative where the clock was set back meanwhile: deadlines then come back with it, so that what was left
        of them at the last heartbeat is left of them now.
        """
        now = self._clock.now()
        beat = await self._store.get(Note, HEARTBEAT)
        down = now - datetime.fromisoformat(beat.value) if beat else timedelta(0)
        # Within a heartbeat another process may be up, unless this one is alone. Beyond it the whole time is made up
        # for, since how much of the last beat's period the gateway still lived is not known and no window may be cut.
        least = timedelta(0) if self._alone else timedelta(seconds=HEARTBEAT_S)
        self.down = down if down > least else timedelta(0)
        by = down if self._alone and down < timedelta(0) else min(self.down, MAX_SHIFT)
        if by < timedelta(0):
            log.warning("sweep.set_back: the clock was set back; deadlines come back by %.0f s", -by.total_seconds())
        if by and not await self._shift(by, now, beat):
            by = timedelta(0)
        for profile, settings in self._settings.items():
            await self._arm(profile, settings)
        await self._heartbeat(now)
        if by > timedelta(seconds=1):
            text = "deadlines moved on by %.0f s, since a gateway last noted that it is up; it does every %.0f s"
            log.info(text, by.total_seconds(), HEARTBEAT_S)
        return by

    async def _shift(self, by: timedelta, now: datetime, beat: Note | None) -> bool:
        """Move every deadline on by that, unless another gateway that started at the same time has moved them."""
        far = now + timedelta(days=36500)
        requests = [key_of(r) for r in await self._store.due(ApprovalRequest, far, limit=ALL)]
        turns = [key_of(t) for t in await self._store.due(Turn, far, limit=ALL)]
        notifiers = [key_of(n) for n in await self._store.due(Notifier, far, limit=ALL)]
        # What is to be sent is late after an outage, and is not to wait for a time that was taken back.
        copies = [key_of(c) for c in await self._store.due(Copy, far, limit=ALL)] if by < timedelta(0) else []
        shift = partial(sweeping.shift, requests=requests, turns=turns, notifiers=notifiers, copies=copies, by=by)

        def change(tx: Tx) -> bool:
            if tx.get(Note, HEARTBEAT) != beat:
                return False
            shift(tx)
            tx.put(Note(name=HEARTBEAT, value=now.isoformat()))
            return True

        return await self._store.transact(change, bulk=True)

    async def _awake(self, now: datetime) -> None:
        """Make up for a sleep of the machine, in which nobody could reach us, as for an outage. With others on the
        store nobody knows whether they slept."""
        passed_s, before = self._clock.passed(), self._looked
        self._looked = (now, passed_s)
        if before is None or not self._alone:
            return
        leapt = now - before[0] - timedelta(seconds=passed_s - before[1])
        if leapt < LEAP:
            return
        log.warning("sweep.leapt: the clock went ahead by %.0f s; deadlines are moved on", leapt.total_seconds())
        try:
            await self._shift(min(leapt, MAX_SHIFT), now, await self._store.get(Note, HEARTBEAT))
        except StoreError:
            self._looked = before  # it is still to be made up for
            raise
        self._beat = now

    async def _arm(self, profile: str, settings: SessionSettings) -> None:
        """Where it was changed when sessions expire, have those that are there expire by it."""
        name = f"{EXPIRY}:{profile}"
        known = await self._store.get(Note, name)
        told = msgspec.json.encode(settings).decode() if expiring.expires(settings) else ""
        if told == (known.value if known is not None else ""):
            return
        after: str | None = None
        while expiring.expires(settings):
            rows = await self._store.find(Session, "profile", profile, limit=BATCH, after=after)
            if not rows:
                break
            after = key_of(rows[-1])
            keys = [key_of(row) for row in rows if row.closed_at is None]
            await self._store.transact(partial(sweeping.arm_sessions, keys=keys, settings=settings), bulk=True)
        await self._store.transact(lambda tx: tx.put(Note(name=name, value=told)))

    async def run(self) -> None:
        """Sweep until cancelled. A store that cannot be written is tried again; nothing is lost by waiting."""
        unsubscribe = self._store.subscribe(self._on_changes)
        try:
            while True:
                try:
                    await self._round()
                except StoreError as error:
                    log.error("sweep failed: %s", error)
                    self._due_since = {}  # the others could not reach it either
                    self._on_failure(error)
                    await self._clock.sleep_until(self._clock.now() + timedelta(seconds=IDLE_S))
        finally:
            unsubscribe()

    async def _round(self) -> None:
        self._wake.clear()
        now = self._clock.now()
        await self._awake(now)
        if self._beat is None or not timedelta(0) <= now - self._beat < timedelta(seconds=HEARTBEAT_S):
            await self._heartbeat(now)
        more = await self.sweep()
        if more:
            return
        self._next = await self._next_due()
        now = self._clock.now()
        idle = now + timedelta(seconds=IDLE_S)
        if self._next is not None and self._next <= now and (self._skipped or self._due_since):
            self._next = idle  # what is due is being left alone, and hides what comes after it
        await wait_until(self._clock, min(self._next, idle) if self._next else idle, self._wake)

    async def sweep(self) -> bool:
        """Run one batch of everything due now; True if there may be more."""
        now = self._clock.now()
        if self._skipped:
            self._skipped = {name: until for name, until in self._skipped.items() if until > now}
        counts = (
            await self._sweep(ApprovalRequest, now, lambda keys: sweeping.sweep_requests),
            await self._sweep(Turn, now, lambda keys: partial(sweeping.sweep_turns, seen=self._waiters.seen(keys))),
            await self._sweep(Notifier, now, lambda keys: sweeping.sweep_notifiers),
            await self._sweep(
                Session,
                now,
                lambda keys: partial(
                    sweeping.sweep_sessions, card=partial(over_card, now=now), settings=self._settings
                ),
            ),
        )
        return BATCH in counts

    async def _sweep(self, row: type[R], now: datetime, change_for: Callable[[Sequence[str]], Sweep]) -> int:
        """Run one batch of what is due in that table; returns how many rows it had."""
        # Past those that are left alone, so that however many they are they do not fill the batch.
        due = await self._store.due(row, now, limit=BATCH + len(self._skipped) + len(self._due_since))
        left = self._left_to_others(due, now) if row is Turn and self._store.shared else frozenset()
        keys = [key for found in due if (key := key_of(found)) not in left]
        if self._skipped:
            keys = [key for key in keys if _name(row, key) not in self._skipped]
        keys = keys[:BATCH]
        if not keys:
            return 0
        change = change_for(keys)
        try:
            _tell_lost(await self._store.transact(partial(change, keys=keys)))
        except StoreError:
            raise
        except Exception as error:  # a row's outer edge: one that no change can be made of must not hold up the others
            if len(keys) == 1:
                self._skip(row, keys[0], now, error)
            else:
                await self._one_by_one(row, keys, now, change)
        return len(keys)

    def _left_to_others(self, due: Sequence[Struct], now: datetime) -> frozenset[str]:
        """The turns among these that another gateway may be waiting in. One that is, renews them meanwhile."""
        since = self._due_since
        self._due_since = {}
        for turn in due:
            key = key_of(turn)
            if not isinstance(turn, Turn) or self._waiters.keeps(key, turn.lease_s):
                continue
            first = since.get(key, now)
            if now - first < timedelta(seconds=min(max(turn.lease_s, LEAST_OTHERS_S), OTHERS_S)):
                self._due_since[key] = first
        return frozenset(self._due_since)

    async def _one_by_one(self, row: type[R], keys: Sequence[str], now: datetime, change: Sweep) -> None:
        for key in keys:
            try:
                _tell_lost(await self._store.transact(partial(change, keys=[key])))
            except StoreError:
                raise
            except Exception as error:  # as above
                self._skip(row, key, now, error)

    def _skip(self, row: type[Struct], key: str, now: datetime, error: Exception) -> None:
        self._skipped[_name(row, key)] = now + SKIP_FOR
        self._on_defect()
        # The words alone: what a change raises may have thousands of lines behind it, again at every try.
        log.error("sweep.skipped %r: %s: %.200s", _name(row, key), type(error).__name__, error)

    async def _next_due(self) -> datetime | None:
        rows: tuple[type[Struct], ...] = (ApprovalRequest, Turn, Notifier, Session)
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


def _tell_lost(changed: object) -> None:
    """Log the kept actions that a sweep left unknown: an operator should look what became of them."""
    for row in changed if isinstance(changed, list) else ():
        if isinstance(row, ApprovalRequest):
            log.warning("action.unknown: %s", lost_ids(row))


def _name(row: type[Struct], key: str) -> str:
    return joined(table_of(row).name, key)
