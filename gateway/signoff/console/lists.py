"""The pages that list what else there is: sessions, grants, and how the platforms are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Struct

from signoff import aside
from signoff.changes.bypassing import live, refusal
from signoff.changes.grants import in_force
from signoff.console.reach import covered
from signoff.console.troubles import title_of
from signoff.display import shown
from signoff.durations import clock, duration
from signoff.model import ApprovalRequest, Grant, Notifier, Session, Turn, replace
from signoff.routing import UNATTENDED, mode_setting
from signoff.rows import joined, session_key
from signoff.server.core import Core
from signoff.settings import Profile
from signoff.wording import person_name, safe_name, session_name, t

PAGE, MOST_SESSIONS, SHOWN_SESSIONS = 500, 20_000, 300


class SessionLine(Struct, frozen=True, kw_only=True):
    """One open session. `depth`: how many stand above it."""

    id: str
    name: str
    kind: str
    agent: str
    answers: str
    state: str
    waits: int
    staged: int
    """Kept actions of it that still wait for an answer."""
    grants: int
    bypass: str
    """Until when nothing is asked; empty where it is."""
    bypass_by: str
    may_bypass: bool
    """Whether its questions may be switched off at all."""
    depth: int


class GrantLine(Struct, frozen=True, kw_only=True):
    """One live grant."""

    id: str
    scope: str
    label: str
    covers: tuple[str, ...]
    """What it covers, each kind in a sentence."""
    exact: str
    """The whole text that it covers, masked; empty where it covers more than one text."""
    shown: str
    beside: str
    """The permanent grant with which it was made, and with which it ends."""
    person: str
    at: datetime
    used: str
    used_at: datetime | None
    """When it last answered a question; None where it did not yet."""
    session: str
    until: datetime | None


class Part(Struct, frozen=True, kw_only=True):
    """One platform, hook, the store, an executor that is missing, or a loop that fails."""

    name: str
    state: str
    good: bool
    heard: datetime | None
    waiting: int | None
    note: str
    history: tuple[str, ...] = ()


async def sessions(core: Core, profile: Profile, now: datetime) -> tuple[list[SessionLine], int]:
    """The open sessions, children under their parents, and how many more there are."""
    found = await _open_sessions(core, profile.name)
    pending = [row for row in await core.broker.pending(profile.name, limit=5000) if row.outcome is None]
    waits = Counter(row.session_id for row in pending if row.stages is None)
    staged = Counter(row.session_id for row in pending if row.stages is not None)
    below: dict[str | None, list[Session]] = {}
    names = {session.session_id for session in found}
    for session in found:
        below.setdefault(session.parent if session.parent in names else None, []).append(session)
    lines: list[SessionLine] = []
    stack = [(session, session, 0) for session in reversed(below.get(None, []))]
    while stack and len(lines) < SHOWN_SESSIONS:
        session, root, depth = stack.pop()
        line = await _session_line(core, profile, session, root, waits, depth, now)
        lines.append(replace(line, staged=staged[session.session_id]))
        stack += [(child, root, min(depth + 1, 8)) for child in reversed(below.get(session.session_id, []))]
    return lines, len(found) - len(lines)


async def _open_sessions(core: Core, profile: str) -> list[Session]:
    """Newest first."""
    found: list[Session] = []
    after: str | None = None
    for _ in range(MOST_SESSIONS // PAGE):
        rows = await core.store.find(Session, "profile", profile, limit=PAGE, after=after)
        found += [row for row in rows if row.closed_at is None]
        if len(rows) < PAGE:
            break
        after = session_key(profile, rows[-1].session_id)
    return found[::-1]


async def _session_line(
    core: Core, profile: Profile, session: Session, root: Session, waits: Counter[str], depth: int, now: datetime
) -> SessionLine:
    key = session_key(profile.name, session.session_id)
    turns = await core.store.find(Turn, "open_session", key, limit=1)
    given = await core.store.find(Grant, "live_session", key)
    until = session.bypass_until if live(profile, session, root, now) else None
    return SessionLine(
        id=session.session_id,
        name=session_name(session.session_id),
        kind=session.kind,
        agent=safe_name(session.agent) if session.agent else "",
        answers=await _answers(core, profile, session),
        state=t("console.session.working") if turns else t("console.session.idle"),
        waits=waits[session.session_id],
        staged=0,
        grants=sum(in_force(grant, now) for grant in given),
        bypass=t("console.session.until", clock=clock(until, now=now)) if until else "",
        bypass_by=person_name(session.bypass_by) if until and session.bypass_by else "",
        may_bypass=refusal(profile, session, root) is None,
        depth=depth,
    )


async def _answers(core: Core, profile: Profile, session: Session) -> str:
    if session.kind in UNATTENDED:
        mode = mode_setting(session.kind)
        return t(f"console.session.nobody_{getattr(profile.approvals, mode)}", setting=mode)
    if session.kind == "child":
        return t("console.session.parent", session=session_name(session.parent or ""))
    if session.destination is not None:
        return safe_name(str(session.destination))
    now = core.clock.now()
    for name, key in ((session.session_id, "app"), ("", "open")):
        found = await core.store.find(Notifier, "session", session_key(profile.name, name), limit=10)
        if any(each.gone_at is None or each.gone_at > now for each in found):
            return t(f"console.session.{key}")
    if profile.approvals.fallback_destination is not None:
        return safe_name(str(profile.approvals.fallback_destination))
    mode = mode_setting(session.kind)
    return t(f"console.session.nobody_{getattr(profile.approvals, mode)}", setting=mode)


async def grants(core: Core, profile: str) -> list[GrantLine]:
    """The live grants, newest first."""
    rows = await core.broker.grants(profile)
    make = partial(_grant_lines, rows, core.broker.profile(profile))
    return await aside.masked((row.exact for row in rows), make)


def _grant_lines(rows: Sequence[Grant], profile: Profile) -> list[GrantLine]:
    permanent = {row.request_id: row.grant_id for row in rows if row.scope == "always"}
    return [
        GrantLine(
            id=row.grant_id,
            scope=t(f"console.scope.{row.scope}"),
            label=row.label,
            covers=covered(row.action_kind, row.coverage, profile),
            exact=shown(row.exact) if row.exact is not None else "",
            shown=row.shown if row.exact is None else "",
            beside=permanent.get(row.request_id, "") if row.scope != "always" else "",
            person=person_name(row.by),
            at=row.created_at,
            used=t("console.grant.uses", count=row.uses) if row.uses else t("console.grant.unused"),
            used_at=row.used_at,
            session=session_name(row.session_id) if row.session_id else "",
            until=row.expires_at,
        )
        for row in reversed(rows)
    ]


async def ended_with(core: Core, grant: Grant) -> list[Grant]:
    """The grants that ended when this one was revoked: those that the same answer had made."""
    made = await core.store.find(Grant, "request", joined(grant.profile, grant.request_id))
    return [each for each in made if each.grant_id != grant.grant_id and each.revoked_at == grant.revoked_at]


async def health(core: Core, profile: str, waiting: dict[str, int], *, details: bool) -> list[Part]:
    """The platforms and hooks of this profile, the executors that are missing, the store, and what keeps failing.
    `waiting`: cards to send, by platform; `details`: also what only operators may read, such as where the store is."""
    facts = await core.health()
    parts = []
    for name, each in facts.get("platforms", {}).items():
        owner, _, platform = name.partition("/")
        if owner == profile:
            parts.append(_platform(core, profile, platform, each, waiting.get(platform, 0)))
    parts += [_hook(name, each, details=details) for name, each in _own(facts.get("hooks", {}), profile)]
    parts += [_absent(name, each) for name, each in _own(facts.get("executors", {}), profile)]
    parts.append(_store(facts.get("store", {}), details=details))
    parts += [
        Part(
            name=t("console.health.loop"),
            state=t("console.health.failed"),
            good=False,
            heard=None,
            waiting=None,
            note=shown(str(trouble), prose=True),
        )
        for trouble in facts.get("failing", ())
    ]
    return parts


def _platform(core: Core, profile: str, platform: str, each: dict[str, Any], waiting: int) -> Part:
    state = str(each.get("state", ""))
    title = title_of(core, profile, platform)
    return Part(
        name=title,
        state=t(f"console.health.{state}"),
        good=state == "ready",
        heard=each.get("last_heard_at"),
        waiting=waiting,
        note=shown(str(each.get("detail", "")), prose=True),
        history=tuple(shown(str(line), prose=True) for line in each.get("history", ())[-10:]),
    )


def _own(facts: dict[str, dict[str, Any]], profile: str) -> list[tuple[str, dict[str, Any]]]:
    """Those of the profile, by their own names."""
    start = f"{profile}/"
    return [(name.removeprefix(start), each) for name, each in facts.items() if name.startswith(start)]


def _hook(name: str, each: dict[str, Any], *, details: bool) -> Part:
    good = each["state"] == "ok"
    notes = [t("console.health.behind", count=each["behind"])] if each["behind"] else []
    notes += [t("console.health.parked", count=each["parked"])] if each["parked"] else []
    notes += [shown(str(each["detail"]), prose=True)] if details and each["detail"] else []
    return Part(
        name=t("console.health.hook", hook=safe_name(name)),
        state=t("console.health.ready" if good else "console.health.failing"),
        good=good,
        heard=None,
        waiting=None,
        note=" · ".join(notes),
    )


def _absent(name: str, each: dict[str, Any]) -> Part:
    """An executor that approved actions wait for and no gateway has."""
    return Part(
        name=t("console.health.executor", executor=safe_name(name)),
        state=t("console.health.missing"),
        good=False,
        heard=None,
        waiting=None,
        note=t("console.health.to_run", count=each["waiting"]),
    )


def _store(facts: dict[str, Any], *, details: bool) -> Part:
    good = facts.get("status", "ok") == "ok"
    notes = [f"{name}: {value}" for name, value in facts.items() if isinstance(value, str | int | float)]
    return Part(
        name=t("console.health.store"),
        state=t("console.health.ready") if good else t("console.health.failed"),
        good=good,
        heard=None,
        waiting=None,
        note=shown(" · ".join(note for note in notes if not note.startswith("status")), prose=True) if details else "",
    )


def started(core: Core, now: datetime) -> str:
    """How long this gateway has been up."""
    return duration((now - core.started_at).total_seconds())


def rows_waiting(rows: list[ApprovalRequest]) -> dict[str, int]:
    """By platform: the questions whose card was not shown there yet."""
    found: Counter[str] = Counter()
    for row in rows:
        found.update(place.platform for place in row.destinations if place not in row.delivered_to)
    return dict(found)
