"""What the loopback Slack takes in blocks and modals, and how it reads texts."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.platforms.slack.blocks import checked_message_blocks
from tests.platforms.slack.modals import checked_view, filled
from tests.platforms.slack.mrkdwn import escape, read_mrkdwn, typed
from tests.platforms.slack.refusal import Refused
from tests.platforms.slack.visible import buttons_of, read_blocks, with_ids

Json = dict[str, Any]
NAMES = {"U1": "Ana", "C1": "ops"}


def plain(text: str) -> Json:
    return {"type": "plain_text", "text": text}


def button(label: str = "Deny", **more: Any) -> Json:
    return {"type": "button", "text": plain(label), "action_id": "a", **more}


def actions(*elements: Json, **more: Any) -> Json:
    return {"type": "actions", "elements": list(elements), **more}


def section(text: str) -> Json:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def rich(*parts: Json) -> Json:
    return {"type": "rich_text", "elements": list(parts)}


def part(kind: str, *elements: Json, **more: Any) -> Json:
    return {"type": f"rich_text_{kind}", "elements": list(elements), **more}


def word(text: str, **style: bool) -> Json:
    return {"type": "text", "text": text} | ({"style": style} if style else {})


def confirm(**longer: str) -> Json:
    texts = {"title": "Sure?", "text": "It runs.", "confirm": "Yes", "deny": "No"} | longer
    return {name: plain(text) for name, text in texts.items()}


def modal(*blocks: Json, **more: Any) -> Json:
    return {"type": "modal", "title": plain("Why not?"), "submit": plain("Deny"), "blocks": list(blocks), **more}


def field(**more: Any) -> Json:
    element = {"type": "plain_text_input", "action_id": "t", "max_length": 280, **more}
    return {"type": "input", "block_id": "reason", "label": plain("Reason"), "element": element}


FITTING = [
    {"type": "header", "text": plain("x" * 150)},
    section("x" * 3000),
    {"type": "section", "fields": [plain("x" * 1000) for _ in range(10)]},
    {"type": "context", "elements": [plain("x")] * 10},
    {"type": "divider"},
    actions(*(button("x" * 75, action_id=f"{'x' * 250}{number}", value="v" * 2000) for number in range(25))),
    actions(button(confirm=confirm(title="x" * 100, text="x" * 300, confirm="x" * 30, deny="x" * 30))),
    rich(
        part("section", word("a", bold=True), {"type": "user", "user_id": "U1"}, {"type": "emoji", "name": "wave"}),
        part("preformatted", word("rm -rf *")),
        part("quote", word("why")),
        part("list", part("section", word("one")), style="bullet"),
        part("section", {"type": "date", "timestamp": 1, "format": "{time}", "fallback": "00:00 UTC"}),
    ),
]

REFUSED = [
    ({"type": "header", "text": plain("x" * 151)}, "less than 151 characters"),
    ({"type": "header", "text": {"type": "mrkdwn", "text": "x"}}, "plain_text"),
    (section("x" * 3001), "less than 3001 characters"),
    (section(""), "more than 0 characters"),
    ({"type": "section"}, "text or fields"),
    ({"type": "section", "fields": [plain("x")] * 11}, "no more than 10 items"),
    ({"type": "section", "fields": [plain("x" * 2001)]}, "less than 2001 characters"),
    ({"type": "context", "elements": [plain("x")] * 11}, "no more than 10 items"),
    (actions(), "no fewer than 1 items"),
    (actions(*(button(action_id=str(number)) for number in range(26))), "no more than 25 items"),
    (actions(button("x" * 76)), "less than 76 characters"),
    (actions(button() | {"text": {"type": "mrkdwn", "text": "x"}}), "plain_text"),
    (actions(button(value="x" * 2001)), "less than 2001 characters"),
    (actions(button(action_id="x" * 256)), "less than 256 characters"),
    (actions(button(), button()), "action_id a already exists"),
    (actions(button(style="success")), "primary, danger"),
    (actions(button(data="x")), "invalid additional property: data"),
    (actions(button(), block_id="x" * 256), "less than 256 characters"),
    (actions(button(confirm=confirm(title="x" * 101))), "less than 101 characters"),
    (actions(button(confirm=confirm(text="x" * 301))), "less than 301 characters"),
    (actions(button(confirm=confirm(deny="x" * 31))), "less than 31 characters"),
    (rich(part("section", word(""))), "more than 0 characters"),
    (rich(part("section", word("x", loud=True))), "invalid style"),
    (rich(part("section", {"type": "user"})), "missing required field: user_id"),
    (rich(part("section", {"type": "date", "timestamp": "1", "format": "{time}"})), "must be an integer"),
    (rich(part("preformatted", {"type": "user", "user_id": "U1"})), "unsupported type: user"),
    (rich(part("list", part("quote", word("x")), style="bullet")), "rich_text_section"),
    (rich(part("list", part("section", word("x")), style="stars")), "bullet, ordered"),
    (rich(part("table")), "unsupported type: rich_text_table"),
    ({"type": "marquee"}, "unsupported type: marquee"),
]


@pytest.mark.parametrize("block", FITTING, ids=lambda block: str(block["type"]))
def test_what_just_fits_is_taken(block: Json) -> None:
    assert checked_message_blocks([block]) == [block]


@pytest.mark.parametrize(("block", "why"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_what_does_not_fit_is_refused_with_its_place(block: Json, why: str) -> None:
    with pytest.raises(Refused) as refused:
        checked_message_blocks([block])
    assert refused.value.error == "invalid_blocks"
    (message,) = refused.value.body()["response_metadata"]["messages"]
    assert why in message
    assert "[json-pointer:/blocks/0" in message


def test_number_and_sum_of_blocks_are_limited() -> None:
    assert len(checked_message_blocks([{"type": "divider"}] * 50)) == 50
    with pytest.raises(Refused, match="invalid_blocks"):
        checked_message_blocks([{"type": "divider"}] * 51)
    fitting = [section("x" * 2640)] * 5
    assert checked_message_blocks(fitting) == fitting
    with pytest.raises(Refused, match="msg_blocks_too_long"):
        checked_message_blocks([*fitting, section("x")])
    with pytest.raises(Refused, match="msg_blocks_too_long"):
        checked_message_blocks([rich(part("preformatted", word("x" * 13_201)))])
    with pytest.raises(Refused, match="invalid_blocks_format"):
        checked_message_blocks({"type": "divider"})


def test_block_ids_are_unique_in_a_message() -> None:
    twice = [{"type": "divider", "block_id": "b"}, {"type": "divider", "block_id": "b"}]
    with pytest.raises(Refused, match="invalid_blocks"):
        checked_message_blocks(twice)


@pytest.mark.parametrize(
    "view",
    [
        modal(field()) | {"title": plain("x" * 25)},
        modal(field()) | {"submit": plain("x" * 25)},
        modal(field(), private_metadata="x" * 3001),
        modal(field(), callback_id="x" * 256),
        modal(*[{"type": "divider"}] * 101),
        modal(field(max_length=3001)),
        modal(field(placeholder=plain("x" * 151))),
        {name: value for name, value in modal(field()).items() if name != "submit"},
        modal(field()) | {"type": "dialogue"},
        modal(field(), colour="red"),
    ],
)
def test_modals_beyond_their_limits_are_refused(view: Json) -> None:
    with pytest.raises(Refused, match="invalid_arguments"):
        checked_view(view)


def test_a_modal_within_its_limits_takes_what_its_fields_take() -> None:
    view = checked_view(modal(field(), private_metadata="x" * 3000) | {"title": plain("x" * 24)})
    assert filled(view, {"Reason": "too risky"}) == {
        "reason": {"t": {"type": "plain_text_input", "value": "too risky"}}
    }
    for values in ({}, {"reason": "x" * 281}, {"reason": "x", "colour": "red"}):
        with pytest.raises(ValueError, match=r"field"):
            filled(view, values)


def test_mrkdwn_is_read_as_a_client_shows_it() -> None:
    reading = read_mrkdwn(
        "*bold* `rm &amp; see foo.sh` <https://x.test|site> <@U1> in <#C1> <!channel> a&lt;b see x.md", NAMES
    )
    assert reading.text == "bold rm & see foo.sh site @Ana in #ops @channel a<b see x.md"
    assert reading.pings == ["U1", "channel"]
    assert reading.links == ["site", "@Ana", "#ops", "@channel", "x.md"]


def test_references_act_in_code_too_and_dates_fall_back() -> None:
    reading = read_mrkdwn("`<!here>` <!date^1^{time}|00:00 UTC> <!subteam^S1|@ops>", NAMES)
    assert (reading.text, reading.pings) == ("@here 00:00 UTC @ops", ["here", "S1"])


def test_blocks_are_read_from_top_to_bottom() -> None:
    blocks = with_ids(
        checked_message_blocks(
            [
                {"type": "header", "text": plain("Low: <!channel> *x*")},
                rich(
                    part("section", word("ci-3", bold=True), word(" · "), word("/app", code=True)),
                    part("preformatted", word("pip install <!here> http://x.test")),
                    part("list", part("section", word("one")), part("section", word("two")), style="ordered"),
                    part(
                        "section",
                        word("Expires "),
                        {"type": "date", "timestamp": 1795917540, "format": "{time}"},
                        word(" "),
                        {"type": "user", "user_id": "U1"},
                        {"type": "broadcast", "range": "channel"},
                    ),
                ),
                {"type": "context", "elements": [{"type": "mrkdwn", "text": "B83TN · <https://x.test|open>"}]},
                actions(button("Approve once", value="t1"), button(action_id="b", confirm=confirm())),
                actions(button("More…", action_id="c", style="danger")),
            ]
        )
    )
    reading = read_blocks(blocks, NAMES)
    assert reading.text.split("\n") == [
        "Low: <!channel> *x*",
        "ci-3 · /app",
        "pip install <!here> http://x.test",
        "1. one",
        "2. two",
        "Expires 1:59 AM @Ana@channel",
        "B83TN · open",
    ]
    assert (reading.pings, reading.links) == (["U1", "channel"], ["@Ana", "@channel", "open"])
    shown = buttons_of(blocks)
    assert [(each.label, each.row, each.column) for each in shown] == [
        ("Approve once", 0, 0),
        ("Deny", 0, 1),
        ("More…", 1, 0),
    ]
    assert shown[1].confirm is not None
    assert shown[1].confirm.title == "Sure?"


@given(st.text(max_size=200))
def test_an_escaped_text_pings_nobody_and_reads_as_it_is(text: str) -> None:
    reading = read_mrkdwn(f"```{escape(text)}```", NAMES)
    assert reading.pings == []
    assert reading.links == []


@given(st.text(alphabet="ab<>&@U1|!#", max_size=30))
def test_what_people_type_is_escaped_except_for_mentions(text: str) -> None:
    reading = read_mrkdwn(typed(text), {})
    assert set(reading.pings) <= {"U", "U1", "U11"} | {name for name in reading.pings if name.startswith("U")}
    assert "channel" not in reading.pings


KINDS = ["actions", "section", "rich_text", "rich_text_section", "button", "plain_text", "input", "context", "header"]
FIELDS = ["type", "text", "elements", "fields", "accessory", "confirm", "element", "label", "style", "block_id"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(KINDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)


@st.composite
def broken(draw: st.DrawFn) -> object:
    """A block that fits, with something in it replaced by anything."""
    block: Any = copy.deepcopy(draw(st.sampled_from(FITTING)))
    inner = block
    while isinstance(inner, dict | list) and inner:
        key = draw(st.sampled_from(list(inner) if isinstance(inner, dict) else list(range(min(3, len(inner))))))
        if not isinstance(inner[key], dict | list) or draw(st.booleans()):
            inner[key] = draw(VALUES)
            break
        inner = inner[key]
    return block


@given(VALUES | broken())
def test_any_blocks_are_taken_or_refused(blocks: object) -> None:
    for candidate in (blocks, [blocks]):
        try:
            taken = with_ids(checked_message_blocks(candidate))
        except Refused:
            continue
        read_blocks(taken, NAMES)
        buttons_of(taken)
