"""The one-time code, as a state machine without any platform."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.ids import ALPHABET
from signoff.setup.code import LENGTH, TRIES, VALID_FOR, Code, judged, new_code

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
CODE = Code(text="K4XW9B83", expires_at=NOW + VALID_FOR)
codes = st.text(ALPHABET, min_size=LENGTH, max_size=LENGTH)


def one(typed: str, *, code: Code = CODE, after_s: float = 1, direct: bool = True, first_hand: bool = True) -> str:
    return judged(code, typed, NOW + timedelta(seconds=after_s), direct=direct, first_hand=first_hand)[0]


@pytest.mark.parametrize(
    "typed", ["K4XW9B83", "k4xw9b83", " K4XW9B83 ", "/start K4XW9B83", "/start@ops_bot K4XW9B83", "/signoff k4xw9b83"]
)
def test_the_code_alone_or_after_a_command_counts(typed: str) -> None:
    assert one(typed) == "right"


@pytest.mark.parametrize("typed", ["", "/start", "hello", "my code is K4XW9B83", "K4XW9B8", "K4XW9B833", "K4XW 9B83"])
def test_what_has_not_its_form_means_nothing(typed: str) -> None:
    assert judged(CODE, typed, NOW, direct=True, first_hand=True) == ("none", CODE)


def test_it_is_used_once_and_expires() -> None:
    verdict, after = judged(CODE, "K4XW9B83", NOW, direct=True, first_hand=True)
    assert (verdict, after.ended) == ("right", "used")
    assert one("K4XW9B83", code=after) == "wrong"
    assert one("K4XW9B83", after_s=599) == "right"
    assert one("K4XW9B83", after_s=600) == "wrong"


def test_in_a_group_it_is_void_and_a_wrong_one_is_passed_over() -> None:
    verdict, after = judged(CODE, "K4XW9B83", NOW, direct=False, first_hand=True)
    assert (verdict, after.ended) == ("group", "group")
    assert one("K4XW9B83", code=after) == "wrong"
    verdict, after = judged(CODE, "00000000", NOW, direct=False, first_hand=True)
    assert (verdict, after.tries_left) == ("none", TRIES - 1)


@given(st.lists(st.tuples(codes, st.booleans(), st.booleans()), max_size=12))
def test_never_more_than_five_guesses_and_never_two_winners(tries: list[tuple[str, bool, bool]]) -> None:
    code, wins, judged_live = CODE, 0, 0
    for typed, direct, first_hand in [*tries, ("K4XW9B83", True, True), ("K4XW9B83", True, True)]:
        live = code.live(NOW)
        verdict, code = judged(code, typed, NOW, direct=direct, first_hand=first_hand)
        judged_live += live
        wins += verdict == "right"
        assert live or verdict != "right"
    assert judged_live <= TRIES
    assert wins <= 1
    assert not code.live(NOW)


def test_codes_are_random_and_typable() -> None:
    made = {new_code(NOW).text for _ in range(200)}
    assert len(made) == 200
    assert all(len(text) == LENGTH and set(text) <= set(ALPHABET) for text in made)
