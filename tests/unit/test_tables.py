"""A table that is one test tells each row that fails."""

from __future__ import annotations

import inspect

import pytest
from tests.tables import SHOWN, every


def test_every_row_that_fails_is_named() -> None:
    seen: list[int] = []

    @every("number, word", [(1, "one"), (2, "two"), (3, "three")])
    def check(number: int, word: str) -> None:
        seen.append(number)
        if word == "three":
            raise KeyError(word)
        assert number != 2, "not two"

    with pytest.raises(AssertionError) as failed:
        check()
    assert str(failed.value).splitlines()[0] == "2 of 3 rows failed:"
    assert "2, two\n    AssertionError: not two" in str(failed.value)
    assert "3, three\n    KeyError: 'three'" in str(failed.value)
    assert "1, one" not in str(failed.value)
    assert seen == [1, 2, 3]


def test_of_very_many_rows_that_fail_the_rest_is_counted() -> None:
    @every("row", range(SHOWN + 5), ids=lambda row: f"row {row}")
    def check(row: int) -> None:
        raise ValueError(row)

    with pytest.raises(AssertionError, match=r"(?s)row 0.*row 19.*and 5 more$"):
        check()


def test_what_no_row_gives_is_a_fixture() -> None:
    taken: list[tuple[str, str]] = []

    @every("row", ["a", "b"])
    def check(row: str, given: str) -> None:
        taken.append((row, given))

    assert list(inspect.signature(check).parameters) == ["given"]
    check(given="from outside")
    assert taken == [("a", "from outside"), ("b", "from outside")]
