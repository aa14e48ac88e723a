"""Why an action is asked: what was seen in it command by command, the rules that spoke, and who or what decided. Pure.

The tree is read anew from the stored action, by the rules as they are now; where those say something else than they
said when it was asked, that is told.
"""

from __future__ import annotations

import time
from typing import Literal

from msgspec import Struct

from signoff.display import shown
from signoff.endings import user_summary
from signoff.judging import context_of, judged_text, kind_of
from signoff.model import ApprovalRequest, Session, Severity
from signoff.policy.explaining import Explanation, explain
from signoff.policy.telling import TreeLine, tree
from signoff.policy.verdict import VerdictWord
from signoff.settings import AgentSettings, Profile
from signoff.wording import person_name, t

MAX_LINES = 12
"""As many commands of a tree stand in a message."""
MAX_SEEN = 10
PERSON_RUNG = "person"
HURRY = 4
"""So much less time than for judging is spent on one tree: a page may show many, and the loop waits for each."""
_NO_SETTINGS = Profile()


class WhyLine(Struct, frozen=True, kw_only=True):
    """One command of the tree, masked: `2.1` is carried by `2`. `rules` ask for it, or allow it; `reason` says what
    they say, or why none had to. `around` says where it runs, when not here."""

    number: str
    depth: int
    text: str
    verdict: VerdictWord
    rules: tuple[str, ...]
    reason: str
    around: str


class Why(Struct, frozen=True, kw_only=True):
    """Why a request was put to a person, let run or forbidden. Texts are masked.

    `rung` names the step of the ladder that decided; empty where that was not kept. `answer` says how it ended, with
    who answered and why; empty while it waits. `rules_now` are the rules that
    would speak by now, where they are others. `more` counts the commands that the tree leaves out.
    """

    object: Literal["signoff.why"] = "signoff.why"
    request_id: str
    short_id: str
    description: str
    severity: Severity
    rule_keys: tuple[str, ...]
    why: tuple[str, ...]
    rung: str
    answer: str
    tree: tuple[WhyLine, ...]
    more: int
    problems: tuple[str, ...]
    rules_now: tuple[str, ...] | None


def why_of(row: ApprovalRequest, profile: Profile | None = None) -> Why:
    """All of it. `profile` has the operator's own rules; None: only those that come with the package are asked."""
    found = explained(row, profile)
    return Why(
        request_id=row.request_id,
        short_id=row.short_id,
        description=shown(row.description, prose=True),
        severity=row.severity,
        rule_keys=row.rule_keys,
        why=tuple(shown(line, prose=True) for line in row.why),
        rung=row.rung,
        answer=user_summary(row, row.decided_at or row.created_at),
        tree=tuple(map(_line, tree(found))),
        more=found.more,
        problems=tuple(shown(problem, prose=True) for problem in found.problems),
        rules_now=rules_now(row, found, profile),
    )


def rules_now(row: ApprovalRequest, found: Explanation, profile: Profile | None) -> tuple[str, ...] | None:
    """The rules that would speak by now; None where they are those that spoke, or where that cannot be told."""
    compared = profile is not None and not found.problems and row.rung in ("", PERSON_RUNG)
    by_rules = found.verdict.rule_keys
    return by_rules if compared and set(by_rules) != set(row.rule_keys) else None


def explained(row: ApprovalRequest, profile: Profile | None) -> Explanation:
    """Judged anew as if a person could answer: what is told is what was seen, whoever decided. Texts are not masked."""
    profile = profile or _NO_SETTINGS
    session = Session(profile=row.profile, session_id=row.session_id, kind="chat", created_at=row.created_at)
    context, _ = context_of(row.action, profile, AgentSettings(), session, session, attended=True, now=row.created_at)
    return explain(kind_of(row.action), judged_text(row.action), context, clock=_hurried)


def _hurried() -> float:
    return time.thread_time() * HURRY


def _line(line: TreeLine) -> WhyLine:
    return WhyLine(
        number=line.number,
        depth=line.depth,
        text=shown(line.text, prose=True),
        verdict=line.verdict,
        rules=line.rules,
        reason=shown(line.reason, prose=True),
        around=line.around,
    )


# --- as people read it ---------------------------------------------------------------------------


def why_lines(row: ApprovalRequest, profile: Profile | None = None) -> list[str]:
    """The rules, what was seen, the commands one by one, what decided, how it ended, and the digest."""
    why = why_of(row, profile)
    rule = ", ".join(row.rule_keys) or "none"
    title = t("why.title", severity=t(f"severity.{row.severity}"), sentence=why.description, rule=rule)
    return [
        f"{row.short_id} · {title}",
        *why.why[:MAX_SEEN],
        *tree_lines(why),
        decided_line(row),
        *([why.answer] if why.answer else []),
        t("why.digest", digest=row.digest),
    ]


def tree_lines(why: Why) -> list[str]:
    """The commands one by one, those that ask before the others where not all have room."""
    chosen = why.tree
    if len(chosen) > MAX_LINES:
        asking = [line for line in chosen if line.verdict != "allow"][:MAX_LINES]
        chosen = tuple(asking) or chosen[:MAX_LINES]
    lines = [_told(line) for line in chosen]
    left_out = len(why.tree) - len(chosen) + why.more
    if left_out:
        lines.append(t("why.more", count=left_out))
    if why.rules_now is not None:
        lines.append(t("why.changed", rules=", ".join(why.rules_now) or "none"))
    return lines


def _told(line: WhyLine) -> str:
    part = f"{line.text} ({line.around})" if line.around else line.text
    if line.verdict == "allow":
        return t("why.allowed", index=line.number, part=part, reason=line.reason)
    return t(f"why.{line.verdict}s", index=line.number, part=part, rule=", ".join(line.rules))


def decided_line(row: ApprovalRequest) -> str:
    """What decided: the rung, a grant, an earlier denial, or nothing, so that a person is asked."""
    granted = [actor.grant_id for actor in row.decided_by if actor.type == "grant" and actor.grant_id]
    if granted:
        return t("why.granted", grants=", ".join(granted))
    if row.repeat_of is not None:
        by = person_name(row.decided_by[0]) if row.decided_by else ""
        return t("why.denied_before", id=row.repeat_short or row.repeat_of, person=by)
    if row.rung in ("", PERSON_RUNG):
        return t("why.nothing_covers")
    return t(f"why.rung.{row.rung}")
