"""How fast one platform may be sent to: overall, and per place. Kept below what the platforms document, because a
refusal for speed holds up everything behind it."""

from __future__ import annotations

import math
from collections import deque
from datetime import datetime, timedelta

from signoff.model import Destination
from signoff.ports import AdapterInfo

MINUTE = timedelta(seconds=60)
RESERVED = 3
"""Of a group's messages a minute, kept back from new cards for answers to people."""
MARGIN_S = 0.05


class Window:
    """At most `count` in any `span`, by the times of the last ones."""

    def __init__(self, count: int, span: timedelta) -> None:
        self.count = count
        self.span = span
        self._times: deque[datetime] = deque(maxlen=max(count, 1))

    def wait(self, now: datetime, keep: int = 0, messages: int = 1) -> float:
        """Seconds until so many more are allowed, with `keep` left over for others; 0 now."""
        limit = max(self.count - keep - (messages - 1), 1)
        while self._times and self._times[0] <= now - self.span:
            self._times.popleft()
        if len(self._times) < limit:
            return 0.0
        oldest = self._times[len(self._times) - limit]
        return max((oldest + self.span - now).total_seconds(), 0.0) + MARGIN_S

    def room(self, now: datetime, keep: int = 0) -> float:
        """How many more are allowed at once."""
        if not self.span:
            return math.inf
        self.wait(now)
        return max(self.count - keep, 1) - len(self._times)

    def free_at(self, when: datetime, keep: int = 0) -> float:
        """How many will be allowed then, if none goes before."""
        return max(self.count - keep, 1) - sum(time > when - self.span for time in self._times)

    def take(self, now: datetime) -> None:
        """Count one now."""
        self._times.append(now)

    def idle(self, now: datetime) -> bool:
        """Nothing counts any more, so the window can be forgotten."""
        return not self._times or self._times[-1] <= now - self.span


class Budget:
    """The budget of one platform's bot."""

    def __init__(self, info: AdapterInfo) -> None:
        self._info = info
        self._all = Window(max(int(info.per_second), 1), timedelta(seconds=1))
        self._chats: dict[tuple[str, str], list[Window]] = {}
        self._held: dict[str, datetime] = {}

    def wait(
        self, place: Destination, op: str, now: datetime, *, group: bool, priority: int, messages: int = 1
    ) -> float:
        """Seconds until this send (of so many messages) or edit is within the budget; 0 now. Nothing is counted."""
        held = self._held.get(place.chat_id)
        hold = (held - now).total_seconds() if held is not None and held > now else 0.0
        keep = RESERVED if priority > 1 else 0
        windows = self._windows(place, op, group)
        waits = (w.wait(now, keep if w.span == MINUTE else 0, messages) for w in windows)
        return max(hold, self._all.wait(now), *waits)

    def room(self, place: Destination, now: datetime, *, group: bool) -> float:
        """How many new cards the place may get at once; below 1 none."""
        windows = self._windows(place, "post", group)
        return min(self._all.room(now), *(w.room(now, RESERVED if w.span == MINUTE else 0) for w in windows))

    def takes(self, place: Destination, now: datetime, within_s: float, *, group: bool) -> float:
        """How many new cards the place may get within that time."""
        end = now + timedelta(seconds=within_s)
        held = self._held.get(place.chat_id)
        if held is not None and held > end:
            return 0.0
        pace_s = self._info.per_chat_s
        burst, *minute = self._windows(place, "post", group)
        soon = burst.room(now) + within_s / pace_s if pace_s else math.inf
        return max(0.0, min([soon, *(w.free_at(end, RESERVED) for w in minute)]))

    def take(self, place: Destination, op: str, now: datetime, *, group: bool) -> None:
        """Count one send or edit."""
        self._all.take(now)
        for window in self._windows(place, op, group):
            window.take(now)
        if len(self._chats) > 10_000:
            self._chats = {k: ws for k, ws in self._chats.items() if not all(w.idle(now) for w in ws)}

    def pace_s(self, group: bool) -> float:
        """Seconds between two messages to one place when it is sent to all the time."""
        return max(self._info.per_chat_s, 60.0 / self._info.group_per_minute if group else 0.0)

    def hold(self, place: Destination, until: datetime) -> None:
        """The platform asked us to wait with this chat."""
        self._held[place.chat_id] = until

    def _windows(self, place: Destination, op: str, group: bool) -> list[Window]:
        key = (place.chat_id, "post" if op == "post" else "edit")
        found = self._chats.get(key)
        if found is None:
            burst = self._info.burst
            found = [Window(burst, timedelta(seconds=self._info.per_chat_s * burst))]
            if group:
                found.append(Window(self._info.group_per_minute, MINUTE))
            self._chats[key] = found
        return found
