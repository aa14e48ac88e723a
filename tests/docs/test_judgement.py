"""The examples of docs/judgement.md are judged as the page says."""

from __future__ import annotations

from signoff.policy import JudgeContext, judge
from tests.docs.pages import ROOT, rows
from tests.tables import every

PAGE = ROOT / "docs" / "judgement.md"
CONTEXT = JudgeContext(kind="chat", attended=True, home="/home/ana", cwd="/home/ana/project")
EXAMPLES = [
    (verdict, command.strip("`"), sentence)
    for head, verdict in (("asks", "ask"), ("never runs", "block"), ("runs", "allow"))
    for command, sentence in rows(PAGE, head)
]


def standing_still() -> float:
    """A clock by which nothing takes long, whatever else the machine does."""
    return 0.0


@every("verdict, command, sentence", EXAMPLES)
def test_an_example_is_judged_so(verdict: str, command: str, sentence: str) -> None:
    found = judge("command", command, CONTEXT, clock=standing_still)
    assert found.verdict == verdict
    if verdict != "allow":
        assert found.description == sentence, "the page quotes the rule's own sentence"


def test_there_are_examples_of_each() -> None:
    assert {verdict for verdict, _command, _sentence in EXAMPLES} == {"ask", "block", "allow"}
