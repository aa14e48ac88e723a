"""Drills in the console: rehearsal cards to every place that the settings name, those on its own pages, and who
tapped."""

from __future__ import annotations

from datetime import datetime

from aiohttp import web
from msgspec import Struct

from signoff import drills
from signoff.console.desk import Desk
from signoff.console.forms import allowed, done, step
from signoff.console.visit import NotHere, Visit, away, json
from signoff.console_adapter import PLATFORM
from signoff.display import shown
from signoff.drill_cards import person_of
from signoff.durations import duration, window
from signoff.durations import left as time_left
from signoff.model import Destination
from signoff.wording import person_name, safe_name, t

WAIT_S = 300.0
"""How long a drill waits for a tap: as long as a question does unless the settings say otherwise."""
SHOWN_AGAIN_S = 3
"""A card that could not be sent, or that nobody tapped, tells no event; until all is over the page is drawn anew."""


class Place(Struct, frozen=True, kw_only=True):
    """What came of one card, in words."""

    name: str
    state: str
    good: bool | None
    """None while nothing came of it yet."""
    note: str


def places(desk: Desk, profile: str) -> list[Destination]:
    """Where a drill would go: the named places of the platforms that this gateway serves."""
    core = desk.core
    named = drills.named_places(core.profiles[profile])
    return [each for each in named if (profile, each.platform) in core.adapters]


async def begin(desk: Desk, visit: Visit) -> web.StreamResponse:
    """Send the cards, after a second step that says where they go."""
    actor = await allowed(desk, visit, "decide", None)
    profile = visit.seat.profile
    found = places(desk, profile)
    if not found:
        raise NotHere("no_drill_place", 400)
    if visit.field("confirmed") != "1":
        line = t("console.drill.sure", duration=window(WAIT_S))
        names = [safe_name(str(place)) for place in found]
        return await step(
            desk, visit, "/console/drill", line, t("console.drill.yes", count=len(found)), [("confirmed", "1")],
            lines=names, hint=t("console.drill.hint"),
        )  # fmt: skip
    by = person_name(actor)
    drill_id = await drills.begin(desk.core.store, profile, found, by=by, wait_s=WAIT_S)
    where = f"/console/drills/{drill_id}"
    return json({"how": "away", "to": where}) if visit.by_script else away(where)


async def show(desk: Desk, visit: Visit) -> web.StreamResponse:
    """What came of a drill so far."""
    profile = visit.seat.profile
    found = await drills.report(desk.core.store, desk.core.clock, profile, visit.params[0])
    waits = any(place.state == "waiting" for place in found.places)
    return await desk.page(
        visit,
        "drill",
        t("console.title.drill"),
        here="health",
        places=[_place(place) for place in found.places],
        ends_at=found.ends_at,
        head=_head(found.places, found.ends_at, desk.core.clock.now()),
        again_s=SHOWN_AGAIN_S if waits else 0,
    )


class Waiting(Struct, frozen=True, kw_only=True):
    """A drill that waits on the console's own pages."""

    id: str
    who: str


async def waiting(desk: Desk, profile: str) -> Waiting | None:
    """The newest drill, while nobody has seen it here."""
    last = await desk.past.last_drill(profile)
    if last is None:
        return None
    found = await drills.report(desk.core.store, desk.core.clock, profile, last.drill_id)
    if not any(_here(place) and place.state == "waiting" for place in found.places):
        return None
    return Waiting(id=found.drill_id, who=t("drill.who", person=person_of(found.by)))


async def seen(desk: Desk, visit: Visit) -> web.StreamResponse:
    """Somebody saw it here."""
    actor = await allowed(desk, visit, "decide", None)
    told = await drills.seen(desk.core.store, visit.seat.profile, visit.params[0], PLATFORM, actor)
    return done(desk, visit, [told])


def _here(place: drills.DrillPlace) -> bool:
    return place.destination.partition(":")[0] == PLATFORM


def _head(found: tuple[drills.DrillPlace, ...], ends_at: datetime, now: datetime) -> str:
    """The whole in one sentence."""
    seen = sum(place.state == "seen" for place in found)
    if any(place.state == "waiting" for place in found):
        left = time_left(max(0.0, (ends_at - now).total_seconds()))
        return t("console.drill.runs", seen=seen, count=len(found), duration=left)
    return t("console.drill.over", seen=seen, count=len(found))


def _place(place: drills.DrillPlace) -> Place:
    note = shown(place.error, prose=True) if place.error else ""
    if place.state == "seen":
        note = t("console.drill.by", person=place.by or "", duration=duration(place.after_s or 0.0))
    good = None if place.state == "waiting" else place.state == "seen"
    return Place(name=safe_name(place.destination), state=t(f"console.drill.{place.state}"), good=good, note=note)
