"""The public record of a request: what every door returns. Pure.

The action's text, and what was typed about it, is masked unless the reader is the agent that asked. Every field is
always there; null says that it has no value yet.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime
from threading import Lock
from typing import Any, Literal

import msgspec
from msgspec import Struct

from signoff.changes.deciding import offered
from signoff.display import shown
from signoff.elicitation import Elicited, elicited
from signoff.endings import forbids, message, refused_message, user_summary
from signoff.model import (
    Action,
    Actor,
    ApprovalRequest,
    Command,
    ExecutionState,
    Outcome,
    SessionKind,
    Severity,
    Vote,
    replace,
)

_CACHED_CHARS = 4_000_000
"""Masked actions are kept for the next reader up to this many characters together: masking 1 MiB takes 0.3 s."""


class ExecutionView(Struct, frozen=True, kw_only=True):
    """That an approved action was started, and how it ended."""

    state: ExecutionState
    cause: str | None
    ended_by: Actor | None
    claimed_at: datetime | None
    ended_at: datetime | None
    exit_code: int | None


class Approval(Struct, frozen=True, kw_only=True):
    """The `signoff.approval` record. Times are RFC 3339 in UTC."""

    object: Literal["signoff.approval"] = "signoff.approval"
    request_id: str
    short_id: str
    session_id: str
    turn_id: str | None
    tool_call_id: str | None
    status: Literal["pending", "resolved"]
    outcome: Outcome | None
    choice: str | None
    cause: str | None
    decided_by: tuple[Actor, ...]
    ended_by: Actor | None
    reason: str | None
    votes: tuple[Vote, ...]
    threshold: int
    rule_keys: tuple[str, ...]
    description: str
    why: tuple[str, ...]
    severity: Severity
    digest: str
    leader_id: str | None
    waiters: int
    choices: tuple[str, ...]
    label: str
    breadth: str
    coverage: tuple[str, ...]
    grant_id: str | None
    action: Action
    elicitation: Elicited | None
    agent: str | None
    agent_reason: str | None
    host: str | None
    requested_by: str | None
    claimed_for: str | None
    kind: SessionKind
    destinations: tuple[str, ...]
    superseded_by: str | None
    kept_as: str | None
    """Of a staged one: the id of the question whether the kept action may run."""
    stages: str | None
    """Of that question: the id of the staged one."""
    executor: str | None
    """Of both: who runs the action once it is approved."""
    gate_token: str | None = None
    """Told to who claimed it and wanted one, this once: lets this very run through another tool gate."""
    repeat_of: str | None
    next_of: str | None
    warnings: tuple[str, ...]
    timeout_s: float | None
    created_at: datetime
    expires_at: datetime | None
    decided_at: datetime | None
    waited_s: float
    """How many seconds people were waited for, so far while it is pending."""
    claim_by: datetime | None
    execution: ExecutionView
    delivered_to: tuple[str, ...]
    delivery_error: str | None
    message: str
    user_summary: str

    def __bool__(self) -> bool:
        """A record has no truth value: approved is not permission. Raises TypeError."""
        raise TypeError("an approval has no truth value; use .may_run")

    @property
    def may_run(self) -> bool:
        """True only for a claimed approval, as `request` returns it: a decision alone is never permission to run."""
        return self.outcome == "approved" and self.execution.state == "claimed"


def record_of(row: ApprovalRequest, now: datetime, *, exact: bool = False) -> dict[str, Any]:
    """The record as plain JSON values. `exact` shows the action unmasked: only for the agent that asked."""
    record: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(approval_of(row, now, exact=exact)))
    return record


def approval_of(row: ApprovalRequest, now: datetime, *, exact: bool = False, started: bool = False) -> Approval:
    """The record as a typed row, ready to be encoded. `exact` as for `record_of`; `started`: it is the answer to the
    claim itself, the only one that says to run the action now."""
    ran = row.execution
    return Approval(
        request_id=row.request_id,
        short_id=row.short_id,
        session_id=row.session_id,
        turn_id=row.turn_id,
        tool_call_id=row.tool_call_id,
        status="pending" if row.outcome is None else "resolved",
        outcome=row.outcome,
        choice=row.choice,
        cause=row.cause,
        decided_by=row.decided_by,
        ended_by=row.ended_by,
        reason=_prose(row.reason, exact),
        votes=tuple(replace(vote, reason=_prose(vote.reason, exact)) for vote in row.votes),
        threshold=row.threshold,
        rule_keys=row.rule_keys,
        description=shown(row.description, prose=True),
        why=tuple(shown(line, prose=True) for line in row.why),
        severity=row.severity,
        digest=row.digest,
        leader_id=row.leader_id,
        waiters=row.waiters,
        choices=offered(row),
        label=row.label,
        breadth=shown(row.breadth, prose=True),
        coverage=row.coverage,
        grant_id=row.grant_id,
        action=row.action if exact else _masked.of(row),
        elicitation=_elicited(row, exact),
        agent=row.agent,
        agent_reason=_prose(row.agent_reason, exact),
        host=_prose(row.host, exact),
        requested_by=row.requested_by,
        claimed_for=_prose(row.claimed_for, exact),
        kind=row.kind,
        destinations=tuple(map(str, row.destinations)),
        superseded_by=row.superseded_by,
        kept_as=row.kept_as,
        stages=row.stages,
        executor=row.executor,
        repeat_of=row.repeat_of,
        next_of=row.next_of,
        warnings=row.warnings,
        timeout_s=row.timeout_s,
        created_at=row.created_at,
        expires_at=row.expires_at,
        decided_at=row.decided_at,
        waited_s=max(0.0, ((row.decided_at or now) - row.created_at).total_seconds()),
        claim_by=row.claim_by,
        execution=ExecutionView(
            state=ran.state,
            cause=ran.cause,
            ended_by=ran.ended_by,
            claimed_at=ran.claimed_at,
            ended_at=ran.ended_at,
            exit_code=ran.exit_code,
        ),
        delivered_to=tuple(map(str, row.delivered_to)),
        delivery_error=row.delivery_error,
        message=message(row, now, started=started),
        user_summary=user_summary(row, now),
    )


def claimed_of(row: ApprovalRequest, now: datetime) -> Approval:
    """The record for who asked and claims by itself: it says to run the action now where the claim was given, and not
    to run it where an approval could not be claimed any more."""
    found = approval_of(row, now, exact=True, started=row.may_run)
    if row.may_run or row.outcome != "approved" or forbids(found.message):
        return found
    late = row.claim_by is not None and row.claim_by <= now
    return replace(found, message=refused_message(row, "lapsed" if late else "cancelled", now))


def masked_action(action: Action) -> Action:
    """The action in its own shape with every text in it masked and made visible."""
    raw: dict[str, Any] = msgspec.to_builtins(action)
    command = isinstance(action, Command)
    plain = {
        name: value if name == "kind" else shown(value) if command and name == "command" else _masked_value(value, None)
        for name, value in raw.items()
    }
    masked: Action = msgspec.convert(plain, Action)
    return masked


def _masked_value(value: Any, name: str | None) -> Any:
    if isinstance(value, str):
        return _masked_text(value, name)
    if isinstance(value, dict):
        return {shown(key, prose=True): _masked_value(item, key) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_masked_value(item, name) for item in value]
    return value


def _masked_text(value: str, name: str | None) -> str:
    """A value masked as it is on a card, where its name stands before it and may give a secret away."""
    if name is not None:
        lead = f"{name}: "
        line = shown(lead + value, prose=True)
        if line.startswith(lead):
            return line[len(lead) :]
    return shown(value, prose=True)


def _elicited(row: ApprovalRequest, exact: bool) -> Elicited | None:
    """How a server's question was answered; the content is masked for all but who asked."""
    found = elicited(row)
    if found is None or found.content is None or exact:
        return found
    masked: dict[str, Any] = _masked_value(found.content, None)
    return replace(found, content=masked)


def _prose(text: str | None, exact: bool) -> str | None:
    return text if text is None or exact else shown(text, prose=True)


class _Masked:
    """Masked actions by digest, which covers the whole action; the least lately read go first. For all threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[int, Action]] = OrderedDict()
        self._chars = 0
        self._lock = Lock()

    def of(self, row: ApprovalRequest) -> Action:
        """The masked action of this row."""
        with self._lock:
            found = self._kept.get(row.digest)
            if found is not None:
                self._kept.move_to_end(row.digest)
                return found[1]
        masked = masked_action(row.action)
        self._keep(row.digest, masked)
        return masked

    def _keep(self, digest: str, masked: Action) -> None:
        size = len(msgspec.json.encode(masked))
        with self._lock:
            if digest in self._kept or size > _CACHED_CHARS // 4:
                return
            self._kept[digest] = (size, masked)
            self._chars += size
            while self._chars > _CACHED_CHARS:
                _, (dropped, _action) = self._kept.popitem(last=False)
                self._chars -= dropped


_masked = _Masked()
