"""Which question ended last in each place, for whoever comes a moment too late. Kept in memory only."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from signoff.model import Change, Destination
from signoff.ports import Clock, Store
from signoff.wording import answer_word

RECENT = timedelta(minutes=10)
"""Somebody who comes later than this is not looking for it any more."""
REMEMBERED = 1000
"""Places."""


class Last(Struct, frozen=True):
    """A question that ended."""

    short_id: str
    word: str
    """How, as a key of the catalogue's `outcome_word`."""
    at: datetime


class LastEnded:
    """Listens to the store's feed from now on."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._clock = clock
        self._last: OrderedDict[tuple[str, Destination], Last] = OrderedDict()
        self.close = store.subscribe(self._on_changes)

    def at(self, profile: str, place: Destination) -> Last | None:
        """What ended last in that place within ten minutes."""
        last = self._last.get((profile, place))
        return last if last is not None and self._clock.now() - last.at <= RECENT else None

    def _on_changes(self, changes: Sequence[Change]) -> None:
        for change in changes:
            row = change.request
            if change.event.type != "approval.resolved" or row is None or row.outcome is None:
                continue
            for place in row.delivered_to:
                key = (row.profile, place)
                self._last[key] = Last(row.short_id, answer_word(row), row.decided_at or change.event.at)
                self._last.move_to_end(key)
        while len(self._last) > REMEMBERED:
            self._last.popitem(last=False)
