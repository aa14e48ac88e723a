"""What the gateway tells a client, as typed data. Fields that a newer gateway adds are ignored."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct

from signoff.elicitation import Elicited
from signoff.model import Action, Operand


class Who(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who decided or ended something: a person, a policy rule, a grant, an agent or the system itself."""

    type: str
    principal: str | None = None
    platform: str | None = None
    user_id: str | None = None
    name: str | None = None
    rule: str | None = None
    setting: str | None = None
    grant_id: str | None = None
    via: str | None = None


class VoteRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One person's answer on the way to a decision."""

    choice: str
    by: Who
    at: datetime
    reason: str | None = None


class ExecutionRecord(Struct, frozen=True, kw_only=True):
    """That an approved action was started, and how it ended."""

    state: str = "none"
    """`none`, `claimed`, `succeeded`, `failed`, `not_run`, `unknown` or `lapsed`."""
    cause: str | None = None
    ended_by: Who | None = None
    claimed_at: datetime | None = None
    exit_code: int | None = None


class ApprovalRecord(Struct, frozen=True, kw_only=True):
    """The record of one question. `may_run` is the only permission; the record itself has no truth value."""

    request_id: str
    session_id: str
    status: str
    """`pending` or `resolved`."""
    digest: str
    short_id: str = ""
    turn_id: str | None = None
    tool_call_id: str | None = None
    outcome: str | None = None
    """`approved`, `denied`, `timeout`, `cancelled`, `notify_failed`, `blocked` or `staged`; None while pending."""
    choice: str | None = None
    cause: str | None = None
    """Why it was cancelled."""
    decided_by: tuple[Who, ...] = ()
    ended_by: Who | None = None
    reason: str | None = None
    votes: tuple[VoteRecord, ...] = ()
    rule_keys: tuple[str, ...] = ()
    description: str = ""
    severity: str = "medium"
    leader_id: str | None = None
    waiters: int = 0
    choices: tuple[str, ...] = ()
    action: dict[str, Any] = {}
    """The action, masked unless the reader is the agent that asked."""
    elicitation: Elicited | None = None
    """Of a server's question that ended: `accept`, `decline` or `cancel`, and the content for the agent that asked."""
    agent: str | None = None
    host: str | None = None
    requested_by: str | None = None
    kind: str = "api"
    destinations: tuple[str, ...] = ()
    superseded_by: str | None = None
    kept_as: str | None = None
    """Of a staged one: the id of the question whether the kept action may run."""
    stages: str | None = None
    """Of that question: the id of the staged one."""
    executor: str | None = None
    """Of both: who runs the action once it is approved."""
    gate_token: str | None = None
    """With it, this very run goes through another tool gate, once."""
    repeat_of: str | None = None
    warnings: tuple[str, ...] = ()
    timeout_s: float | None = None
    created_at: datetime
    expires_at: datetime | None = None
    """The deadline; None until the window starts, and for ever without a deadline."""
    decided_at: datetime | None = None
    execution: ExecutionRecord = ExecutionRecord()
    delivered_to: tuple[str, ...] = ()
    waited_s: float = 0.0
    """How many seconds people were waited for, so far while it is pending. No limit of the agent should count them."""
    message: str = ""
    """What the agent should read. It begins with `BLOCKED:` whenever the action must not run, and with `STAGED:` where
    it is kept for a later yes: that is no error, and the agent goes on without its result."""
    user_summary: str = ""
    claimed_here: bool = False
    """This very client's claim was accepted. Never read from the wire."""

    def __bool__(self) -> bool:
        raise TypeError("an approval has no truth value; use .may_run")

    @property
    def pending(self) -> bool:
        """Nobody and nothing has ended the question yet."""
        return self.status == "pending"

    @property
    def may_run(self) -> bool:
        """True only for an approval that this client claimed: a decision alone is never permission to run."""
        return self.claimed_here and self.outcome == "approved" and self.execution.state == "claimed"


class ActionRecord(Struct, frozen=True, kw_only=True):
    """An action that was kept for a later yes."""

    id: str
    short_id: str = ""
    state: str
    """`waits`, `approved`, `running`, `succeeded`, `failed`, `not_run`, `unknown`, `denied`, `expired` or `gone`."""
    executor: str | None = None
    again_as: str | None = None
    """The short id of the newer action, where a person had this one run once more."""
    executor_missing: bool = False
    """It was approved and waits, and no gateway has its executor now."""
    approval: ApprovalRecord
    """The question about it."""

    def __bool__(self) -> bool:
        raise TypeError("an action has no truth value; compare .state")


class CheckRecord(Struct, frozen=True, kw_only=True):
    """What would become of an action if it were asked for."""

    verdict: str
    """`allow`: it runs; `ask`: a person is asked; `block`: it may not run; `stage`: it is kept for a later yes."""
    rule_keys: tuple[str, ...] = ()
    description: str = ""
    severity: str = "medium"
    why: tuple[str, ...] = ()
    rung: str = ""
    """The step of the ladder that decided."""
    setting: str | None = None
    label: str = ""
    breadth: str = ""
    coverage: tuple[str, ...] = ()
    once_only: bool = False
    unread_file: str = ""
    grant_ids: tuple[str, ...] = ()
    """The grants that would answer in place of a person."""
    denied_id: str | None = None
    """The request whose denial by a person still holds."""
    explanation: dict[str, Any] | None = None
    """Commands, rules and rungs, where they were asked for."""

    def __bool__(self) -> bool:
        raise TypeError("a verdict has no truth value; compare .verdict")


class SessionRecord(Struct, frozen=True, kw_only=True):
    """A declared session."""

    session_id: str
    kind: str = "api"
    agent: str | None = None
    platform: str | None = None
    chat_id: str | None = None
    thread_id: str | None = None
    parent: str | None = None
    generation: int = 0
    bypass_until: datetime | None = None
    """Nothing is asked in it until then."""
    bypass_by: Who | None = None
    """Who said so."""


class NotifierRecord(Struct, frozen=True, kw_only=True):
    """Something that puts a session's questions before a person."""

    session_id: str
    name: str
    principal: str | None = None
    attached_at: datetime


class TurnRecord(Struct, frozen=True, kw_only=True):
    """An open turn and the length of its lease."""

    turn_id: str
    lease_s: float = 60.0


class GrantRecord(Struct, frozen=True, kw_only=True):
    """A standing permission."""

    grant_id: str
    scope: str = ""
    session_id: str | None = None
    action_kind: str = ""
    coverage: tuple[str, ...] = ()
    """The names it covers."""
    label: str = ""
    shown: str = ""
    """The masked action it was given for."""
    by: Who | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    uses: int = 0
    """How many questions it answered."""
    used_at: datetime | None = None


class AllowlistRecord(Struct, frozen=True, kw_only=True):
    """A line of the allowlist. With a `grant_id` it is that of an "Always"."""

    id: str
    list: str
    text: str
    """As it stands, not masked."""
    grant_id: str | None = None
    source: str = ""
    by: Who | None = None
    added_at: datetime | None = None
    removed_at: datetime | None = None
    removed_by: Who | None = None


class AllowlistChanged(Struct, frozen=True, kw_only=True):
    """What came of a change. `left`: lines that were removed before, and stay so."""

    added: tuple[AllowlistRecord, ...] = ()
    removed: tuple[AllowlistRecord, ...] = ()
    left: tuple[AllowlistRecord, ...] = ()


class KeyRecord(Struct, frozen=True, kw_only=True):
    """An API key without its secret."""

    id: str
    scope: str = ""
    profile: str | None = None
    agent: str | None = None
    principal: str | None = None
    created_at: datetime | None = None
    revoked_at: datetime | None = None


class EventRecord(Struct, frozen=True, kw_only=True):
    """One line of the event log."""

    type: str
    seq: int = 0
    at: datetime | None = None
    session_id: str | None = None
    approval: dict[str, Any] | None = None


class Question(Struct, frozen=True, kw_only=True):
    """One question as a client asks it. `timeout_s` -1: the profile's window; None: no deadline."""

    action: Action
    digest: str
    request_id: str
    session_id: str
    turn_id: str | None = None
    tool_call_id: str | None = None
    host: str | None = None
    reason: str | None = None
    choices: tuple[str, ...] | None = None
    timeout_s: float | None = -1.0
    gate_token: str | None = None
    """What a gate that let this very call through gave for it."""
    want_gate_token: bool = False
    """Whether the run needs one for a further gate."""

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The files that the action names."""
        found: tuple[Operand, ...] = getattr(self.action, "operands", ())
        return found
