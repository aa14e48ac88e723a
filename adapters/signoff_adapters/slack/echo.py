"""Notices sockets that are connected and deaf: Slack reports our own messages back where the app hears that channel.

Once a channel was heard to do so, a message posted there that is not reported back shows that nothing else comes
through either. Pings do not show that: a deaf session answers them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from signoff.ports import Clock

from .memory import Recent

AT_MOST_EVERY_S = 60.0
"""Slack allows a new socket about once a minute."""
LOOK_EVERY_S = 1.0


class Echo:
    """What was posted and should be heard."""

    def __init__(self, clock: Clock, echo_s: float, deaf: Callable[[str], None]) -> None:
        """`deaf` is called with the reason."""
        self._clock = clock
        self._echo_s = echo_s
        self._deaf = deaf
        self._speaking: Recent[str, None] = Recent()
        self._early: Recent[tuple[str, str], None] = Recent(256)
        self._awaited: dict[tuple[str, str], datetime] = {}
        self._told_at: datetime | None = None

    def posted(self, channel: str, ts: str) -> None:
        """We posted this; its report may have come before the answer."""
        if channel in self._speaking and (channel, ts) not in self._early:
            self._awaited[channel, ts] = self._clock.now()

    def heard(self, channel: str, ts: str) -> None:
        """Our own message was reported."""
        self._speaking.put(channel, None)
        self._early.put((channel, ts), None)
        self._awaited.pop((channel, ts), None)

    def look(self) -> None:
        """Judge what is overdue."""
        now = self._clock.now()
        overdue = [key for key, at in self._awaited.items() if now - at >= timedelta(seconds=self._echo_s)]
        for key in overdue:
            del self._awaited[key]
        recently = self._told_at is not None and now - self._told_at < timedelta(seconds=AT_MOST_EVERY_S)
        if overdue and not recently:
            self._told_at = now
            self._deaf(f"deaf: a message posted {self._echo_s:g} s ago was not reported back")

    async def run(self) -> None:
        """Look again and again until cancelled."""
        while True:
            await self._clock.sleep_until(self._clock.now() + timedelta(seconds=LOOK_EVERY_S))
            self.look()
