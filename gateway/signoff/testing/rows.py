"""Rows and changes for tests: sound by default, each fact settable by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from signoff.model import (
    Actor,
    AllowlistEntry,
    ApprovalRequest,
    Command,
    Copy,
    Destination,
    Event,
    Execution,
    Face,
    Grant,
    Key,
    Note,
    Notifier,
    Session,
    Tool,
    Turn,
)
from signoff.ports import Tx

T0 = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""The instant that the suite's rows count from."""
PLACE = Destination("telegram", "100")


def at(seconds: float) -> datetime:
    """So many seconds after `T0`."""
    return T0 + timedelta(seconds=seconds)


def make_request(request_id: str = "r1", **facts: Any) -> ApprovalRequest:
    """A pending request; its coalescing key is its own id unless told otherwise."""
    defaults: dict[str, Any] = {
        "profile": "default",
        "short_id": f"S{request_id}",
        "session_id": "s1",
        "action": Command(command=f"make {request_id}"),
        "digest": f"digest of {request_id}",
        "coalesce_key": request_id,
        "created_at": T0,
    }
    return ApprovalRequest(request_id=request_id, **{**defaults, **facts})


def make_copy(copy_id: str = "c1", **facts: Any) -> Copy:
    """A queued card of request `r1`."""
    defaults: dict[str, Any] = {"profile": "default", "request_id": "r1", "destination": PLACE, "created_at": T0}
    return Copy(copy_id=copy_id, **{**defaults, **facts})


def make_event(kind: str = "approval.requested", **facts: Any) -> Event:
    """An event of the default profile."""
    return Event(**{"profile": "default", "type": kind, "at": T0, **facts})


def putting(*rows: Any, events: Sequence[Event] = ()) -> Callable[[Tx], None]:
    """A change that puts these rows and emits these events."""

    def change(tx: Tx) -> None:
        for row in rows:
            tx.put(row)
        for event in events:
            tx.emit(event)

    return change


EVERY_ROW = (
    make_request(
        action=Tool(name="deploy", arguments={"to": ["prod", 1, 2.5, None, True], "text": "Grüße 🙂 \x00 \u202e"}),
        outcome="approved",
        decided_by=(Actor(type="person", name="Ann", via="button"),),
        execution=Execution(state="claimed", claim_id="x", claimed_at=at(1)),
        destinations=(PLACE, Destination("slack", "C1", "17.5")),
        expires_at=at(300.123456),
    ),
    Session(profile="default", session_id="s1", kind="chat", destination=PLACE, created_at=T0),
    Turn(profile="default", turn_id="t1", session_id="s1", lease_until=at(60), opened_at=T0),
    Notifier(profile="default", session_id="s1", name="n1", attached_at=T0),
    make_copy(faces=(Face(0), Face(1, 3, 2)), message_id="77", state="sent"),
    Grant(
        profile="default",
        grant_id="g1",
        scope="session",
        session_id="s1",
        action_kind="command",
        digest="d",
        by=Actor(type="person"),
        request_id="r1",
        created_at=T0,
    ),
    AllowlistEntry(
        profile="default", entry_id="e1", list="commands", text="make *", by=Actor(type="person"), created_at=T0
    ),
    Key(key_id="k1", profile="default", scope="agent", secret_sha256="", created_at=T0),
    Note(name="offset", value="12"),
)
"""One row of every type."""
