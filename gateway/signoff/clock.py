"""The system's clock behind the `Clock` port."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

_LONGEST_NAP_S = 15.0
"""A sleeper looks at the clock at least this often, so that a machine that slept delays nothing by more than that."""
_NS = 1_000_000_000


class SystemClock:
    """Wall-clock time that never goes back.

    Whoever sets the machine's clock back must not make a card, a ping or a limit wait for the old time to come again.
    So time goes on then, a tenth slower, until the machine's has caught up. A step forward is followed at once.
    """

    def __init__(
        self, wall_ns: Callable[[], int] = time.time_ns, passed_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        """Nanoseconds since 1970 (UTC) as the machine's clock has them, and those it has run since some instant."""
        self._wall_ns, self._passed_ns = wall_ns, passed_ns
        self._last_ns, self._last_at_ns = wall_ns(), passed_ns()
        self._reading = threading.Lock()  # stores read it in their threads

    def now(self) -> datetime:
        """The present instant, aware UTC; not before any that it told already."""
        with self._reading:
            at_ns = self._passed_ns()
            self._last_ns = max(self._wall_ns(), self._last_ns + (at_ns - self._last_at_ns) * 9 // 10)
            self._last_at_ns = at_ns
            return _instant(self._last_ns)

    def wall(self) -> datetime:
        """The instant that the machine's clock shows, aware UTC, wherever it was set to."""
        return _instant(self._wall_ns())

    def passed(self) -> float:
        """Seconds that the machine has run since some instant: no setting of its clock and no sleep counts."""
        return self._passed_ns() / _NS

    async def sleep_until(self, when: datetime) -> None:
        """Return once `now() >= when`."""
        # No event tells that wall-clock time has passed.
        while (left_s := (when - self.now()).total_seconds()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(left_s, _LONGEST_NAP_S))


def _instant(since_1970_ns: int) -> datetime:
    return datetime.fromtimestamp(since_1970_ns / _NS, UTC)
