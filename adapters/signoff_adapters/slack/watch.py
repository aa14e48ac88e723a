"""What is known of the connection to Slack.

Several things must work: the Web API, and at least one of the sockets (or the request URL). Each is a source here.
"""

from __future__ import annotations

from signoff.errors import AdapterError
from signoff.ports import Clock

from ..watching import Condition

HISTORY = 40
"""Lines kept; the sockets are renewed now and then, and each renewal is a line."""
WEB = "web api"


class Watch(Condition):
    """The condition of an adapter with several sources."""

    def __init__(self, clock: Clock, deaf_after_s: float) -> None:
        """As for `Condition`."""
        super().__init__(clock, deaf_after_s, platform="Slack", history=HISTORY)
        self._troubles: dict[str, str] = {}
        self._working: set[str] = set()
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

    def begin(self) -> None:
        """A new run: what is known of the sources is forgotten."""
        self._working.clear()
        self._troubles.clear()
        super().begin()

    def _review(self) -> None:
        detail = "; ".join(f"{source}: {why}" for source, why in sorted(self._troubles.items()))
        loud = bool(detail) and self._worked
        receiving = any(source != WEB for source in self._working)
        if WEB in self._working and receiving:
            self._error = None
            self._step("hear", detail, loud=loud)
            self._worked = True
            self._tried.set()
        elif self._troubles:
            self._step("fail", detail, loud=loud)
            self._tried.set()
