"""What the judgement of one action says."""

from typing import Literal

import msgspec

VerdictWord = Literal["allow", "ask", "block"]
"""What a rule may say."""
DecisionWord = Literal["allow", "ask", "block", "stage"]
"""What the ladder may say; `stage`: the action is kept for a later yes."""
Severity = Literal["low", "medium", "high", "critical"]

SEVERITIES: tuple[Severity, ...] = ("low", "medium", "high", "critical")
"""From the least to the gravest."""

MAX_LABEL_CHARS = 20
"""The longest `Verdict.label`: with `This session: ` before it, a button stays within what phones show whole."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of the ladder for one action.

    `description` is a sentence for people, lower case at the start and without a full stop. `why` holds one line for
    each thing that was seen. `rung` names the step of the ladder that decided. `setting` is the dotted setting that
    decided, or None. `label` (at most 20 characters) and `breadth` say on a button and in its explanation how far a
    standing approval for the session would reach, and `coverage` names what it would cover: a later action is covered
    once each of its own names is. All three are empty where only this exact action could be covered.

    `once_only` says that no standing approval may be given at all, and `unread_file` names the file that is the reason,
    where one is. `reviewable` says that the automatic reviewer may look at it before a person does. `missing` names
    what an executor would have to be registered for, where the action is blocked because none is.
    """

    verdict: DecisionWord
    rule_keys: tuple[str, ...] = ()
    description: str
    severity: Severity
    why: tuple[str, ...] = ()
    rung: str
    setting: str | None = None
    label: str = ""
    breadth: str = ""
    coverage: tuple[str, ...] = ()
    once_only: bool = False
    unread_file: str = ""
    reviewable: bool = False
    missing: str = ""


def graver(one: Severity, other: Severity) -> Severity:
    """The graver of two."""
    return max(one, other, key=SEVERITIES.index)
