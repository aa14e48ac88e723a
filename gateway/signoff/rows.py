"""How rows are found: for each row type its key, the columns it is looked up by, and its order.

A store keeps the whole row as one JSON document beside these columns. A column that is None is not indexed, so an
index over `pending_profile` holds pending requests only, and stays small however long the history grows.

All columns of a row come from one function, since engines need them together and often: at every put they tell which
ones changed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Generic, TypeVar

from msgspec import Struct

from signoff.ids import asker_of
from signoff.model import AllowlistEntry, ApprovalRequest, Copy, Destination, Grant, Key, Note, Notifier, Session, Turn

R = TypeVar("R", bound=Struct)


SEPARATOR = "\x1f"
"""Stands between the parts of one index value: no id may hold it, which keeps `a|b` and `a`, `|b` apart."""

EVERY_SESSION = ""
"""The session id of a notifier that serves all sessions of its profile; no session can have it."""

NO_CONTEXT = "no-context"
"""The session id of what is asked outside of any session; no agent can declare it."""

Columns = tuple[str | None, ...]


def joined(*parts: str) -> str:
    """One index value of several."""
    return SEPARATOR.join(parts)


class Table(Generic[R]):
    """One row type's name, key, lookup columns, order and due time. `values` gives all columns in their order."""

    def __init__(
        self,
        name: str,
        row: type[R],
        *,
        key: Callable[[R], str],
        columns: tuple[str, ...] = (),
        values: Callable[[R], Columns] = lambda row: (),
        unique: frozenset[str] = frozenset(),
        order: Callable[[R], float] | None = None,
        due: Callable[[R], datetime | None] | None = None,
        urgency: Callable[[R], int] | None = None,
    ) -> None:
        self.name = name
        self.row = row
        self.key = key
        self.values = values
        self.columns: dict[str, Callable[[R], str | None]] = {
            path: _column(values, place) for place, path in enumerate(columns)
        }
        self.places = {path: place for place, path in enumerate(columns)}
        """Where each column stands in what `values` gives."""
        self.unique = unique
        self.order = order
        self.due = due
        self.urgency = urgency


def _column(values: Callable[[R], Columns], place: int) -> Callable[[R], str | None]:
    return lambda row: values(row)[place]


def _live(row: ApprovalRequest) -> bool:
    """Pending, or approved and neither finished nor void: what a turn's end still touches. The question about a kept
    action outlives its session."""
    if row.stages is not None:
        return False
    return row.outcome is None or (row.outcome == "approved" and row.execution.state in ("none", "claimed"))


def _denied(row: ApprovalRequest) -> bool:
    """Whether a person denied it and nobody has let it be asked again since. A kept action is not asked again."""
    if row.stages is not None or row.outcome != "denied" or row.repeat_of is not None or row.lifted_by is not None:
        return False
    return any(actor.type == "person" for actor in row.decided_by)


def _approved_once(row: ApprovalRequest) -> bool:
    """Whether people approved this one run, while its agent waited, in a session that may ask for it again."""
    if row.stages is not None or row.outcome != "approved" or row.choice not in ("once", "once_all"):
        return False
    if asker_of(row.session_id) != row.session_id:
        return False  # they are counted by session, and those of an asker would all be read at each of its questions
    return any(actor.type == "person" for actor in row.decided_by)


def _request_due(row: ApprovalRequest) -> datetime | None:
    if row.outcome is None:
        first = row.expires_at
        for other in (row.notify_by, row.window_by):
            if other is not None and (first is None or other < first):
                first = other
        return first
    if row.outcome == "approved" and row.execution.state in ("none", "claimed"):
        return row.claim_by
    return None


def _session_due(row: Session) -> datetime | None:
    if row.closed_at is not None:
        return None
    if row.bypass_until is None or row.ends_at is None:
        return row.bypass_until or row.ends_at
    return min(row.bypass_until, row.ends_at)


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


def grant_key(profile: str, session_id: str | None, action_kind: str, name: str) -> str:
    """What a grant covers by its first name: in one session, or (`None`) in every session of the profile."""
    return joined(profile, session_id or "", action_kind, name)


def answered_key(r: ApprovalRequest) -> str:
    """The value of the column that finds what people answered about exactly this action in a session, or denied in
    those that an agent's commands had for one question each."""
    return joined(r.profile, _asker(r), r.digest)


def to_run_key(profile: str, executor: str) -> str:
    """The value of the column that finds the kept actions that were approved and that nobody has started."""
    return joined(profile, executor)


def denied_key(r: ApprovalRequest) -> str:
    """The value of the column that finds what people denied there about actions like this."""
    return joined(r.profile, _asker(r), r.likeness)


def _asker(r: ApprovalRequest) -> str:
    """The session, or whose it is where it was for this question alone. Agents choose their ids, so that its name is
    part of it: none gets to know what another one was denied."""
    asker = asker_of(r.session_id)
    return asker if asker == r.session_id else joined(asker, r.agent or "")


# In these functions f-strings stand for `joined`, which would cost as much as all the rest of them.


def _request_columns(r: ApprovalRequest) -> Columns:
    profile = r.profile
    short, session = f"{profile}\x1f{r.short_id}", f"{profile}\x1f{r.session_id}"
    if r.stages is not None:
        return _staged_columns(r, short, session)
    if r.outcome is not None:
        denied = _denied(r)
        answered = answered_key(r) if denied or _approved_once(r) else None
        like = denied_key(r) if denied and r.likeness else None
        if not _live(r):
            return short, profile, session, None, None, None, None, None, None, answered, like, None, None
        return (
            short,
            profile,
            session,
            None,
            session,
            f"{profile}\x1f{r.turn_id}" if r.turn_id else None,
            None,
            None,
            None,
            answered,
            like,
            None,
            None,
        )
    leader = r.leader_id
    return (
        short,
        profile,
        session,
        profile,
        session,
        f"{profile}\x1f{r.turn_id}" if r.turn_id else None,
        f"{profile}\x1f{r.action.__struct_config__.tag}\x1f{r.standing or r.digest}",
        None if leader else f"{profile}\x1f{r.coalesce_key}",
        f"{profile}\x1f{leader}" if leader else None,
        None,
        None,
        None,
        None,
    )


def _staged_columns(r: ApprovalRequest, short: str, session: str) -> Columns:
    """Those of the question about a kept action: no session's end finds it, no standing approval and no other
    question joins it."""
    profile = r.profile
    pending = profile if r.outcome is None else None
    waits = r.outcome == "approved" and r.execution.state == "none"
    to_run = f"{profile}\x1f{r.executor or ''}" if waits else None
    return short, profile, session, pending, None, None, None, None, None, None, None, profile, to_run


def _session_columns(r: Session) -> Columns:
    if r.closed_at:
        return r.profile, None, None
    return (
        r.profile,
        place_key(r.profile, r.destination) if r.destination else None,
        joined(r.profile, r.parent) if r.parent else None,
    )


def _copy_columns(r: Copy) -> Columns:
    profile, destination, state, request = r.profile, r.destination, r.state, r.request_id
    chat = f"{profile}\x1f{destination.platform}\x1f{destination.chat_id}"
    shown = r.kind == "card" and request and state in ("sent", "ambiguous", "sending")
    return (
        f"{profile}\x1f{request}" if request else None,
        f"{chat}\x1f{destination.thread_id or ''}" if shown else None,
        f"{chat}\x1f{r.message_id}" if r.message_id else None,
        None if state in ("final", "failed") else chat,
    )


def _grant_columns(r: Grant) -> Columns:
    live = r.revoked_at is None
    return (
        r.profile,
        r.profile if live else None,
        grant_key(r.profile, r.session_id, r.action_kind, r.coverage[0] if r.coverage else r.digest) if live else None,
        joined(r.profile, r.session_id) if live and r.session_id else None,
        joined(r.profile, r.request_id),
    )


TABLES: tuple[Table[Any], ...] = (
    Table(
        "requests",
        ApprovalRequest,
        key=lambda r: f"{r.profile}\x1f{r.request_id}",
        columns=(
            "short",
            "profile",
            "session",
            "pending_profile",
            "live_session",
            "live_turn",
            "pending_action",
            "leader_key",
            "follower_of",
            "answered",
            "denied_like",
            "staged",
            "to_run",
        ),
        values=_request_columns,
        unique=frozenset({"leader_key"}),
        order=lambda r: r.created_at.timestamp(),
        due=_request_due,
    ),
    Table(
        "sessions",
        Session,
        key=lambda r: joined(r.profile, r.session_id),
        columns=("profile", "place", "parent"),
        values=_session_columns,
        order=lambda r: r.created_at.timestamp(),
        due=_session_due,
    ),
    Table(
        "turns",
        Turn,
        key=lambda r: joined(r.profile, r.turn_id),
        columns=("open_session",),
        values=lambda r: (None if r.ended_at else joined(r.profile, r.session_id),),
        order=lambda r: r.opened_at.timestamp(),
        due=lambda r: None if r.ended_at else r.lease_until,
    ),
    Table(
        "notifiers",
        Notifier,
        key=lambda r: joined(r.profile, r.session_id, r.name),
        columns=("session",),
        values=lambda r: (joined(r.profile, r.session_id),),
        order=lambda r: r.attached_at.timestamp(),
        due=lambda r: r.gone_at,
    ),
    Table(
        "copies",
        Copy,
        key=lambda r: r.copy_id,
        columns=("request", "place", "message", "open_chat"),
        values=_copy_columns,
        order=lambda r: r.created_at.timestamp(),
        due=lambda r: r.due_at,
        urgency=lambda r: r.priority,
    ),
    Table(
        "grants",
        Grant,
        key=lambda r: joined(r.profile, r.grant_id),
        columns=("profile", "live_profile", "covers", "live_session", "request"),
        values=_grant_columns,
        order=lambda r: r.created_at.timestamp(),
    ),
    Table(
        "allowlist",
        AllowlistEntry,
        key=lambda r: joined(r.profile, r.entry_id),
        columns=("profile", "live_profile"),
        values=lambda r: (r.profile, r.profile if r.removed_at is None else None),
        order=lambda r: r.created_at.timestamp() + r.rank / 1_000_000,
    ),
    Table(
        "keys",
        Key,
        key=lambda r: r.key_id,
        columns=("profile",),
        values=lambda r: (r.profile,),
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
