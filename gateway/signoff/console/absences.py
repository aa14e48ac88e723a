"""What ended, or is kept, while nobody was there: a strip above what waits, and a page where one asks again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from aiohttp import web
from msgspec import Struct

from signoff.catch_up_cards import counted, entry_text
from signoff.changes.catching_up import ABSENT_FOR, KINDS, Entry, Missed, absence_of
from signoff.console.desk import Desk
from signoff.console.forms import allowed, done
from signoff.console.visit import NotHere, Visit
from signoff.durations import clock
from signoff.errors import RequestNotFound
from signoff.model import ApprovalRequest, Copy, Destination
from signoff.wording import person_name, safe_name, t


class Line(Struct, frozen=True, kw_only=True):
    """One that ended or is kept."""

    id: str
    short_id: str
    text: str
    staged: bool
    wanted: str
    """Who wants to be asked about it, in words; empty where nobody said so."""


class Section(Struct, frozen=True, kw_only=True):
    """One place, or one message that was posted there."""

    head: str
    place: str
    key: str
    """The place as a form gives it back; None's is empty."""
    lines: tuple[Line, ...]
    older: int


async def strip(desk: Desk, profile: str) -> str:
    """What is not told yet, in one sentence; empty where there is nothing or it has only just happened."""
    now = desk.core.clock.now()
    untold = [each for each in await desk.core.catch_ups.untold(profile) if now - each.since >= ABSENT_FOR]
    counts = Counter[str]()
    for each in untold:
        counts += _counts(each.entries, each.older)
    return t("console.catch_up.strip", counts=counted(_ordered(counts))) if counts else ""


async def show(desk: Desk, visit: Visit) -> web.StreamResponse:
    """The page."""
    profile = visit.seat.profile
    now = desk.core.clock.now()
    untold = [await _untold(desk, profile, each, now) for each in await desk.core.catch_ups.untold(profile)]
    told = [await _told(desk, each, now) for each in await desk.core.catch_ups.told(profile)]
    return await desk.page(visit, "catch_up", t("console.title.catch_up"), here="pending", untold=untold, told=told)


async def ask(desk: Desk, visit: Visit) -> web.StreamResponse:
    """Tell the agent that this person wants to be asked again."""
    row = await desk.reading.get(visit.seat.profile, visit.field("id"))
    actor = await allowed(desk, visit, "decide", row)
    if row is None:
        raise RequestNotFound
    told = await desk.core.catch_ups.ask_again(row.profile, row.request_id, actor)
    return done(desk, visit, [t("console.catch_up.not_wanted") if told is None else told])


async def clear(desk: Desk, visit: Visit) -> web.StreamResponse:
    """Tell a place no more of what is listed for it."""
    await allowed(desk, visit, "decide", None)
    key = visit.field("place")
    places = {str(each.place or ""): each.place for each in await desk.core.catch_ups.untold(visit.seat.profile)}
    if key not in places:
        raise NotHere("nothing_listed", 400)
    await desk.core.catch_ups.forget(visit.seat.profile, places[key])
    return done(desk, visit, [t("console.catch_up.cleared")])


async def _untold(desk: Desk, profile: str, missed: Missed, now: datetime) -> Section:
    counts = counted(_ordered(_counts(missed.entries, missed.older)))
    place = _place(desk, missed.place)
    head = t("console.catch_up.since", place=place, clock=clock(missed.since, now=now), counts=counts)
    return await _section(desk, profile, head, missed.place, missed.entries, missed.older)


async def _told(desk: Desk, copy: Copy, now: datetime) -> Section:
    absence = absence_of(copy)
    since, until = (clock(at, now=now) for at in (absence.since, absence.until))
    place = _place(desk, copy.destination)
    head = t("console.catch_up.then", place=place, since=since, until=until, counts=counted(absence.counts))
    return await _section(desk, copy.profile, head, copy.destination, absence.entries, absence.older)


async def _section(
    desk: Desk, profile: str, head: str, place: Destination | None, entries: Iterable[Entry], older: Mapping[str, int]
) -> Section:
    lines = []
    for entry in sorted(entries, key=lambda each: each.at, reverse=True):
        row = await desk.reading.get(profile, entry.request_id)
        if row is not None:
            lines.append(_line(entry, row, desk.core.clock.now()))
    return Section(
        head=head, place=_place(desk, place), key=str(place or ""), lines=tuple(lines), older=sum(older.values())
    )


def _line(entry: Entry, row: ApprovalRequest, now: datetime) -> Line:
    wanted = t("console.catch_up.wanted", person=person_name(row.wanted_by)) if row.wanted_by is not None else ""
    return Line(
        id=row.request_id,
        short_id=row.short_id,
        text=entry_text(entry, row, clock=clock(entry.at, now=now)),
        staged=entry.kind == "staged",
        wanted=wanted,
    )


def _place(desk: Desk, place: Destination | None) -> str:
    if place is None:
        return t("console.catch_up.nowhere")
    chat = f"{place.chat_id}/{place.thread_id}" if place.thread_id else place.chat_id
    return f"{desk.reading.title(place.platform)} {safe_name(chat)}"


def _counts(entries: Iterable[Entry], older: Mapping[str, int]) -> Counter[str]:
    return Counter(older) + Counter(entry.kind for entry in entries)


def _ordered(counts: Mapping[str, int]) -> dict[str, int]:
    return {kind: counts[kind] for kind in KINDS if counts.get(kind)}
