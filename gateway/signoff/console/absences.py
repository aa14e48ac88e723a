"""What ended, or is kept, while nobody was there: a strip above what waits, and a page where one asks again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from aiohttp import web
from msgspec import Struct

from signoff.changes.catching_up import (
    ABSENT_FOR,
    KINDS,
    Entry,
    Missed,
    absence_of,
    lacked_executor,
    unattended_setting,
)
from signoff.console.desk import Desk
from signoff.console.forms import allowed, done
from signoff.console.history import kind_of, text_of
from signoff.console.visit import NotHere, Visit
from signoff.console_adapter import PLATFORM as CONSOLE
from signoff.durations import clock
from signoff.errors import RequestNotFound
from signoff.model import Actor, ApprovalRequest, Copy, Destination
from signoff.statuses import MARKS
from signoff.wording import agent_name, person_name, safe_name, t


class Line(Struct, frozen=True, kw_only=True):
    """One that ended or is kept."""

    id: str
    short_id: str
    at: datetime
    mark: str
    outcome: str
    kind: str
    action: str
    agent: str
    note: str
    """Why nobody could be asked, or that it still waits; empty where nothing is to be added."""
    staged: bool
    wanted: str
    """Who wants to be asked about it, in words; empty where nobody said so."""


class Section(Struct, frozen=True, kw_only=True):
    """One place, or one message that was posted there."""

    head: str
    here: bool
    """Whether it is told in no chat: the console is the place, or there is none."""
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
    return t("console.catch_up.strip", counts=_counted(counts)) if counts else ""


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
    counts = _counted(_counts(missed.entries, missed.older))
    since = clock(missed.since, now=now)
    if missed.place is None:
        head = t("console.catch_up.since_nowhere", clock=since, counts=counts)
    else:
        head = t("console.catch_up.since", place=_place(desk, missed.place), clock=since, counts=counts)
    return await _section(desk, profile, head, missed.place, missed.entries, missed.older)


async def _told(desk: Desk, copy: Copy, now: datetime) -> Section:
    absence = absence_of(copy)
    since, until = (clock(at, now=now) for at in (absence.since, absence.until))
    place = _place(desk, copy.destination)
    head = t("console.catch_up.then", place=place, since=since, until=until, counts=_counted(absence.counts))
    return await _section(desk, copy.profile, head, copy.destination, absence.entries, absence.older)


async def _section(
    desk: Desk, profile: str, head: str, place: Destination | None, entries: Iterable[Entry], older: Mapping[str, int]
) -> Section:
    lines = []
    for entry in sorted(entries, key=lambda each: each.at, reverse=True):
        row = await desk.reading.get(profile, entry.request_id)
        if row is not None:
            try:
                lines.append(_line(entry, row))
            except Exception as error:  # a row's outer edge: the others are told
                desk.reading.undrawn(row, error)
                older = {**older, entry.kind: older.get(entry.kind, 0) + 1}
    return Section(
        head=head,
        here=_here(place),
        place=_place(desk, place),
        key=str(place or ""),
        lines=tuple(lines),
        older=sum(older.values()),
    )


def _line(entry: Entry, row: ApprovalRequest) -> Line:
    wanted = t("console.catch_up.wanted", person=person_name(row.wanted_by)) if row.wanted_by is not None else ""
    return Line(
        id=row.request_id,
        short_id=row.short_id,
        at=entry.at,
        mark=MARKS.get(entry.kind, ""),
        outcome=t(f"outcome_word.{entry.kind}"),
        kind=kind_of(row),
        action=text_of(row),
        agent=agent_name(row),
        note=_note(entry, row),
        staged=entry.kind == "staged",
        wanted=wanted,
    )


def _note(entry: Entry, row: ApprovalRequest) -> str:
    if entry.kind != "blocked":
        return t("console.catch_up.still_waits") if entry.kind == "staged" else ""
    if lacked_executor(row):
        return t("console.catch_up.no_executor")
    setting = unattended_setting(row.decided_by[0] if row.decided_by else Actor(type="policy"))
    if setting is None:
        return t("console.catch_up.protected")
    return t("console.catch_up.setting", setting=setting[0], value=setting[1])


def _here(place: Destination | None) -> bool:
    return place is None or place.platform == CONSOLE


def _place(desk: Desk, place: Destination | None) -> str:
    if place is None:
        return t("console.catch_up.nowhere")
    chat = f"{place.chat_id}/{place.thread_id}" if place.thread_id else place.chat_id
    return f"{desk.reading.title(place.platform)} {safe_name(chat)}"


def _counts(entries: Iterable[Entry], older: Mapping[str, int]) -> Counter[str]:
    return Counter(older) + Counter(entry.kind for entry in entries)


def _counted(counts: Mapping[str, int]) -> str:
    """`2 timed out, 1 blocked`."""
    return ", ".join(t(f"console.catch_up.count.{kind}", count=counts[kind]) for kind in KINDS if counts.get(kind))
