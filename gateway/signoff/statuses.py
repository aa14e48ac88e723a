"""The lines on an answered card: the verdict with who and when, then what became of the action."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from signoff.changes.alike import states_of
from signoff.changes.common import RUNNING_AFTER_S, plus
from signoff.display import shown
from signoff.durations import clock, duration, window
from signoff.kept_words import run_line
from signoff.model import Actor, ApprovalRequest, Block, Elicitation, Span
from signoff.policy.protected import PROTECTED_KEY
from signoff.wording import (
    PlaceTitle,
    agent_name,
    approved_text,
    blocked_text,
    cause_words,
    claim_window_s,
    first_operand,
    grant_origin,
    no_word,
    people,
    person_name,
    safe_name,
    t,
    undelivered,
    window_s,
)

MARKS = {
    "approved": "✅",
    "denied": "⛔",
    "timeout": "⌛",
    "cancelled": "⏹",
    "notify_failed": "⚠️",
    "blocked": "⛔",
    "staged": "⏹",
}
WORDS = {
    "failed": "failed",
    "claimed": "running",
    "none": "not_started",
    "not_run": "not_run",
    "unknown": "unknown",
    "lapsed": "lapsed",
}
"""Of several runs: the word for each state but success, which comes first, in their order."""
Band = Literal["done", "refused", "trouble", "over"]
"""What a colour repeats of how a request stands: it may run, a person or a rule said no, somebody must look at it, or
nothing runs and nothing is to be done."""
BANDS: dict[str, Band] = {"denied": "refused", "blocked": "refused", "notify_failed": "trouble"}
"""Of the outcomes that let nothing run; `over` for all others."""
ALL_ALIKE = ({"not_run"}, {"lapsed"}, {"unknown"})
"""Where all of several runs ended so, one sentence tells it of all."""


def band(row: ApprovalRequest, ran: str) -> Band:
    """The colour of an ended request. `ran` is the line that says what became of an approved one: an approval whose run
    failed is no good news, whoever gave it."""
    if row.outcome != "approved":
        return BANDS.get(row.outcome or "", "over")
    if ran.startswith("⚠️"):
        return "trouble"
    return "over" if set(states_of(row)) <= {"not_run", "lapsed"} else "done"


def status_blocks(
    row: ApprovalRequest, now: datetime, *, title: PlaceTitle, prefix: str, here: str
) -> tuple[Block, ...]:
    """The lines that go on top of an answered card: the verdict, then what became of the action."""
    if row.outcome is None:
        return _vote_lines(row, now)
    verdict, tail = _verdict(row, now, title, here)
    at = row.decided_at or now
    spans = [
        Span(f"{MARKS[row.outcome]} "),
        Span(verdict, "bold"),
        *([Span(f" {tail[0]}")] if tail[0] else []),
        Span(" · "),
        Span(clock(at, now=now), "clock", at=at),
        *[Span(f" · {part}") for part in tail[1:]],
    ]
    lines = [Block("text", tuple(spans))]
    lines += [Block("text", (Span(line),)) for line in after_lines(row, now, prefix)]
    return tuple(lines)


def _vote_lines(row: ApprovalRequest, now: datetime) -> tuple[Block, ...]:
    agreed = tuple(v.by for v in row.votes if v.choice != "deny")
    if not agreed:
        return ()
    missing = row.threshold - len(agreed)
    when = clock(row.votes[-1].at, now=now)
    line = t("status.votes", people=people(agreed), agreed=len(agreed), needed=row.threshold, clock=when, count=missing)
    return (Block("text", (Span(line),)),)


def _verdict(row: ApprovalRequest, now: datetime, title: PlaceTitle, here: str) -> tuple[str, list[str]]:
    """The bold verdict; then where it was given, and the segments behind the clock."""
    if row.outcome == "approved":
        return approved_text("verdict.approved", row, now), [grant_origin(row, now) or _via(row, title, here)]
    if row.outcome == "denied":
        name, table = people(row.decided_by), f"verdict.{no_word(row)}"
        not_run = _not_run(row)
        if row.repeat_of:
            repeated = t(f"{table}.repeat", person=name, clock=clock(row.repeat_at or row.created_at, now=now))
            return repeated, [f"({row.repeat_short})", t("ending.not_asked_again"), *not_run]
        text = t(f"{table}.all", person=name, count=row.runs) if row.runs > 1 else t(f"{table}.person", person=name)
        return text, [_via(row, title, here), *not_run]
    if row.outcome == "timeout":
        agreed = tuple(v.by for v in row.votes if v.choice != "deny")
        passed = t("ending.timeout", duration=window(window_s(row)))
        if agreed:
            passed = t("ending.timeout_votes", agreed=len(agreed), needed=row.threshold, people=people(agreed))
        return t("verdict.timeout"), ["", passed, *_not_run(row)]
    if row.outcome == "cancelled":
        key, values = cause_words(row, now)
        return t("verdict.cancelled"), ["", t(f"ending.cancelled.{key}", **values), *_not_run(row)]
    if row.outcome == "notify_failed":
        why = undelivered("ending.notify_failed", row, title)
        return t("verdict.notify_failed"), ["", why, t("ending.nobody_asked"), *_not_run(row)]
    if row.outcome == "staged":
        return t("verdict.staged"), ["", t("ending.staged", id=row.kept_short or row.short_id)]
    by = row.decided_by[0] if row.decided_by else Actor(type="policy")
    return blocked_text("verdict.blocked", row, by), ["", t("ending.nobody_asked"), t("ending.not_run")]


def _not_run(row: ApprovalRequest) -> list[str]:
    """That nothing ran; of a server's question nothing was to run."""
    return [] if isinstance(row.action, Elicitation) else [t("ending.not_run")]


def _via(row: ApprovalRequest, title: PlaceTitle, here: str) -> str:
    """Where the answer was given, where that is not this copy."""
    by = row.decided_by[-1] if row.decided_by else None
    if by is None or by.type != "person" or (row.decided_copy is not None and row.decided_copy == here):
        return ""
    if by.via == "button":
        return t("via.place", place=title(by.platform or ""))
    if by.via == "api":
        return t("via.api", key=by.key_id or "")
    return t(f"via.{by.via}") if by.via else ""


def after_lines(row: ApprovalRequest, now: datetime, prefix: str) -> list[str]:
    """The lines under the verdict: the reason, the grant, the execution."""
    if row.outcome == "denied" and row.repeat_of:
        return [t("status.ask_again", id=row.repeat_short, prefix=prefix)]
    if row.outcome == "denied":
        lines = [t("status.reason_given", reason=shown(row.reason, prose=True))] if row.reason else []
        if row.lifted_by is not None:
            lines.append(t("status.lifted", person=person_name(row.lifted_by)))
        elif row.asked_after is not None:
            lines.append(t("status.asked_after", clock=clock(row.asked_after, now=now)))
        return lines
    if row.outcome == "blocked":
        return _lift_lines(row)
    if row.outcome == "notify_failed" and row.destinations:
        return [t("status.mend", mend=t("mend.refused" if row.refused_by is not None else "mend.silent"))]
    if row.outcome != "approved":
        return []
    lines = []
    by_person = any(a.type == "person" for a in row.decided_by)
    if row.grant_id and by_person:
        lines.append(t("status.grant_ends", grant=row.grant_id, prefix=prefix))
    started = row.execution.claimed_at
    if set(states_of(row)) == {"claimed"} and started is not None and now < plus(started, RUNNING_AFTER_S):
        return lines  # most actions are over before anybody could read that they run
    return [*lines, runs_line(row, now)]


def _lift_lines(row: ApprovalRequest) -> list[str]:
    """Whether anything could let a blocked action run; a protected file only waits for a session with people in it."""
    by = row.decided_by[0] if row.decided_by else Actor(type="policy")
    if by.rule == PROTECTED_KEY:
        return []
    return [t("status.setting_lift") if by.setting else t("status.no_lift")]


def runs_line(row: ApprovalRequest, now: datetime) -> str:
    """The second fact: what became of all that was approved with the answer to `row`, which may be several runs."""
    states = states_of(row)
    if row.alike is None or isinstance(row.action, Elicitation) or set(states) in ALL_ALIKE:
        return execution_line(row, now)
    if set(states) == {"none"}:
        if row.claim_by is None:
            return t("status.waiting_for_start_no_end", agent=agent_name(row))
        return t("status.waiting_for_starts", agent=agent_name(row), clock=clock(row.claim_by, now=now))
    if set(states) <= {"none", "claimed"}:
        return t("execution.claimed.some", started=states["claimed"], count=sum(states.values()))
    line = results_line(states)
    return f"{line} {t('execution.some_unknown', host=_host(row))}" if "unknown" in states else line


def results_line(states: Mapping[str, int]) -> str:
    """How several runs went, marked where somebody must look at one of them."""
    line = t("digest.results", counts=counted(states))
    return f"⚠️ {line}" if "failed" in states or "unknown" in states else line


def counted(states: Mapping[str, int]) -> str:
    """How many runs stand how, by their states of execution: `Succeeded 95, failed 2, running 1`."""
    words = [t("digest.result.succeeded", count=states.get("succeeded", 0))]
    words += [t(f"digest.result.{word}", count=states[state]) for state, word in WORDS.items() if states.get(state)]
    return ", ".join(words)


def _host(row: ApprovalRequest) -> str:
    return safe_name(row.host) if row.host else t("who.host")


def execution_line(row: ApprovalRequest, now: datetime) -> str:
    """What became of this one approved action."""
    execution = row.execution
    if isinstance(row.action, Elicitation) and execution.state in ("none", "claimed", "succeeded", "unknown"):
        return _answer_line(row, now)
    kept = run_line(row, now) if row.stages is not None else ""
    if kept:
        return kept
    host = _host(row)
    if execution.state == "none":
        if row.claim_by is None:
            return t("status.waiting_for_start_no_end", agent=agent_name(row))
        return t("status.waiting_for_start", agent=agent_name(row), clock=clock(row.claim_by, now=now))
    if execution.state == "claimed":
        return t("execution.claimed.one", clock=clock(execution.claimed_at or now, now=now), host=host)
    if execution.state == "lapsed":
        return "⌛ " + t("execution.lapsed", agent=agent_name(row), duration=window(claim_window_s(row)))
    if execution.state == "unknown":
        return "⚠️ " + t("execution.unknown", clock=clock(execution.claimed_at or now, now=now), host=host)
    if execution.state == "not_run":
        return _not_run_line(row, now)
    ran_s = ((execution.ended_at or now) - (execution.claimed_at or now)).total_seconds()
    mark = "⚠️ " if execution.state == "failed" else ""
    if execution.exit_code is None:
        return mark + t(f"execution.{execution.state}.no_code", duration=duration(ran_s))
    return mark + t(f"execution.{execution.state}.code", code=str(execution.exit_code), duration=duration(ran_s))


def _answer_line(row: ApprovalRequest, now: datetime) -> str:
    """What became of the answer to a server's question: nothing is run, it is handed over."""
    if row.execution.state != "none":
        return t("execution.answer.given", agent=agent_name(row))
    when = clock(row.claim_by, now=now) if row.claim_by is not None else "–"
    return t("execution.answer.waiting", agent=agent_name(row), clock=when)


def _not_run_line(row: ApprovalRequest, now: datetime) -> str:
    execution = row.execution
    cause, when = execution.cause, clock(execution.ended_at or now, now=now)
    if cause == "undone":
        return "⏹ " + t("execution.not_run.undone", person=person_name(execution.ended_by), clock=when)
    person = execution.ended_by if execution.ended_by is not None and execution.ended_by.type == "person" else None
    if cause is None:
        return t("execution.not_run.reported", agent=agent_name(row))
    if cause == "changed_since_review":
        return "⚠️ " + t("execution.not_run.changed", file=first_operand(row), person=people(row.decided_by))
    if cause == "stop_requested" and person is not None:
        return "⏹ " + t("execution.not_run.stop_requested", person=person_name(person), clock=when)
    if cause == "session_ended" and person is not None:
        return "⏹ " + t("execution.not_run.session_ended_by", person=person_name(person), clock=when)
    key = "stop_requested_unnamed" if cause == "stop_requested" else cause
    return "⏹ " + t(f"execution.not_run.{key}", clock=when)
