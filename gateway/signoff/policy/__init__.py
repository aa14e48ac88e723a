"""Judgement of actions: may it run, must a person be asked, or is it refused."""

from signoff.policy.allow import Allowlist
from signoff.policy.contexts import ActionKind, JudgeContext
from signoff.policy.ladder import LADDER, forbidden, judge
from signoff.policy.unwrap import unwrapped
from signoff.policy.verdict import DecisionWord, Severity, Verdict, VerdictWord

__all__ = [
    "LADDER",
    "ActionKind",
    "Allowlist",
    "DecisionWord",
    "JudgeContext",
    "Severity",
    "Verdict",
    "VerdictWord",
    "forbidden",
    "judge",
    "unwrapped",
]
