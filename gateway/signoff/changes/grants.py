"""Grants: what an answer wider than once leaves behind, what it covers, and how it ends.

A grant holds names, an action needs names (`signoff.coverage`). It is covered once each name it needs is held by a live
grant of its session, or by one that names the action as a whole.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from signoff.errors import GrantNotFound
from signoff.ids import new_short
from signoff.model import (
    Action,
    Actor,
    ApprovalRequest,
    Code,
    Command,
    Covered,
    Elicitation,
    Event,
    FileWrite,
    Grant,
    replace,
)
from signoff.ports import Tx
from signoff.rows import grant_key, joined, session_key

TIME_BOX = re.compile(r"([1-9][0-9]{0,3})([mh])")
MIN_BOX, MAX_BOX = timedelta(minutes=1), timedelta(hours=24)
BOX = "30m"
"""The time box that has a button."""


def time_box(choice: str) -> timedelta | None:
    """The length of a time box such as `30m` or `2h`, or None if it is none of 1 minute to 24 hours."""
    found = TIME_BOX.fullmatch(choice)
    if not found:
        return None
    amount = int(found.group(1))
    length = timedelta(minutes=amount) if found.group(2) == "m" else timedelta(hours=amount)
    return length if MIN_BOX <= length <= MAX_BOX else None


def covering(tx: Tx, row: ApprovalRequest) -> tuple[Grant, ...]:
    """The live grants that together cover this action in this session; none where they do not cover all of it.

    Critical actions and those that may only be approved once are always asked.
    """
    if row.severity == "critical" or row.once_only:
        return ()
    return _covering(row, _live(tx, row))


def _live(tx: Tx, row: ApprovalRequest) -> list[Grant]:
    """The grants of the row's session and those of its profile that name this action, not expired."""
    kind = action_kind(row)
    found: list[Grant] = []
    for name in dict.fromkeys((row.standing or row.digest, row.digest)):
        found += tx.find(Grant, "covers", grant_key(row.profile, None, kind, name))
    session = tx.find(Grant, "live_session", session_key(row.profile, row.session_id))
    found += [grant for grant in session if grant.action_kind == kind]
    return [grant for grant in found if in_force(grant, tx.now)]


def in_force(grant: Grant, now: datetime) -> bool:
    """Whether it still covers anything."""
    return grant.revoked_at is None and (grant.expires_at is None or grant.expires_at > now)


def _covering(row: ApprovalRequest, live: list[Grant]) -> tuple[Grant, ...]:
    """One that names the whole action, else those that together name each part of it."""
    whole = {row.digest, row.standing or row.digest}
    for grant in live:
        if whole.intersection(_names(grant)):
            return (grant,)
    missing = set(row.coverage or (row.digest,))
    taken = []
    for grant in live:
        if missing.intersection(_names(grant)):
            missing.difference_update(_names(grant))
            taken.append(grant)
    return () if missing else tuple(taken)


def _names(grant: Grant) -> tuple[str, ...]:
    return grant.coverage or (grant.digest,)


def actors(found: tuple[Grant, ...]) -> tuple[Actor, ...]:
    """Who decides where grants do, each with whoever gave it."""
    return tuple(
        Actor(
            type="grant",
            grant_id=grant.grant_id,
            principal=grant.by.principal,
            platform=grant.by.platform,
            user_id=grant.by.user_id,
            name=grant.by.name,
            key_id=grant.by.key_id,
        )
        for grant in found
    )


def used(tx: Tx, found: tuple[Grant, ...]) -> None:
    """Count that grants answered a question, in the commit that keeps the answer."""
    for each in found:
        grant = tx.get(Grant, joined(each.profile, each.grant_id)) or each
        tx.put(replace(grant, uses=grant.uses + 1, used_at=tx.now))


def covered_by(grant: Grant) -> Covered:
    """How wide a grant is, to be kept on what it answers: it may be gone when that is read."""
    return Covered(grant.scope, grant.label, grant.expires_at)


def make(
    tx: Tx, row: ApprovalRequest, choice: str, by: Actor, shown: str, exact: str | None = None
) -> tuple[Grant, ...]:
    """The grants that this answer to `row` leaves behind, the one that people are told of first. `shown` is the masked
    action on one line, `exact` a command's whole text where it may be allowed by its text alone.

    `always` covers the action in every session of the profile. A command's is its exact text, so what `session` would
    have covered comes with it: a wider answer never covers less than a narrower one.
    """
    kind, box = action_kind(row), time_box(choice)
    permanent = choice == "always"
    first = Grant(
        profile=row.profile,
        grant_id=_grant_id(tx, row.profile),
        scope="time_box" if box else ("always" if permanent else "session"),
        session_id=None if permanent else row.session_id,
        action_kind=kind,
        digest=row.digest,
        coverage=(row.standing or row.digest,) if permanent else row.coverage,
        exact=exact if permanent else None,
        label=exact_label(row.action) if permanent and exact_only(row.action) else row.label,
        shown=shown,
        by=by,
        request_id=row.request_id,
        created_at=tx.now,
        expires_at=tx.now + box if box else None,
    )
    _store(tx, first)
    by_rules = row.coverage not in ((), (row.digest,))
    if not permanent or not by_rules or not isinstance(row.action, Command):
        return (first,)
    beside = replace(
        first,
        grant_id=_grant_id(tx, row.profile),
        scope="session",
        session_id=row.session_id,
        coverage=row.coverage,
        exact=None,
        label=row.label,
    )
    _store(tx, beside)
    return (first, beside)


def _store(tx: Tx, grant: Grant) -> None:
    tx.put(grant)
    _emit(tx, "grant.created", grant)


def covered_pending(
    tx: Tx, made: tuple[Grant, ...], answered: ApprovalRequest
) -> list[tuple[ApprovalRequest, tuple[Grant, ...]]]:
    """Other pending leaders that new grants cover, alone or with older ones, each with those that do."""
    names = {name for grant in made for name in _names(grant)}
    rows = list(tx.find(ApprovalRequest, "live_session", session_key(answered.profile, answered.session_id)))
    if any(grant.session_id is None for grant in made):
        standing = joined(answered.profile, action_kind(answered), answered.standing or answered.digest)
        known = {row.request_id for row in rows}
        rows += [row for row in tx.find(ApprovalRequest, "pending_action", standing) if row.request_id not in known]
    covered = []
    for row in rows:
        if row.outcome is not None or row.leader_id is not None or row.request_id == answered.request_id:
            continue
        if not names.intersection((*row.coverage, row.digest, row.standing)):
            continue
        found = covering(tx, row)
        if found:
            covered.append((row, found))
    return covered


def made_with(tx: Tx, profile: str, grant_id: str) -> list[Grant]:
    """The live grants of the answer that made this one."""
    grant = tx.get(Grant, joined(profile, grant_id))
    found = tx.find(Grant, "request", joined(profile, grant.request_id)) if grant is not None else []
    return [each for each in found if each.revoked_at is None]


def revoke(tx: Tx, profile: str, grant_id: str, by: Actor) -> Grant:
    """End a grant now; raises `GrantNotFound` where there is no live one of that id.

    With a permanent one ends what the same answer allowed for its session: people are told of one id.
    """
    grant = tx.get(Grant, joined(profile, grant_id))
    if grant is None or grant.revoked_at is not None:
        raise GrantNotFound
    if grant.scope == "always":
        for other in made_with(tx, profile, grant_id):
            if other.grant_id != grant.grant_id:
                end(tx, other, by)
    return end(tx, grant, by)


def end(tx: Tx, grant: Grant, by: Actor) -> Grant:
    """Mark a live grant as revoked."""
    done = replace(grant, revoked_at=tx.now, revoked_by=by)
    tx.put(done)
    _emit(tx, "grant.revoked", done)
    return done


def drop_session(tx: Tx, profile: str, session_id: str, by: Actor) -> list[Grant]:
    """Revoke every grant of a session; those that still covered something."""
    kept = tx.find(Grant, "live_session", session_key(profile, session_id))
    dropped = [(in_force(grant, tx.now), end(tx, grant, by)) for grant in kept]
    return [grant for counted, grant in dropped if counted]


def action_kind(row: ApprovalRequest) -> str:
    """The action's kind word."""
    kind: str = row.action.__struct_config__.tag  # type: ignore[assignment]  # every action has a string tag
    return kind


def action_word(action: Action) -> str:
    """What an exact grant covers, in a word."""
    if isinstance(action, Command):
        return "command"
    if isinstance(action, FileWrite):
        return "change"
    return "script" if isinstance(action, Code) else "call"


def by_kind(grant: Grant) -> bool:
    """Whether it covers all of a kind, which its label names, rather than the one action that it was given for."""
    return (
        grant.exact is None
        and bool(grant.coverage)
        and not grant.coverage[0].startswith("action:")
        and (grant.digest not in grant.coverage)
    )


def exact_only(action: Action) -> bool:
    """Whether a permanent approval covers nothing but this action itself, rather than all of a kind."""
    return isinstance(action, Command | FileWrite | Elicitation)


def exact_label(action: Action) -> str:
    """The button label of an exact grant: at most 20 characters."""
    return f"this exact {action_word(action)}"


def _grant_id(tx: Tx, profile: str) -> str:
    while True:
        grant_id = new_short()
        if tx.get(Grant, joined(profile, grant_id)) is None:
            return grant_id


def _emit(tx: Tx, kind: str, grant: Grant) -> None:
    data = {"grant_id": grant.grant_id, "scope": grant.scope, "label": grant.label}
    tx.emit(
        Event(
            profile=grant.profile,
            type=kind,
            at=tx.now,
            session_id=grant.session_id,
            request_id=grant.request_id,
            data=data,
        )
    )
