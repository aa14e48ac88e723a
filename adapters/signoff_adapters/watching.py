"""What is known of an adapter's connection: its state by what was received, and what happened lately."""

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
"""Lines kept for one connection."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 15.0
"""The longest pause is short enough that an outage which has ended is over for us within 30 s."""
_log = logging.getLogger(__name__)


class Pause:
    """Twice as long after each failure, from 1 s to the longest, with jitter."""

    def __init__(self) -> None:
        self.failures = 0
        self._random = random.SystemRandom()

    def seconds(self) -> float:
        """Seconds until the next try, after the failures counted so far."""
        longest_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(self.failures, 10))
        return max(FIRST_PAUSE_S, self._random.uniform(longest_s / 2, longest_s))

    def next_s(self) -> float:
        """Count a failure; seconds until the next try."""
        self.failures += 1
        return self.seconds()

    def reset(self) -> None:
        """It worked."""
        self.failures = 0


class Condition:
    """Follows the adapter's lifecycle table; the clock gives all times. What moves it is told by the kinds of it."""

    def __init__(self, clock: Clock, deaf_after_s: float, *, platform: str, history: int) -> None:
        """`deaf_after_s`: without anything received for so long, the adapter is degraded, whatever it believes.

        `platform` is the name for people, `history` how many lines are kept.
        """
        self.state = "starting"
        self._platform = platform
        self._clock = clock
        self._deaf_after_s = deaf_after_s
        self._detail = ""
        self._heard_at: datetime | None = None
        self._history: deque[str] = deque(maxlen=history)
        self._tried = asyncio.Event()
        self._error: AdapterError | None = None

    def note(self, line: str, *, level: int = logging.INFO) -> None:
        """Keep something worth telling that does not change the state. `level` is the log line's."""
        self._keep(line)
        _log.log(level, "%s adapter: %s", self._platform.lower(), line)

    def stopped(self) -> None:
        """Nothing more will be received."""
        if allows(ADAPTER, self.state, "stop"):
            self._step("stop", "")
        self._error = self._error or AdapterError("The adapter has stopped.")
        self._tried.set()

    def begin(self) -> None:
        """A new run; of an adapter that had stopped, everything begins anew."""
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
            state, detail = "degraded", f"nothing heard from {self._platform} for {silent_s:.0f} s"
        return Health(
            state=state,  # type: ignore[arg-type]  # the table's states are these
            last_heard_at=self._heard_at,
            detail=detail,
            history=tuple(self._history),
        )

    def _step(self, event: str, detail: str, *, loud: bool = False) -> None:
        """Move by the table. What goes wrong before it worked for once is not `loud`: whoever waits for `proven` tells
        that."""
        if self.state == "stopped":
            return
        before = self.state, self._detail
        self.state, self._detail = apply(ADAPTER, self.state, event), detail
        if before != (self.state, detail):
            line = f"{self.state}: {detail}" if detail else self.state
            self._keep(line)
            _log.log(logging.WARNING if loud else logging.INFO, "%s adapter is %s", self._platform.lower(), line)

    def _keep(self, line: str) -> None:
        self._history.append(f"{self._clock.now():%Y-%m-%dT%H:%M:%SZ} {line}")


class Watch(Condition):
    """The condition of an adapter with one connection: each round of it succeeds or fails."""

    def __init__(self, clock: Clock, deaf_after_s: float, *, platform: str) -> None:
        """As for `Condition`."""
        super().__init__(clock, deaf_after_s, platform=platform, history=HISTORY)
        self._pause = Pause()

    def heard(self, trouble: str = "") -> None:
        """An answer or an update came; `trouble` is something it said is wrong all the same."""
        self._heard_at = self._clock.now()
        self._pause.reset()
        self._error = None
        self._step("fail" if trouble else "hear", trouble, loud=bool(trouble))
        self._tried.set()

    def failed(self, error: AdapterError) -> None:
        """A round failed."""
        self._pause.failures += 1
        self._error = error
        self._step("fail", error.message, loud=self._heard_at is not None)
        self._tried.set()

    def pause_s(self) -> float:
        """Seconds to the next try: twice as long after each failure, from 1 to 15, with jitter."""
        return self._pause.seconds()
