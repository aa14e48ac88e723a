"""`approve`: answers that nobody could mean are refused with the words there are, before any gateway is asked."""

from __future__ import annotations

import pytest
from tests.unit.cli.front import Front

WORDS = "once, once_all, session, always, ask_again, accept or a time box from 1m to 24h such as 30m."


@pytest.mark.parametrize("word", ["nonsense", "Once", "25h", "0m", ""])
def test_a_choice_that_is_none(front: Front, word: str) -> None:
    told = front("approve", "K7M2Q", "--choice", word, code=2)
    assert told.startswith(f"signoff: --choice: {word!r} is no answer. Give {WORDS}")


@pytest.mark.parametrize("words", [("nonsense",), ("session",), ("30m", "please")])
def test_a_choice_without_its_option(front: Front, words: tuple[str, ...]) -> None:
    told = front("approve", "K7M2Q", *words, code=2)
    assert told.startswith(f"signoff: Got {words[0]!r} beside the id. An answer is given with --choice: {WORDS}")


@pytest.mark.parametrize("word", ["once", "once_all", "session", "always", "ask_again", "accept", "1m", "24h"])
def test_each_of_the_words_reaches_the_gateway(front: Front, word: str) -> None:
    assert "No gateway runs here" in front("approve", "K7M2Q", "--choice", word, code=75)
