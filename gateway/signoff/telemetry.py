"""What the gateway counts and times, for Prometheus. Each name is declared once, here, with its meaning.

A registry belongs to one gateway, so that several in a process do not share numbers. Endings are counted from the
change feed: every ending passes there, whoever caused it. The feed carries the commits of other processes on the same
database too, so their endings are counted here as well.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from time import perf_counter
from typing import Any, TypeVar

from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from signoff.model import ApprovalRequest, Change, Copy, Event
from signoff.ports import Clock, Store, Tx
from signoff.rows import key_of

R = TypeVar("R", bound=Struct)
T = TypeVar("T")

CONTENT_TYPE = CONTENT_TYPE_LATEST
_DECISION_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 900, 3600, 14400, 86400)
"""People answer in seconds to hours; the default window is 300 s."""
_COMMIT_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
"""A synced commit takes 1 to 10 ms on usual disks; a tap is answered neutrally after 1.5 s."""
_BYPASSES = {"session.bypass_started": "started", "session.bypass_ended": "ended"}
_ALARMS = {"adapter.alarm": "adapter", "hook.failed": "hook"}
_LAG_EVERY_S = 0.5
_MOST_COPIES = 1000
"""The outbox is counted up to this depth: beyond, the number only says that it is far behind."""


def _logins(registry: CollectorRegistry) -> Counter:
    return Counter(
        "signoff_console_logins",
        "Log-ins at the console, by result: key, link, wrong_key, wrong_link, agent_key, too_many.",
        ("result",),
        registry=registry,
    )


def _hooks(registry: CollectorRegistry) -> tuple[Counter, Counter]:
    calls = Counter(
        "signoff_hook_calls",
        "Calls of hooks in the gateway's process, by hook and result: ok, raised, timeout, skipped.",
        ("hook", "result"),
        registry=registry,
    )
    deliveries = Counter(
        "signoff_hook_deliveries",
        "Signed webhooks, by result: delivered, failed (one try), parked (given up), skipped.",
        ("result",),
        registry=registry,
    )
    return calls, deliveries


def _from_events(registry: CollectorRegistry) -> tuple[Counter, Counter]:
    about = "Sessions whose questions were switched off (started) and on again (ended), by whatever ended it."
    bypasses = Counter("signoff_session_bypasses", about, ("what",), registry=registry)
    about = "What an operator must look at: parked updates (adapter), receivers of webhooks that are gone (hook)."
    return bypasses, Counter("signoff_alarms", about, ("of",), registry=registry)


class Telemetry:
    """The gateway's metrics. Call `follow` once with the store, and run `watch_loop` as a task."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        make = self.registry
        self._endings = Counter(
            "signoff_approvals",
            "Approval requests that ended, by outcome and by cause (none where the outcome has no cause).",
            ("outcome", "cause"),
            registry=make,
        )
        self._pending = Gauge("signoff_approvals_pending", "Approval requests that wait now.", registry=make)
        self._decision = Histogram(
            "signoff_decision_seconds",
            "Seconds from the question to a person's answer.",
            ("outcome",),
            buckets=_DECISION_S,
            registry=make,
        )
        self._timed: dict[str, Histogram] = {}
        """The histogram of each outcome, so that it is looked up once."""
        self._refused = Counter(
            "signoff_taps_refused", "Presses of a button that decided nothing, by reason.", ("why",), registry=make
        )
        self._sends = Counter(
            "signoff_sends",
            "Calls that send, edit or delete a message, by platform and result.",
            ("platform", "result"),
            registry=make,
        )
        self._outbox = Gauge(
            "signoff_outbox_depth",
            f"Messages due to be sent or edited that were not yet, counted up to {_MOST_COPIES}.",
            registry=make,
        )
        self._commit = Histogram(
            "signoff_store_commit_seconds",
            "Seconds from handing a change to the store to its durable commit.",
            buckets=_COMMIT_S,
            registry=make,
        )
        self._lag = Gauge(
            "signoff_event_loop_lag_seconds", "How late the event loop last ran a timer, in seconds.", registry=make
        )
        about = "HTTP requests answered with an error, by its code."
        self._errors = Counter("signoff_http_errors", about, ("code",), registry=make)
        about = "Defects of Signoff that were met; each has a log line, in an HTTP request with an error id."
        self._unexpected = Counter("signoff_unexpected_errors", about, registry=make)
        self._logins = _logins(make)
        self._hook_calls, self._hook_deliveries = _hooks(make)
        self._bypasses, self._alarms = _from_events(make)
        self._waiting: set[str] = set()

    # --- told by others ----------------------------------------------------------------------

    def sent(self, platform: str, result: str) -> None:
        """A call to a platform ended: `ok`, or the code of its error."""
        self._sends.labels(platform, result).inc()

    def http_error(self, code: str) -> None:
        """An HTTP request was answered with this error code."""
        self._errors.labels(code).inc()

    def console_login(self, result: str) -> None:
        """Somebody logged in at the console, or tried to."""
        self._logins.labels(result).inc()

    def hook_called(self, hook: str, result: str) -> None:
        """A hook in this process was called, or a call was left out."""
        self._hook_calls.labels(hook, result).inc()

    def hook_delivery(self, _profile: str, _hook: str, result: str) -> None:
        """A webhook was delivered, failed once, or was given up. Whoever reads metrics needs no key, so no name of a
        profile or receiver is a label; the event `hook.failed` has them."""
        self._hook_deliveries.labels(result).inc()

    def unexpected(self) -> None:
        """A defect was met."""
        self._unexpected.inc()

    # --- the feed ----------------------------------------------------------------------------

    async def follow(self, store: Store, profiles: Iterable[str]) -> Callable[[], None]:
        """Count from the feed from now on, beginning with what waits; returns how to stop."""
        unsubscribe = store.subscribe(self.heard)
        for profile in profiles:
            rows = await store.find(ApprovalRequest, "pending_profile", profile)
            self._waiting.update(key_of(row) for row in rows)
        self._pending.set(len(self._waiting))
        return unsubscribe

    def heard(self, changes: Sequence[Change]) -> None:
        """A commit's changes."""
        ended: collections.Counter[tuple[str, str]] = collections.Counter()
        for change in changes:
            kind, row = change.event.type, change.request
            if kind == "tap.refused":
                self._refused.labels(str(change.event.data.get("why", "unknown"))).inc()
            elif kind in _BYPASSES:
                self._bypasses.labels(_BYPASSES[kind]).inc()
            elif kind in _ALARMS:
                self._alarms.labels(_ALARMS[kind]).inc()
            elif row is None:
                continue
            elif kind == "approval.requested" and row.outcome is None:
                self._waiting.add(key_of(row))
            elif kind == "approval.resolved":
                self._waiting.discard(key_of(row))
                ended[row.outcome or "none", row.cause or "none"] += 1
                self._decided(row)
        for labels, count in ended.items():
            self._endings.labels(*labels).inc(count)
        self._pending.set(len(self._waiting))

    def _decided(self, row: ApprovalRequest) -> None:
        """How long a person took."""
        if row.decided_at is None or not any(actor.type == "person" for actor in row.decided_by):
            return
        timed = self._timed.get(row.outcome or "none")
        if timed is None:
            timed = self._timed[row.outcome or "none"] = self._decision.labels(row.outcome)
        timed.observe((row.decided_at - row.created_at).total_seconds())

    # --- measured ----------------------------------------------------------------------------

    def committed(self, seconds: float) -> None:
        """A change was durable after so many seconds."""
        self._commit.observe(seconds)

    async def watch_loop(self) -> None:
        """Measure the event loop's lag until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _LAG_EVERY_S
            await asyncio.sleep(_LAG_EVERY_S)
            self._lag.set(max(0.0, loop.time() - due))

    async def render(self, store: Store, clock: Clock) -> bytes:
        """All metrics in Prometheus' text format. Raises `StoreError` when the outbox cannot be read."""
        self._outbox.set(len(await store.due(Copy, clock.now(), limit=_MOST_COPIES)))
        return generate_latest(self.registry)


class TimedStore:
    """A store whose commits are timed; all else goes straight through."""

    def __init__(self, store: Store, telemetry: Telemetry) -> None:
        self._store = store
        self._committed = telemetry.committed
        self.first: Callable[[], Awaitable[None]] | None = None
        """Awaited before each commit; what it raises is raised instead."""

    @property
    def shared(self) -> bool:
        """As the store's."""
        return self._store.shared

    async def transact(self, change: Callable[[Tx], T], *, bulk: bool = False) -> T:
        """As the store's; only what was committed is counted."""
        if self.first is not None:
            await self.first()
        start = perf_counter()
        value = await self._store.transact(change, bulk=bulk)
        self._committed(perf_counter() - start)
        return value

    async def get(self, row: type[R], key: str) -> R | None:
        """As the store's."""
        return await self._store.get(row, key)

    async def find(
        self, row: type[R], path: str, value: str, *, limit: int | None = None, after: str | None = None
    ) -> list[R]:
        """As the store's."""
        return await self._store.find(row, path, value, limit=limit, after=after)

    async def due(self, row: type[R], now: datetime, *, limit: int) -> list[R]:
        """As the store's."""
        return await self._store.due(row, now, limit=limit)

    async def next_due(self, row: type[Struct]) -> datetime | None:
        """As the store's."""
        return await self._store.next_due(row)

    async def events(self, profile: str, after: int, *, limit: int, session_id: str | None = None) -> list[Event]:
        """As the store's."""
        return await self._store.events(profile, after, limit=limit, session_id=session_id)

    async def last_seq(self, profile: str) -> int:
        """As the store's."""
        return await self._store.last_seq(profile)

    def subscribe(self, listener: Callable[[Sequence[Change]], None]) -> Callable[[], None]:
        """As the store's."""
        return self._store.subscribe(listener)

    async def check(self) -> dict[str, Any]:
        """As the store's."""
        return await self._store.check()

    async def aclose(self) -> None:
        """As the store's."""
        await self._store.aclose()
