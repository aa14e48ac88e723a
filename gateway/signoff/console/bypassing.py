"""The form that switches a session's questions off, after a second step, or on again, at once."""

from __future__ import annotations

from aiohttp import web

from signoff.bypass_notes import off_text, on_text
from signoff.changes.bypassing import DEFAULT_MINUTES
from signoff.console.desk import Desk
from signoff.console.forms import allowed, done, step
from signoff.console.visit import NotHere, Visit
from signoff.durations import window
from signoff.wording import session_name, t

OFFERED = (15, 30, 60, 240, 1440)
"""Minutes that can be chosen here; others can be typed in a chat or on the command line."""


async def switch(desk: Desk, visit: Visit) -> web.StreamResponse:
    """Ask nothing in a session for a while, or again."""
    actor = await allowed(desk, visit, "yolo", None)
    profile, session_id = visit.seat.profile, visit.field("id")
    sessions = desk.core.sessions
    if visit.field("off") == "1":
        ended = await sessions.end_bypass(profile, session_id, actor)
        return done(desk, visit, [off_text(actor) if ended.before is not None else t("reply.yolo_was_off")])
    if visit.field("confirmed") != "1":
        return await _second_step(desk, visit, session_id)
    chosen = visit.field("minutes")
    if chosen not in map(str, OFFERED):
        raise NotHere("form", 400)
    begun = await sessions.bypass(profile, session_id, actor, minutes=float(chosen))
    return done(desk, visit, [on_text(begun, desk.core.clock.now())])


async def _second_step(desk: Desk, visit: Visit, session_id: str) -> web.StreamResponse:
    session = await desk.core.sessions.get(visit.seat.profile, session_id)
    choose = {
        "name": "minutes",
        "label": t("console.session.bypass_for"),
        "chosen": f"{DEFAULT_MINUTES:g}",
        "options": [(str(minutes), window(60 * minutes)) for minutes in OFFERED],
    }
    line = t("console.session.sure_bypass", session=session_name(session.session_id))
    fields = [("id", session.session_id), ("confirmed", "1")]
    return await step(
        desk, visit, "/console/sessions/bypass", line, t("console.session.yes_bypass"), fields, choose=choose
    )
