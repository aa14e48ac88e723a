"""Grants: what an answer wider than once leaves behind. For now a grant covers the exact digest."""

from __future__ import annotations

import re
from datetime import timedelta

from signoff.errors import GrantNotFound
from signoff.ids import new_short
from signoff.model import Action, Actor, ApprovalRequest, Code, Command, Event, Grant, replace
from signoff.ports import Tx
from signoff.rows import grant_key, joined, session_key

TIME_BOX = re.compile(r"([1-9][0-9]{0,3})([mh])")
MIN_BOX, MAX_BOX = timedelta(minutes=1), timedelta(hours=24)


def time_box(choice: str) -> timedelta | None:
    """The length of a time box such as `30m` or `2h`, or None if it is none of 1 minute to 24 hours."""
    found = TIME_BOX.fullmatch(choice)
    if not found:
        return None
    amount = int(found.group(1))
    length = timedelta(minutes=amount) if found.group(2) == "m" else timedelta(hours=amount)
    return length if MIN_BOX <= length <= MAX_BOX else None


def covering(tx: Tx, row: ApprovalRequest) -> Grant | None:
    """A live grant that covers this action in this session, if there is one. Critical actions are always asked."""
    if row.severity == "critical":
        return None
    kind = action_kind(row)
    for session_id in (row.session_id, None):
        for grant in tx.find(Grant, "covers", grant_key(row.profile, session_id, kind, row.digest)):
            if grant.expires_at is None or grant.expires_at > tx.now:
                return grant
    return None


def make(tx: Tx, row: ApprovalRequest, choice: str, by: Actor, shown: str) -> Grant:
    """The grant that this answer to `row` leaves behind; `shown` is the masked action on one line.

    `always` covers every session of the profile, this one included.
    """
    box = time_box(choice)
    grant = Grant(
        profile=row.profile,
        grant_id=_grant_id(tx, row.profile),
        scope="time_box" if box else ("always" if choice == "always" else "session"),
        session_id=None if choice == "always" else row.session_id,
        action_kind=action_kind(row),
        digest=row.digest,
        label=row.label,
        shown=shown,
        by=by,
        request_id=row.request_id,
        created_at=tx.now,
        expires_at=tx.now + box if box else None,
    )
    tx.put(grant)
    _emit(tx, "grant.created", grant)
    return grant


def covered_pending(tx: Tx, grant: Grant, but: str) -> list[ApprovalRequest]:
    """Other pending leaders that the new grant covers, except critical ones."""
    key = joined(grant.profile, grant.action_kind, grant.digest)
    rows = tx.find(ApprovalRequest, "pending_action", key)
    return [
        row
        for row in rows
        if row.request_id != but
        and row.leader_id is None
        and row.severity != "critical"
        and (grant.session_id is None or row.session_id == grant.session_id)
    ]


def revoke(tx: Tx, profile: str, grant_id: str, by: Actor) -> Grant:
    """End a grant now; raises `GrantNotFound` where there is no live one of that id."""
    grant = tx.get(Grant, joined(profile, grant_id))
    if grant is None or grant.revoked_at is not None:
        raise GrantNotFound
    return end(tx, grant, by)


def end(tx: Tx, grant: Grant, by: Actor) -> Grant:
    """Mark a live grant as revoked."""
    done = replace(grant, revoked_at=tx.now, revoked_by=by)
    tx.put(done)
    _emit(tx, "grant.revoked", done)
    return done


def drop_session(tx: Tx, profile: str, session_id: str, by: Actor) -> list[Grant]:
    """Revoke every grant of a session."""
    live = tx.find(Grant, "live_session", session_key(profile, session_id))
    return [end(tx, grant, by) for grant in live]


def action_kind(row: ApprovalRequest) -> str:
    """The action's kind word."""
    kind: str = row.action.__struct_config__.tag  # type: ignore[assignment]  # every action has a string tag
    return kind


def action_word(action: Action) -> str:
    """What an exact grant covers, in a word."""
    if isinstance(action, Command):
        return "command"
    return "script" if isinstance(action, Code) else "call"


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
