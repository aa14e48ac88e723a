"""Where questions are asked: a page may show only those of one place or one session."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlencode

from msgspec import Struct

from signoff.model import ApprovalRequest
from signoff.wording import session_name

MOST_CHARS = 400
MOST_NAMED = 200
"""Places, and sessions, that a page offers to choose from."""


class Where(Struct, frozen=True, kw_only=True):
    """What is wanted; an empty part wants everything. `place` is `platform:chat[/thread]`, or a platform alone."""

    place: str = ""
    session: str = ""

    @property
    def active(self) -> bool:
        """Whether anything is left out."""
        return bool(self.place or self.session)

    @property
    def query(self) -> str:
        """The same as a part of an address; empty where nothing is left out."""
        parts = {"place": self.place, "session": self.session}
        return urlencode({name: value for name, value in parts.items() if value})

    def fits(self, row: ApprovalRequest) -> bool:
        """Whether the question is wanted. A chat's name does not stand for its threads."""
        if self.session and row.session_id != self.session:
            return False
        if not self.place:
            return True
        return any(self.place in (str(place), place.platform) for place in {*row.destinations, *row.delivered_to})


class Choice(Struct, frozen=True, kw_only=True):
    """One value of a list to choose from, and how it reads."""

    value: str
    name: str
    chosen: bool


def wanted(place: str, session: str) -> Where:
    """A filter of what an address says."""
    return Where(place=place.strip()[:MOST_CHARS], session=session.strip()[:MOST_CHARS])


def places_of(rows: Iterable[ApprovalRequest]) -> set[str]:
    """Where questions were to be shown, and where they stand."""
    return set(map(str, {place for row in rows for place in (*row.destinations, *row.delivered_to)}))


def choices(values: Iterable[str], chosen: str) -> list[Choice]:
    """What can be chosen: the values, and what is chosen already even if nothing has it now."""
    known = sorted(set(values))[:MOST_NAMED]
    if chosen and chosen not in known:
        known.insert(0, chosen)
    return [Choice(value=value, name=session_name(value), chosen=value == chosen) for value in known]
