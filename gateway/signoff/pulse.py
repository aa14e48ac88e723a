"""Whether the gateway's own loops do their work: how long each has been failing without a pause."""

from __future__ import annotations

from datetime import datetime, timedelta

from signoff.errors import StoreError
from signoff.ports import Clock

FAILING_FOR = timedelta(seconds=30)
"""A loop that fails for so long does not mend by itself soon, and what waits on it is late. Shorter troubles, such as
a lock that a backup holds, pass without anybody's doing."""
CALM = timedelta(seconds=20)
"""After so long without a failure a loop is well again: longer than the store's wait for a lock and the pause after."""


class Streak:
    """Failures that follow each other."""

    __slots__ = ("by_store", "first", "last", "reason")

    def __init__(self, at: datetime, reason: str) -> None:
        self.first = self.last = at
        self.reason = reason
        self.by_store = True
        """Each of them was the store's."""


class Pulse:
    """The failures of the gateway's loops, by the loop's name."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._streaks: dict[str, Streak] = {}

    def failed(self, loop: str, error: Exception) -> None:
        """One round of that loop ended in an error."""
        now = self._clock.now()
        streak = self._streaks.get(loop)
        if streak is None or now - streak.last > CALM:
            streak = self._streaks[loop] = Streak(now, "")
        streak.last = now
        streak.by_store = streak.by_store and isinstance(error, StoreError)
        streak.reason = f"{type(error).__name__}: {error}"[:200]

    def store_is_back(self) -> None:
        """The store, which had failed, serves again: what failed for its sake alone begins anew."""
        self._streaks = {loop: streak for loop, streak in self._streaks.items() if not streak.by_store}

    def troubles(self) -> dict[str, str]:
        """The loops that have been failing for over 30 s, each with how long and why."""
        now = self._clock.now()
        return {
            loop: f"failing for {(now - streak.first).total_seconds():.0f} s: {streak.reason}"
            for loop, streak in self._streaks.items()
            if now - streak.last <= CALM and now - streak.first > FAILING_FOR
        }
