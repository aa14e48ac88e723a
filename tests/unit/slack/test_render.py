"""Cards as Slack blocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.platforms.slack.blocks import checked_message_blocks
from tests.platforms.slack.modals import checked_view
from tests.platforms.slack.visible import read_blocks

from signoff.cards import Facts, request_card
from signoff.errors import SendRefused
from signoff.model import Block, Button, Card, Destination, Dialog, Span
from signoff.testing.rows import make_copy, make_request
from signoff.tokens import Signer
from signoff_adapters.lengths import units
from signoff_adapters.slack import SlackAdapter
from signoff_adapters.slack.render import (
    ANSWER_MAX_CHARS,
    TEXT_MAX_UNITS,
    Rendered,
    escape,
    modal,
    render,
    said,
    thread_of_row,
)

WHEN = datetime(2026, 1, 5, 3, 19, tzinfo=UTC)
KINDS = st.sampled_from(["text", "code", "quote", "small"])
STYLES = st.sampled_from(["plain", "bold", "code", "link", "relative_time", "clock", "mention"])
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
SPANS = st.builds(Span, TEXT, STYLES, href=st.sampled_from([None, "https://signoff.example/r/7Q2MK", "U0ANA", "S0OPS"]))
BLOCKS = st.builds(Block, KINDS, st.lists(SPANS, max_size=4).map(tuple))
BUTTONS = st.builds(Button, st.text(min_size=1, max_size=90), st.just("t" * 47), read_as=st.none() | TEXT)
ROWS = st.lists(st.lists(BUTTONS, min_size=1, max_size=3).map(tuple), max_size=4).map(tuple)


def text_card(*blocks: Block, rows: tuple[tuple[Button, ...], ...] = ()) -> Card:
    return Card(blocks=blocks, rows=rows)


def kinds(rendered: Rendered) -> list[str]:
    return [block["type"] for block in rendered.blocks]


def test_a_card_has_the_parts_in_their_order() -> None:
    shown = render(
        text_card(
            Block("text", (Span("Low: installs a Python package", "bold"),)),
            Block("text", (Span("ci-3", "bold"), Span(" · "), Span("/home/ci/app", "code"))),
            Block("code", (Span("pip install rich==14.0"),)),
            Block("quote", (Span("Agent says (not checked): needed"),)),
            Block("text", (Span("deploy-bot"),)),
            Block("text", (Span("Expires "), Span("03:19 UTC", "clock", at=WHEN))),
            Block("small", (Span("B83TN · 77c0d1f2"),)),
            rows=(
                (
                    Button("Approve once", "t-1", "success", "Approve once, request B83TN"),
                    Button("Deny", "t-2", "danger"),
                ),
            ),
        )
    )
    assert kinds(shown) == ["header", "rich_text", "context", "actions"]
    parts = [part["type"].removeprefix("rich_text_") for part in shown.blocks[1]["elements"]]
    assert parts == ["section", "preformatted", "quote", "section"]
    approve, deny = shown.blocks[-1]["elements"]
    assert (approve["style"], approve["accessibility_label"], approve["value"]) == (
        "primary",
        "Approve once, request B83TN",
        "t-1",
    )
    assert (deny["style"], "accessibility_label" in deny) == ("danger", False)
    assert shown.blocks[0]["text"]["emoji"] is approve["text"]["emoji"] is False
    assert {approve["action_id"], deny["action_id"]} == {"signoff_0_0", "signoff_0_1"}
    assert shown.text.splitlines() == [
        "Low: installs a Python package",
        "ci-3 · /home/ci/app",
        "pip install rich==14.0",
        "Agent says (not checked): needed",
        "deploy-bot",
        "Expires 03:19 UTC",
        "B83TN · 77c0d1f2",
    ]


@given(st.lists(BLOCKS, min_size=1, max_size=8).map(tuple), ROWS)
def test_whatever_a_card_holds_slack_takes_it_and_shows_it(
    blocks: tuple[Block, ...], rows: tuple[tuple[Button, ...], ...]
) -> None:
    card = Card(blocks=blocks, rows=rows)
    if not any(span.text for block in blocks for span in block.spans):
        return
    shown = render(card)
    checked_message_blocks(shown.blocks)
    seen = read_blocks(shown.blocks, {}).text
    for block in blocks:
        for span in block.spans:
            if span.style not in ("mention", "clock"):
                assert span.text.strip("\n") in seen
    assert "<" not in shown.text.replace("&lt;", "")


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_no_text_pings_or_links(text: str) -> None:
    blocks = tuple(Block(kind, (Span(text),)) for kind in ("text", "code", "quote", "small"))
    reading = read_blocks(render(text_card(*blocks)).blocks, {"U0ANA": "Ana"})
    assert (reading.links, reading.pings) == ([], [])


@pytest.mark.parametrize(
    ("href", "element"),
    [
        ("U0ANA", {"type": "user", "user_id": "U0ANA"}),
        ("W0ANA", {"type": "user", "user_id": "W0ANA"}),
        ("S0OPS", {"type": "usergroup", "usergroup_id": "S0OPS"}),
        ("!channel", {"type": "text", "text": "Ana", "style": {"bold": True}}),
        (None, {"type": "text", "text": "Ana", "style": {"bold": True}}),
    ],
)
def test_a_mention_is_live_only_for_an_account_or_group(href: str | None, element: dict[str, Any]) -> None:
    shown = render(text_card(Block("text", (Span("On call: "), Span("Ana", "mention", href=href)))))
    assert shown.blocks[0]["elements"][0]["elements"][1] == element


@pytest.mark.parametrize(
    ("text", "shape"), [("03:19 UTC", "{time}"), ("6 Jan 03:19 UTC", "{date_short_pretty} {time}")]
)
def test_a_clock_is_shown_in_the_readers_time(text: str, shape: str) -> None:
    (rich,) = render(text_card(Block("text", (Span("until "), Span(text, "clock", at=WHEN))))).blocks
    assert rich["elements"][0]["elements"][1] == {
        "type": "date",
        "timestamp": int(WHEN.timestamp()),
        "format": shape,
        "fallback": text,
    }


def test_nothing_ticks_so_a_relative_time_keeps_its_words() -> None:
    (rich,) = render(text_card(Block("text", (Span("at 03:19 UTC", "relative_time", at=WHEN),)))).blocks
    assert rich["elements"][0]["elements"] == [{"type": "text", "text": "at 03:19 UTC"}]


@pytest.mark.parametrize(
    ("at", "says"),
    [
        (WHEN, "Expires 03:19 UTC, 5 min after asking, then it is not run."),
        (WHEN + timedelta(minutes=15), "Expires 03:34 UTC, 20 min after asking, then it is not run."),
        (WHEN + timedelta(days=3), "Expires 8 Jan 03:19 UTC, 3 days after asking, then it is not run."),
    ],
    ids=["window", "extended", "another day"],
)
def test_nothing_ticks_so_the_length_of_the_window_is_told_and_the_time_once(at: datetime, says: str) -> None:
    asked = WHEN - timedelta(minutes=5)
    row = make_request(created_at=asked, expires_at=at, timeout_s=300.0)
    copy = make_copy("c" * 16, destination=Destination("slack", "C1"))
    facts = Facts(now=asked, title=str.title, ticks=SlackAdapter.info.ticks)
    shown = render(request_card(row, copy, facts, Signer({0: b"a key of the tests"}, 0), attach=True))
    assert says in shown.text.splitlines()
    dates = [each for each in _elements(shown) if each["type"] == "date"]
    assert [each["timestamp"] for each in dates] == [int(at.timestamp())]


def _elements(shown: Rendered) -> list[dict[str, Any]]:
    parts = [part for block in shown.blocks if block["type"] == "rich_text" for part in block["elements"]]
    return [element for part in parts for element in part["elements"]]


@pytest.mark.parametrize("headline", ["x" * 151, "two\nlines", " "], ids=["too long", "two lines", "blank"])
def test_what_no_header_takes_is_text(headline: str) -> None:
    shown = render(text_card(Block("text", (Span(headline, "bold"),))))
    assert kinds(shown) == ["rich_text"]
    assert shown.blocks[0]["elements"][0]["elements"][0]["style"] == {"bold": True}


def test_small_print_with_a_link_stays_a_link() -> None:
    link = Span("7Q2MK", "link", href="https://signoff.example/r/7Q2MK")
    (rich,) = render(text_card(Block("small", (link, Span(" · 9f3a1c2e"))))).blocks
    assert rich["elements"][0]["elements"][0] == {"type": "link", "url": link.href, "text": "7Q2MK"}


@pytest.mark.parametrize("character", ["x", "&", "🛑", "\n"])
def test_the_longest_text_is_taken_however_it_grows_by_escaping(character: str) -> None:
    longest = character * (TEXT_MAX_UNITS // units(character))
    rows = tuple((Button("&" * 34, f"t-{n}"),) for n in range(6))
    for kind in ("text", "code", "quote", "small"):
        checked_message_blocks(render(text_card(Block(kind, (Span(longest),)), rows=rows)).blocks)
        with pytest.raises(SendRefused) as refused:
            render(text_card(Block(kind, (Span(longest + character),))))
        assert refused.value.facts["reason"] == "too_long"


def test_a_card_of_too_many_blocks_is_refused() -> None:
    with pytest.raises(SendRefused, match="blocks"):
        render(text_card(Block("text", (Span("x"),)), rows=tuple((Button("x", "t"),) for _ in range(50))))


@pytest.mark.parametrize("token", ["", "t" * 2001])
def test_a_token_that_cannot_travel_is_refused(token: str) -> None:
    with pytest.raises(SendRefused) as refused:
        render(text_card(Block("text", (Span("x"),)), rows=((Button("Deny", token),),)))
    assert refused.value.facts["reason"] == "token"


def test_half_a_character_is_refused() -> None:
    with pytest.raises(SendRefused) as refused:
        render(text_card(Block("text", (Span("\ud83d"),))))
    assert refused.value.facts["reason"] == "not_text"


def test_a_row_remembers_its_thread() -> None:
    rows = ((Button("Close", "t"),),)
    inside = render(text_card(Block("text", (Span("x"),)), rows=rows), thread="1764.000100").blocks[-1]["block_id"]
    outside = render(text_card(Block("text", (Span("x"),)), rows=rows)).blocks[-1]["block_id"]
    assert (thread_of_row(inside), thread_of_row(outside), thread_of_row("b0_1_2")) == ("1764.000100", None, None)


def test_a_long_answer_is_cut_and_escaped_once() -> None:
    shown = said("<" * 5000)
    checked_message_blocks(shown.blocks)
    assert shown.blocks[0]["text"]["text"] == "<" * (ANSWER_MAX_CHARS - 1) + "…"
    assert shown.text.startswith("&lt;&lt;")
    assert escape("a & <b>") == "a &amp; &lt;b&gt;"


def test_the_dialog_fits() -> None:
    dialog = Dialog(
        title="7Q2MK: why not, if I may ask", label="Why not?", placeholder="p" * 200, token="t", max_units=280
    )
    view = modal(dialog, "{}")
    checked_view(view)
    assert view["title"]["text"] == "7Q2MK: why not, if I ma…"
    assert view["blocks"][0]["element"]["max_length"] == 280
