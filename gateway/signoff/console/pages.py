"""The pages for looking: what waits, one story, the history, sessions, grants, health; and their streams and files."""

from __future__ import annotations

from functools import partial

import msgspec
from aiohttp import web

from signoff import aside
from signoff.console import absences, actions, lists, rehearsing
from signoff.console import history as past
from signoff.console import story as stories
from signoff.console.cards import stays
from signoff.console.desk import Desk
from signoff.console.drawing import assets
from signoff.console.live import Channel, Kind
from signoff.console.past import LastDrill
from signoff.console.places import Where, choices, places_of, wanted
from signoff.console.reading import LISTED, MOST_READ
from signoff.console.reveal import hides
from signoff.console.visit import HEADERS, PATH, NotHere, Visit, html
from signoff.durations import clock, duration
from signoff.errors import RequestNotFound
from signoff.model import OUTCOMES, ApprovalRequest
from signoff.record import approval_of
from signoff.server.faults import RouteNotFound
from signoff.server.routes import OPS
from signoff.wording import t


async def pending(desk: Desk, visit: Visit) -> web.StreamResponse:
    """The questions that wait, with their answers."""
    seat = visit.seat
    where = _where(visit)
    every = await desk.reading.pending(seat.profile)
    rows = [row for row in every if where.fits(row)]
    number = max(1, _number(visit.query("page")) or 1)
    shown = rows[(number - 1) * LISTED : number * LISTED]
    ended = [row for row in await _just_ended(desk, seat.profile) if where.fits(row)] if number == 1 else []
    here = f"{PATH}?{where.query}" if where.active else PATH
    response = await desk.page(
        visit,
        "pending",
        t("console.title.pending"),
        cards=await desk.reading.cards([*shown, *ended], seat, visit.token, here),
        where=where,
        places=choices(places_of(every), where.place),
        sessions=choices((row.session_id for row in every), where.session),
        next=here,
        index=[(row.short_id, row.severity) for row in shown],
        listed=[f"{row.request_id} {row.digest} {row.waiters} {row.last_follow_no}" for row in shown],
        approvable=sum(1 + row.waiters for row in shown if stays(row) is None),
        staged=await actions.link(desk.core, seat.profile, every) if number == 1 else "",
        stuck=await actions.stuck(desk.core, seat.profile) if number == 1 else [],
        runs=sum(1 + row.waiters for row in shown),
        number=number,
        before=number > 1,
        after=len(rows) > number * LISTED,
        total=len(rows),
        most=MOST_READ,
        last=_last_answer(desk, ended),
        troubles=await desk.troubles.of(seat.profile),
        absent=await absences.strip(desk, seat.profile) if number == 1 else "",
        rehearsed=await rehearsing.waiting(desk, seat.profile),
    )
    return response


async def _just_ended(desk: Desk, profile: str) -> list[ApprovalRequest]:
    found = [await desk.reading.get(profile, name) for name in desk.live.just_ended(profile)]
    return [row for row in found if row is not None and row.outcome is not None][-LISTED:]


def _last_answer(desk: Desk, ended: list[ApprovalRequest]) -> str:
    times = [row.decided_at for row in ended if row.decided_at is not None]
    return clock(max(times), now=desk.core.clock.now()) if times else ""


async def card(desk: Desk, visit: Visit) -> web.StreamResponse:
    """One question, drawn for a list."""
    row = await desk.reading.get(visit.seat.profile, visit.params[0])
    if row is None:
        raise RequestNotFound
    return html(str(desk.drawing.own(await desk.reading.card(row, visit.seat), visit.token)))


async def story(desk: Desk, visit: Visit) -> web.StreamResponse:
    """One request's story, with its answers while it waits."""
    row = await desk.reading.find(visit.seat.profile, visit.params[0])
    now = desk.core.clock.now()
    store = desk.core.store
    profile = desk.core.broker.profile(row.profile)
    copies, events = await stories.copies_of(store, row), await stories.events_of(store, row)
    make = partial(stories.steps, row, copies, events, now, profile)
    told = await aside.shown(row, make)
    return await desk.page(
        visit,
        "story",
        t("console.title.story", id=row.short_id),
        here="",
        c=await desk.reading.view(row, visit.seat, listed=False),
        steps=told,
        leader=await stories.newer_id(store, row),
        masked=await hides(row),
        link=(desk.url or "").rstrip("/") + f"/console/r/{row.short_id}",
        next=f"/console/r/{row.short_id}",
        alone=True,
    )


async def record(desk: Desk, visit: Visit) -> web.StreamResponse:
    """The record of a request and its events, as a file. The action is masked."""
    row = await desk.reading.find(visit.seat.profile, visit.params[0])
    events = await stories.events_of(desk.core.store, row)
    told = {"approval": await aside.shown(row, partial(approval_of, row, desk.core.clock.now())), "events": events}
    return _file(msgspec.json.format(msgspec.json.encode(told)), "application/json", f"{row.short_id}.json")


async def history(desk: Desk, visit: Visit) -> web.StreamResponse:
    """What has ended."""
    wish = _wish(visit)
    found = await past.page(
        desk.core.store,
        desk.reading,
        visit.seat.profile,
        wish,
        before=_number(visit.query("before")),
        now=desk.core.clock.now(),
    )
    figures = await desk.past.figures(visit.seat.profile)
    query = {name: value for name, value in msgspec.structs.asdict(wish).items() if value}
    url = visit.request.rel_url.with_path("/console/history").with_query(query)
    older = str(url.update_query(before=str(found.before))) if found.before is not None else ""
    return await desk.page(
        visit,
        "history",
        t("console.title.history"),
        lines=found.lines,
        wish=wish,
        outcomes=sorted(OUTCOMES),
        figures=figures,
        places=choices((row.place for row in figures if row.place), wish.place),
        older=older,
        newest=str(url) if visit.query("before") else "",
        searched=past.WINDOW * past.MOST_WINDOWS,
        csv_rows=past.CSV_ROWS,
        csv=str(url.with_path("/console/history.csv")),
    )


async def history_csv(desk: Desk, visit: Visit) -> web.StreamResponse:
    """The same for a spreadsheet: the newest 5,000 that are wanted."""
    found = await past.page(
        desk.core.store,
        desk.reading,
        visit.seat.profile,
        _wish(visit),
        before=None,
        now=desk.core.clock.now(),
        limit=past.CSV_ROWS,
    )
    return _file(b"".join(past.as_csv(found)), "text/csv; charset=utf-8", "signoff-history.csv")


async def sessions(desk: Desk, visit: Visit) -> web.StreamResponse:
    """The open sessions."""
    profile = desk.core.broker.profile(visit.seat.profile)
    lines, more = await lists.sessions(desk.core, profile, desk.core.clock.now())
    return await desk.page(visit, "sessions", t("console.title.sessions"), lines=lines, more=more)


async def grants(desk: Desk, visit: Visit) -> web.StreamResponse:
    """The live grants."""
    return await desk.page(
        visit, "grants", t("console.title.grants"), lines=await lists.grants(desk.core, visit.seat.profile)
    )


async def health(desk: Desk, visit: Visit) -> web.StreamResponse:
    """How the platforms and the store are."""
    seat = visit.seat
    waiting = lists.rows_waiting(await desk.reading.pending(seat.profile))
    parts = await lists.health(desk.core, seat.profile, waiting, details=seat.scope in OPS)
    return await desk.page(
        visit,
        "health",
        t("console.title.health"),
        parts=parts,
        troubles=sum(not part.good for part in parts),
        up=lists.started(desk.core, desk.core.clock.now()),
        pages_open=len(desk.live),
        drill=await desk.past.last_drill(seat.profile),
        drilled=_ago(desk, await desk.past.last_drill(seat.profile)),
        drill_places=rehearsing.places(desk, seat.profile),
    )


def _ago(desk: Desk, drill: LastDrill | None) -> str:
    return duration((desk.core.clock.now() - drill.at).total_seconds()) if drill is not None else ""


async def events(desk: Desk, visit: Visit) -> web.StreamResponse:
    """What changes, as server-sent events."""
    seat = visit.seat
    if not desk.live.room(seat):
        raise NotHere("too_many_pages", 429)
    header = visit.request.headers.get("Last-Event-ID", "")
    after = _number(header) if header else _number(visit.query("after"))
    kind: Kind = "cards" if visit.query("kind") == "cards" else "touch"
    channel = Channel(seat, visit.token, kind, _where(visit), visit.query("troubles"))

    async def still() -> bool:
        return await desk.seats.find(visit.cookie) is not None

    return await desk.live.serve(visit.request, channel, after, still)


async def still_in(desk: Desk, visit: Visit) -> web.StreamResponse:
    """Nothing, for whoever is logged in: a page that lost its stream asks whether it may go on."""
    return web.Response(status=204, headers=HEADERS)


async def static(desk: Desk, visit: Visit) -> web.StreamResponse:
    """A file of the pages; its address changes with its content."""
    asset = assets().get(visit.params[0])
    if asset is None:
        raise RouteNotFound
    headers = {**HEADERS, "Content-Type": asset.content_type}
    if visit.query("v") == asset.version:
        headers["Cache-Control"] = "public, max-age=31536000, immutable"
    return web.Response(body=asset.content, headers=headers)


def _wish(visit: Visit) -> past.Filter:
    words = {name: visit.query(name) for name in ("q", "outcome", "agent", "person", "place", "session", "asked")}
    return past.wanted(**words)


def _where(visit: Visit) -> Where:
    return wanted(visit.query("place"), visit.query("session"))


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else None


def _file(content: bytes, kind: str, name: str) -> web.Response:
    headers = {**HEADERS, "Content-Type": kind, "Content-Disposition": f'attachment; filename="{name}"'}
    return web.Response(body=content, headers=headers)
