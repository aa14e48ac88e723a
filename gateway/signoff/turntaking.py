"""Whose new card goes next where a place's budget is short: sessions take turns, so that one that asks a lot cannot
keep another's first card from being seen."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta

from signoff.changes.common import NEW, plus
from signoff.model import ApprovalRequest, Copy, Destination
from signoff.ports import Store
from signoff.rows import request_key

REMEMBERED = 10_000
"""Sessions whose turns are remembered; one forgotten counts as not served yet."""
AT_THE_FRONT = 8
"""Cards of a place that come to each turn: enough to keep the order, few enough to look at each time."""
BEAT = timedelta(milliseconds=50)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NEVER = datetime.min.replace(tzinfo=UTC)

Place = tuple[str, Destination]
"""A profile and a destination."""
_Line = tuple[Place, str]
"""A session's cards for one place, by the session's id."""


class Turns:
    """Who was served last, and up to when each session's cards stand in line. Asked of only where a budget is short."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._served: dict[_Line, datetime] = {}
        self._tails: dict[_Line, datetime] = {}
        self._lines: dict[str, _Line] = {}
        """The line of each copy of this round that was looked up."""

    async def taken(self, due: Sequence[Copy], short: AbstractSet[Place]) -> Sequence[Copy]:
        """The due copies, with the new cards of the short places in turns: one of each session, the one that was
        served longest ago first, and within a session the oldest first. All else keeps its place."""
        self._lines.clear()
        if not short:
            return due
        ordered = list(due)
        for place in short:
            spots = [i for i, copy in enumerate(due) if is_new(copy) and place_of(copy) == place]
            cards = await self._in_turns([due[i] for i in spots])
            for spot, copy in zip(spots, cards, strict=True):
                ordered[spot] = copy
        return ordered

    async def _in_turns(self, cards: Sequence[Copy]) -> list[Copy]:
        lines: defaultdict[_Line, deque[Copy]] = defaultdict(deque)
        for copy in sorted(cards, key=lambda copy: copy.created_at):
            lines[await self._line(copy)].append(copy)
        order = deque(sorted(lines, key=lambda line: self._served.get(line, _NEVER)))
        taken: list[Copy] = []
        while order:
            line = order.popleft()
            taken.append(lines[line].popleft())
            if lines[line]:
                order.append(line)
        return taken

    def went(self, copy: Copy, now: datetime) -> None:
        """A copy goes now. Only those that others wait behind are remembered."""
        line = self._lines.get(copy.copy_id)
        if line is not None:
            self._remember(self._served, line, now)

    async def put_off(self, waiting: Sequence[tuple[Copy, float, float]], now: datetime) -> list[tuple[str, datetime]]:
        """Until when each of these waits, given the seconds until its place has room and the seconds between two
        messages there.

        A card that waits for the first time stands behind the others of its session, however many those of another
        are. Of those that lost a turn the first few come again at the next one, in their order; the rest are spread
        over later ones, so that a long line is not looked at again all at once.
        """
        later: list[tuple[str, datetime]] = []
        lost: defaultdict[Place, int] = defaultdict(int)
        for copy, wait_s, pace_s in waiting:
            place = place_of(copy)
            first = plus(now, wait_s)
            if is_new(copy) and not copy.limited:
                line = await self._line(copy)
                until = max(first, self._tails.get(line, first))
                self._remember(self._tails, line, plus(until, pace_s))
            else:
                until = plus(first, max(0, lost[place] - AT_THE_FRONT) * pace_s)
                lost[place] += 1
            later.append((copy.copy_id, _on_the_beat(until)))
        return later

    async def _line(self, copy: Copy) -> _Line:
        line = self._lines.get(copy.copy_id)
        if line is None:
            row = await self._store.get(ApprovalRequest, request_key(copy.profile, copy.request_id or ""))
            line = self._lines[copy.copy_id] = (place_of(copy), row.session_id if row is not None else "")
        return line

    @staticmethod
    def _remember(times: dict[_Line, datetime], line: _Line, when: datetime) -> None:
        times.pop(line, None)  # so that the ones longest untouched come first
        times[line] = when
        if len(times) > REMEMBERED:
            del times[next(iter(times))]


def _on_the_beat(when: datetime) -> datetime:
    """The next whole 50 ms. Cards that wait for the same room are then due together and can take turns, whenever each
    was told to wait."""
    return when + (_EPOCH - when) % BEAT


def is_new(copy: Copy) -> bool:
    """Whether it is a card that nobody has seen yet."""
    return copy.kind == "card" and copy.state == "queued" and copy.priority == NEW and not copy.remove


def place_of(copy: Copy) -> Place:
    """Where it goes, and for whom."""
    return copy.profile, copy.destination
