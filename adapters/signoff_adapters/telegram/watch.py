"""What is known of the connection: its state by what was received, and what happened lately."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from datetime import datetime

from signoff.errors import AdapterError
from signoff.lifecycle import ADAPTER, allows, apply
from signoff.model import Health
from signoff.ports import Clock

HISTORY = 20
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 15.0
"""The longest pause is short enough that an outage which has ended is over for us within 30 s."""
_log = logging.getLogger(__name__)


class Watch:
    """Follows the adapter's lifecycle table; the clock gives all times."""

    def __init__(self, clock: Clock, deaf_after_s: float) -> None:
        """`deaf_after_s`: without anything received for so long, the adapter is degraded, whatever it believes."""
        self.state = "starting"
        self.failures = 0
        self._clock = clock
        self._deaf_after_s = deaf_after_s
        self._detail = ""
        self._heard_at: datetime | None = None
        self._history: deque[str] = deque(maxlen=HISTORY)
        self._tried = asyncio.Event()
        self._error: AdapterError | None = None
        self._random = random.SystemRandom()

    def heard(self, trouble: str = "") -> None:
        """An answer or an update came from Telegram; `trouble` is something it said is wrong all the same."""
        self._heard_at = self._clock.now()
        self.failures, self._error = 0, None
        self._step("fail" if trouble else "hear", trouble)
        self._tried.set()

    def failed(self, error: AdapterError) -> None:
        """A round failed."""
        self.failures += 1
        self._error = error
        self._step("fail", error.message)
        self._tried.set()

    def stopped(self) -> None:
        """Nothing more will be received."""
        if allows(ADAPTER, self.state, "stop"):
            self._step("stop", "")
        self._error = self._error or AdapterError("The adapter has stopped.")
        self._tried.set()

    def begin(self) -> None:
        """A new run of an adapter that had stopped."""
        if self.state == "stopped":
            self.state, self._detail = "starting", ""
            self._error = None
            self._tried.clear()

    async def proven(self) -> None:
        """Return once a round has succeeded; raises the error of the latest one if it failed."""
        await self._tried.wait()
        if self._error is not None:
            raise self._error

    def pause_s(self) -> float:
        """Seconds to the next try: twice as long after each failure, from 1 to 15, with jitter."""
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(self.failures, 10))
        return max(FIRST_PAUSE_S, self._random.uniform(longest / 2, longest))

    def health(self) -> Health:
        """State, last sign of life and history."""
        state, detail = self.state, self._detail
        silent_s = (self._clock.now() - self._heard_at).total_seconds() if self._heard_at is not None else 0.0
        if state == "ready" and silent_s > self._deaf_after_s:
            state, detail = "degraded", f"nothing heard from Telegram for {silent_s:.0f} s"
        return Health(
            state=state,  # type: ignore[arg-type]  # the table's states are these
            last_heard_at=self._heard_at,
            detail=detail,
            history=tuple(self._history),
        )

    def _step(self, event: str, detail: str) -> None:
        if self.state == "stopped":
            return
        before = self.state, self._detail
        self.state, self._detail = apply(ADAPTER, self.state, event), detail
        if before != (self.state, detail):
            line = f"{self.state}: {detail}" if detail else self.state
            self._history.append(f"{self._clock.now():%Y-%m-%dT%H:%M:%SZ} {line}")
            # What goes wrong before anything was heard is told by whoever waits for `proven`.
            loud = event == "fail" and self._heard_at is not None
            _log.log(logging.WARNING if loud else logging.INFO, "telegram adapter is %s", line)
