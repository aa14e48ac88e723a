"""What is said of kept actions: on cards, to those who tap, to the agent that had asked. Pure."""

from __future__ import annotations

from datetime import datetime

from signoff.actions import one_line
from signoff.clipping import cut
from signoff.display import shown
from signoff.durations import clock, window, window_long
from signoff.model import ApprovalRequest, Block, FileWrite, Rule, Span, Tool
from signoff.wording import agent_name, claim_window_s, person_name, safe_name, session_name, t

DID_RUN = "did_run"
"""The other answer to one of which nobody knows whether it ran, beside `RUN_AGAIN`."""
UNKNOWN = ("executor_stopped", "executor_timed_out", "answer_lost")
"""Why nobody knows it."""
NOT_STARTED = ("executor_unreachable", "executor_changed")
REASON_UNITS = 80


def executor_name(row: ApprovalRequest) -> str:
    """The executor, for people."""
    return safe_name(row.executor or "")


def what(row: ApprovalRequest) -> str:
    """What was asked, on one line for a list: a tool or a file by its name."""
    action = row.action
    if isinstance(action, Tool):
        return safe_name(action.name)
    if isinstance(action, FileWrite):
        return safe_name(action.path)
    return safe_name(action.tool) if isinstance(action, Rule) else one_line(action)


# --- the card ------------------------------------------------------------------------------------


def kept_line(row: ApprovalRequest, now: datetime) -> Block:
    """Since when it is kept, who went on without it, and what approving does."""
    before, after = t("kept.card", clock="\x01", asker=asker(row)).split("\x01")
    return Block(
        "text",
        (
            Span(before),
            Span(clock(row.created_at, now=now), "clock", at=row.created_at),
            Span(f"{after} "),
            Span(t("kept.runs_it"), "bold"),
            Span(t("kept.by_executor", executor=executor_name(row))),
        ),
    )


def asker(row: ApprovalRequest) -> str:
    """Who went on without it: the job, or the agent in its session, and for whom."""
    session = session_name(row.session_id)
    if row.kind in ("cron", "webhook", "worker", "single_query"):
        text = t(f"kept.asker.{row.kind}", session=session)
    else:
        text = t("kept.asker.session", agent=agent_name(row), session=session)
    if row.requested_by:
        return f"{text} {t('who.requester', requester=safe_name(row.requested_by))}"
    return f"{text} {t('claim.requester', requester=safe_name(row.claimed_for))}" if row.claimed_for else text


def run_again_line(row: ApprovalRequest) -> str:
    """The question before one runs again of which nobody knows whether it ran."""
    return t("kept.run_again", id=row.short_id)


def run_line(row: ApprovalRequest, now: datetime) -> str:
    """What became of an approved one; empty where it is told as of any other action."""
    execution, executor = row.execution, executor_name(row)
    state, cause = execution.state, execution.cause or ""
    if state == "none":
        return t("execution.kept.waiting", executor=executor)
    if state == "claimed":
        return t("execution.kept.running", clock=clock(execution.claimed_at or now, now=now), executor=executor)
    if state == "unknown":
        return "⚠️ " + _unknown(row, cause, executor)
    if state == "succeeded" and execution.ended_by is not None:
        return t("execution.kept.did_run", person=person_name(execution.ended_by))
    if state == "lapsed":
        return "⌛ " + t("execution.kept.lapsed", executor=executor, duration=window(claim_window_s(row)))
    if state == "not_run" and cause in NOT_STARTED:
        return "⚠️ " + t(f"execution.kept.{cause}", executor=executor)
    if state == "not_run" and cause == "forbidden_now":
        return "⚠️ " + t("execution.kept.forbidden_now")
    if state == "not_run" and not cause:
        return "⚠️ " + t("execution.kept.reported", executor=executor)
    return ""


def executor_missing(row: ApprovalRequest, now: datetime) -> str:
    """Of an approved one that waits: that no gateway has its executor, and what to do."""
    if row.claim_by is None:
        return "⚠️ " + t("execution.kept.executor_missing_no_end", executor=executor_name(row))
    when = clock(row.claim_by, now=now)
    return "⚠️ " + t("execution.kept.executor_missing", executor=executor_name(row), clock=when)


def _unknown(row: ApprovalRequest, cause: str, executor: str) -> str:
    if row.superseded_by is not None:
        return t("execution.kept.again", id=row.again_as)
    key = cause if cause in UNKNOWN else "executor_stopped"
    values = {} if key == "executor_stopped" else {"executor": executor}
    return t(f"execution.kept.{key}", **values)


# --- answers -------------------------------------------------------------------------------------


def done_text(row: ApprovalRequest) -> str:
    """What somebody is told whose answer counted."""
    if row.outcome != "denied":
        return t("tap.kept.approved", executor=executor_name(row))
    if not row.reason:
        return t("tap.done.deny_kept")
    reason = cut(shown(row.reason, prose=True), limit_units=REASON_UNITS)
    if reason.hidden_chars:
        return t("tap.done.deny_kept_reason_cut", reason=reason.text, count=reason.hidden_chars)
    return t("tap.done.deny_kept_reason", reason=reason.text)


def again_text(row: ApprovalRequest) -> str:
    """What somebody is told who has it run once more; `row` is the new one, which may wait for others to agree."""
    if row.outcome is not None:
        return t("tap.kept.again", id=row.short_id)
    agreed = sum(vote.choice != "deny" for vote in row.votes)
    return t("tap.kept.again_vote", id=row.short_id, agreed=agreed, needed=row.threshold, count=row.threshold - agreed)


def late_text(row: ApprovalRequest, now: datetime) -> str | None:
    """What somebody is told who answers one that was approved; None for every other ending."""
    if row.outcome != "approved":
        return None
    execution, executor = row.execution, executor_name(row)
    when = clock(execution.claimed_at or row.decided_at or now, now=now)
    if execution.state in ("succeeded", "failed"):
        return t("tap.kept.ran", clock=when)
    if execution.state == "claimed":
        return t("tap.kept.running", clock=when)
    if execution.state == "none":
        return t("tap.kept.waiting", executor=executor)
    if execution.state == "unknown":
        return t("tap.kept.settled" if row.superseded_by is not None else "tap.kept.unknown")
    if execution.state == "lapsed":
        return t("tap.kept.lapsed", executor=executor, duration=window(claim_window_s(row)))
    return t("tap.kept.taken_back" if execution.claim_id is None else "tap.kept.not_run", executor=executor)


# --- the agent -----------------------------------------------------------------------------------


def message(row: ApprovalRequest) -> str:
    """What the agent reads of an approved one: it is run for it, whatever became of it."""
    state, executor = row.execution.state, executor_name(row)
    if state in ("none", "claimed"):
        return t("agent.kept.approved", executor=executor)
    if state in ("succeeded", "failed"):
        return t("agent.kept.ran", executor=executor, state=state)
    if state == "lapsed":
        return t("agent.kept.lapsed", executor=executor, duration=window_long(claim_window_s(row)))
    if row.execution.cause == "forbidden_now":
        return t("agent.kept.forbidden_now", executor=executor)
    if row.execution.cause == "executor_changed":
        return t("agent.kept.executor_changed", executor=executor)
    return t("agent.kept.unknown" if state == "unknown" else "agent.kept.not_run", executor=executor)
