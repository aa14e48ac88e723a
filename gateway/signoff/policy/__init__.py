"""Judgement of actions: may it run, must a person be asked, or is it refused."""

from signoff.policy.ladder import LADDER, ActionKind, JudgeContext, judge
from signoff.policy.unwrap import unwrapped
from signoff.policy.verdict import Severity, Verdict, VerdictWord

__all__ = ["LADDER", "ActionKind", "JudgeContext", "Severity", "Verdict", "VerdictWord", "judge", "unwrapped"]
