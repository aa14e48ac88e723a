"""The form that lets a denied action be asked again."""

from __future__ import annotations

from aiohttp import web

from signoff.console.answering import Told
from signoff.console.desk import Desk
from signoff.console.forms import allowed, answer
from signoff.console.visit import Visit
from signoff.errors import RequestNotFound
from signoff.wording import person_name, t


async def let_ask(desk: Desk, visit: Visit) -> web.StreamResponse:
    """Let a denied action be asked again. It decides nothing, and takes nothing back."""
    row = await desk.reading.get(visit.seat.profile, visit.field("id"))
    actor = await allowed(desk, visit, "decide", row)
    if row is None:
        raise RequestNotFound
    before = await desk.reading.denial(row)
    if before is not None and before.lifted_by is not None:
        text = t("status.lifted", person=person_name(before.lifted_by))
        return await answer(desk, visit, Told(how="late", text=text, row=row))
    lifted = await desk.core.broker.let_ask(row.profile, row.request_id, actor)
    if lifted is None:
        return await answer(desk, visit, Told(how="refused", text=t("console.told.no_denial"), row=row))
    row = await desk.reading.get(row.profile, row.request_id)
    return await answer(desk, visit, Told(how="done", text=t("tap.may_ask_again"), row=row))
