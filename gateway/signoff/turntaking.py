"""Whose new card goes next where a place's budget is short: sessions take turns, so that one that asks a lot cannot
keep another's first card from being seen. What is more than the budget takes soon goes to a digest."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from signoff.changes.common import NEW, plus
from signoff.changes.digests import LEAST, Gathered
from signoff.model import ApprovalRequest, Copy, Destination
from signoff.ports import Store
from signoff.rows import request_key

REMEMBERED = 10_000
"""Sessions whose turns are remembered (one forgotten counts as not served yet), and requests whose sessions are."""
AT_THE_FRONT = 8
"""Cards of a place that come to each turn: enough to keep the order, few enough to look at each time."""
KEPT = 5
"""Sessions whose next card still goes singly where all others are listed."""
DIGEST_MESSAGES = 2
"""What a digest costs: the file with the whole texts is a message of its own on some platforms."""
BEAT = timedelta(milliseconds=50)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NEVER = datetime.min.replace(tzinfo=UTC)

K = TypeVar("K")
V = TypeVar("V")
Place = tuple[str, Destination]
"""A profile and a destination."""
_Line = tuple[Place, str]
"""A session's cards for one place, by the session's id."""


class _Open:
    """The digest of a place that is not sent yet."""

    def __init__(self, copy_id: str) -> None:
        self.copy_id = copy_id
        self.lines: set[_Line] = set()


class Turns:
    """Who was served last, and up to when each session's cards stand in line. Asked of only where a budget is short."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._served: dict[_Line, datetime] = {}
        self._tails: dict[_Line, datetime] = {}
        self._lines: dict[str, _Line] = {}
        """The line of each copy of this round that was looked up."""
        self._sessions: dict[str, str] = {}
        """By request, whose session never changes: a database elsewhere takes a while to tell it, again each round."""
        self._waiting: defaultdict[Place, dict[str, Copy]] = defaultdict(dict)
        """The new cards that were put off, until they are due again."""
        self._open: dict[Place, _Open] = {}
        self._single: set[str] = set()
        """Cards that cannot be listed, so that they are not tried again."""

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

    # --- digests -----------------------------------------------------------------------------

    def crowds(self, due: Sequence[Copy]) -> dict[Place, list[Copy]]:
        """The due new cards of the places where enough wait for a digest, or where one is not sent yet."""
        found: defaultdict[Place, list[Copy]] = defaultdict(list)
        for copy in due:
            if is_new(copy) and copy.kind == "card":
                place = place_of(copy)
                self._waiting[place].pop(copy.copy_id, None)
                found[place].append(copy)
        crowds = {}
        for place, cards in found.items():
            waiting = len(self._waiting[place])
            if not waiting:
                del self._waiting[place]
            if place in self._open or waiting + len(cards) >= LEAST:
                crowds[place] = cards
        return crowds

    async def surplus(self, place: Place, due: Sequence[Copy], room: float, takes: float) -> list[str]:
        """Which new cards of a place go to its digest, where it may get `room` now and `takes` soon.

        Those of sessions that are on the unsent digest join it. Of the others, all but the first few in turn are listed
        once the place could not get them soon.
        """
        self._lines.clear()
        opened = self._open.get(place)
        cards = [copy for copy in (*self._waiting.get(place, {}).values(), *due) if copy.copy_id not in self._single]
        joining: list[Copy] = []
        others: list[Copy] = []
        for copy in cards:
            joins = opened is not None and await self._line(copy) in opened.lines
            (joining if joins else others).append(copy)
        if opened is not None:
            takes -= DIGEST_MESSAGES
        if len(others) - max(takes, 0.0) >= LEAST:
            ordered = await self._in_turns(others)
            sessions = len({await self._line(copy) for copy in others})
            joining += ordered[max(int(room), min(sessions, int(max(takes, 0.0)), KEPT), 0) :]
        return [copy.copy_id for copy in joining]

    def open_digest(self, place: Place) -> str | None:
        """The unsent digest of a place, as far as is known."""
        opened = self._open.get(place)
        return opened.copy_id if opened is not None else None

    def listed(self, place: Place, gathered: Gathered) -> None:
        """Those cards are on that digest now; unfit ones go singly."""
        opened = self._open.get(place)
        if gathered.listed and (opened is None or opened.copy_id != gathered.digest_id):
            opened = self._open[place] = _Open(gathered.digest_id)
        for copy_id in gathered.listed:
            line = self._lines[copy_id]
            if opened is not None:
                opened.lines.add(line)
            self._tails.pop(line, None)
            self._waiting[place].pop(copy_id, None)
        if len(self._single) > REMEMBERED:
            self._single.clear()
        self._single |= gathered.unfit

    # --- turns -------------------------------------------------------------------------------

    def went(self, copy: Copy, now: datetime) -> None:
        """A copy goes now. Only those that others wait behind are remembered."""
        if copy.kind == "digest" and self.open_digest(place_of(copy)) == copy.copy_id:
            del self._open[place_of(copy)]
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
            if is_new(copy) and copy.kind == "card":
                self._waiting[place][copy.copy_id] = copy
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
            line = self._lines[copy.copy_id] = (place_of(copy), await self._session(copy))
        return line

    async def _session(self, copy: Copy) -> str:
        key = request_key(copy.profile, copy.request_id or "")
        session = self._sessions.get(key)
        if session is None:
            row = await self._store.get(ApprovalRequest, key)
            if row is None:
                return ""
            session = row.session_id
        self._remember(self._sessions, key, session)
        return session

    @staticmethod
    def _remember(known: dict[K, V], key: K, value: V) -> None:
        known.pop(key, None)  # so that the ones longest untouched come first
        known[key] = value
        if len(known) > REMEMBERED:
            del known[next(iter(known))]


def _on_the_beat(when: datetime) -> datetime:
    """The next whole 50 ms. Cards that wait for the same room are then due together and can take turns, whenever each
    was told to wait."""
    return when + (_EPOCH - when) % BEAT


def is_new(copy: Copy) -> bool:
    """Whether it is a card or a digest that nobody has seen yet."""
    fresh = copy.state == "queued" and copy.priority == NEW and not copy.remove
    return fresh and copy.kind in ("card", "digest") and copy.digest is None


def place_of(copy: Copy) -> Place:
    """Where it goes, and for whom."""
    return copy.profile, copy.destination
