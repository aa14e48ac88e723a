"""Every rule about Python code: where it fires, where it does not although it is close, and that it is needed."""

import time
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from tests.tables import every

from signoff.policy.path_classes import CLASSES
from signoff.policy.paths import PathFacts
from signoff.policy.python import CodeRule, CodeRules, find, read_python, shipped
from signoff.policy.python.checks import CHECKS
from signoff.policy.seen import OwnFacts
from signoff.policy.shell.deadline import Deadline
from signoff.policy.verdict import MAX_LABEL_CHARS

HOME = "/home/ana"
FACTS = OwnFacts(
    paths=PathFacts(home=HOME, own=(f"{HOME}/.local/state/signoff", f"{HOME}/signoff.toml"), start=f"{HOME}/project"),
    pid=4242,
)
CASES: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parents[1] / "rules" / "python.toml").read_text(encoding="utf-8")
)["case"]
RULES = shipped().rules


@cache
def keys(text: str, rules: CodeRules | None = None) -> frozenset[str]:
    """The keys of the rules that fire on some code, which must be readable."""
    script = read_python(text, cwd=f"{HOME}/project", home=HOME, budget_s=5.0)
    assert script.problems == (), text
    found = find(script, FACTS, Deadline(time.thread_time, 5.0), rules)
    return frozenset(finding.rule.key for finding in found)


def _each(kind: str) -> list[tuple[str, str]]:
    return [(case["key"], text) for case in CASES for text in case[kind]]


@every("key, text", _each("fires"))
def test_it_fires(key: str, text: str) -> None:
    assert key in keys(text)


@every("key, text", _each("passes"))
def test_it_does_not_fire(key: str, text: str) -> None:
    assert key not in keys(text)


@every("row", range(len(RULES)), ids=lambda row: f"{row}-{RULES[row].key}")
def test_every_row_is_needed(row: int) -> None:
    fewer = shipped().without(row)
    fires = [text for case in CASES if case["key"] == RULES[row].key for text in case["fires"]]
    assert any(RULES[row].key not in keys(text, fewer) for text in fires)


@every("rule", RULES, ids=lambda rule: rule.key)
def test_rows_are_sound(rule: CodeRule) -> None:
    assert rule.calls or rule.sets or rule.uses or rule.imports
    assert set(rule.operands) <= CLASSES.keys()
    assert {*rule.only_if, *rule.unless} <= CHECKS.keys()
    assert not rule.sentence.endswith(".")
    assert rule.sentence[0].islower()
    assert len(rule.label) <= MAX_LABEL_CHARS
    assert rule.verdict == "block" or (rule.label and rule.breadth)
