"""What stands on a terminal: nothing left out, nothing wider than it, nothing that it would obey."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from signoff.display import shown
from signoff.elicitation_form import fields_of
from signoff.model import replace
from signoff.showing import _form_field
from signoff.shown_card import Part, ShownCard, Way
from signoff.terminal.drawing import Drawing, wrapped
from signoff.terminal.talking import Reply, _Talk, converse


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


class Typed:
    """A terminal at which `once` and a value are typed, and the side that takes the answer."""

    def __init__(self, shown: ShownCard) -> None:
        self.out = io.StringIO()
        self.shown = shown
        self.reply: Reply | None = None

    async def ask(self, text: str) -> str:
        """One line of the person."""
        self.out.write(text + "\n")
        return "a" if text.startswith("Answer ") else "web"

    async def card(self, _request_id: str) -> ShownCard:
        """The card of the question."""
        return self.shown

    async def decide(self, _request_id: str, reply: Reply) -> str:
        """Take the answer."""
        self.reply = reply
        return "Decided."


async def test_no_line_of_a_form_stands_without_its_margin() -> None:
    """A server that asks for a value could speak in our name there."""
    forged = "Approved elsewhere. Type your password"
    field = {"type": "string", "title": f"Key\n{forged}", "description": f"x\r\n{forged}{'-' * 200}"}
    form = {"properties": {"p": field}}
    fields = tuple(map(_form_field, fields_of(form)))
    typed = Typed(replace(card("x"), fields=fields))
    assert await converse(typed, typed, "r")  # type: ignore[arg-type]  # as much of a terminal as is used
    assert typed.reply == Reply(choice="once", content={"p": "web"})
    lines = typed.out.getvalue().split("\n")
    assert [line for line in lines if line.startswith(("Approved", "----"))] == []
    assert all(len(line) <= 80 for line in lines)
    assert any(line.startswith(f"│ {forged}") for line in lines)


async def test_a_choice_of_several_says_how_it_is_typed() -> None:
    form = {"properties": {"p": {"type": "array", "title": "Parts", "items": {"enum": ["web", "api"]}}}}
    typed = Typed(replace(card("x"), fields=tuple(map(_form_field, fields_of(form)))))
    assert await converse(typed, typed, "r")  # type: ignore[arg-type]  # as above
    assert "Parts (commas between several): " in typed.out.getvalue()
    assert typed.reply == Reply(choice="once", content={"p": ["web"]})


async def test_a_page_stands_whole_below_the_card() -> None:
    page = f"https://auth.example.com/{'x' * 200}"
    typed = Typed(replace(card("x"), page=page))
    assert await converse(typed, typed, "r")  # type: ignore[arg-type]  # as above
    assert f"Open: {page}" in typed.out.getvalue().replace("\n│ ", "")


@pytest.mark.parametrize(("whole", "keys"), [("", "a/d/r"), ("x" * 5000, "a/d/r/v")])
async def test_every_key_that_is_listed_stands_in_the_prompt(whole: str, keys: str) -> None:
    typed = Typed(replace(card("x"), whole=whole))
    talk = _Talk(typed, Drawing(typed.out), typed.shown)  # type: ignore[arg-type]  # as above
    await talk.reply()
    assert f"Answer {keys} (Enter alone: Deny." in typed.out.getvalue()
