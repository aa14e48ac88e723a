"""What the judgement of one action says."""

from typing import Literal

import msgspec

VerdictWord = Literal["allow", "ask", "block"]
Severity = Literal["low", "medium", "high", "critical"]

MAX_LABEL_CHARS = 20
"""The longest `Verdict.label`: with `This session: ` before it, a button stays within what phones show whole."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of the ladder for one action.

    `description` is a sentence for people, lower case at the start and without a full stop. `why` holds one line for
    each thing that was seen. `rung` names the step of the ladder that decided. `setting` is the dotted setting that
    blocked, or None. `label` (at most 20 characters) and `breadth` say on a button and in its explanation how far a
    standing approval would reach; both are empty where none may be given.
    """

    verdict: VerdictWord
    rule_keys: tuple[str, ...] = ()
    description: str
    severity: Severity
    why: tuple[str, ...] = ()
    rung: str
    setting: str | None = None
    label: str = ""
    breadth: str = ""
