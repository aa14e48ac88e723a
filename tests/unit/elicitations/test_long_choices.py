"""Whoever gives a value that is no option of a long choice reads some of them and how many more there are."""

from __future__ import annotations

import pytest

from signoff.elicitation import MAX_LISTED, MAX_LISTED_CHARS, checked
from signoff.errors import InvalidInput
from signoff.model import Elicitation


def refusal(options: list[str]) -> str:
    """What is said of a value that is none of them."""
    schema = {"type": "object", "properties": {"board": {"type": "string", "enum": options}}}
    with pytest.raises(InvalidInput) as error:
        checked(Elicitation(server="jira", message="Which?", schema=schema), {"board": "none of them"})
    assert error.value.param == "content.board"
    return error.value.message


def test_a_short_choice_is_told_whole() -> None:
    assert refusal(["web", "api"]) == "board must be one of web, api."


def test_a_long_one_is_cut_with_the_number_left_out() -> None:
    options = [f"b{number}" for number in range(5000)]
    told = refusal(options)
    assert told == f"board must be one of {', '.join(options[:MAX_LISTED])} and 4,980 more."


@pytest.mark.parametrize("length", [150, 399, 400, 401, 9000])
def test_long_options_are_cut_too(length: int) -> None:
    told = refusal(["x" * length, "y" * length, "z" * length, "q" * length])
    assert len(told) < MAX_LISTED_CHARS + 100
    assert "more" in told or "…" in told
