"""What is known of the connection: its state by what was received, and what happened lately.

Several things must work: the Web API, and at least one of the sockets (or the request URL). Each is a source here.
"""

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

HISTORY = 40
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 15.0
"""The longest pause is short enough that an outage which has ended is over for us within 30 s."""
WEB = "web api"
_log = logging.getLogger(__name__)


class Watch:
    """Follows the adapter's lifecycle table; the clock gives all times."""

    def __init__(self, clock: Clock, deaf_after_s: float) -> None:
        """`deaf_after_s`: without anything received for so long, the adapter is degraded, whatever it believes."""
        self.state = "starting"
        self._clock = clock
        self._deaf_after_s = deaf_after_s
        self._detail = ""
        self._heard_at: datetime | None = None
        self._history: deque[str] = deque(maxlen=HISTORY)
        self._troubles: dict[str, str] = {}
        self._working: set[str] = set()
        self._tried = asyncio.Event()
        self._error: AdapterError | None = None
        self._worked = False
        """The Web API and a way in worked at the same time once."""

    def heard(self) -> None:
        """Something came from Slack."""
        self._heard_at = self._clock.now()

    def works(self, source: str) -> None:
        """This source has proved itself."""
        self.heard()
        self._troubles.pop(source, None)
        self._working.add(source)
        self._review()

    def fails(self, source: str, error: AdapterError) -> None:
        """This source does not work now."""
        self._working.discard(source)
        self._troubles[source] = error.message
        self._error = error
        self._review()

    def troubled(self, source: str) -> bool:
        """Whether this source is known not to work."""
        return source in self._troubles

    def note(self, line: str) -> None:
        """Something an operator may want to know that changes no state."""
        self._history.append(f"{self._clock.now():%Y-%m-%dT%H:%M:%SZ} {line}")
        _log.info("slack adapter: %s", line)

    def stopped(self) -> None:
        """Nothing more will be received."""
        if allows(ADAPTER, self.state, "stop"):
            self._step("stop", "")
        self._error = self._error or AdapterError("The adapter has stopped.")
        self._tried.set()

    def begin(self) -> None:
        """A new run; of an adapter that had stopped, everything begins anew."""
        self._working.clear()
        self._troubles.clear()
        if self.state == "stopped":
            self.state, self._detail = "starting", ""
            self._error = None
            self._tried.clear()

    async def proven(self) -> None:
        """Return once a round has succeeded; raises the error of the latest one if it failed."""
        await self._tried.wait()
        if self._error is not None:
            raise self._error

    def health(self) -> Health:
        """State, last sign of life and history."""
        state, detail = self.state, self._detail
        silent_s = (self._clock.now() - self._heard_at).total_seconds() if self._heard_at is not None else 0.0
        if state == "ready" and silent_s > self._deaf_after_s:
            state, detail = "degraded", f"nothing heard from Slack for {silent_s:.0f} s"
        return Health(
            state=state,  # type: ignore[arg-type]  # the table's states are these
            last_heard_at=self._heard_at,
            detail=detail,
            history=tuple(self._history),
        )

    def _review(self) -> None:
        detail = "; ".join(f"{source}: {why}" for source, why in sorted(self._troubles.items()))
        receiving = any(source != WEB for source in self._working)
        if WEB in self._working and receiving:
            self._error = None
            self._step("hear", detail)
            self._worked = True
            self._tried.set()
        elif self._troubles:
            self._step("fail", detail)
            self._tried.set()

    def _step(self, event: str, detail: str) -> None:
        if self.state == "stopped":
            return
        before = self.state, self._detail
        self.state, self._detail = apply(ADAPTER, self.state, event), detail
        if before != (self.state, detail):
            line = f"{self.state}: {detail}" if detail else self.state
            self._history.append(f"{self._clock.now():%Y-%m-%dT%H:%M:%SZ} {line}")
            # What goes wrong before it worked for once is told by whoever waits for `proven`.
            _log.log(logging.WARNING if detail and self._worked else logging.INFO, "slack adapter is %s", line)


class Pause:
    """Twice as long after each failure, from 1 s to the longest, with jitter."""

    def __init__(self) -> None:
        self.failures = 0
        self._random = random.SystemRandom()

    def next_s(self) -> float:
        """Count a failure; seconds until the next try."""
        self.failures += 1
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(self.failures, 10))
        return max(FIRST_PAUSE_S, self._random.uniform(longest / 2, longest))

    def reset(self) -> None:
        """It worked."""
        self.failures = 0
