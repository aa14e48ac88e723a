"""Cards as Discord content: what a person reads of it, limits, and that nothing in it comes alive."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.platforms.discord.markdown import Reading, pings_in, read

from signoff.errors import SendRefused
from signoff.model import Block, Button, Card, Span
from signoff_adapters.discord.render import components, edit_body, message_body, plain, render
from signoff_adapters.lengths import units

WHEN = datetime(2026, 1, 5, 9, 5, tzinfo=UTC)
ODD = [
    *("*", "**", "_", "__", "~~", "||", "`", "```", "\\", "<@1>", "<@&2>", "<#3>", "<:x:4>", "</a:5>", "<id:home>"),
    *("[a](", "https://x.example", ")", "@everyone", "@here", "> ", "# ", "-# ", "- ", "1. ", "\n", " ", "a", "word"),
    *("🛑", "e\u0301", ":smile:", "<t:1:R>", "discord.gg/abc", "diff\n"),
]
TEXTS = st.one_of(
    st.lists(st.sampled_from(ODD), max_size=10).map("".join),
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Co"], exclude_characters="⟨⟩"), max_size=40),
)
SPANS = st.builds(Span, TEXTS, st.sampled_from(["plain", "bold", "code"]))
BLOCKS = st.builds(
    Block,
    st.sampled_from(["text", "code", "quote", "small"]),
    st.lists(SPANS, max_size=3).map(tuple),
    st.sampled_from([None, "diff", "python"]),
)
CARDS = st.lists(BLOCKS, max_size=4).map(lambda blocks: Card(blocks=tuple(blocks)))
BRACKETS = re.compile(r"⟨(\d+) backticks?⟩")


def shown(content: str) -> Reading:
    """What a person reads; everybody and every channel named has a name."""
    reading = read(content, name_of=lambda mark: f"<{mark}>", now=WHEN.timestamp())
    reading.text = BRACKETS.sub(lambda found: "`" * int(found[1]), reading.text)
    return reading


def flat(text: str) -> str:
    """The text without blanks: at the ends of lines and marks Discord keeps fewer of them."""
    return re.sub(r"\s+", "", text)


def text_card(*spans: Span, kind: str = "text") -> Card:
    return Card(blocks=(Block(kind, spans),))  # type: ignore[arg-type]  # one of the kinds, given as text


@settings(deadline=None, max_examples=300)
@given(CARDS)
def test_every_text_is_read_as_it_is_and_nothing_comes_alive(card: Card) -> None:
    content = render(card).content
    reading = shown(content)
    assert flat(reading.text) == flat("".join(span.text for block in card.blocks for span in block.spans))
    assert reading.links == reading.spoilers == reading.timestamps == []


@settings(deadline=None)
@given(CARDS)
def test_nobody_is_notified(card: Card) -> None:
    body = message_body(card)
    assert pings_in(body["content"], body["allowed_mentions"]) == []


def test_a_card_in_full() -> None:
    card = Card(
        blocks=(
            Block("text", (Span("Medium: force-pushes to a remote", "bold"),)),
            Block("text", (Span("ci-3", "bold"), Span(" · "), Span("/home/ci/my_app", "code"))),
            Block("code", (Span("git push --force origin main"),)),
            Block("quote", (Span("Agent says (not checked): main was *rebased*"),)),
            Block("text", (Span("Expires "), Span("in 4 min", "relative_time", at=WHEN), Span(" ("),
                           Span("09:05", "clock", at=WHEN), Span("). On call: "), Span("Ana", "mention", href="81"))),
            Block("small", (Span("K4XW9", "link", href="https://c.example/r/K4XW9"), Span(" · 51d0c7aa"))),
        ),
        rows=((Button("Approve once", "t-1", "success"), Button("Deny", "t-2", "danger")), (Button("More…", "t-3"),)),
        silent=True,
    )  # fmt: skip
    body = message_body(card)
    assert body["content"] == (
        "**Medium: force-pushes to a remote**\n"
        "**ci-3** · `/home/ci/my_app`\n"
        "```\ngit push --force origin main\n```\n"
        "> Agent says (not checked): main was \\*rebased\\*\n"
        "Expires <t:1767603900:R> (<t:1767603900:t>). On call: <@81>\n"
        "-# [K4XW9](<https://c.example/r/K4XW9>) · 51d0c7aa"
    )
    assert body["allowed_mentions"] == {"parse": [], "users": ["81"], "replied_user": False}
    assert body["flags"] == 4 | 4096
    assert [[(each["style"], each["custom_id"]) for each in row["components"]] for row in body["components"]] == [
        [(3, "t-1"), (4, "t-2")],
        [(2, "t-3")],
    ]
    assert "flags" not in edit_body(card)
    assert message_body(card, ephemeral=True)["flags"] == 4 | 64 | 4096


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("# no heading", "\\# no heading"),
        ("  - no list", "  \\- no list"),
        ("1. no list", "1\\. no list"),
        ("v1.2 stays", "v1.2 stays"),
        (">>> no quote", "\\>>> no quote"),
        ("-# not small", "\\-# not small"),
        ("a > b # c - d", "a > b # c - d"),
        ("see https://x.example", "see https\\://x.example"),
        ("at 12:30 :tada: x", "at 12:30 \\:tada: x"),
        ("@everyone @ana", "\\@everyone @ana"),
        ("discord.gg/abc", "discord\\.gg/abc"),
        ("tail\\", "tail\\\\"),
    ],
)
def test_escapes(text: str, content: str) -> None:
    assert render(text_card(Span(text))).content == content


@pytest.mark.parametrize(
    ("spans", "content"),
    [
        ((Span("a", "bold"), Span("b", "bold")), "**ab**"),
        ((Span(" a ", "bold"), Span("b")), " **a** b"),
        ((Span("a\nb", "bold"),), "**a**\n**b**"),
        ((Span("a", "code"), Span("b", "code")), "`ab`"),
        ((Span("x`"), Span("a", "code")), "x⟨1 backtick⟩`a`"),
        ((Span("a`b", "code"),), "`a⟨1 backtick⟩b`"),
        ((Span("x", "link", href="javascript:1"),), "x"),
        ((Span("x", "link", href="https://a b"),), "x"),
        ((Span("Ana", "mention", href="<@everyone>"),), "Ana"),
        ((Span("soon", "clock"),), "soon"),
    ],
)
def test_marks_neither_touch_nor_span_lines(spans: tuple[Span, ...], content: str) -> None:
    assert render(text_card(*spans)).content == content


def test_a_fence_cannot_be_left() -> None:
    assert render(text_card(Span("a ``` b `` c"), kind="code")).content == "```\na ⟨3 backticks⟩ b `` c\n```"
    assert render(Card(blocks=(Block("code", (Span("+x"),), language="diff"),))).content == "```diff\n+x\n```"
    assert render(text_card(Span("diff\nx"), kind="code")).content == "```\ndiff\nx\n```"
    assert render(text_card(Span("\n\nx"), kind="code")).content == "```\n \n\nx\n```"
    assert render(text_card(Span(""), kind="code")).content == "```\n \n```"


def test_a_text_full_of_marks_is_shown_as_code_before_it_is_refused() -> None:
    content = render(text_card(Span("*" * 1500))).content
    assert content == f"`{'*' * 1500}`"
    fence = render(text_card(Span("``` " * 250), kind="code")).content
    assert units(fence) <= 2000
    with pytest.raises(SendRefused) as refused:
        render(text_card(Span("x" * 2001)))
    assert refused.value.facts["reason"] == "too_long"


def test_half_a_character_is_refused() -> None:
    with pytest.raises(SendRefused) as refused:
        render(text_card(Span("\ud800")))
    assert refused.value.facts["reason"] == "not_text"


def test_buttons_are_packed_into_rows_of_five() -> None:
    many = Card(blocks=(), rows=tuple((Button(str(n), f"t{n}"),) for n in range(8)))
    assert [len(row["components"]) for row in components(many)] == [5, 3]
    with pytest.raises(SendRefused):
        components(Card(blocks=(), rows=tuple((Button(str(n), f"t{n}"),) for n in range(26))))
    for wrong in (Button("x", ""), Button("x", "t" * 101), Button("", "t"), Button("x" * 81, "t")):
        with pytest.raises(SendRefused):
            components(Card(blocks=(), rows=((wrong,),)))


@settings(deadline=None)
@given(st.text(max_size=60).map(lambda text: text * 60).filter(lambda text: text.isprintable()))
def test_an_answer_is_cut_visibly_and_never_within_an_escape(text: str) -> None:
    content = plain(text)
    assert units(content) <= 2000
    if units(text) > 2000:
        assert content.endswith("…")
    assert flat(text).startswith(flat(shown(content).text.removesuffix("…")))
