"""What somebody is told whose tap or command counted, or came too late: at most 200 characters."""

from __future__ import annotations

from datetime import datetime

from signoff.changes.deciding import Decided
from signoff.changes.grants import time_box
from signoff.clipping import cut
from signoff.display import shown
from signoff.durations import clock, duration
from signoff.errors import ChoiceNotOffered
from signoff.kept_words import done_text, late_text
from signoff.model import Actor, ApprovalRequest, Elicitation, Person
from signoff.wording import (
    PlaceTitle,
    answer_word,
    cause_words,
    granted_label,
    no_word,
    person_behind,
    person_name,
    t,
)

TAP_REASON_UNITS = 80


def done_answer(decided: Decided, now: datetime, prefix: str) -> str:
    """What the person whose answer counted is told: at most 200 characters."""
    row = decided.row
    if decided.how == "vote":
        agreed = sum(v.choice != "deny" for v in row.votes)
        return t("tap.vote", agreed=agreed, needed=row.threshold, count=row.threshold - agreed)
    if row.stages is not None:
        return done_text(row)
    if row.outcome == "denied":
        return _denied_answer(row)
    if isinstance(row.action, Elicitation):
        return _accepted_answer(row)
    choice = row.choice or "once"
    grant = decided.grant.grant_id if decided.grant else ""
    box = time_box(choice)
    if box:
        until = clock((row.decided_at or now) + box, now=now)
        return t("tap.done.time_box", clock=until, label=row.label, prefix=prefix, grant=grant)
    if choice in ("session", "always"):
        return t(f"tap.done.{choice}", label=granted_label(row, choice), prefix=prefix, grant=grant)
    if choice == "once_all":
        gone = row.asked_runs - row.runs
        if gone > 0:
            return t("tap.done.once_all_some_gone", approved=row.runs, count=gone)
        return t("tap.done.once_all", count=row.runs)
    if row.asked_runs > 1:
        return t("tap.done.once_of", count=row.asked_runs - 1)
    return t("tap.done.once")


def _accepted_answer(row: ApprovalRequest) -> str:
    """Of a server's question: one answer is for one of those that wait."""
    if row.asked_runs > 1:
        return t("tap.done.accept_of", count=row.asked_runs - 1)
    return t("tap.done.accept")


def _denied_answer(row: ApprovalRequest) -> str:
    key = "tap.done.decline" if no_word(row) == "declined" else "tap.done.deny"
    if not row.reason:
        return t(f"{key}_all", count=row.runs) if row.runs > 1 else t(key)
    reason = cut(shown(row.reason, prose=True), limit_units=TAP_REASON_UNITS)
    if reason.hidden_chars:
        return t(f"{key}_reason_cut", reason=reason.text, count=reason.hidden_chars)
    if row.runs > 1:
        return t(f"{key}_all_reason", count=row.runs, reason=reason.text)
    return t(f"{key}_reason", reason=reason.text)


def not_offered(error: ChoiceNotOffered) -> str:
    """What somebody in a chat is told whose answer was none of those on offer."""
    if error.param == "content":
        return t("tap.needs_fields")
    choice = error.facts.get("choice")
    return error.message if choice is None else t("tap.not_offered", choice=str(choice))


def lost_answer(
    row: ApprovalRequest, person: Person | None, now: datetime, *, platform_title: PlaceTitle, prefix: str
) -> str:
    """How a request that has ended answers somebody who comes late: who or what won, and that nothing changed."""
    at = row.decided_at or now
    when = clock(at, now=now)
    kept = late_text(row, now) if row.stages is not None else None
    if kept is not None:
        return kept
    if row.outcome in ("approved", "denied"):
        return _decided_already(row, person, when, platform_title)
    if isinstance(row.action, Elicitation):
        return _unanswered(row, now, when)
    if row.outcome == "timeout":
        expired = row.expires_at or at
        late = duration(max((now - expired).total_seconds(), 0.0))
        if row.votes:
            agreed = sum(v.choice != "deny" for v in row.votes)
            return t(
                "tap.timeout_votes",
                clock=clock(expired, now=now),
                duration=late,
                agreed=agreed,
                needed=row.threshold,
            )
        return t("tap.timeout", clock=clock(expired, now=now), duration=late)
    if row.outcome == "cancelled":
        cause, values = cause_words(row, now, with_clock=True)
        return t(f"tap.cancelled.{cause}", **values)
    if row.outcome == "notify_failed":
        return t("tap.notify_failed", clock=when)
    if row.outcome == "staged":
        return t("tap.staged", id=row.kept_short or row.short_id)
    by = row.decided_by[0] if row.decided_by else Actor(type="policy")
    return t("tap.blocked", rule=by.setting or by.rule or "policy")


def _unanswered(row: ApprovalRequest, now: datetime, when: str) -> str:
    """How a server's question that nobody answered tells it: nothing was to run, and the server reads `cancel`."""
    if row.outcome == "cancelled":
        cause, values = cause_words(row, now)
        return t("tap.question.cancelled", why=t(f"ending.cancelled.{cause}", **values))
    if row.outcome == "timeout":
        expired = row.expires_at or now
        late = duration(max((now - expired).total_seconds(), 0.0))
        if row.votes:
            agreed = sum(v.choice != "deny" for v in row.votes)
            said = clock(expired, now=now)
            return t("tap.question.timeout_votes", clock=said, duration=late, agreed=agreed, needed=row.threshold)
        return t("tap.question.timeout", clock=clock(expired, now=now), duration=late)
    if row.outcome == "notify_failed":
        return t("tap.question.notify_failed", clock=when)
    by = row.decided_by[0] if row.decided_by else Actor(type="policy")
    return t("tap.blocked", rule=by.setting or by.rule or "policy")


def _decided_already(row: ApprovalRequest, person: Person | None, when: str, title: PlaceTitle) -> str:
    word = answer_word(row)
    by = row.decided_by[-1] if row.decided_by else Actor(type="policy", rule="policy")
    if by.type == "grant":
        return t("tap.already.approved_grant", grant=by.grant_id or "", person=person_name(person_behind(by)))
    if by.type == "policy":
        return t("tap.already.approved_rule", rule=by.setting or by.rule or "policy")
    if person is not None and (by.platform, by.user_id) == (person.platform, person.user_id):
        return t(f"tap.already_yours_{word}", clock=when)
    name = person_name(by)
    if by.via == "console":
        return t(f"tap.already.{word}_console", person=name, clock=when)
    if person is not None and by.platform not in (None, "local", person.platform):
        return t(f"tap.already.{word}_on", person=name, clock=when, place=title(by.platform or ""))
    return t(f"tap.already.{word}", person=name, clock=when)
