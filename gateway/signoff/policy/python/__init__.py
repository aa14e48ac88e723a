"""The Python front end: code to the calls that rules speak of and the commands it would start."""

from signoff.policy.python.findings import CodeFinding, find
from signoff.policy.python.model import Call, PythonScript
from signoff.policy.python.reader import read_python
from signoff.policy.python.rule import CodeRule, CodeRules, shipped

__all__ = ["Call", "CodeFinding", "CodeRule", "CodeRules", "PythonScript", "find", "read_python", "shipped"]
