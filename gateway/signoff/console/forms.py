"""What the forms of the pages do. Each answers twice: with JSON for the page's own script, else with the next page."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from signoff.authorize import Operation, Refused
from signoff.broker import is_choice
from signoff.cards import headline_text
from signoff.changes.stopping import Stopped
from signoff.console import lists
from signoff.console.answering import Asked, Told
from signoff.console.cards import stays
from signoff.console.desk import Desk
from signoff.console.live import said
from signoff.console.reveal import revealed
from signoff.console.visit import NotHere, Visit, away, back_to, json
from signoff.display import shown
from signoff.elicitation_form import MAX_FIELDS
from signoff.errors import RequestNotFound
from signoff.model import Actor, ApprovalRequest, Destination, Person
from signoff.wording import agent_name, safe_name, session_name, t

MOST_NAMED = 20


async def decide(desk: Desk, visit: Visit) -> web.StreamResponse:
    """Answer one question."""
    row = await desk.reading.get(visit.seat.profile, visit.field("id"))
    actor = await allowed(desk, visit, "decide", row)
    if row is None:
        raise RequestNotFound
    asked = Asked(
        request_id=row.request_id,
        choice=visit.field("choice"),
        digest=visit.field("digest"),
        counted=_number(visit.field("counted")),
        upto=_number(visit.field("upto")),
        reason=visit.field("reason"),
        reason_choice=visit.field("reason_choice"),
        confirmed=visit.field("confirmed") == "1",
        filled=tuple((place, text) for place in range(MAX_FIELDS) for text in visit.fields(f"field-{place}") if text),
    )
    if not asked.reason_choice and not is_choice(asked.choice):
        raise NotHere("form", 400)
    told = await desk.answering.decide(visit.seat.profile, asked, actor)
    if told.how == "confirm" and told.row is not None:
        return await _second_step(desk, visit, told.row, asked)
    return await answer(desk, visit, told)


async def undo(desk: Desk, visit: Visit) -> web.StreamResponse:
    """Take an approval back."""
    row = await desk.reading.get(visit.seat.profile, visit.field("id"))
    actor = await allowed(desk, visit, "decide", row)
    operator = visit.seat.scope == "admin"
    told = await desk.answering.undo(visit.seat.profile, visit.field("id"), actor, operator=operator)
    return await answer(desk, visit, told)


async def wait(desk: Desk, visit: Visit) -> web.StreamResponse:
    """Let a question wait 15 min longer."""
    row = await desk.reading.get(visit.seat.profile, visit.field("id"))
    actor = await allowed(desk, visit, "decide", row)
    told = await desk.answering.wait(visit.seat.profile, visit.field("id"), actor)
    if told.row is not None:
        desk.live.touch(told.row)
    return await answer(desk, visit, told)


async def decide_all(desk: Desk, visit: Visit) -> web.StreamResponse:
    """Answer everything that the page listed when it was drawn; approving takes a second step."""
    actor = await allowed(desk, visit, "decide", None)
    choice = visit.field("choice")
    if choice not in ("once", "deny"):
        raise NotHere("form", 400)
    listed = [asked for asked in map(_listed, visit.fields("listed")) if asked is not None]
    if not listed:
        raise NotHere("nothing_listed", 400)
    if choice == "once" and visit.field("confirmed") != "1":
        return await _all_second_step(desk, visit, listed)
    lines = await desk.answering.all(visit.seat.profile, choice, listed, actor)
    if visit.by_script:
        return json({"how": "done", "text": lines[0], "lines": lines[1:]})
    desk.say(visit, lines)
    return away(back_to(visit.field("next")))


async def stop(desk: Desk, visit: Visit) -> web.StreamResponse:
    """End a session's turns, questions and approvals that have not started."""
    actor = await allowed(desk, visit, "stop", None)
    session_id = visit.field("id")
    if visit.field("confirmed") != "1":
        return await _session_step(desk, visit, session_id, "stop")
    stopped = await desk.core.sessions.stop(visit.seat.profile, session_id, actor)
    return _stopped(desk, visit, t("console.told.stopped", session=session_name(session_id)), stopped)


async def clear(desk: Desk, visit: Visit) -> web.StreamResponse:
    """The same, and its grants go."""
    actor = await allowed(desk, visit, "new", None)
    session_id = visit.field("id")
    if visit.field("confirmed") != "1":
        return await _session_step(desk, visit, session_id, "clear")
    stopped = await desk.core.sessions.clear(visit.seat.profile, session_id, actor, close=False)
    return _stopped(desk, visit, t("console.told.cleared", session=session_name(session_id)), stopped)


async def revoke(desk: Desk, visit: Visit) -> web.StreamResponse:
    """End a grant."""
    actor = await allowed(desk, visit, "revoke", None)
    grant = await desk.core.broker.revoke(visit.seat.profile, visit.field("id"), actor)
    scope = t(f"console.scope.{grant.scope}")
    beside = [
        t("console.told.ended_with", grant=each.grant_id, scope=t(f"console.scope.{each.scope}"), label=each.label)
        for each in await lists.ended_with(desk.core, grant)
    ]
    return done(desk, visit, [t("reply.revoked", grant=grant.grant_id, scope=scope, label=grant.label), *beside])


async def show_exact(desk: Desk, visit: Visit) -> web.StreamResponse:
    """Show the exact text of one action to somebody who may decide, after a second step; it is recorded first."""
    row = await desk.reading.get(visit.seat.profile, visit.field("id"))
    actor = await allowed(desk, visit, "decide", row)
    if row is None:
        raise RequestNotFound
    if visit.field("confirmed") != "1":
        return await step(
            desk, visit, "/console/reveal", t("console.reveal.sure", id=row.short_id), t("console.reveal.yes"),
            [("id", row.request_id), ("confirmed", "1")], hint=t("console.reveal.hint"),
        )  # fmt: skip
    row, text = await revealed(desk.core.store, row.profile, row.request_id, actor)
    values: dict[str, Any] = {"head": headline_text(row), "text": text, "id": row.short_id}
    if visit.by_script:
        return json({"how": "shown", "html": desk.drawing.page("exact.html", **values)})
    return await desk.page(visit, "revealed", t("console.title.revealed", id=row.short_id), here="", **values)


# --- who may ---------------------------------------------------------------------------------------


async def allowed(desk: Desk, visit: Visit, operation: Operation, row: ApprovalRequest | None) -> Actor:
    """Who does it. One that may not is recorded, and gets `NotHere`."""
    allowed = visit.may(operation)
    if not isinstance(allowed, Refused):
        return allowed.actor
    seat = visit.seat
    person = Person(platform="console", user_id=seat.principal or seat.key_id or seat.name[:12], name=seat.principal)
    await desk.refusals.record(
        seat.profile, person, Destination("console", "pages"), why=allowed.why, operation=operation, via="console",
        row=row,
    )  # fmt: skip
    raise NotHere("look_only", 403)


# --- answers ---------------------------------------------------------------------------------------


async def answer(desk: Desk, visit: Visit, told: Told) -> web.StreamResponse:
    """What became of one question: with its card for the script, else on the next page."""
    row = told.row
    if not visit.by_script:
        desk.say(visit, [_named(told)])
        return away(back_to(visit.field("next")))
    reply: dict[str, Any] = {"how": told.how, "text": _named(told)}
    if row is not None and row.leader_id is None:
        drawn = desk.drawing.own(await desk.reading.card(row, visit.seat), visit.token)
        reply |= {"id": row.request_id, "short": row.short_id, "html": str(drawn), "said": said(row)}
        reply |= {"pending": row.outcome is None, "severity": row.severity}
    return json(reply)


def _named(told: Told) -> str:
    if told.row is None or told.row.short_id in told.text:
        return told.text
    return t("console.told.named", id=told.row.short_id, text=told.text)


def done(desk: Desk, visit: Visit, lines: list[str]) -> web.StreamResponse:
    if visit.by_script:
        return json({"how": "done", "text": lines[0], "lines": lines[1:]})
    desk.say(visit, lines)
    return away(back_to(visit.field("next")))


def _stopped(desk: Desk, visit: Visit, head: str, stopped: Stopped) -> web.StreamResponse:
    lines = [head]
    for key, rows in (("cancelled", stopped.cancelled), ("void", stopped.voided), ("running", stopped.running)):
        if rows:
            ids = ", ".join(row.short_id for row in rows[:MOST_NAMED])
            more = len(rows) - MOST_NAMED
            lines.append(t(f"console.told.{key}", ids=f"{ids} (+{more})" if more > 0 else ids))
    if len(lines) == 1:
        lines.append(t("stop.nothing"))
    return done(desk, visit, lines)


# --- second steps ----------------------------------------------------------------------------------


async def _second_step(desk: Desk, visit: Visit, row: ApprovalRequest, asked: Asked) -> web.StreamResponse:
    place = safe_name(row.host) if row.host else agent_name(row)
    if row.severity == "critical":
        sentence = shown(row.description, prose=True)
        line, label = t("panel.confirm_critical", id=row.short_id, place=place, sentence=sentence), "confirm_once"
    else:
        breadth = shown(row.breadth, prose=True)
        line = t("panel.confirm_always", id=row.short_id, breadth=breadth, profile=safe_name(row.profile))
        label = "confirm_always"
    fields = [
        ("id", row.request_id), ("digest", asked.digest), ("counted", str(asked.counted)), ("upto", str(asked.upto)),
        ("confirmed", "1"),
    ]  # fmt: skip
    view = await desk.reading.view(row, visit.seat, listed=False)
    return await step(
        desk, visit, "/console/decide", line, t(f"button.{label}"), [*fields, ("choice", asked.choice)],
        head=headline_text(row), code=view.code,
    )  # fmt: skip


async def _all_second_step(desk: Desk, visit: Visit, listed: list[Asked]) -> web.StreamResponse:
    lines: list[str] = []
    left: list[str] = []
    runs = 0
    for asked in listed:
        row = await desk.reading.get(visit.seat.profile, asked.request_id)
        if row is None or row.outcome is not None:
            continue
        why = stays(row)
        if why is not None:
            left.append(t(f"console.stays.{why}", id=row.short_id))
            continue
        runs += 1 + min(asked.counted, row.waiters)
        lines.append(f"{row.short_id} · {headline_text(row)}")
    if not lines:
        raise NotHere("only_single", 400)
    fields = [("listed", f"{each.request_id} {each.digest} {each.counted} {each.upto}") for each in listed]
    return await step(
        desk, visit, "/console/all", t("console.all.sure", count=runs), t("console.all.yes", count=runs),
        [*fields, ("choice", "once"), ("confirmed", "1")], lines=_first(lines), left=_first(left),
    )  # fmt: skip


def _first(lines: list[str]) -> list[str]:
    more = len(lines) - MOST_NAMED
    return [*lines[:MOST_NAMED], t("pending.more", count=more)] if more > 0 else lines


async def _session_step(desk: Desk, visit: Visit, session_id: str, what: str) -> web.StreamResponse:
    session = await desk.core.sessions.get(visit.seat.profile, session_id)
    line = t(f"console.session.sure_{what}", session=session_name(session.session_id))
    fields = [("id", session.session_id), ("confirmed", "1")]
    return await step(desk, visit, f"/console/sessions/{what}", line, t(f"console.session.yes_{what}"), fields)


async def step(
    desk: Desk, visit: Visit, action: str, line: str, label: str, fields: list[tuple[str, str]], **more: Any
) -> web.StreamResponse:
    """A second step: a dialog for the script, else a page."""
    values = {
        "action": action, "line": line, "label": label, "head": "", "code": "", "lines": [], "left": [],
        "csrf": visit.token, "choose": None, "hint": t("console.step_form.close_hint"),
        "fields": [*fields, ("next", back_to(visit.field("next")))], **more,
    }  # fmt: skip
    if visit.by_script:
        return json({"how": "confirm", "html": desk.drawing.page("step.html", **values)})
    return await desk.page(visit, "confirm", t("console.title.confirm"), here="", **values)


# --- reading fields --------------------------------------------------------------------------------


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _listed(text: str) -> Asked | None:
    parts = text.split(" ")
    if len(parts) != 4:
        return None
    return Asked(request_id=parts[0], choice="", digest=parts[1], counted=_number(parts[2]), upto=_number(parts[3]))
