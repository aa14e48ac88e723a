"""The rules as people meet them: on the cases that were written down, and on everyday commands of public projects."""

from functools import cache

import pytest
from tests.unit.policy.report import Judged, judged

ASKING_OF_EVERYDAY = 0.03
"""At most so many of the everyday commands may ask: a gateway that asks more often is switched off."""

ASKING_OF_HARMLESS = 1
"""At most so many of the harmless cases may ask."""


@cache
def results(name: str) -> tuple[Judged, ...]:
    return tuple(judged(name))


CASES = results("commands.jsonl")


@pytest.mark.parametrize("each", [each for each in CASES if each.case.expect == "block"], ids=lambda each: each.case.id)
def test_what_must_be_blocked_is_blocked(each: Judged) -> None:
    assert each.verdict.verdict == "block"


@pytest.mark.parametrize("each", [each for each in CASES if each.case.expect == "ask"], ids=lambda each: each.case.id)
def test_what_must_be_asked_is_asked(each: Judged) -> None:
    assert each.verdict.verdict == "ask"


def test_of_the_harmless_cases_hardly_any_asks_and_none_is_blocked() -> None:
    harmless = [each for each in CASES if each.case.expect == "allow"]
    assert len(harmless) == 35
    assert [each.case.id for each in harmless if each.verdict.verdict == "block"] == []
    asking = [each.case.id for each in harmless if each.verdict.verdict == "ask"]
    assert len(asking) <= ASKING_OF_HARMLESS, asking


def test_everyday_commands_hardly_ever_ask_and_none_is_blocked() -> None:
    everyday = results("everyday.jsonl")
    assert len(everyday) >= 300
    assert [each.case.command for each in everyday if each.verdict.verdict == "block"] == []
    asking = [each.case.command for each in everyday if each.verdict.verdict == "ask"]
    assert len(asking) <= ASKING_OF_EVERYDAY * len(everyday), asking


def test_every_everyday_command_names_the_file_it_stands_in() -> None:
    assert all("/" in each.case.source and " " in each.case.source for each in results("everyday.jsonl"))
