"""The rates that Slack counts by method over the whole app, which the core's budgets of places do not know."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from signoff.errors import RateLimited

PER_MINUTE = {"chat.update": 48, "chat.delete": 48, "chat.postMessage": 290, "files.getUploadURLExternal": 95}
"""Calls a minute, a little below what Slack documents: tier 3 is 50, tier 4 is 100, messages "several hundred"."""
MINUTE_S = 60.0


class MethodLimits:
    """Refuses a call that Slack would refuse, and says when it may be made."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        """`seconds` is a clock that never goes back."""
        self._seconds = seconds
        self._times = {method: deque[float](maxlen=count) for method, count in PER_MINUTE.items()}

    def take(self, method: str) -> None:
        """Count one call. Raises `RateLimited` when the minute is used up."""
        times, now = self._times[method], self._seconds()
        if times.maxlen is not None and len(times) == times.maxlen and (wait_s := times[0] + MINUTE_S - now) > 0:
            raise RateLimited(f"{method} was called {len(times)} times within a minute", retry_after_s=wait_s)
        times.append(now)
