"""What a hook is told. Pure.

A payload is made of the event and of what never changes after it, so that it says the same whenever it is made: at
once, late, or again. Every text of the agent is masked as on a card.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct

from signoff.changes.asking import REVIEWER
from signoff.display import shown
from signoff.elicitation import Word, elicited
from signoff.endings import message, user_summary
from signoff.model import (
    Action,
    Actor,
    ApprovalRequest,
    Event,
    Execution,
    Outcome,
    Session,
    SessionKind,
    Severity,
    replace,
)
from signoff.record import masked_action
from signoff.settings import HookName

SCHEMA_VERSION = 1
"""Goes up when a field changes its meaning or goes; a new field does not raise it."""
HOOK_OF: dict[str, HookName] = {
    "approval.requested": "pre_approval_request",
    "approval.resolved": "post_approval_response",
    "turn.ended": "agent_end",
    "session.stopped": "agent_end",
    "session.cleared": "agent_end",
}
"""Which hook is told of an event."""


class _Payload(Struct, frozen=True, kw_only=True, tag_field="type"):
    """What every payload has. Times are RFC 3339 in UTC."""

    schema_version: int = SCHEMA_VERSION
    seq: int
    """The event's number, which rises by one per profile."""
    at: datetime
    profile: str
    session_id: str
    turn_id: str | None
    kind: SessionKind | None
    """The kind of the session; null where it is not known any more."""
    agent: str | None


class _Question(_Payload, frozen=True, kw_only=True):
    """What both payloads about one request say; `request_id` pairs them."""

    request_id: str
    short_id: str
    tool_call_id: str | None
    digest: str
    action: Action
    """Masked."""
    description: str
    severity: Severity
    rule_keys: tuple[str, ...]
    agent_reason: str | None
    requested_by: str | None
    coalesced: bool
    """It waits, or waited to its end, on the card of an identical question."""
    leader_id: str | None
    """That question."""
    review: Literal["approve", "deny", "escalate"] | None
    """What the automatic reviewer said, where it was asked."""
    stages: str | None
    """It asks whether a kept action may run: the request that was staged."""


class PreApprovalRequest(_Question, frozen=True, kw_only=True, tag="pre_approval_request"):
    """A question was saved. Exactly one for each request, also for one that had its answer at once."""

    choices: tuple[str, ...]
    timeout_s: float | None


class PostApprovalResponse(_Question, frozen=True, kw_only=True, tag="post_approval_response"):
    """The question has ended, in whatever way. Exactly one for each request, after its `pre_approval_request`."""

    outcome: Outcome
    choice: str | None
    cause: str | None
    decided_by: tuple[Actor, ...]
    ended_by: Actor | None
    reason: str | None
    elicitation: Word | None
    """Of a tool server's question: whether it was accepted, declined, or nobody answered it (`cancel`)."""
    surface: str
    """Where the answer came from: a platform's name, `api`, `local`, `policy`, `grant`, `reviewer`, `repeat`, `agent`
    or `system`."""
    via: str | None
    """How a person answered there, such as `button` or `command`."""
    message: str
    """What the agent was told."""
    user_summary: str
    repeat_of: str | None
    next_of: str | None
    superseded_by: str | None
    kept_as: str | None
    """It was staged: the request that asks whether the kept action may run."""


class AgentEnd(_Payload, frozen=True, kw_only=True, tag="agent_end"):
    """A turn ended, or a session was stopped or ended."""

    ended: Literal["turn", "session"]
    how: Literal["turn_ended", "session_stopped", "session_cleared"]
    cause: str | None
    ended_by: Actor | None
    parent: str | None
    """The session that this one is a child of."""


Payload = PreApprovalRequest | PostApprovalResponse | AgentEnd


def payload_of(event: Event, row: ApprovalRequest | None, session: Session | None) -> Payload | None:
    """What the hook of this event is told; None for an event that no hook is told of, and for one about a request that
    is not there any more.

    `row` is the request that the event is about, which may be as it stands later. `session` is its session, for an end
    whose event does not say itself what that was, as those of earlier versions do not.
    """
    hook = HOOK_OF.get(event.type)
    if hook is None:
        return None
    if hook == "agent_end":
        return _agent_end(event, session)
    if row is None:
        return None
    if hook == "pre_approval_request":
        leader = event.data.get("leader_id")
        return PreApprovalRequest(**_question(event, row, leader), choices=row.choices, timeout_s=row.timeout_s)
    return _post(event, row)


def _question(event: Event, row: ApprovalRequest, leader_id: str | None) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "at": event.at,
        "profile": row.profile,
        "session_id": row.session_id,
        "turn_id": row.turn_id,
        "kind": row.kind,
        "agent": row.agent,
        "request_id": row.request_id,
        "short_id": row.short_id,
        "tool_call_id": row.tool_call_id,
        "digest": row.digest,
        "action": masked_action(row.action),
        "description": shown(row.description, prose=True),
        "severity": row.severity,
        "rule_keys": row.rule_keys,
        "agent_reason": None if row.agent_reason is None else shown(row.agent_reason, prose=True),
        "requested_by": row.requested_by,
        "coalesced": leader_id is not None,
        "leader_id": leader_id,
        "stages": row.stages,
        "review": row.review if row.review in ("approve", "deny", "escalate") else None,
    }


def _post(event: Event, row: ApprovalRequest) -> PostApprovalResponse | None:
    """An ended row keeps what is told here; what became of its run later is another fact."""
    if row.outcome is None:
        return None
    then = replace(row, execution=Execution())
    by = row.decided_by[0] if row.decided_by else row.ended_by
    answered = elicited(then)
    return PostApprovalResponse(
        **_question(event, row, row.leader_id),
        outcome=row.outcome,
        choice=row.choice,
        cause=row.cause,
        decided_by=row.decided_by,
        ended_by=row.ended_by,
        reason=None if row.reason is None else shown(row.reason, prose=True),
        elicitation=None if answered is None else answered.action,
        surface=_surface(row, by),
        via=by.via if by is not None and row.repeat_of is None else None,
        message=message(then, event.at),
        user_summary=user_summary(then, event.at),
        repeat_of=row.repeat_of,
        next_of=row.next_of,
        # An approved run of which nobody knows how it ended may be superseded later, which is no part of this ending.
        superseded_by=row.superseded_by if row.cause == "superseded" else None,
        kept_as=row.kept_as,
    )


def _surface(row: ApprovalRequest, by: Actor | None) -> str:
    if row.repeat_of is not None:
        return "repeat"
    if by is None:
        return "system"
    if by.type == "policy":
        return "reviewer" if by.rule == REVIEWER else "policy"
    if by.type == "person":
        return by.platform or by.via or "api"
    return by.type


def _agent_end(event: Event, session: Session | None) -> AgentEnd:
    by = event.data.get("ended_by")
    how: Any = event.type.replace(".", "_")
    of = event.data.get("session")
    if of is None:
        of = {"kind": None, "agent": None, "parent": None} if session is None else msgspec.structs.asdict(session)
    return AgentEnd(
        seq=event.seq,
        at=event.at,
        profile=event.profile,
        session_id=event.session_id or "",
        turn_id=event.data.get("turn_id"),
        kind=of["kind"],
        agent=of["agent"],
        ended="turn" if event.type == "turn.ended" else "session",
        how=how,
        cause=event.data.get("cause"),
        ended_by=None if by is None else msgspec.convert(by, Actor),
        parent=of["parent"],
    )
