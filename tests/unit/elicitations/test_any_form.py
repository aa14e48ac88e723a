"""Whatever an agent sends as a form is refused at the door, or can be told, listed, drawn and filled in."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.server.test_record import NOW, ROW

from signoff.actions import one_line, plain_text
from signoff.cards import Facts
from signoff.console.cards import Beside, card_view
from signoff.elicitation import check_schema, checked
from signoff.elicitation_form import Field, fields_of
from signoff.errors import InvalidInput
from signoff.model import Elicitation, replace
from signoff.record import masked_action
from signoff.showing import shown_card

TYPES = ("string", "number", "integer", "boolean", "array")
LEAVES = st.one_of(
    st.sampled_from([None, True, False, "", "a", "date", "email", "uri", "date-time", *TYPES, 10**400, math.inf]),
    st.integers(-3, 12),
    st.floats(-3, 12, allow_nan=False),
)
OPTIONS = st.lists(st.fixed_dictionaries({"const": LEAVES}, optional={"title": LEAVES}), max_size=3)
NAMES = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3)
CHOICES = st.fixed_dictionaries({}, optional={"type": LEAVES, "enum": NAMES, "anyOf": OPTIONS, "oneOf": OPTIONS})
VALUES = LEAVES | NAMES | OPTIONS | CHOICES | st.lists(LEAVES, max_size=2)
ODD = dict.fromkeys(
    (
        *("title", "description", "default", "format", "enum", "enumNames", "oneOf", "items", "pattern", "const"),
        *("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "uniqueItems"),
    ),
    VALUES,
)
FIELDS = st.fixed_dictionaries({"type": st.sampled_from(TYPES)}, optional=ODD) | st.fixed_dictionaries(
    {"type": st.just("array"), "items": CHOICES}, optional={name: ODD[name] for name in ("minItems", "maxItems")}
)
NAMED = st.sampled_from(["n", "two words", "", "\u202e"])
FORMS = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(NAMED, FIELDS | LEAVES, max_size=3)},
    optional={"required": st.lists(NAMED | LEAVES, max_size=2) | LEAVES, "title": VALUES},
)
SHORT = {"date": "2026-02-28", "date-time": "2026-02-28T09:00:00Z", "email": "a@b", "uri": "a:b"}


def asked(schema: dict[str, Any]) -> Elicitation:
    return Elicitation(server="s", message="m", schema=schema)


def value_for(field: Field) -> Any:
    """Something that fits the field."""
    if field.kind == "enum":
        return field.options[0][0]
    if field.kind == "choices":
        return [value for value, _ in field.options[: field.min_items]]
    if field.kind == "boolean":
        return True
    if field.kind == "string":
        text = SHORT.get(field.format, "x"[: field.max_length])
        return text if field.format == "date" else text.ljust(field.min_length, "x")
    low, high = field.minimum, field.maximum
    if field.kind == "integer":
        return math.ceil(low) if low is not None else math.floor(high) if high is not None else 0
    return low if low is not None else high if high is not None else 0


def drawn(action: Elicitation) -> list[str]:
    """The names of the fields that a terminal and the console give the reader to fill in."""
    row = replace(ROW, action=action, choices=("once", "deny"))
    card = shown_card(row, Facts(now=NOW, title=str, forms=True))
    view = card_view(row, Beside(now=NOW, title=str), may="decide", mine=False, listed=True)
    assert len(card.fields) == len(view.fields)
    return [each.field.name for each in card.fields]


@given(schema=FORMS)
def test_any_form_is_refused_or_can_be_told_and_filled_in(schema: dict[str, Any]) -> None:
    action = asked(schema)
    # What an earlier version took is told and listed too, so that it can be declined.
    assert plain_text(action)
    assert one_line(action)
    masked_action(action)
    names = drawn(action)
    try:
        check_schema(action)
    except InvalidInput as refused:
        assert refused.param == "action.schema"
        return
    fields = fields_of(schema)
    assert names == [field.name for field in fields] == list(schema["properties"])
    content = {field.name: value_for(field) for field in fields}
    assert checked(action, content) == content
