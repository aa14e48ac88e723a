"""What would become of an action if it were asked for now. Nobody is asked, and nothing is stored."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Literal

from msgspec import Struct

from signoff import aside
from signoff.actions import check_says
from signoff.changes import grants, repeats
from signoff.changes.passing import GATED
from signoff.drafting import Ask, Drafts, row_of
from signoff.judging import context_of, judged_text, kind_of, told_why
from signoff.model import Action, ApprovalRequest, Grant, Session, SessionKind, replace
from signoff.policy import JudgeContext, Verdict
from signoff.policy.explaining import Explanation, RungSaid, explain, told_rung
from signoff.policy.verdict import DecisionWord, Severity
from signoff.ports import Store, Tx
from signoff.settings import AgentSettings, Profile

GRANTS_RUNG, DENIED_RUNG, PERSON_RUNG = "grants", "denied", "person"
NOT_ASKED = "check"
"""The id of the session that stands for none."""


class Checked(Struct, frozen=True, kw_only=True):
    """The answer: the verdict that would count, with all that led to it.

    `grants` would answer instead of a person, or `denied` is a person's denial that still holds; both only where a
    session was named.
    """

    explanation: Explanation
    grants: tuple[Grant, ...] = ()
    denied: ApprovalRequest | None = None

    @property
    def verdict(self) -> Verdict:
        """What would count."""
        return self.explanation.verdict


def alone(
    action: Action,
    profile: Profile,
    now: datetime,
    *,
    agent: str | None = None,
    kind: SessionKind = "api",
    attended: bool = True,
    isolation: str | None = None,
) -> Checked:
    """Judge an action outside of any session, as one of this kind would be. `isolation` names an attested
    environment; None takes that of the agent's registration. Raises `InvalidInput` for one without words."""
    check_says(action)
    registered = profile.agents.get(agent or "", AgentSettings())
    if isolation is not None:
        registered = replace(registered, isolation=isolation)
    session = Session(profile=profile.name, session_id=NOT_ASKED, kind=kind, agent=agent, created_at=now)
    context, withheld = context_of(action, profile, registered, session, session, attended=attended, now=now)
    return Checked(explanation=_explained(action, profile, context, withheld))


async def in_session(
    drafts: Drafts, store: Store, profile: Profile, ask: Ask, *, session: Session | None = None
) -> Checked:
    """Judge an action as a question of that session: its bypass, grants and denials count. `session` is a row that
    stands for one that nobody declared yet. Raises `SessionNotFound`."""
    if session is None:
        around = await drafts.around(profile, ask.session_id, ask.agent)
    else:
        around = await drafts.around_session(profile, session)
    context, withheld = context_of(
        ask.action,
        profile,
        around.agent,
        around.session,
        around.root,
        attended=around.way.attended,
        now=drafts.now(),
    )
    explanation = await aside.judged(ask.action, partial(_explained, ask.action, profile, context, withheld))
    said = explanation.verdict
    gated = said.verdict == "stage" and said.rung == GATED
    if said.verdict != "ask" and not gated:
        return Checked(explanation=_with_rungs(explanation, None))
    digest = await aside.digested(ask.action, ask.host)
    row = await aside.judged(ask.action, partial(row_of, profile, ask, digest, around, explanation.verdict))
    found, denied = await store.transact(partial(_answered, row=row))
    if gated and not found:
        return Checked(explanation=_with_rungs(explanation, None))
    return Checked(explanation=_answered_so(explanation, found, denied), grants=found, denied=denied)


def _explained(action: Action, profile: Profile, context: JudgeContext, withheld: str | None) -> Explanation:
    explanation = explain(kind_of(action), judged_text(action), context)
    return replace(explanation, verdict=told_why(explanation.verdict, profile, withheld))


def _answered(tx: Tx, *, row: ApprovalRequest) -> tuple[tuple[Grant, ...], ApprovalRequest | None]:
    """What would answer the question in place of a person; changes nothing."""
    found = grants.covering(tx, row)
    return found, None if found else repeats.denied_before(tx, row)


def _answered_so(explanation: Explanation, found: tuple[Grant, ...], denied: ApprovalRequest | None) -> Explanation:
    asked = explanation.verdict
    if found:
        ids = ", ".join(grant.grant_id for grant in found)
        verdict = replace(asked, verdict="allow", rung=GRANTS_RUNG, why=(f"Covered by {ids}.", *asked.why))
        return _with_rungs(replace(explanation, verdict=verdict), GRANTS_RUNG)
    if denied is not None:
        person = next((actor.name or actor.principal for actor in denied.decided_by), None) or "a person"
        told = f"Denied by {person} ({denied.short_id}), and asked again it would be denied."
        verdict = replace(asked, verdict="block", rung=DENIED_RUNG, why=(told, *asked.why))
        return _with_rungs(replace(explanation, verdict=verdict), DENIED_RUNG)
    return _with_rungs(explanation, PERSON_RUNG)


def _with_rungs(explanation: Explanation, decided: str | None) -> Explanation:
    """The rungs with the two that need what is stored, in the order in which they answer, before the person. The
    automatic reviewer is no part of it: it is not asked. `decided`: None where it was one above."""
    *above, person = explanation.rungs
    rungs = list(above)
    for name in (GRANTS_RUNG, DENIED_RUNG, PERSON_RUNG):
        if decided is None:
            rungs.append(RungSaid(rung=name, reached="not reached"))
        elif name != decided:
            rungs.append(RungSaid(rung=name, reached="passed on"))
        else:
            rungs.append(person if name == PERSON_RUNG else _said(name, explanation.verdict))
            decided = None
    return replace(explanation, rungs=tuple(rungs))


def _said(name: str, verdict: Verdict) -> RungSaid:
    return told_rung(name, replace(verdict, why=verdict.why[:1]))


# --- as others read it -------------------------------------------------------------------------------


class Check(Struct, frozen=True, kw_only=True):
    """The verdict that would count, as programs read it.

    `verdict` is `allow` (it runs), `ask` (a person is asked), `block`, or `stage` (it is kept for a later yes). `rung`
    names the step of the ladder that decided, `setting` the setting, where one did. `label`, `breadth` and `coverage`
    say how far a standing approval would reach. `grant_ids` are the grants that would answer, `denied_id` the request
    whose denial still holds.
    """

    object: Literal["signoff.check"] = "signoff.check"
    verdict: DecisionWord
    rule_keys: tuple[str, ...]
    description: str
    severity: Severity
    why: tuple[str, ...]
    rung: str
    setting: str | None
    label: str
    breadth: str
    coverage: tuple[str, ...]
    once_only: bool
    unread_file: str
    grant_ids: tuple[str, ...]
    denied_id: str | None
    explanation: Explanation | None
    """The commands, the rules and the rungs, where they were asked for."""


def check_of(checked: Checked, *, explained: bool) -> Check:
    """The answer as programs read it."""
    verdict = checked.verdict
    return Check(
        verdict=verdict.verdict,
        rule_keys=verdict.rule_keys,
        description=verdict.description,
        severity=verdict.severity,
        why=verdict.why,
        rung=verdict.rung,
        setting=verdict.setting,
        label=verdict.label,
        breadth=verdict.breadth,
        coverage=verdict.coverage,
        once_only=verdict.once_only,
        unread_file=verdict.unread_file,
        grant_ids=tuple(grant.grant_id for grant in checked.grants),
        denied_id=checked.denied.request_id if checked.denied is not None else None,
        explanation=checked.explanation if explained else None,
    )
