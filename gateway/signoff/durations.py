"""Durations, counts and clock times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Final

from signoff.texts import Catalogue, written

_UNITS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60))
# Two of a unit at least, so that cutting the rest off loses less than half; one minute is read as 60 s.
_LEAST: Final = 2
_MINUTE: Final = 60


def grouped(number: int) -> str:
    """Return a count with thousands separators: `1,204`."""
    return written(number)


def duration(seconds: float, *, texts: Catalogue | None = None) -> str:
    """Return a length of time in one unit, cut down: `12 s`, `4 min`, `2 h`, `3 days`.

    For time left or passed. Below 2 min it is counted in seconds, below 2 h in minutes, below 2 days in hours, unless
    it is exactly 1 h or 1 day. Below one second one decimal stays: `0.3 s`. Negative counts as 0.
    """
    return _in_words("unit", seconds, texts, exact=False)


def window(seconds: float, *, texts: Catalogue | None = None) -> str:
    """Return a set length of time without loss, in the largest unit that divides it: `5 min`, `150 s`, `3 days`."""
    return _in_words("unit", seconds, texts, exact=True)


def window_long(seconds: float, *, texts: Catalogue | None = None) -> str:
    """Return a set length of time in whole words, as agents read it: `5 minutes`, `1 day`."""
    return _in_words("unit_long", seconds, texts, exact=True)


def duration_long(seconds: float, *, texts: Catalogue | None = None) -> str:
    """Return a passed length of time in whole words, as agents read it: `2 minutes`."""
    return _in_words("unit_long", seconds, texts, exact=False)


def _in_words(table: str, seconds: float, texts: Catalogue | None, *, exact: bool) -> str:
    catalogue = texts or Catalogue.load()
    whole = int(max(0.0, seconds))
    if 0 < seconds < 1:
        # A fraction is no number a plural rule could choose by, and no language counts it as one.
        return catalogue.forms(f"{table}.second")[-1].replace("{count}", f"{max(0.1, int(seconds * 10) / 10):.1f}")
    for unit, length in _UNITS:
        fits = whole % length == 0 if exact else whole == length or whole >= _LEAST * length
        if fits and whole >= length and whole != _MINUTE:
            return catalogue.text(f"{table}.{unit}", count=whole // length)
    return catalogue.text(f"{table}.second", count=whole)


def clock(
    at: datetime, *, now: datetime, zone: tzinfo = UTC, with_zone: bool = True, texts: Catalogue | None = None
) -> str:
    """Return a time of day: `03:19 UTC`; on another day with the date, in another year with the year.

    `with_zone` is False only where the platform or the reader's own setting makes the zone plain. Raises ValueError
    for a time without a zone.
    """
    if at.tzinfo is None or now.tzinfo is None:
        raise ValueError("a clock needs times with a zone")
    catalogue = texts or Catalogue.load()
    here, today = at.astimezone(zone), now.astimezone(zone)
    values = {"time": f"{here:%H:%M}"}
    if with_zone:
        values["zone"] = here.tzname() or "UTC"
    form = "time"
    if here.date() != today.date():
        form = "date" if here.year == today.year else "year"
        values |= {"day": str(here.day), "month": catalogue.text(f"month.{here.month}")}
    if form == "year":
        values["year"] = str(here.year)
    return catalogue.text(f"clock.{form}_zone" if with_zone else f"clock.{form}", **values)
