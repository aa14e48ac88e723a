"""Rate budgets of the Bot API, and a count of every request beyond them."""

from __future__ import annotations

import math
from collections import Counter, deque
from typing import TypeVar

import msgspec

from .clock import ServerClock, moment
from .model import LimitReport, LimitsMode, Violation
from .refusal import too_many_requests

MINUTE_S = 60.0
KEPT_VIOLATIONS = 200
KEPT_BUDGETS = 4096

K = TypeVar("K")
V = TypeVar("V")


class RateLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The budgets.

    From Telegram's bot FAQ: about 30 messages a second over all chats, 1 a second in one chat with short bursts let
    through, 20 a minute in one group. The FAQ gives no size for a burst; 3 is this server's strict reading. Edits in a
    group are held to 20 a minute of their own, as bot authors report; no figure for edits is published.
    """

    mode: LimitsMode = "enforce"
    overall_per_s: int = 30
    chat_per_s: float = 1.0
    chat_burst: int = 3
    group_per_minute: int = 20
    group_edits_per_minute: int = 20


class _Window:
    """At most `count` events in any span of `span_s` seconds."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()

    def wait_s(self, now: float, count: int, span_s: float) -> float:
        """Seconds until one more fits; 0 when it fits now."""
        while self._times and self._times[0] <= now - span_s:
            self._times.popleft()
        if len(self._times) < count:
            return 0.0
        return self._times[len(self._times) - count] + span_s - now

    def add(self, now: float) -> None:
        self._times.append(now)


class _Bucket:
    """A burst that refills at a steady pace."""

    def __init__(self, burst: int, now: float) -> None:
        self._level = float(burst)
        self._at = now

    def wait_s(self, now: float, burst: int, per_s: float) -> float:
        """Seconds until one more fits; 0 when it fits now."""
        self._level = min(float(burst), self._level + (now - self._at) * per_s)
        self._at = now
        return 0.0 if self._level >= 1.0 else (1.0 - self._level) / per_s

    def take(self) -> None:
        self._level -= 1.0


class RateLimiter:
    """Spends one bot's budgets; each bot has its own."""

    def __init__(self, clock: ServerClock, limits: RateLimits) -> None:
        self.limits = limits
        self._clock = clock
        self._overall = _Window()
        self._chats: dict[int, _Bucket] = {}
        self._groups: dict[tuple[int, bool], _Window] = {}
        self._counts: Counter[str] = Counter()
        self._latest: deque[Violation] = deque(maxlen=KEPT_VIOLATIONS)

    def spend(self, method: str, chat_id: int, *, group: bool, edit: bool) -> None:
        """Take one request out of the budgets; Refused 429 when one is empty and the mode is `enforce`.

        A refused request takes nothing. Edits count overall and, in groups, in their own budget of a minute.
        """
        limits = self.limits
        if limits.mode == "off":
            return
        now = self._clock.now()
        windows = [("overall", self._overall, limits.overall_per_s, 1.0)]
        if group:
            name, count = ("group_edits", limits.group_edits_per_minute) if edit else ("group", limits.group_per_minute)
            windows.append((name, _kept(self._groups, (chat_id, edit), _Window()), count, MINUTE_S))
        waits = {name: window.wait_s(now, count, span_s) for name, window, count, span_s in windows}
        bucket = None
        if not edit:
            bucket = _kept(self._chats, chat_id, _Bucket(limits.chat_burst, now))
            waits["chat"] = bucket.wait_s(now, limits.chat_burst, limits.chat_per_s)
        self._judge(method, chat_id, waits, now)
        for _, window, _, _ in windows:
            window.add(now)
        if bucket is not None:
            bucket.take()

    def _judge(self, method: str, chat_id: int, waits: dict[str, float], now: float) -> None:
        """Count what is beyond a budget, and refuse it in `enforce`."""
        budget = max(waits, key=lambda name: waits[name])
        if waits[budget] <= 0:
            return
        retry_after_s = math.ceil(waits[budget])
        self._counts[budget] += 1
        self._latest.append(
            Violation(
                budget=budget, chat_id=chat_id, method=method, at=moment(now), retry_after_s=max(1, retry_after_s)
            )
        )
        if self.limits.mode == "enforce":
            raise too_many_requests(retry_after_s)

    def report(self) -> LimitReport:
        """Requests beyond each budget so far."""
        return LimitReport(counts=dict(self._counts), latest=list(self._latest))

    def reset(self) -> None:
        """Forget what was spent and counted."""
        self._overall = _Window()
        self._chats.clear()
        self._groups.clear()
        self._counts.clear()
        self._latest.clear()


def _kept(table: dict[K, V], key: K, fresh: V) -> V:
    """The entry under `key`, made when new; the oldest entry leaves a full table."""
    if key not in table:
        if len(table) >= KEPT_BUDGETS:
            table.pop(next(iter(table)))
        table[key] = fresh
    return table[key]
