"""Every ending in one place: the word, the agent's message, the summary, the card's lines, the labels of the metric.

A surface that needs to say how a request ended asks here, so the same word stands on the card, in the record, in the
event and in the metric. Times in texts are UTC; a card's own clocks are spans that the reader's app may localise.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from signoff import kept_words
from signoff.answers import done_answer, lost_answer
from signoff.changes.bypassing import BYPASS
from signoff.changes.grants import time_box
from signoff.changes.passing import GATED as TOOL_GATE
from signoff.display import shown
from signoff.durations import clock, duration_long, window, window_long
from signoff.elicitation import elicited
from signoff.model import Actor, ApprovalRequest, Block, Elicitation
from signoff.policy.protected import PROTECTED_KEY
from signoff.rows import NO_CONTEXT
from signoff.statuses import execution_line, status_blocks
from signoff.wording import (
    PlaceTitle,
    approved_text,
    blocked_text,
    by_policy,
    cause_words,
    claim_window_s,
    first_operand,
    no_word,
    people,
    person_name,
    silence_s,
    since_denied_s,
    t,
    undelivered,
    window_s,
)

__all__ = [
    "Ending",
    "done_answer",
    "ending",
    "execution_line",
    "forbids",
    "lost_answer",
    "message",
    "person_name",
    "refused_message",
    "status_blocks",
    "user_summary",
]


class Ending(Struct, frozen=True):
    """How a request stands, for every surface."""

    word: str
    message: str
    summary: str
    status: tuple[Block, ...]
    labels: tuple[str, str]
    """Outcome and cause, for the metric."""


def ending(row: ApprovalRequest, now: datetime, *, title: PlaceTitle, prefix: str = "/", here: str = "") -> Ending:
    """Everything that is said of how `row` stands. `here` is the copy the status lines are for."""
    return Ending(
        word=row.outcome or "pending",
        message=message(row, now),
        summary=user_summary(row, now),
        status=status_blocks(row, now, title=title, prefix=prefix, here=here),
        labels=(row.outcome or "pending", row.cause or ""),
    )


# --- what the agent reads ------------------------------------------------------------------------


def message(row: ApprovalRequest, now: datetime, *, started: bool = False) -> str:
    """The agent's text: starts with BLOCKED whenever the action must not run, and names a denial only where a person
    denied. Empty while nobody has answered. `started`: it is the answer to the claim itself; to everybody else a
    claimed approval is used."""
    if row.outcome is None:
        return ""
    if row.outcome == "approved":
        return _approved_message(row, now, started) if row.stages is None else kept_words.message(row)
    if row.outcome == "denied":
        if _declined(row):
            return _declined_message(row)
        if row.repeat_of:
            return t("agent.denied.repeat", duration=duration_long(max(1.0, since_denied_s(row))))
        if row.reason:
            return t("agent.denied.reason", reason=_quoted(row.reason))
        return t("agent.denied.plain")
    if row.outcome == "timeout":
        return _timeout_message(row)
    if row.outcome == "cancelled":
        return _cancelled_message(row)
    if row.outcome == "notify_failed":
        return t("agent.notify_failed.plain")
    if row.outcome == "staged":
        return t("agent.staged.plain", id=row.kept_short or row.short_id)
    return _blocked_message(row)


def refused_message(row: ApprovalRequest, code: str, now: datetime) -> str:
    """The agent's text beside a claim that was refused with `code`: always one that says not to run it."""
    if code == "digest_mismatch":
        return t("agent.claim.digest_mismatch")
    if code == "lapsed":
        return t("agent.lapsed.plain", duration=window_long(claim_window_s(row)))
    said = message(row, now)
    if forbids(said):
        return said
    return t("agent.claim.cancelled" if code == "cancelled" else "agent.claim.not_approved")


def forbids(said: str) -> bool:
    """Whether an agent that reads this text must not run the action."""
    return said.startswith(("BLOCKED: ", "STAGED: "))


def _declined(row: ApprovalRequest) -> bool:
    """Whether a person declined a server's question."""
    found = elicited(row)
    return found is not None and found.action == "decline"


def _declined_message(row: ApprovalRequest) -> str:
    if row.reason:
        return t("agent.denied.question_reason", reason=_quoted(row.reason))
    return t("agent.denied.question")


def _quoted(reason: str) -> str:
    """A person's reason as quoted data: no quote or line break in it can end the quotation."""
    return shown(" ".join(reason.split()), prose=True).replace('"', "'")


def _approved_message(row: ApprovalRequest, now: datetime, started: bool) -> str:
    state, cause = row.execution.state, row.execution.cause
    if state == "lapsed":
        return t("agent.lapsed.plain", duration=window_long(claim_window_s(row)))
    if state == "not_run":
        if cause == "changed_since_review":
            return t("agent.not_run.changed", file=first_operand(row))
        return t(f"agent.not_run.{cause or 'reported'}")
    if state in ("succeeded", "failed"):
        return t(f"agent.claim.already_{state}")
    if state == "unknown" or (state == "claimed" and not started):
        return t("agent.claim.already_claimed")
    if isinstance(row.action, Elicitation):
        return t("agent.elicitation.accept")
    by = row.decided_by[0] if row.decided_by else Actor(type="system")
    if by.type == "grant":
        return t("agent.approved.grant")
    if by.type == "policy" and by.rule == BYPASS:
        return t("agent.approved.bypass")
    if by.type == "policy":
        return by_policy("agent.approved", by)
    if row.choice and time_box(row.choice):
        until = (row.decided_at or now) + (time_box(row.choice) or timedelta())
        return t("agent.approved.time_box", clock=clock(until, now=now))
    return t(f"agent.approved.{row.choice or 'once'}")


def _timeout_message(row: ApprovalRequest) -> str:
    passed = window_long(window_s(row))
    agreed = sum(v.choice != "deny" for v in row.votes)
    if any(v.choice == "deny" for v in row.votes):
        return t("agent.timeout.contested", agreed=agreed, needed=row.threshold, duration=passed)
    if row.votes:
        return t("agent.timeout.votes", agreed=agreed, needed=row.threshold, duration=passed)
    return t("agent.timeout.plain", duration=passed)


def _cancelled_message(row: ApprovalRequest) -> str:
    table = "cancelled_contested" if any(v.choice == "deny" for v in row.votes) else "cancelled"
    cause = row.cause or "withdrawn"
    values: dict[str, str | int] = {}
    if cause == "requester_gone":
        values["duration"] = window(silence_s(row))
    if cause == "superseded":
        values["id"] = row.superseded_by or ""
    return t(f"agent.{table}.{cause}", **values)


def _blocked_message(row: ApprovalRequest) -> str:
    by = row.decided_by[0] if row.decided_by else Actor(type="policy", rule="unknown")
    if by.rule == PROTECTED_KEY:
        return blocked_text("agent.blocked", row, by)
    if by.setting and row.session_id == NO_CONTEXT:
        return t("agent.blocked.no_context", setting=by.setting)
    if by.setting and row.rung == TOOL_GATE:
        return t("agent.blocked.tool_gate", setting=by.setting)
    if by.setting:
        kind = t(f"agent.session_kind.{row.kind}")
        return t("agent.blocked.setting", setting=by.setting, session_kind=kind)
    return t("agent.blocked.rule", rule=by.rule or "unknown", sentence=shown(row.description, prose=True))


# --- what the session's user reads ---------------------------------------------------------------


def user_summary(row: ApprovalRequest, now: datetime) -> str:
    """One sentence for people, without mark and time; it never says that somebody refused what nobody answered."""
    if row.outcome is None:
        return ""
    if row.outcome == "approved":
        return _approved_summary(row, now)
    if row.outcome == "denied":
        name, table = people(row.decided_by), f"summary.{no_word(row)}"
        if row.repeat_of:
            when = clock(row.repeat_at or row.created_at, now=now)
            return t(f"{table}.repeat", person=name, clock=when, id=row.repeat_short)
        if row.reason:
            return t(f"{table}.reason", person=name, reason=shown(row.reason, prose=True))
        return t(f"{table}.person", person=name)
    if row.outcome == "timeout":
        agreed = sum(v.choice != "deny" for v in row.votes)
        if row.votes:
            return t("summary.timeout.votes", agreed=agreed, needed=row.threshold, duration=window(window_s(row)))
        return t("summary.timeout.plain", duration=window(window_s(row)))
    if row.outcome == "cancelled":
        key, values = cause_words(row, now)
        return t(f"summary.cancelled.{key}", **values)
    if row.outcome == "notify_failed":
        return undelivered("summary.notify_failed", row, str.capitalize)
    if row.outcome == "staged":
        return t("summary.staged", id=row.kept_short or row.short_id)
    by = row.decided_by[0] if row.decided_by else Actor(type="policy")
    return blocked_text("summary.blocked", row, by)


def _approved_summary(row: ApprovalRequest, now: datetime) -> str:
    return approved_text("summary.approved", row, now)
