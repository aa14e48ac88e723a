"""Notices sockets that are connected and deaf: Slack reports our own messages back where the app hears that channel.

Once a channel was heard to do so, a message posted there that is not reported back shows that nothing else comes
through either. Pings do not show that: a deaf session answers them. Which channels those are outlives a restart, so the
first message posted after it counts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from signoff.errors import SignoffError
from signoff.ports import Clock, Inbox

from ..recent import Recent

AT_MOST_EVERY_S = 60.0
"""Slack allows a new socket about once a minute."""
LOOK_EVERY_S = 1.0
FORGOTTEN_AFTER = 3
"""So many alarms over a channel without anything heard from it: its events were taken from the app."""
KEPT = "heard_channels"
_CHANNELS_KEPT = 256
_log = logging.getLogger(__name__)


class Echo:
    """What was posted and should be heard."""

    def __init__(self, clock: Clock, echo_s: float, deaf: Callable[[str], None]) -> None:
        """`deaf` is called with the reason."""
        self._clock = clock
        self._echo_s = echo_s
        self._deaf = deaf
        self._speaking: Recent[str, int] = Recent(_CHANNELS_KEPT)
        """Channels that are heard, each with the alarms since it last was."""
        self._learned = False
        self._early: Recent[tuple[str, str], None] = Recent(256)
        self._awaited: dict[tuple[str, str], datetime] = {}
        self._told_at: datetime | None = None

    def posted(self, channel: str, ts: str) -> None:
        """We posted this; its report may have come before the answer."""
        if channel in self._speaking and (channel, ts) not in self._early:
            self._awaited[channel, ts] = self._clock.now()

    def heard(self, channel: str, ts: str) -> None:
        """Our own message was reported."""
        self._learned = self._learned or channel not in self._speaking
        self._speaking.put(channel, 0)
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
            self._count({channel for channel, _ in overdue})
            self._deaf(f"deaf: a message posted {self._echo_s:g} s ago was not reported back")

    def _count(self, channels: set[str]) -> None:
        for channel in channels:
            alarms = (self._speaking.pop(channel) or 0) + 1
            if alarms < FORGOTTEN_AFTER:
                self._speaking.put(channel, alarms)
            else:
                self._learned = True

    async def run(self, inbox: Inbox) -> None:
        """Look again and again until cancelled."""
        await self._remember(inbox)
        while True:
            await self._clock.sleep_until(self._clock.now() + timedelta(seconds=LOOK_EVERY_S))
            self.look()
            if self._learned:
                await self._keep(inbox)

    async def _remember(self, inbox: Inbox) -> None:
        try:
            kept = await inbox.load(KEPT)
        except SignoffError as error:
            _log.info("slack: the channels that were heard are not known: %s", error)
            return
        for channel in _read(kept):
            if channel not in self._speaking:
                self._speaking.put(channel, 0)

    async def _keep(self, inbox: Inbox) -> None:
        self._learned = False
        try:
            await inbox.save(KEPT, msgspec.json.encode(list(self._speaking)).decode())
        except SignoffError as error:
            _log.info("slack: the channels that are heard were not kept: %s", error)


def _read(kept: str | None) -> list[str]:
    try:
        return msgspec.json.decode(kept or "[]", type=list[str])
    except msgspec.DecodeError:
        _log.warning("slack: the kept list of channels could not be read; it is made anew")
        return []
