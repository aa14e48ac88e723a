"""Stored requests judged again by another policy: which questions it would have saved, and what it would let pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from msgspec import Struct

from signoff.actions import one_line
from signoff.judging import UNATTENDED_KINDS, judge_action
from signoff.model import Action, ApprovalRequest, Session
from signoff.policy import Verdict
from signoff.policy.verdict import DecisionWord
from signoff.routing import UNATTENDED
from signoff.settings import AgentSettings, Profile
from signoff.wording import person_name

Then = Literal["asked", "answered", "allowed", "blocked"]
"""What became of a request: a person was asked; a grant or an earlier denial answered; policy let it run or forbade it.
"""
Danger = Literal["denied", "critical", "blocked", "off"]
"""Why something that would run now should be looked at: a person denied it, it was critical, policy forbade it, or a
person was asked and nobody would be, because approvals are off."""

MAX_LISTED = 500
"""As many dangers and new questions are listed; the rest is counted."""
MAX_RULES = 10


class Passed(Struct, frozen=True, kw_only=True):
    """A request whose new verdict should be looked at. `action` is masked and on one line."""

    request_id: str
    short_id: str
    at: datetime
    action: str
    severity: str
    then: Then
    now: DecisionWord
    dangers: tuple[Danger, ...] = ()
    rung: str
    rule_keys: tuple[str, ...] = ()
    denied_by: str | None = None


class Report(Struct, frozen=True, kw_only=True):
    """What the other policy would have changed.

    `questions` were put to people; of these `saved` would run unasked, `forbidden` would not run, and `kept` would be
    asked again. `new_questions` were let run then. `dangers` would run now although a person denied them, they were
    critical, policy forbade them, or a person was asked and approvals are off now.
    """

    requests: int = 0
    questions: int = 0
    kept: int = 0
    saved: int = 0
    forbidden: int = 0
    new_questions: int = 0
    newly_forbidden: int = 0
    dangers: int = 0
    dangerous: tuple[Passed, ...] = ()
    asked_now: tuple[Passed, ...] = ()
    saved_by: tuple[tuple[str, int], ...] = ()
    """What let the saved questions pass, most frequent first: a rule, or the rung."""


class Replay:
    """Judges requests one after the other by the settings of `profile`.

    Facts that are not stored are taken as they most likely were: somebody could answer unless the session's kind never
    has anybody or policy said that nobody was there; no bypass was on.
    """

    def __init__(self, profile: Profile, now: datetime) -> None:
        self._profile = profile
        self._now = now
        self._counts: Counter[str] = Counter()
        self._saved_by: Counter[str] = Counter()
        self._dangerous: list[Passed] = []
        self._asked_now: list[Passed] = []

    def add(self, rows: Iterable[ApprovalRequest]) -> None:
        """Judge these too."""
        for row in rows:
            self._one(row)

    def _one(self, row: ApprovalRequest) -> None:
        if row.kept_as is not None:
            return  # the question about the kept action stands for it
        verdict, then = again(row, self._profile, self._now), became(row)
        now, counts = verdict.verdict, self._counts
        counts["requests"] += 1
        if then == "asked":
            counts["questions"] += 1
            counts[{"ask": "kept", "stage": "kept", "allow": "saved", "block": "forbidden"}[now]] += 1
            if now == "allow":
                self._saved_by[verdict.rule_keys[0] if verdict.rule_keys else verdict.rung] += 1
        elif then == "allowed":
            counts["new_questions"] += now in ("ask", "stage")
            counts["newly_forbidden"] += now == "block"
        dangers = dangers_of(row, then, off=verdict.rung == "mode_off") if now == "allow" else ()
        if dangers:
            counts["dangers"] += 1
            _keep(self._dangerous, row, verdict, then, dangers)
        elif then == "allowed" and now != "allow":
            _keep(self._asked_now, row, verdict, then, ())

    def report(self) -> Report:
        """What was found so far."""
        return Report(
            **self._counts,
            dangerous=tuple(self._dangerous),
            asked_now=tuple(self._asked_now),
            saved_by=tuple(self._saved_by.most_common(MAX_RULES)),
        )


def _keep(kept: list[Passed], row: ApprovalRequest, verdict: Verdict, then: Then, dangers: tuple[Danger, ...]) -> None:
    if len(kept) >= MAX_LISTED:
        return
    who = row.decided_by[0] if row.outcome == "denied" and row.decided_by else None
    kept.append(
        Passed(
            request_id=row.request_id,
            short_id=row.short_id,
            at=row.created_at,
            action=one_line(row.action),
            severity=row.severity,
            then=then,
            now=verdict.verdict,
            dangers=dangers,
            rung=verdict.rung,
            rule_keys=verdict.rule_keys,
            denied_by=(who.name or who.principal or person_name(who)) if who is not None else None,
        )
    )


def became(row: ApprovalRequest) -> Then:
    """What became of a request when it was asked."""
    kinds = {actor.type for actor in row.decided_by}
    if row.outcome == "blocked":
        return "blocked"
    if row.repeat_of is not None or "grant" in kinds:
        return "answered"
    return "allowed" if row.outcome == "approved" and kinds == {"policy"} else "asked"


def dangers_of(row: ApprovalRequest, then: Then, *, off: bool) -> tuple[Danger, ...]:
    """Why it should not run unseen. `off`: it would because nothing is asked any more."""
    found: list[Danger] = []
    if any(actor.type == "person" for actor in row.decided_by) and row.outcome == "denied":
        found.append("denied")
    if row.severity == "critical":
        found.append("critical")
    if then == "blocked" and not _nobody_there(row):
        found.append("blocked")
    if off and then == "asked":
        found.append("off")
    return tuple(found)


def again(row: ApprovalRequest, profile: Profile, now: datetime) -> Verdict:
    """The verdict of this profile's settings on a stored request."""
    agent = profile.agents.get(row.agent or "", AgentSettings())
    if row.kind in UNATTENDED_KINDS and row.agent is not None and row.agent not in profile.agents:
        agent = AgentSettings(kinds=(row.kind,))  # it was declared then, so its registration allowed it
    kind = "chat" if row.kind == "child" else row.kind
    session = Session(
        profile=profile.name, session_id=row.session_id, kind=kind, agent=row.agent, created_at=row.created_at
    )
    attended = row.kind not in UNATTENDED and not _nobody_there(row)
    action: Action = row.action
    return judge_action(action, profile, agent, session, session, attended=attended, now=now)


def _nobody_there(row: ApprovalRequest) -> bool:
    """Whether policy decided because nobody could be asked."""
    settings = " ".join(actor.setting or "" for actor in row.decided_by)
    return any(f"{name}_mode" in settings for name in ("cron", "unattended", "single_query"))
