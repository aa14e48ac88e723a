"""Every reported case that Signoff answers has a test which carries its number.

`G2-31` is a case of the life cycle, `#76748` a report elsewhere, `2.3.2` a statement about how it must behave. A test
names what it proves in a comment, so that whoever reads a report finds the proof, and the proof what it is for.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.tables import every

CASES = tuple(
    f"G2-{number:02}"
    for number in (1, 4, 5, 6, 8, 9, 10, 11, 12, 13, 15, 19, 22, 23, 28, 30, 31, 32, 36, 37, 38, 39, 40)
)
REPORTS = {
    "an answer for code is kept": "#39187 #39204 #39212 #39275 #39391 #39413 #39466",
    "what nobody refused was refused by nobody": "#22992 #112308",
    "an end of a parent is told as that": "#112026",
    "a job never asks, whatever it inherits": "#110932 #110942 #58673 #59179 #21899",
    "mode off holds in every gate": "3e066dfedd",
    "a malformed allowlist admits nothing and is not rewritten": "#104779",
    "a line that is taken out ends what it allowed": "#101741 #110811",
    "deny rules stand above isolation": "#91002 #91029",
    "every window is one that a timer takes": "#86412",
    "what cannot be delivered fails at once": "#19803",
    "hooks hear of the end of an agent's work": "#14583",
    "hooks need no wiring": "#54453 #37250 #29483 #29496 #54429",
    "cards on Slack are Slack's own": "#54522",
    "the tool gate": "#56811 #60550",
    "the tool gate reads its settings without a copy": "#76194 spfcraze#22",
    "a job beside it moves no question": "#76748",
    "no process-wide variable says who asks": "#35515 #43549 #69740",
    "context travels with the call": "#77022 #43370 #76749 #69566 #58662 #31184 #37935 #4699",
    "a plugin's question reaches the chat": "#51221 #58698 #59163 #59201 #60504 #60544",
    "a job's policy stands above what was granted": "#60505 #60547 #61064",
    "a job changes nothing of others unasked": "#60077 #60799",
    "no context is no consent": "#35164",
    "a tool server's question is remembered by nobody": "#109818",
}
STATEMENTS = {
    "grants for code": "1.2.5 1.2.8",
    "the gates": "1.3.1 1.3.2 1.3.4 1.3.6",
    "the tool gate": "1.4 1.4.1 1.4.2 1.4.3 1.4.5 1.4.6 1.4.7 1.4.8 1.4.9 1.4.10 1.4.11",
    "questions of tool servers": "1.5.1 1.5.2 1.5.3 1.5.4 1.5.5 1.5.6",
    "context": "2.1.2 2.1.3 2.1.4 2.1.5 2.1.6 2.1.7",
    "who could answer": "2.2 2.3.1 2.3.2 2.3.3 2.3.4 2.3.5 2.3.6",
    "nobody there": "2.6.1 2.6.2 2.6.3 2.6.4",
    "children": "2.7.1 2.7.3",
    "terminal prompts": "2.8.1 2.8.2 2.8.3 2.8.4",
    "waiting for a person": "3.4.1 3.4.2",
    "notifiers": "3.6.2",
    "the allowlist": "7.2 7.3 7.5 7.6 7.8",
    "hooks": "9.1 9.3 9.4 9.5 5.6.1 5.6.2",
    "each ending has one name everywhere": "13.1.10",
}
NUMBERS = [
    *CASES,
    *(number for group in (REPORTS, STATEMENTS) for numbers in group.values() for number in numbers.split()),
]
_COMMENT = re.compile(r"#.*|\"\"\".*|\bid=.*")


@pytest.fixture(scope="module")
def carried() -> set[str]:
    """Every number that stands in a comment, a docstring's first line or a test's id."""
    found: set[str] = set()
    for file in (ROOT / "tests").rglob("*.py"):
        if file != Path(__file__):
            text = file.read_text("utf-8")
            found.update(word.rstrip(".,:;)") for line in _COMMENT.findall(text) for word in re.split(r"[\s(,]+", line))
    return found


def test_no_number_is_named_twice() -> None:
    assert len(NUMBERS) == len(set(NUMBERS))


@every("number", NUMBERS)
def test_a_test_carries_it(carried: set[str], number: str) -> None:
    assert number in carried, f"write the test that proves {number}, or its number beside the one that does"
