"""Rate budgets of the REST API and the gateway, and a count of everything beyond them."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, deque

import msgspec

from tests.platforms.telegram.clock import ServerClock, moment

from .model import LimitReport, LimitsMode, Violation
from .refusal import WORDS, Refused
from .routes import Request

KEPT_VIOLATIONS = 200
KEPT_BUCKETS = 4096
HOUR_S = 3600.0
INVALID_WINDOW_S = 600.0
VIA = "1.1 google"
"""Discord's answers pass Google's proxy, Cloudflare's own bans do not: clients tell the two apart by this header."""


class RateLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The budgets beside those of the routes.

    50 requests a second over all, 10,000 invalid ones (401, 403, 429) in 10 minutes and 120 gateway sends a minute are
    Discord's published figures. `channel_posts` and `channel_edits` in 5 seconds are commonly announced in headers. No
    figure is published for edits of messages older than an hour; `old_edits_per_hour` (in one channel) is a guess.
    """

    mode: LimitsMode = "enforce"
    global_per_s: int = 50
    channel_posts: int = 5
    channel_edits: int = 5
    old_edits_per_hour: int = 30
    invalid_per_10_min: int = 10_000
    gateway_sends_per_minute: int = 120
    identifies_per_day: int = 1000


class _Bucket:
    """A fixed window that begins with its first request, as Discord's headers describe it."""

    def __init__(self) -> None:
        self.used = 0
        self.ends = 0.0

    def turn(self, now: float) -> None:
        """Begin anew once the window has ended."""
        if now >= self.ends:
            self.used = 0

    def take(self, now: float, per_s: float) -> None:
        """Use one."""
        if self.used == 0:
            self.ends = now + per_s
        self.used += 1


class RateLimiter:
    """Spends one bot's budgets; each bot has its own."""

    def __init__(self, clock: ServerClock, limits: RateLimits) -> None:
        self.limits = limits
        self._clock = clock
        self._global: deque[float] = deque()
        self._buckets: dict[tuple[str, str], _Bucket] = {}
        self._old: dict[int, deque[float]] = {}
        self._invalid: deque[float] = deque()
        self._counts: Counter[str] = Counter()
        self._latest: deque[Violation] = deque(maxlen=KEPT_VIOLATIONS)
        self._invalid_total = 0
        self._identifies: deque[float] = deque()

    def spend(self, request: Request) -> dict[str, str]:
        """Take one request out of the budgets; the headers of its answer. Refused 429 in mode `enforce`."""
        if self.limits.mode == "off":
            return {}
        now = self._clock.now()
        if request.route.counted_globally:
            self._spend_global(request, now)
        limit = self._limit(request)
        if limit is None:
            return {}
        key = (request.route.call, _major(request))
        if key not in self._buckets and len(self._buckets) >= KEPT_BUCKETS:
            self._buckets.pop(next(iter(self._buckets)))
        bucket = self._buckets.setdefault(key, _Bucket())
        bucket.turn(now)
        if bucket.used >= limit:
            wait_s = max(0.001, bucket.ends - now)
            self._exceed("bucket", request.channel_id, request.call, wait_s)
            if self.limits.mode == "enforce":
                headers = _headers(request, limit, bucket, now) | {"X-RateLimit-Scope": "user"}
                raise limited(wait_s, is_global=False, headers=headers)
        bucket.take(now, request.route.per_s)
        return _headers(request, limit, bucket, now)

    def _limit(self, request: Request) -> int | None:
        if request.route.call == "create_message":
            return self.limits.channel_posts
        if request.route.call == "edit_message":
            return self.limits.channel_edits
        return request.route.limit

    def _spend_global(self, request: Request, now: float) -> None:
        _drop_before(self._global, now - 1.0)
        if len(self._global) >= self.limits.global_per_s:
            wait_s = max(0.001, self._global[0] + 1.0 - now)
            self._exceed("global", request.channel_id, request.call, wait_s)
            if self.limits.mode == "enforce":
                raise limited(wait_s, is_global=True)
        self._global.append(now)

    def spend_old_edit(self, channel_id: int) -> None:
        """An edit of a message older than an hour; Refused 30046 beyond the budget in mode `enforce`."""
        if self.limits.mode == "off":
            return
        now = self._clock.now()
        times = self._old.setdefault(channel_id, deque())
        _drop_before(times, now - HOUR_S)
        if len(times) >= self.limits.old_edits_per_hour:
            wait_s = times[0] + HOUR_S - now
            self._exceed("old_edits", channel_id, "edit_message", wait_s)
            if self.limits.mode == "enforce":
                raise limited(wait_s, is_global=False, code=30046)
        times.append(now)

    def invalid(self, request: Request, status: int) -> None:
        """Count an answer that brings a ban nearer."""
        if status not in (401, 403, 429) or self.limits.mode == "off":
            return
        now = self._clock.now()
        self._invalid_total += 1
        _drop_before(self._invalid, now - INVALID_WINDOW_S)
        self._invalid.append(now)
        if len(self._invalid) > self.limits.invalid_per_10_min:
            self._exceed("invalid", request.channel_id, request.call, INVALID_WINDOW_S)

    def gateway_sends(self, sent: deque[float]) -> bool:
        """Whether one more gateway send fits, given one socket's earlier ones; counts it."""
        now = self._clock.now()
        _drop_before(sent, now - 60.0)
        sent.append(now)
        fits = self.limits.mode == "off" or len(sent) <= self.limits.gateway_sends_per_minute
        if not fits:
            self._exceed("gateway_sends", None, "gateway", 60.0)
        return fits or self.limits.mode == "count"

    def identify(self) -> None:
        """Count the start of a session."""
        now = self._clock.now()
        _drop_before(self._identifies, now - 86_400.0)
        self._identifies.append(now)
        if len(self._identifies) > self.limits.identifies_per_day:
            self._exceed("identify", None, "gateway", 86_400.0)

    def _exceed(self, budget: str, channel_id: int | None, call: str, retry_after_s: float) -> None:
        self._counts[budget] += 1
        at = moment(self._clock.now())
        self._latest.append(
            Violation(budget=budget, channel_id=channel_id, call=call, at=at, retry_after_s=round(retry_after_s, 3))
        )

    def report(self) -> LimitReport:
        """Requests beyond each budget so far."""
        return LimitReport(
            counts=dict(self._counts),
            latest=list(self._latest),
            invalid_requests=self._invalid_total,
            identifies=len(self._identifies),
        )

    def reset(self) -> None:
        """Forget what was spent and counted."""
        for each in (
            self._global,
            self._invalid,
            self._identifies,
            self._latest,
            self._buckets,
            self._old,
            self._counts,
        ):
            each.clear()
        self._invalid_total = 0


def limited(
    retry_after_s: float,
    *,
    is_global: bool,
    code: int = 0,
    headers: dict[str, str] | None = None,
) -> Refused:
    """A 429 in Discord's form."""
    message = WORDS[code][1] if code else "You are being rate limited."
    body = {"message": message, "retry_after": round(retry_after_s, 3), "global": is_global}
    more = {"Via": VIA, "Retry-After": str(math.ceil(retry_after_s))}
    if is_global:
        more |= {"X-RateLimit-Global": "true", "X-RateLimit-Scope": "global"}
    return Refused(429, body | ({"code": code} if code else {}), (headers or {}) | more)


def _headers(request: Request, limit: int, bucket: _Bucket, now: float) -> dict[str, str]:
    name = f"{request.route.method} {request.route.path}".encode()
    return {
        "X-RateLimit-Limit": str(limit),
        "X-RateLimit-Remaining": str(max(0, limit - bucket.used)),
        "X-RateLimit-Reset": f"{bucket.ends:.3f}",
        "X-RateLimit-Reset-After": f"{max(0.0, bucket.ends - now):.3f}",
        "X-RateLimit-Bucket": hashlib.sha256(name).hexdigest()[:32],
        "Via": VIA,
    }


def _major(request: Request) -> str:
    name = {"channel": "channel_id", "guild": "guild_id", "token": "token"}.get(request.route.major)
    return "" if name is None else request.arguments[name]


def _drop_before(times: deque[float], moment_s: float) -> None:
    while times and times[0] <= moment_s:
        times.popleft()
