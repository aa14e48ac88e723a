"""Rate budgets of the Web API, and a count of every request beyond them."""

from __future__ import annotations

import math
from collections import Counter, deque

import msgspec

from tests.platforms.telegram.clock import ServerClock, moment

from .model import LimitReport, LimitsMode, Violation
from .refusal import rate_limited

MINUTE_S = 60.0
KEPT_VIOLATIONS = 200
KEPT_BUDGETS = 4096

TIERS = {
    "apps.connections.open": 1,
    "conversations.history": 3,
    "conversations.info": 3,
    "conversations.open": 3,
    "conversations.replies": 3,
    "chat.delete": 3,
    "chat.update": 3,
    "chat.postephemeral": 4,
    "files.completeuploadexternal": 4,
    "files.getuploadurlexternal": 4,
    "files.info": 4,
    "users.info": 4,
    "usergroups.users.list": 2,
    "views.open": 4,
    "views.push": 4,
    "views.update": 4,
}
"""Tier of each method by its reference page; auth.test and chat.getPermalink allow hundreds a minute and go free."""


class RateLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The budgets.

    From Slack's "Rate limits": tiers of 1, 20, 50 and 100 requests a minute for each method; chat.postMessage 1 a
    second in one channel with short bursts let through, and "several hundred" a minute over the workspace. Slack gives
    no size for a burst; 3 is this server's strict reading, 300 that of the workspace. Tier 1 lets through as many at
    once as an app may have sockets (10).
    """

    mode: LimitsMode = "enforce"
    channel_per_s: float = 1.0
    channel_burst: int = 3
    workspace_per_minute: int = 300
    tiers_per_minute: tuple[int, ...] = (1, 20, 50, 100)
    connections_burst: int = 10


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


class _Minute:
    """At most `count` events in any minute."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()

    def wait_s(self, now: float, count: int) -> float:
        """Seconds until one more fits; 0 when it fits now."""
        while self._times and self._times[0] <= now - MINUTE_S:
            self._times.popleft()
        return 0.0 if len(self._times) < count else self._times[len(self._times) - count] + MINUTE_S - now

    def take(self, now: float) -> None:
        self._times.append(now)


class Budgets:
    """Spends one app's budgets; each app has its own."""

    def __init__(self, clock: ServerClock, limits: RateLimits) -> None:
        self.limits = limits
        self._clock = clock
        self._minutes: dict[str, _Minute] = {}
        self._buckets: dict[str, _Bucket] = {}
        self._counts: Counter[str] = Counter()
        self._latest: deque[Violation] = deque(maxlen=KEPT_VIOLATIONS)

    def spend(self, method: str, channel: str | None) -> None:
        """Take one request out of its budget; Refused 429 when that is empty and the mode is `enforce`.

        A refused request takes nothing.
        """
        if self.limits.mode == "off":
            return
        lowered = method.lower()
        if lowered == "chat.postmessage":
            self._spend_post(method, channel or "")
        elif lowered in TIERS:
            self._spend_tier(method, lowered, TIERS[lowered], channel)

    def _spend_post(self, method: str, channel: str) -> None:
        """A message: by channel and over the workspace."""
        limits, now = self.limits, self._clock.now()
        bucket = self._bucket(channel, limits.channel_burst, now)
        minute = self._minutes.setdefault("workspace", _Minute())
        self._judge("channel", method, channel, bucket.wait_s(now, limits.channel_burst, limits.channel_per_s), now)
        self._judge("workspace", method, channel, minute.wait_s(now, limits.workspace_per_minute), now)
        bucket.take()
        minute.take(now)

    def _spend_tier(self, method: str, lowered: str, tier: int, channel: str | None) -> None:
        limits, now = self.limits, self._clock.now()
        count = limits.tiers_per_minute[tier - 1]
        if tier == 1:
            burst = limits.connections_burst
            bucket = self._bucket(f"#{lowered}", burst, now)
            self._judge(method, method, channel, bucket.wait_s(now, burst, count / MINUTE_S), now)
            bucket.take()
            return
        minute = self._minutes.setdefault(lowered, _Minute())
        self._judge(method, method, channel, minute.wait_s(now, count), now)
        minute.take(now)

    def _bucket(self, key: str, burst: int, now: float) -> _Bucket:
        if key not in self._buckets:
            if len(self._buckets) >= KEPT_BUDGETS:
                self._buckets.pop(next(iter(self._buckets)))
            self._buckets[key] = _Bucket(burst, now)
        return self._buckets[key]

    def _judge(self, budget: str, method: str, channel: str | None, wait_s: float, now: float) -> None:
        """Count what is beyond a budget, and refuse it in `enforce`."""
        if wait_s <= 0:
            return
        retry_after_s = max(1, math.ceil(wait_s))
        self._counts[budget] += 1
        self._latest.append(
            Violation(budget=budget, channel=channel, method=method, at=moment(now), retry_after_s=retry_after_s)
        )
        if self.limits.mode == "enforce":
            raise rate_limited(retry_after_s)

    def report(self) -> LimitReport:
        """Requests beyond each budget so far."""
        return LimitReport(counts=dict(self._counts), latest=list(self._latest))

    def reset(self) -> None:
        """Forget what was spent and counted."""
        self._minutes.clear()
        self._buckets.clear()
        self._counts.clear()
        self._latest.clear()
