"""What clients send: queries and bodies, each a Struct. They decode requests and are the source of `/openapi.json`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from signoff.changes.bypassing import DEFAULT_MINUTES, MAX_MINUTES, MIN_MINUTES
from signoff.model import Action, Cause, Operand, Scope, SessionKind

MAX_WAIT_S = 60.0
"""The longest long poll; proxies commonly cut at 60 s."""
MAX_PAGE = 200
Wait = Annotated[float, Meta(ge=0, le=MAX_WAIT_S, description="Seconds to wait for the end, 0 to 60.")]


class _In(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a client sends; a field that is not known is refused, since it would be silently without effect."""


# --- queries -------------------------------------------------------------------------------------


class NoQuery(_In, frozen=True, kw_only=True):
    """No query parameters."""


class WaitQuery(_In, frozen=True, kw_only=True):
    """How long to wait."""

    wait: Wait = 0.0


class ListQuery(_In, frozen=True, kw_only=True):
    """Which requests, and where to go on."""

    status: Literal["pending", "resolved", "all"] = "all"
    session_id: str | None = None
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = 50
    after: Annotated[str | None, Meta(description="The `next` of the page before.")] = None


class PageQuery(_In, frozen=True, kw_only=True):
    """How many, and where to go on."""

    limit: Annotated[int, Meta(ge=1, le=500)] = 500
    after: Annotated[str | None, Meta(description="The `next` of the page before.")] = None


class SessionsQuery(_In, frozen=True, kw_only=True):
    """How many, and where to go on."""

    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = MAX_PAGE
    after: Annotated[str | None, Meta(description="The `next` of the page before.")] = None


class AllowlistQuery(_In, frozen=True, kw_only=True):
    """Which lines."""

    removed: Annotated[bool, Meta(description="Also those that were removed.")] = False


class CauseQuery(_In, frozen=True, kw_only=True):
    """Why the turn ends."""

    cause: Cause = "turn_ended"


class DetachQuery(_In, frozen=True, kw_only=True):
    """Why the answer client shows nothing any more: notifier_gone, client_cannot_answer, prompt_failed, no_prompt or
    prompt_interrupted."""

    cause: Cause = "notifier_gone"


class EventsQuery(_In, frozen=True, kw_only=True):
    """From where, of which session, and as what."""

    after: Annotated[int, Meta(ge=0, description="Send events with a higher `seq`; unset: begin now.")] | None = None
    session_id: str | None = None
    role: Annotated[
        Literal["answer"] | None,
        Meta(description="`answer`: this stream can put the session's requests before a person while it is open."),
    ] = None


# --- bodies --------------------------------------------------------------------------------------


class SessionBody(_In, frozen=True, kw_only=True):
    """What an agent says of its session."""

    kind: SessionKind = "api"
    platform: str | None = None
    chat_id: str | None = None
    thread_id: str | None = None
    user_id: str | None = None
    parent: str | None = None


class BypassBody(_In, frozen=True, kw_only=True):
    """How long nothing is asked."""

    minutes: Annotated[float, Meta(ge=MIN_MINUTES, le=MAX_MINUTES, description="1 to 1440: at most 24 hours.")] = (
        DEFAULT_MINUTES
    )


class NotifierBody(_In, frozen=True, kw_only=True):
    """How long an answer client counts as there."""

    lease_s: Annotated[
        float | None,
        Meta(description="Seconds, 2 to 3600, until it counts as gone unless it is attached again; unset: no end."),
    ] = None


class TurnBody(_In, frozen=True, kw_only=True):
    """A turn to open."""

    turn_id: str | None = None
    lease_s: Annotated[float, Meta(description="Seconds without a sign of life until the turn lapses, 2 to 3600.")] = (
        60.0
    )


class AskBody(_In, frozen=True, kw_only=True):
    """A question. `timeout_s` unset: the profile's window; null: no deadline, where that is allowed."""

    action: Action
    session_id: str
    request_id: str | None = None
    turn_id: str | None = None
    tool_call_id: str | None = None
    host: str | None = None
    reason: Annotated[str | None, Meta(description="The agent's own words, shown as such.")] = None
    choices: Annotated[tuple[str, ...] | None, Meta(description="Narrows what is offered.")] = None
    timeout_s: float | UnsetType | None = UNSET
    claimed_for: Annotated[str | None, Meta(description="For whom the agent says it asks; shown as a claim.")] = None
    gate_token: Annotated[
        str | None, Meta(description="The one-time token that a gate gave which let this very call through already.")
    ] = None


class CheckBody(_In, frozen=True, kw_only=True):
    """An action to judge without asking anybody."""

    action: Action
    session_id: Annotated[
        str | None, Meta(description="As a question of this session; unset: as if somebody could answer.")
    ] = None
    turn_id: str | None = None
    host: Annotated[
        str | None, Meta(description="The machine it would run on: a denial holds for a request of the same one.")
    ] = None
    explain: Annotated[bool, Meta(description="Also tell each command, each rule and each rung of the ladder.")] = False


class DecisionBody(_In, frozen=True, kw_only=True):
    """An answer. `choice`: once, once_all, session, always, deny, or a time box such as 30m. `ask_again` decides
    nothing: it lets an action that a person denied be asked anew. A server's question also takes accept and decline."""

    choice: str
    reason: Annotated[str | None, Meta(description="Kept up to 280 characters.")] = None
    content: Annotated[
        dict[str, Any] | None, Meta(description="What is filled into the fields of a server's question.")
    ] = None


class ActionsQuery(_In, frozen=True, kw_only=True):
    """Which kept actions, and where to go on."""

    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = 50
    after: Annotated[str | None, Meta(description="The `next` of the page before.")] = None


class ReplayQuery(_In, frozen=True, kw_only=True):
    """How long to wait for the end of the run."""

    wait: Wait = 30.0


class AnswerBody(_In, frozen=True, kw_only=True):
    """An answer about a kept action."""

    reason: Annotated[str | None, Meta(description="Kept up to 280 characters.")] = None


class ReplayBody(_In, frozen=True, kw_only=True):
    """What is to be done. By default an approved action is run that waits for its executor."""

    again: Annotated[
        bool, Meta(description="Run one once more of which nobody knows whether it ran; this may run it twice.")
    ] = False
    did_run: Annotated[bool, Meta(description="Say of one of which nobody knows that it did run.")] = False


class CancelBody(_In, frozen=True, kw_only=True):
    """Why the question is taken back."""

    cause: Cause = "withdrawn"


class ClaimBody(_In, frozen=True, kw_only=True):
    """The start of an approved action. `claim_id` is the caller's own; the same again gets the same answer."""

    digest: str
    claim_id: str
    operands: tuple[Operand, ...] | None = None
    want_gate_token: Annotated[
        bool, Meta(description="Also give a one-time token with which this run goes through another tool gate.")
    ] = False


class ResultBody(_In, frozen=True, kw_only=True):
    """How the action went."""

    status: Literal["succeeded", "failed", "not_run"]
    exit_code: Annotated[int, Meta(ge=-(2**31), le=2**32 - 1)] | None = None


class KeyBody(_In, frozen=True, kw_only=True):
    """A key to make."""

    scope: Scope
    agent: str | None = None
    principal: str | None = None


class AllowlistBody(_In, frozen=True, kw_only=True):
    """Lines to add, and the ids of lines to take out, all in one commit."""

    commands: tuple[str, ...] = ()
    unattended_commands: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    source: Annotated[str, Meta(max_length=1000, description="The file they were read from.")] = ""
    again: Annotated[bool, Meta(description="Whether a line that was removed before may come back.")] = True


class DrillBody(_In, frozen=True, kw_only=True):
    """Where to rehearse, and for how long."""

    destinations: Annotated[
        list[str],
        Meta(max_length=50, description="Each `platform:chat[/thread]`; empty: all that the settings name."),
    ] = []
    wait_s: Annotated[float, Meta(ge=5, le=3600, description="Seconds until it counts that nobody tapped.")] = 300.0


class NoBody(_In, frozen=True, kw_only=True):
    """An empty object, or no body."""
