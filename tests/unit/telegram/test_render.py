"""Cards as Telegram text: offsets, entities, limits, and that nothing in them comes alive."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.platforms.telegram.rules import check_entities, links_in

from signoff.errors import SendRefused
from signoff.model import Block, Button, Card, Span
from signoff_adapters.telegram.render import Detail, Rendered, keyboard, markup, render

WHEN = datetime(2026, 1, 5, 9, 5, tzinfo=UTC)
ODD = ["@ana_ops", "/stop", "#tag", "https://x.example", "run.sh", " ", "\n", "🛑", "e\u0301", "\u202e", "word", "`"]
TEXTS = st.one_of(
    st.lists(st.sampled_from(ODD), max_size=12).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
)
STYLES = st.sampled_from(["plain", "bold", "code", "link", "relative_time", "clock"])
SPANS = st.builds(Span, TEXTS, STYLES, st.sampled_from([None, "https://console.example/r/7Q2MK"]), st.just(WHEN))
BLOCKS = st.builds(
    Block,
    st.sampled_from(["text", "code", "quote", "small"]),
    st.lists(SPANS, max_size=3).map(tuple),
    st.sampled_from([None, "diff", "python"]),
)
CARDS = st.lists(BLOCKS, max_size=4).map(lambda blocks: Card(blocks=tuple(blocks)))


def wire(rendered: Rendered) -> list[dict[str, Any]]:
    """The entities as they are sent."""
    return [entity.to_dict() for entity in rendered.entities]


def marked(rendered: Rendered) -> list[tuple[str, str]]:
    """Type and text of each entity."""
    raw = rendered.text.encode("utf-16-le")
    return [
        (entity.type, raw[2 * entity.offset : 2 * (entity.offset + entity.length)].decode("utf-16-le"))
        for entity in rendered.entities
    ]


def text_card(*spans: Span) -> Card:
    return Card(blocks=(Block("text", spans),))


@settings(deadline=None)
@given(CARDS)
def test_every_card_keeps_its_text_and_passes_the_servers_rules(card: Card) -> None:
    rendered = render(card)
    assert rendered.text == "\n".join("".join(span.text for span in block.spans) for block in card.blocks)
    if rendered.text:
        check_entities(wire(rendered), rendered.text)
    for kind, shown in marked(rendered):
        assert shown == shown.rstrip()
        assert shown, kind


@settings(deadline=None)
@given(CARDS)
def test_nothing_comes_alive(card: Card) -> None:
    for detail in Detail:
        rendered = render(card, detail)
        covered = [
            entity | ({"type": "code"} if entity["type"] in ("text_link", "date_time") else {})
            for entity in wire(rendered)
        ]
        assert links_in(rendered.text, covered) == [], detail


@settings(deadline=None)
@given(CARDS)
def test_entities_nest_or_keep_apart(card: Card) -> None:
    spans = [(entity.offset, entity.offset + entity.length, entity.type) for entity in render(card).entities]
    for number, (start, end, kind) in enumerate(spans):
        for later_start, later_end, _ in spans[number + 1 :]:
            apart = later_start >= end
            assert apart or (later_end <= end and kind == "blockquote"), (start, end, kind)


def test_a_card_in_full() -> None:
    card = Card(
        blocks=(
            Block("text", (Span("Medium: force-pushes to a remote", "bold"),)),
            Block("text", (Span("ci-3", "bold"), Span(" · "), Span("/home/ci/app", "code"))),
            Block("code", (Span("git push --force origin main"),)),
            Block("code", (Span("+a\n-b"),), language="diff"),
            Block("quote", (Span("Agent says (not checked): 🛑 ask @ben"),)),
            Block("text", (Span("Expires "), Span("in 4 minutes", "relative_time", at=WHEN), Span("."))),
            Block("small", (Span("K4XW9", "link", href="https://console.example/r/K4XW9"), Span(" · 51d0c7aa"))),
        )
    )
    rendered = render(card)
    assert rendered.text.splitlines()[0] == "Medium: force-pushes to a remote"
    assert marked(rendered) == [
        ("bold", "Medium: force-pushes to a remote"),
        ("bold", "ci-3"),
        ("code", "/home/ci/app"),
        ("pre", "git push --force origin main"),
        ("pre", "+a\n-b"),
        ("blockquote", "Agent says (not checked): 🛑 ask @ben"),
        ("code", "@ben"),
        ("date_time", "in 4 minutes"),
        ("text_link", "K4XW9"),
    ]
    sent = wire(rendered)
    assert sent[4]["language"] == "diff"
    assert "language" not in sent[3]
    assert (sent[7]["unix_time"], sent[7]["date_time_format"]) == (int(WHEN.timestamp()), "r")
    assert [kind for kind, _ in marked(render(card, Detail.NO_CLOCKS))].count("date_time") == 0
    assert {kind for kind, _ in marked(render(card, Detail.CODE_ONLY))} == {"pre", "code"}


def test_a_mention_span_is_alive_and_the_same_word_elsewhere_is_not() -> None:
    known = render(text_card(Span("Ana", "mention", href="tg://user?id=81234567")))
    assert wire(known)[0]["user"]["id"] == 81234567
    named = render(text_card(Span("@ana_ops", "mention"), Span(" not @ana_ops")))
    assert links_in(named.text, wire(named)) == ["@ana_ops"]


def test_a_living_word_over_several_spans_is_found() -> None:
    rendered = render(text_card(Span("@"), Span("ana_ops", "bold"), Span("! /"), Span("stop")))
    assert marked(rendered) == [("code", "@"), ("code", "ana_ops"), ("code", "! /"), ("code", "stop")]


def test_a_word_that_lives_only_beside_code_is_found() -> None:
    assert ("code", "/stop") in marked(render(text_card(Span("word", "code"), Span("/stop"))))


def test_many_living_words_need_few_entities() -> None:
    crowd = " x ".join(f"@user{number}" for number in range(200))
    rendered = render(text_card(Span(crowd)))
    assert len(rendered.entities) == 1
    assert links_in(rendered.text, wire(rendered)) == []


def test_a_card_that_cannot_be_shown_whole_is_refused() -> None:
    render(text_card(Span("🛑" * 2048)))
    for card in (
        text_card(Span("🛑" * 2048 + "!")),
        text_card(*[Span(str(number), "bold") for number in range(101)]),
        text_card(Span("half \ud83d")),
    ):
        with pytest.raises(SendRefused):
            render(card)


@pytest.mark.parametrize("token", ["", "x" * 65, "ü" * 33])
def test_a_token_must_fit_64_bytes(token: str) -> None:
    with pytest.raises(SendRefused):
        keyboard(Card(blocks=(), rows=((Button("Deny", token),),)))


def test_buttons_and_prompts() -> None:
    rows = ((Button("Approve once", "a" * 64, "success"), Button("More…", "m")), (), (Button("Deny", "d", "danger"),))
    board = keyboard(Card(blocks=(), rows=rows))
    assert board is not None
    assert [[(each.text, each.callback_data, each.style) for each in row] for row in board.inline_keyboard] == [
        [("Approve once", "a" * 64, "success"), ("More…", "m", None)],
        [("Deny", "d", "danger")],
    ]
    assert markup(Card(blocks=()), group=True) is None
    asked = markup(Card(blocks=(), prompt="Why not? " * 20), group=True)
    assert asked is not None
    assert asked.to_dict() == {
        "force_reply": True,
        "selective": True,
        "input_field_placeholder": ("Why not? " * 20)[:64],
    }
