"""What the server answers beside the record itself, each a Struct, and how they are made of rows.

They are encoded as they stand and are the source of `/openapi.json`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

from signoff.allowlist_rows import Standing
from signoff.display import shown
from signoff.drills import DrillPlace
from signoff.model import Actor, Grant, Key, Notifier, Scope, Session, SessionKind, Turn
from signoff.record import Approval
from signoff.staged import KeptAction


class _Out(Struct, frozen=True, kw_only=True):
    """What the server answers; every field is always there."""


class ApprovalList(_Out, frozen=True, kw_only=True):
    """A page of requests, oldest first."""

    object: Literal["list"] = "list"
    data: list[Approval]
    next: str | None


class ActionList(_Out, frozen=True, kw_only=True):
    """A page of kept actions, oldest first."""

    object: Literal["list"] = "list"
    data: list[KeptAction]
    next: str | None


class SessionView(_Out, frozen=True, kw_only=True):
    """A session."""

    object: Literal["signoff.session"] = "signoff.session"
    session_id: str
    kind: SessionKind
    agent: str | None
    platform: str | None
    chat_id: str | None
    thread_id: str | None
    user_id: str | None
    parent: str | None
    generation: int
    created_at: datetime
    bypass_until: datetime | None
    """Nothing is asked in it until then."""
    bypass_by: Actor | None


class SessionList(_Out, frozen=True, kw_only=True):
    """A page of open sessions, oldest first."""

    object: Literal["list"] = "list"
    data: list[SessionView]
    next: str | None


class StoppedView(_Out, frozen=True, kw_only=True):
    """What an end took with it: ids of requests, turns and sessions. `grants` were kept by stop, dropped by delete."""

    object: Literal["signoff.stopped"] = "signoff.stopped"
    session_id: str
    sessions: tuple[str, ...]
    turns: tuple[str, ...]
    cancelled: list[str]
    voided: list[str]
    running: list[str]
    grants: int


class TurnView(_Out, frozen=True, kw_only=True):
    """A turn."""

    object: Literal["signoff.turn"] = "signoff.turn"
    turn_id: str
    session_id: str
    lease_s: float
    lease_until: datetime
    opened_at: datetime
    ended_at: datetime | None
    cause: str | None
    ended_by: Actor | None


class NotifierView(_Out, frozen=True, kw_only=True):
    """An answer client of a session."""

    object: Literal["signoff.notifier"] = "signoff.notifier"
    session_id: str
    name: str
    principal: str | None
    attached_at: datetime


class Deleted(_Out, frozen=True, kw_only=True):
    """It is gone."""

    object: Literal["signoff.deleted"] = "signoff.deleted"
    id: str
    deleted: Literal[True] = True


class GrantView(_Out, frozen=True, kw_only=True):
    """What an answer wider than once left behind. `shown` is the masked action it was given for."""

    object: Literal["signoff.grant"] = "signoff.grant"
    grant_id: str
    scope: Literal["session", "always", "time_box"]
    session_id: str | None
    action_kind: str
    digest: str
    coverage: tuple[str, ...]
    """The names it covers: a rule and a program, `code:`, `tool:`, or a digest."""
    exact: str | None
    """Of a permanent one for a command: the text it covers, masked."""
    label: str
    shown: str
    by: Actor
    request_id: str
    created_at: datetime
    expires_at: datetime | None
    uses: int
    """How many questions it answered."""
    used_at: datetime | None
    """When it last did."""
    revoked_at: datetime | None
    revoked_by: Actor | None


class GrantList(_Out, frozen=True, kw_only=True):
    """A page of the live grants, oldest first."""

    object: Literal["list"] = "list"
    data: list[GrantView]
    next: str | None


class KeyView(_Out, frozen=True, kw_only=True):
    """An API key without its secret."""

    object: Literal["signoff.key"] = "signoff.key"
    id: str
    profile: str
    scope: Scope
    agent: str | None
    principal: str | None
    created_at: datetime
    revoked_at: datetime | None


class NewKeyView(KeyView, frozen=True, kw_only=True):
    """A key just made; `key` is shown this once."""

    key: str


class KeyList(_Out, frozen=True, kw_only=True):
    """A page of the profile's keys, oldest first."""

    object: Literal["list"] = "list"
    data: list[KeyView]
    next: str | None


class AllowlistLine(_Out, frozen=True, kw_only=True):
    """A line of the allowlist as it stands, its text unmasked. With a `grant_id` it is that of an "Always"."""

    object: Literal["signoff.allowlist_line"] = "signoff.allowlist_line"
    id: str
    list: str
    text: str
    grant_id: str | None
    source: str
    """The file it was imported from."""
    by: Actor
    added_at: datetime
    removed_at: datetime | None
    removed_by: Actor | None


class AllowlistLines(_Out, frozen=True, kw_only=True):
    """The whole allowlist: operators' lines first, each kind oldest first."""

    object: Literal["list"] = "list"
    data: tuple[AllowlistLine, ...]
    next: str | None = None


class AllowlistChange(_Out, frozen=True, kw_only=True):
    """What came of a change. `left`: lines that were removed before, and stay so."""

    object: Literal["signoff.allowlist_change"] = "signoff.allowlist_change"
    added: tuple[AllowlistLine, ...]
    removed: tuple[AllowlistLine, ...]
    left: tuple[AllowlistLine, ...]


class DrillView(_Out, frozen=True, kw_only=True):
    """A drill, and what came of each of its cards."""

    object: Literal["signoff.drill"] = "signoff.drill"
    id: str
    ends_at: datetime
    places: tuple[DrillPlace, ...]


class Alive(_Out, frozen=True, kw_only=True):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Ready(_Out, frozen=True, kw_only=True):
    """Whether it can do its work: the store serves and every platform had its first round."""

    status: Literal["ready", "starting"]


class HealthView(_Out, frozen=True, kw_only=True):
    """Facts per adapter and of the store."""

    status: Literal["ready", "starting"]
    version: str
    started_at: datetime
    parts: dict[str, Any]


class Endpoint(_Out, frozen=True, kw_only=True):
    """A route that this gateway has."""

    method: str
    path: str


class Capabilities(_Out, frozen=True, kw_only=True):
    """What this gateway can do for this key. Only what exists is named."""

    object: Literal["signoff.capabilities"] = "signoff.capabilities"
    version: str
    profile: str
    scope: Scope
    platforms: tuple[str, ...]
    action_kinds: tuple[str, ...]
    features: dict[str, bool]
    limits: dict[str, float]
    endpoints: dict[str, Endpoint]


class EventView(_Out, frozen=True, kw_only=True):
    """One event of the stream, in its `data` line; `approval` is the record, where the event is about a request."""

    seq: int
    type: str
    at: datetime
    session_id: str | None
    approval: Approval | None


# --- rows to answers -----------------------------------------------------------------------------


def session_view(row: Session) -> SessionView:
    """A session's row as it is shown."""
    place = row.destination
    return SessionView(
        session_id=row.session_id,
        kind=row.kind,
        agent=row.agent,
        platform=place.platform if place else None,
        chat_id=place.chat_id if place else None,
        thread_id=place.thread_id if place else None,
        user_id=row.user_id,
        parent=row.parent,
        generation=row.generation,
        created_at=row.created_at,
        bypass_until=row.bypass_until,
        bypass_by=row.bypass_by,
    )


def turn_view(row: Turn) -> TurnView:
    """A turn's row as it is shown."""
    return TurnView(
        turn_id=row.turn_id,
        session_id=row.session_id,
        lease_s=row.lease_s,
        lease_until=row.lease_until,
        opened_at=row.opened_at,
        ended_at=row.ended_at,
        cause=row.cause,
        ended_by=row.ended_by,
    )


def notifier_view(row: Notifier) -> NotifierView:
    """A notifier's row as it is shown."""
    return NotifierView(session_id=row.session_id, name=row.name, principal=row.principal, attached_at=row.attached_at)


def grant_view(row: Grant) -> GrantView:
    """A grant's row as it is shown."""
    return GrantView(
        grant_id=row.grant_id,
        scope=row.scope,
        session_id=row.session_id,
        action_kind=row.action_kind,
        digest=row.digest,
        coverage=row.coverage or (row.digest,),
        exact=shown(row.exact) if row.exact is not None else None,
        label=row.label,
        shown=row.shown,
        by=row.by,
        request_id=row.request_id,
        created_at=row.created_at,
        expires_at=row.expires_at,
        uses=row.uses,
        used_at=row.used_at,
        revoked_at=row.revoked_at,
        revoked_by=row.revoked_by,
    )


def line_view(line: Standing) -> AllowlistLine:
    """A line as it is shown to operators."""
    return AllowlistLine(
        id=line.id,
        list=line.list,
        text=line.text,
        grant_id=line.grant_id,
        source=line.source,
        by=line.by,
        added_at=line.added_at,
        removed_at=line.removed_at,
        removed_by=line.removed_by,
    )


def key_view(row: Key) -> KeyView:
    """A key's row as it is shown."""
    return KeyView(
        id=row.key_id,
        profile=row.profile,
        scope=row.scope,
        agent=row.agent,
        principal=row.principal,
        created_at=row.created_at,
        revoked_at=row.revoked_at,
    )
