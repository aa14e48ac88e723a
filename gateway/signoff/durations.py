"""Durations, counts and clock times as people read them."""

from __future__ import annotations

import math
from datetime import UTC, datetime, tzinfo
from typing import Final, Literal

from signoff.texts import Catalogue, written

_UNITS: Final[tuple[tuple[Literal["day", "hour", "minute"], int], ...]] = (
    ("day", 86_400),
    ("hour", 3_600),
    ("minute", 60),
)
# Two of a unit at least, so that cutting the rest off loses less than half; one minute is read as 60 s.
_LEAST: Final = 2
_MINUTE: Final = 60
_DAY: Final = 86_400
_SOON_S: Final = 120
_TENTH_S: Final = 0.1
_SLACK: Final = 0.01

Unit = Literal["day", "hour", "minute", "second"]


def grouped(number: int) -> str:
    """Return a count with thousands separators: `1,204`."""
    return written(number)


def duration(seconds: float, *, texts: Catalogue | None = None) -> str:
    """Return a length of time in one unit, cut down: `12 s`, `4 min`, `2 h`, `3 days`.

    For time passed; time left has `left`. Below 2 min it is counted in seconds, below 2 h in minutes, below 2 days in
    hours, unless it is exactly 1 h or 1 day. Below one second one decimal stays: `0.3 s`, and below a tenth it is told
    in milliseconds: `18 ms`. Negative counts as 0.
    """
    return _in_words("unit", seconds, texts, exact=False)


def left(seconds: float, *, texts: Catalogue | None = None) -> str:
    """Return the time until a deadline in one unit: `12 s`, `4 min`, `71 h`, `3 days`.

    Like `duration`, but a window that has just begun reads as its length: what lacks at most 1 % of a whole number of
    units counts as that, so 71:59:59 is `3 days`. Below 2 min, where it matters, it is never more than there is. Below
    3 days it is told in hours.
    """
    catalogue = texts or Catalogue.load()
    if 0 < seconds < 1:
        return duration(seconds, texts=catalogue)
    unit, count = left_parts(seconds)
    return catalogue.text(f"unit.{unit}", count=count)


def left_parts(seconds: float) -> tuple[Unit, int]:
    """The unit and the whole number of it that `left` tells. Negative counts as 0."""
    if seconds < _SOON_S:
        return "second", int(max(0.0, seconds))
    said = seconds
    for _, length in _UNITS:
        whole = math.ceil(seconds / length) * length
        if whole - seconds <= _SLACK * seconds:
            said = whole
            break
    unit, count = _parts(int(said), exact=False)
    return ("hour", int(said // 3600)) if 2 * _DAY < said < 3 * _DAY else (unit, count)


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
    if 0 < seconds < _TENTH_S:
        return catalogue.text(f"{table}.millisecond", count=max(1, round(seconds * 1000)))
    if 0 < seconds < 1:
        # A fraction is no number a plural rule could choose by, and no language counts it as one.
        return catalogue.forms(f"{table}.second")[-1].replace("{count}", f"{int(seconds * 10) / 10:.1f}")
    unit, count = _parts(whole, exact=exact)
    return catalogue.text(f"{table}.{unit}", count=count)


def _parts(whole: int, *, exact: bool) -> tuple[Unit, int]:
    for unit, length in _UNITS:
        fits = whole % length == 0 if exact else whole == length or whole >= _LEAST * length
        if fits and whole >= length and whole != _MINUTE:
            return unit, whole // length
    return "second", whole


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
    here = at if at.tzinfo is zone else at.astimezone(zone)
    today = now if now.tzinfo is zone else now.astimezone(zone)
    values = {"time": f"{here.hour:02}:{here.minute:02}"}
    if with_zone:
        values["zone"] = here.tzname() or "UTC"
    form = "time"
    if here.date() != today.date():
        form = "date" if here.year == today.year else "year"
        values |= {"day": str(here.day), "month": catalogue.text(f"month.{here.month}")}
    if form == "year":
        values["year"] = str(here.year)
    return catalogue.text(f"clock.{form}_zone" if with_zone else f"clock.{form}", **values)
