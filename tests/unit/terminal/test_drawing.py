"""What stands on a terminal: nothing left out, nothing wider than it, nothing that it would obey."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from signoff.display import shown
from signoff.shown_card import Part, ShownCard, Way
from signoff.terminal.drawing import Drawing, wrapped


def card(text: str) -> ShownCard:
    return ShownCard(
        request_id="r",
        short_id="7Q2MK",
        session_id="s",
        digest="d" * 64,
        severity="high",
        pending=True,
        parts=(Part(kind="text", text="High: [red]x[/red] :bomb:", strong=True), Part(kind="code", text=text)),
        hidden_chars=0,
        whole="",
        ways=(Way(choice="once", label="Approve once"), Way(choice="deny", label="Deny")),
        fields=(),
        expires_at=None,
    )


@given(text=st.text(max_size=200), cells=st.integers(2, 40))
def test_a_wrapped_text_is_whole_and_fits(text: str, cells: int) -> None:
    safe = shown(text, prose=True)
    lines = wrapped(safe, cells)
    assert "".join(lines) == safe.replace("\n", "")
    assert all(cell_len(line) <= cells for line in lines)


@given(text=st.text(max_size=200))
def test_no_line_of_an_action_stands_without_its_margin(text: str) -> None:
    """Words of an action could pass for Signoff's own there."""
    out = io.StringIO()
    Drawing(out).card(card(shown(text, prose=True)))
    head, *rest = out.getvalue().strip("\n").split("\n")
    assert head == "High: [red]x[/red] :bomb:"
    assert rest
    assert all(line.startswith("│") for line in rest)
    assert "\x1b" not in out.getvalue()
