"""How quickly people answered lately, and what nobody answered: kept in memory, fed by the store's changes.

What happened before is read once, backwards from the end of the event log, when somebody asks the first time; after
that a page costs nothing however long the history is.
"""

from __future__ import annotations

import asyncio
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from signoff.durations import duration
from signoff.model import ApprovalRequest, Change, Event
from signoff.rows import request_key
from signoff.server.core import Core
from signoff.wording import safe_name, t

SPANS = (timedelta(days=1), timedelta(days=7))
"""A day says how it is now, a week how it usually is."""
MOST = 10_000
"""Questions that are counted; the newest."""
WINDOW, MOST_EVENTS = 500, 200_000
"""Events read at once, and until the reading gives up."""
MOST_PLACES = 20
AT_ONCE = 50
"""Rows read before other work gets its turn."""
FRESH_S = 60.0
"""Figures without a new ending are made anew so often, since their spans move on."""


class Answered(Struct, frozen=True, kw_only=True):
    """One question that people answered, or that nobody did."""

    at: datetime
    took_s: float | None
    """From the question to the answer; None for one that nobody answered."""
    places: frozenset[str]
    """Where it was shown; where it could be shown nowhere, where it should have been."""


class Figure(Struct, frozen=True, kw_only=True):
    """What came of the questions of one span, in words."""

    answered: int
    unanswered: int
    median: str
    """Empty where nobody answered anything."""
    share: int
    """Percent that nobody answered."""

    @property
    def short(self) -> str:
        """The median and the share."""
        if not self.answered and not self.unanswered:
            return t("console.figures.nothing")
        share = t("console.figures.share", share=str(self.share))
        return f"{t('console.figures.median', duration=self.median)} · {share}" if self.median else share

    @property
    def text(self) -> str:
        """All of it."""
        if not self.answered and not self.unanswered:
            return "–"
        nobody = t("console.figures.unanswered", count=self.unanswered, share=str(self.share))
        if not self.median:
            return nobody
        return f"{t('console.figures.answered', count=self.answered, duration=self.median)} · {nobody}"


class Row(Struct, frozen=True, kw_only=True):
    """A place, and a figure for each of `SPANS`. `place` is empty for all of them together."""

    place: str
    name: str
    spans: tuple[Figure, ...]


class LastDrill(Struct, frozen=True, kw_only=True):
    """The newest drill."""

    drill_id: str
    at: datetime


class _Kept:
    """What is known of one profile."""

    def __init__(self) -> None:
        self.endings: dict[str, Answered] = {}
        self.drill: LastDrill | None = None
        self.changed = 0
        self.made: tuple[int, datetime, list[Row]] | None = None


class Past:
    """The figures of all profiles of one gateway."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._kept: dict[str, _Kept] = {}
        self._reading = asyncio.Lock()
        self._read: set[str] = set()
        self.close = core.store.subscribe(self._heard)

    async def figures(self, profile: str) -> list[Row]:
        """All places together, then those with the most questions; empty where nothing was asked within the week."""
        kept = await self._known(profile)
        now = self._core.clock.now()
        made = kept.made
        if made is None or made[0] != kept.changed or (now - made[1]).total_seconds() > FRESH_S:
            _forget(kept, now)
            made = kept.made = (kept.changed, now, _rows(kept.endings.values(), now))
        return made[2]

    async def last_drill(self, profile: str) -> LastDrill | None:
        """The newest drill, if it was begun within the week."""
        return (await self._known(profile)).drill

    # --- what happens ------------------------------------------------------------------------

    def _heard(self, changes: Sequence[Change]) -> None:
        for change in changes:
            kept = self._kept.get(change.event.profile)
            if kept is None:
                continue
            _drilled(kept, change.event)
            if change.event.type == "approval.resolved" and change.request is not None:
                _add(kept, change.request)

    # --- what happened -----------------------------------------------------------------------

    async def _known(self, profile: str) -> _Kept:
        async with self._reading:
            if profile not in self._read:
                # What ends while it is read is heard, and told twice it counts once.
                kept = self._kept.setdefault(profile, _Kept())
                await self._read_back(profile, kept)
                self._read.add(profile)
        return self._kept[profile]

    async def _read_back(self, profile: str, kept: _Kept) -> None:
        store = self._core.store
        since = self._core.clock.now() - SPANS[-1]
        end = await store.last_seq(profile)
        stop = max(0, end - MOST_EVENTS)
        while end > stop and len(kept.endings) < MOST:
            start = max(stop, end - WINDOW)
            events = await store.events(profile, start, limit=end - start)
            for number, event in enumerate(reversed(events)):
                _drilled(kept, event)
                if event.type == "approval.resolved" and event.request_id is not None:
                    row = await store.get(ApprovalRequest, request_key(profile, event.request_id))
                    if row is not None:
                        _add(kept, row)
                if number % AT_ONCE == AT_ONCE - 1:
                    await asyncio.sleep(0)
            if events and events[0].at < since:
                return
            end = start


def _drilled(kept: _Kept, event: Event) -> None:
    if event.type == "drill.started" and (kept.drill is None or kept.drill.at < event.at):
        kept.drill = LastDrill(drill_id=str(event.data["drill_id"]), at=event.at)


def _add(kept: _Kept, row: ApprovalRequest) -> None:
    """Count a question that a card asked and that a person answered, or nobody did."""
    if row.leader_id is not None or row.decided_at is None:
        return
    by_people = bool(row.decided_by) and all(actor.type == "person" for actor in row.decided_by)
    if row.outcome in ("approved", "denied") and by_people:
        took_s = max(0.0, (row.decided_at - row.created_at).total_seconds())
    elif row.outcome in ("timeout", "notify_failed"):
        took_s = None
    else:
        return
    places = frozenset(map(str, row.delivered_to or row.destinations))
    kept.endings[row.request_id] = Answered(at=row.decided_at, took_s=took_s, places=places)
    kept.changed += 1
    if len(kept.endings) > MOST + MOST // 10:
        _forget(kept, row.decided_at)


def _forget(kept: _Kept, now: datetime) -> None:
    """Keep what the figures need."""
    since = now - SPANS[-1]
    live = [(name, each) for name, each in kept.endings.items() if each.at > since]
    if len(live) > MOST:
        live = sorted(live, key=lambda pair: pair[1].at)[-MOST:]
    kept.endings = dict(live)


def _rows(endings: Iterable[Answered], now: datetime) -> list[Row]:
    everywhere = list(endings)
    if not everywhere:
        return []
    by_place: dict[str, list[Answered]] = defaultdict(list)
    for each in everywhere:
        for place in each.places:
            by_place[place].append(each)
    busiest = sorted(by_place.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:MOST_PLACES]
    return [
        _row("", t("console.figures.everywhere"), everywhere, now),
        *(_row(place, safe_name(place), found, now) for place, found in busiest),
    ]


def _row(place: str, name: str, endings: list[Answered], now: datetime) -> Row:
    spans = ([each for each in endings if each.at > now - span] for span in SPANS)
    return Row(place=place, name=name, spans=tuple(_figure(found) for found in spans))


def _figure(endings: list[Answered]) -> Figure:
    took = [each.took_s for each in endings if each.took_s is not None]
    nobody = len(endings) - len(took)
    return Figure(
        answered=len(took),
        unanswered=nobody,
        median=duration(statistics.median(took)) if took else "",
        share=round(100 * nobody / len(endings)) if endings else 0,
    )
