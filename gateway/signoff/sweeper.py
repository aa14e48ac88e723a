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
from signoff.errors import StoreCorrupt, StoreError
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
        """When it was last seen that the machine did not sleep, by the clock and by the time that passed."""
        self._making_up: asyncio.Task[None] | None = None
        self._moved: set[str] = set()
        """The rows that were moved on, by table and key, while not all of them are."""
        self._taken_back = timedelta(0)
        """By how much the start took deadlines back, as far as the clock has not caught up since."""
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
        self._looked = (now, self._clock.passed())
        beat = await self._store.get(Note, HEARTBEAT)
        down = now - datetime.fromisoformat(beat.value) if beat else timedelta(0)
        # Within a heartbeat another process may be up, unless this one is alone. Beyond it the whole time is made up
        # for, since how much of the last beat's period the gateway still lived is not known and no window may be cut.
        least = timedelta(0) if self._alone else timedelta(seconds=HEARTBEAT_S)
        self.down = down if down > least else timedelta(0)
        by = down if self._alone and down < timedelta(0) else min(self.down, MAX_SHIFT)
        if by < timedelta(0):
            log.warning("sweep.set_back: the clock was set back; deadlines come back by %.0f s", -by.total_seconds())
        # Another gateway that started at the same time may have moved them.
        if by and not await self._shift(by, now, lambda tx: tx.get(Note, HEARTBEAT) != beat):
            by = timedelta(0)
        self._taken_back = max(-by, timedelta(0))
        for profile, settings in self._settings.items():
            await self._arm(profile, settings)
        await self._heartbeat(now)
        if by > timedelta(seconds=1):
            text = "deadlines moved on by %.0f s, since a gateway last noted that it is up; it does every %.0f s"
            log.info(text, by.total_seconds(), HEARTBEAT_S)
        return by

    async def _shift(self, by: timedelta, now: datetime, unless: Callable[[Tx], bool] = lambda tx: False) -> bool:
        """Move every deadline on by that and note that we are up, unless that holds; whether it was done."""
        # What is to be sent is late after an outage, and is not to wait for a time that was taken back.
        tables: tuple[type[Struct], ...] = (ApprovalRequest, Turn, Notifier, *((Copy,) if by < timedelta(0) else ()))
        far = now + timedelta(days=36500)
        due = {row: [key_of(found) for found in await self._store.due(row, far, limit=ALL)] for row in tables}
        keys = {row: [key for key in due[row] if _name(row, key) not in self._moved] for row in tables}

        def change(tx: Tx, keys: Mapping[type[Struct], Sequence[str]]) -> bool:
            if unless(tx):
                return False
            sweeping.shift(tx, keys, by)
            tx.put(Note(name=HEARTBEAT, value=now.isoformat()))
            return True

        try:
            done = await self._store.transact(partial(change, keys=keys), bulk=True)
        except StoreError:
            raise
        except Exception:  # a row's outer edge: one that cannot be moved must not let the others run out
            done = await self._store.transact(partial(change, keys={}))
            for row in tables if done else ():
                await self._one_by_one(row, keys[row], now, partial(_shift_alone, row=row, by=by), self._moved.add)
        self._moved.clear()
        return done

    def _leapt(self) -> timedelta:
        """How far the clock went ahead of the time that passed since we looked last."""
        now, passed_s = self._clock.now(), self._clock.passed()
        if self._looked is None:
            self._looked = (now, passed_s)
        return now - self._looked[0] - timedelta(seconds=passed_s - self._looked[1])

    async def awake(self) -> None:
        """To be awaited before anything is committed: make up for a sleep of the machine, in which nobody could reach
        us, as for an outage. Where it did not sleep, that is two looks at the clock. With others on the store nobody
        knows whether they slept. Raises `StoreError` when it is still to be made up for."""
        if not self._alone:
            return
        if self._making_up is None:
            if self._leapt() < LEAP:
                return
            # A task of its own, since whoever came first may be cancelled.
            self._making_up = asyncio.create_task(self._make_up())
            self._making_up.add_done_callback(_heard)
        if self._making_up is not asyncio.current_task():
            await asyncio.shield(self._making_up)

    async def _make_up(self) -> None:
        before, leapt, now = self._looked, self._leapt(), self._clock.now()
        self._looked = (now, self._clock.passed())
        try:
            # What the start took back, since the clock was behind, is given back whole.
            await self._shift(min(leapt, MAX_SHIFT + self._taken_back), now)
            log.warning("sweep.leapt: the clock went ahead by %.0f s; deadlines are moved on", leapt.total_seconds())
            self._taken_back = max(self._taken_back - leapt, timedelta(0))
            self._beat = now
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreCorrupt):
                self._looked = before  # it is still to be made up for
                raise
            # It would fail again at each try, and nothing could be committed meanwhile.
            self._moved.clear()
            self._on_defect()
            log.exception("sweep.leapt: deadlines could not be moved on")
        finally:
            self._making_up = None

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
        await self.awake()
        passed_s, now = self._clock.passed(), self._clock.now()
        self._looked = (now, passed_s)
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

    async def _one_by_one(
        self,
        row: type[Struct],
        keys: Sequence[str],
        now: datetime,
        change: Sweep,
        done: Callable[[str], object] = lambda name: None,
    ) -> None:
        for key in keys:
            try:
                _tell_lost(await self._store.transact(partial(change, keys=[key])))
            except StoreError:
                raise
            except Exception as error:  # as above
                self._skip(row, key, now, error)
            done(_name(row, key))

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


def _shift_alone(tx: Tx, keys: Sequence[str], row: type[Struct], by: timedelta) -> None:
    sweeping.shift(tx, {row: keys}, by)


def _heard(making_up: asyncio.Task[None]) -> None:
    """Those who waited are told of its error, and may all have been cancelled."""
    if not making_up.cancelled():
        making_up.exception()


def _tell_lost(changed: object) -> None:
    """Log the kept actions that a sweep left unknown: an operator should look what became of them."""
    for row in changed if isinstance(changed, list) else ():
        if isinstance(row, ApprovalRequest):
            log.warning("action.unknown: %s", lost_ids(row))


def _name(row: type[Struct], key: str) -> str:
    return joined(table_of(row).name, key)
