"""How rows are found: for each row type its key, the columns it is looked up by, and its order.

A store keeps the whole row as one JSON document beside these columns. A column that is None is not indexed, so an
index over `pending_session` holds pending requests only, and stays small however long the history grows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Generic, TypeVar

from msgspec import Struct

from signoff.model import ApprovalRequest, Copy, Destination, Grant, Key, Note, Notifier, Session, Turn

R = TypeVar("R", bound=Struct)


def joined(*parts: str) -> str:
    """One index value of several: a separator that no id may hold keeps `a|b` and `a`, `|b` apart."""
    return "\x1f".join(parts)


class Table(Generic[R]):
    """One row type's name, key, lookup columns, order and due time."""

    def __init__(
        self,
        name: str,
        row: type[R],
        *,
        key: Callable[[R], str],
        columns: dict[str, Callable[[R], str | None]] | None = None,
        unique: frozenset[str] = frozenset(),
        order: Callable[[R], float] | None = None,
        due: Callable[[R], datetime | None] | None = None,
        urgency: Callable[[R], int] | None = None,
    ) -> None:
        self.name = name
        self.row = row
        self.key = key
        self.columns = columns or {}
        self.unique = unique
        self.order = order
        self.due = due
        self.urgency = urgency


def _live(row: ApprovalRequest) -> bool:
    """Pending, or approved and neither finished nor void: what a turn's end still touches."""
    return row.outcome is None or (row.outcome == "approved" and row.execution.state in ("none", "claimed"))


def _request_due(row: ApprovalRequest) -> datetime | None:
    if row.outcome is None:
        times = [t for t in (row.expires_at, row.notify_by, row.window_by) if t is not None]
        return min(times) if times else None
    if row.outcome == "approved" and row.execution.state in ("none", "claimed"):
        return row.claim_by
    return None


def request_key(profile: str, request_id: str) -> str:
    """The key of a request's row."""
    return joined(profile, request_id)


def session_key(profile: str, session_id: str) -> str:
    """The key of a session's row, and the value of columns that point to it."""
    return joined(profile, session_id)


def turn_key(profile: str, turn_id: str) -> str:
    """The key of a turn's row, and the value of columns that point to it."""
    return joined(profile, turn_id)


def place_key(profile: str, destination: Destination) -> str:
    """The value of columns that find what stands in exactly this place; a chat excludes its threads."""
    return joined(profile, destination.platform, destination.chat_id, destination.thread_id or "")


def message_key(profile: str, destination: Destination, message_id: str) -> str:
    """The value that finds the copy a message shows. Threads share their chat's message ids."""
    return joined(profile, destination.platform, destination.chat_id, message_id)


def grant_key(profile: str, session_id: str | None, action_kind: str, digest: str) -> str:
    """What a grant covers: this digest in one session, or (`None`) in every session of the profile."""
    return joined(profile, session_id or "", action_kind, digest)


TABLES: tuple[Table[Any], ...] = (
    Table(
        "requests",
        ApprovalRequest,
        key=lambda r: joined(r.profile, r.request_id),
        columns={
            "short": lambda r: joined(r.profile, r.short_id),
            "profile": lambda r: r.profile,
            "session": lambda r: joined(r.profile, r.session_id),
            "pending_profile": lambda r: r.profile if r.outcome is None else None,
            "live_session": lambda r: joined(r.profile, r.session_id) if _live(r) else None,
            "live_turn": lambda r: joined(r.profile, r.turn_id) if r.turn_id and _live(r) else None,
            "pending_action": lambda r: (
                joined(r.profile, r.action.__struct_config__.tag, r.digest) if r.outcome is None else None
            ),
            "leader_key": lambda r: (
                joined(r.profile, r.coalesce_key) if r.outcome is None and not r.leader_id else None
            ),
            "follower_of": lambda r: joined(r.profile, r.leader_id) if r.outcome is None and r.leader_id else None,
        },
        unique=frozenset({"leader_key"}),
        order=lambda r: r.created_at.timestamp(),
        due=_request_due,
    ),
    Table(
        "sessions",
        Session,
        key=lambda r: joined(r.profile, r.session_id),
        columns={
            "profile": lambda r: r.profile,
            "place": lambda r: place_key(r.profile, r.destination) if r.destination and not r.closed_at else None,
            "parent": lambda r: joined(r.profile, r.parent) if r.parent and not r.closed_at else None,
        },
        order=lambda r: r.created_at.timestamp(),
    ),
    Table(
        "turns",
        Turn,
        key=lambda r: joined(r.profile, r.turn_id),
        columns={"open_session": lambda r: joined(r.profile, r.session_id) if not r.ended_at else None},
        order=lambda r: r.opened_at.timestamp(),
        due=lambda r: None if r.ended_at else r.lease_until,
    ),
    Table(
        "notifiers",
        Notifier,
        key=lambda r: joined(r.profile, r.session_id, r.name),
        columns={"session": lambda r: joined(r.profile, r.session_id)},
        order=lambda r: r.attached_at.timestamp(),
        due=lambda r: r.gone_at,
    ),
    Table(
        "copies",
        Copy,
        key=lambda r: r.copy_id,
        columns={
            "request": lambda r: joined(r.profile, r.request_id) if r.request_id else None,
            "place": lambda r: (
                place_key(r.profile, r.destination)
                if r.kind == "card" and r.state in ("sent", "ambiguous", "sending") and r.request_id
                else None
            ),
            "message": lambda r: message_key(r.profile, r.destination, r.message_id) if r.message_id else None,
            "open_chat": lambda r: (
                joined(r.profile, r.destination.platform, r.destination.chat_id)
                if r.state not in ("final", "failed")
                else None
            ),
        },
        order=lambda r: r.created_at.timestamp(),
        due=lambda r: r.due_at,
        urgency=lambda r: r.priority,
    ),
    Table(
        "grants",
        Grant,
        key=lambda r: joined(r.profile, r.grant_id),
        columns={
            "profile": lambda r: r.profile,
            "live_profile": lambda r: None if r.revoked_at else r.profile,
            "covers": lambda r: (
                None if r.revoked_at else grant_key(r.profile, r.session_id, r.action_kind, r.digest)
            ),
            "live_session": lambda r: (
                joined(r.profile, r.session_id) if r.session_id and not r.revoked_at else None
            ),
            "request": lambda r: joined(r.profile, r.request_id),
        },
        order=lambda r: r.created_at.timestamp(),
    ),
    Table(
        "keys",
        Key,
        key=lambda r: r.key_id,
        columns={"profile": lambda r: r.profile},
        order=lambda r: r.created_at.timestamp(),
    ),
    Table("notes", Note, key=lambda r: r.name),
)

BY_ROW: dict[type[Struct], Table[Any]] = {table.row: table for table in TABLES}


def table_of(row: type[R]) -> Table[R]:
    """The table of a row type."""
    return BY_ROW[row]


def key_of(row: Struct) -> str:
    """The row's key."""
    key: str = BY_ROW[type(row)].key(row)
    return key
