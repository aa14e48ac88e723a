"""How long a turn's work has waited for people: time that no limit of the agent should count."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct


class Meter:
    """Seconds in which at least one wait was open: waits that overlap count once. It may be read from any thread."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        """`now_s` gives seconds of one clock."""
        self._now_s = now_s
        self._open = 0
        self._so_far: tuple[float, float | None] = (0.0, None)
        """The seconds of the waits that are over, and when the open ones began: one value, so that a reader in another
        thread never sees half a change."""

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A wait is open while inside."""
        self._open += 1
        if self._open == 1:
            self._so_far = (self._so_far[0], self._now_s())
        try:
            yield
        finally:
            self._open -= 1
            if self._open == 0:
                self._so_far = (self.waited_s, None)

    @property
    def waited_s(self) -> float:
        """The seconds until now, those of open waits included."""
        total_s, since = self._so_far
        # A wall clock that was set back takes nothing away.
        return total_s if since is None else total_s + max(0.0, self._now_s() - since)


class OpenTurn(Struct, frozen=True, kw_only=True):
    """A turn of the gateway's own process, as long as its block."""

    turn_id: str
    session_id: str
    lease_s: float
    meter: Meter

    @property
    def waited_s(self) -> float:
        """How many seconds it has waited for people so far, overlapping waits counted once. Add it to every limit that
        the agent's work in this turn has."""
        return self.meter.waited_s
