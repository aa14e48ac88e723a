"""Routes of drills."""

from __future__ import annotations

from signoff import drills
from signoff.destinations import parse_destination
from signoff.errors import DrillNotFound, InvalidInput
from signoff.model import Destination
from signoff.server.routes import DECIDE, Call, Reply, Route, route
from signoff.server.views import DrillView
from signoff.server.wire import DrillBody
from signoff.wording import person_name


async def _begin(call: Call) -> Reply:
    body: DrillBody = call.body
    who = call.who
    places = [parse_destination(each) for each in dict.fromkeys(body.destinations)]
    if not places:
        places = list(drills.named_places(call.core.profiles[who.profile]))
    for place in places:
        _check_served(call, place)
    drill_id = await drills.begin(call.core.store, who.profile, places, by=person_name(who.actor), wait_s=body.wait_s)
    return Reply(await _view(call, drill_id), 201)


def _check_served(call: Call, place: Destination) -> None:
    if (call.who.profile, place.platform) not in call.core.adapters:
        raise InvalidInput(f"{place}: this gateway does not serve {place.platform}.", param="destinations")


async def _report(call: Call) -> Reply:
    return Reply(await _view(call, call.id))


async def _view(call: Call, drill_id: str) -> DrillView:
    found = await drills.report(call.core.store, call.core.clock, call.who.profile, drill_id)
    return DrillView(id=found.drill_id, ends_at=found.ends_at, places=found.places)


ROUTES: tuple[Route, ...] = (
    route(
        name="start_drill",
        method="POST",
        path="/v1/drills",
        handler=_begin,
        scopes=DECIDE,
        body=DrillBody,
        body_needed=False,
        answer=DrillView,
        statuses=(201,),
        errors=(InvalidInput,),
        text="Send a rehearsal card to these places, or to every destination that the settings name. Nothing runs.",
    ),
    route(
        name="drill",
        method="GET",
        path="/v1/drills/{drill_id}",
        handler=_report,
        scopes=DECIDE,
        answer=DrillView,
        errors=(DrillNotFound,),
        text="What came of a drill: by place who tapped after how many seconds, or that nobody did.",
    ),
)
