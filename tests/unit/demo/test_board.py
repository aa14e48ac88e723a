"""Numbers of buttons."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from signoff.demo.board import Board
from signoff.model import Button


def buttons(*labels: str, mark: str = "") -> list[Button]:
    return [Button(label, f"{label}{mark}") for label in labels]


def test_numbers_stay_where_labels_stay_and_go_on_where_they_change() -> None:
    board = Board()
    assert [each.number for each in board.place("a", buttons("Approve once", "Deny"))] == [1, 2]
    assert [each.number for each in board.place("a", buttons("Approve once", "Deny", mark="2"))] == [1, 2]
    found = board.at(1)
    assert found is not None
    assert found.button.token == "Approve once2"
    assert [each.number for each in board.place("a", buttons("Approve 1 of 2", "Deny all 2"))] == [3, 4]
    # What was typed for the older labels still means what they said.
    old = board.at(2)
    assert old is not None
    assert old.button.label == "Deny"


def test_a_number_is_gone_with_its_message_and_counting_begins_again_when_nothing_is_left() -> None:
    board = Board()
    board.place("a", buttons("Approve once", "Deny"))
    board.place("b", buttons("Close"))
    board.drop("a")
    assert board.at(1) is None
    assert board.labelled("Clo") == board.at(3)
    assert board.labelled("Approve") is None
    board.place("c", buttons("Deny", "Deny, because…"))
    found = board.labelled("Deny")
    assert found is not None
    assert found.button.label == "Deny", "a whole label goes before one that goes on"
    board.drop("c")
    board.drop("b")
    assert [each.number for each in board.place("c", buttons("Deny"))] == [1]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=30))
def test_two_standing_messages_never_share_a_number(steps: list[tuple[str, int]]) -> None:
    board = Board()
    standing: dict[str, set[int]] = {}
    for message, count in steps:
        if count == 0:
            board.drop(message)
            standing.pop(message, None)
            continue
        placed = board.place(message, buttons(*(f"{message}{count}{n}" for n in range(count))))
        standing.setdefault(message, set()).update(each.number for each in placed)
        others = [numbers for name, numbers in standing.items() if name != message]
        assert all(standing[message].isdisjoint(numbers) for numbers in others)
        assert [board.at(each.number) for each in placed] == placed
