"""The system's clock behind the `Clock` port."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

_LONGEST_NAP_S = 15.0
"""A sleeper looks at the wall clock at least this often, so that a clock that was set or a machine that slept delays
nothing by more than that."""


class SystemClock:
    """Wall-clock time."""

    def now(self) -> datetime:
        """The present instant, aware UTC."""
        return datetime.now(UTC)

    async def sleep_until(self, when: datetime) -> None:
        """Return once `now() >= when`."""
        # No event tells that wall-clock time has passed.
        while (left_s := (when - self.now()).total_seconds()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(left_s, _LONGEST_NAP_S))
