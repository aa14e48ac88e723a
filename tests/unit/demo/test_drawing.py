"""Cards as lines of text."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from signoff.demo import drawing
from signoff.demo.board import Board
from signoff.model import Block, Button, Card, Span

CONSOLE = Console(file=io.StringIO(), width=200)
VISIBLE = st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_categories=["C", "Z"]) | st.just(" ")


def soon() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=300)


def plain(lines: list[Text]) -> list[str]:
    return [line.plain for line in lines]


@given(st.text(VISIBLE))
@example("\u1b71")  # of no width, alone
@example("\u0333" * 3 + "x" * 26 + "\u11a1")
@example("\u3042" * 30)  # two columns each
def test_no_character_of_an_action_is_lost_or_added(text: str) -> None:
    lines = plain(drawing.block_lines(Block("code", (Span(text),)), CONSOLE, 30))[1:-1]
    assert "".join(line[2:] for line in lines) == text
    assert [line[:2] for line in lines] == ["  ", *["↳ "] * (len(lines) - 1)]
    assert all(sum(map(cell_len, line)) <= 28 for line in lines)


def test_a_card_has_its_parts_in_order_and_buttons_wrap() -> None:
    row = (Button("Approve once", "t1", "success"), Button("Deny", "t2", "danger"))
    at = soon()
    times = (Span("at 03:19", "relative_time", at=at), Span(" ("), Span("x", "clock", at=at))
    until = (Span("Expires "), *times, Span(")"))
    card = Card(
        blocks=(
            Block("text", (Span("High: deletes", "bold"),)),
            Block("code", (Span("rm -rf x"),)),
            Block("quote", (Span("Agent says"),)),
            Block("text", until),
        ),
        rows=(row, (Button("More…", "t3"),)),
    )
    placed = Board().place("m", [button for each in card.rows for button in each])
    lines = plain(drawing.card_lines(card, placed, CONSOLE, 31, colour="yellow"))
    clock = f"{at.astimezone():%H:%M}"
    assert lines == [
        "┃ High: deletes",
        "┃",
        "┃   rm -rf x",
        "┃",
        "┃   Agent says",
        f"┃ Expires in 5 min ({clock})",
        "┃",
        "┃ [1] Approve once   [2] Deny",
        "┃ [3] More…",
    ]


def test_only_what_says_something_new_is_news() -> None:
    def card(*texts: str, at: datetime = soon()) -> Card:  # noqa: B008  # one time for all
        times = Block("text", (Span("Expires "), Span("soon", "clock", at=at)))
        return Card(blocks=(*(Block("text", (Span(text),)) for text in texts), times))

    assert drawing.news(card("a"), card("a", at=soon() + timedelta(seconds=9))) == ()
    assert drawing.news(card("a"), card("2 wait", "a")) == (Block("text", (Span("2 wait"),)),)


@pytest.mark.parametrize(("head", "colour"), [("✅ Approved", "green"), ("⛔ Denied", "red"), ("Low: x", "yellow")])
def test_the_bar_repeats_the_verdict(head: str, colour: str) -> None:
    assert drawing.colour_of(Card(blocks=(Block("text", (Span(head),)),))) == colour
