"""What the automatic reviewer is shown of a question, and what its answer makes of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from signoff import aside
from signoff.display import shown
from signoff.judging import judged_text
from signoff.model import Action, ApprovalRequest, Change, Code, Command, replace
from signoff.policy.comments import without_comments
from signoff.reviewer import Case, Review, Reviewer
from signoff.rows import session_key
from signoff.settings import Profile
from signoff.wording import t

__all__ = ["Review", "Reviews", "reviewed"]

IN_A_ROW = 3
"""So many actions of one session advised against in a row, and its agent is told to stop and ask what is wanted."""
REMEMBERED = 4096
"""Sessions whose row of advice is remembered."""


class Reviews:
    """The reviewers of all profiles, each made when it is first asked."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self._profiles = profiles
        self._reviewers: dict[str, Reviewer] = {}
        self._against: OrderedDict[str, int] = OrderedDict()

    async def review(self, row: ApprovalRequest) -> Review:
        """Ask the profile's reviewer about a question. Never raises for what its endpoint does."""
        reviewer = self._reviewers.get(row.profile)
        if reviewer is None:
            reviewer = self._reviewers[row.profile] = Reviewer(self._profiles[row.profile].approvals.smart)
        review = await reviewer.review(await aside.shown(row, partial(case_of, row)))
        return replace(review, in_a_row=self._counted(session_key(row.profile, row.session_id), review))

    def _counted(self, session: str, review: Review) -> int:
        """How many actions of the session were advised against in a row."""
        if review.word != "deny":
            return 0
        count = self._against.pop(session, 0) + 1
        self._against[session] = count
        if len(self._against) > REMEMBERED:
            self._against.popitem(last=False)
        return count

    def heard(self, changes: Sequence[Change]) -> None:
        """A commit's changes: whatever is approved ends the row of advice against."""
        for change in changes:
            row = change.request
            if change.event.type == "approval.resolved" and row is not None and row.outcome == "approved":
                self._against.pop(session_key(row.profile, row.session_id), None)

    async def aclose(self) -> None:
        """Close the connections."""
        for reviewer in self._reviewers.values():
            await reviewer.aclose()


def case_of(row: ApprovalRequest) -> Case:
    """The action as data for the reviewer: masked, without its comments, with what the rules said."""
    action = row.action
    text = judged_text(action)
    if isinstance(action, Command | Code):
        text = without_comments(text, action.language if isinstance(action, Code) else "shell")
    cwd = action.cwd if isinstance(action, Command | Code) else None
    return Case(
        kind=str(action.__struct_config__.tag),
        language=action.language if isinstance(action, Code) else "",
        action=shown(text),
        found=(row.description, *row.rule_keys),
        cwd=shown(cwd) if cwd is not None else None,
        **_around(action),
    )


def _around(action: Action) -> dict[str, Any]:
    """What else decides what a command does: its shell, its environment, the files it is about. Masked."""
    if not isinstance(action, Command):
        return {}
    return {
        "shell": shown(action.shell) if action.shell is not None else None,
        "env": tuple(shown(f"{name}={value}") for name, value in sorted((action.env or {}).items())),
        "files": tuple(shown(operand.path) for operand in action.operands),
    }


def reviewed(draft: ApprovalRequest, review: Review) -> ApprovalRequest:
    """The draft with the reviewer's answer. Advice against it is told on the card, and leaves a person `once` and
    `deny`; nothing else than an approval saves the question."""
    if draft.review != "wanted":
        return draft  # what is known of the session changed meanwhile, and nobody need be asked any more
    if review.word != "deny":
        why = (t("reviewer.failed"), *draft.why) if review.failed else draft.why
        return replace(draft, review=review.word, why=why)
    warnings = draft.warnings
    if review.in_a_row >= IN_A_ROW:
        warnings = (*warnings, t("reviewer.stop", count=review.in_a_row))
    why = (t("reviewer.against"), *draft.why)
    return replace(draft, review="deny", once_only=True, why=why, warnings=warnings)
