"""The flat forms that MCP allows: what is refused at the door, what an answer must be like, and what people read."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.actions import plain_text
from signoff.elicitation import check_schema, checked, choice_of, from_text, from_texts, needs_fields, words
from signoff.elicitation_form import MAX_FIELDS, MAX_TEXT_CHARS, Field, field_line, fields_of
from signoff.errors import InvalidInput
from signoff.grammar import Approve, Deny, Loose, parse
from signoff.model import Command, Elicitation

FORM = {
    "type": "object",
    "properties": {
        "project": {"type": "string", "title": "Project", "enum": ["web", "api"], "enumNames": ["Web site", "API"]},
        "mail": {"type": "string", "format": "email", "maxLength": 40},
        "days": {"type": "integer", "minimum": 1, "maximum": 30},
        "share": {"type": "number", "minimum": 0},
        "urgent": {"type": "boolean", "default": False},
    },
    "required": ["project", "days"],
}


def ask(schema: dict[str, Any] | None = None) -> Elicitation:
    return Elicitation(server="jira", message="Which project?", schema=schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"properties": []},
        {"properties": {"a": 1}},
        {"properties": {"a": {}}},
        {"properties": {"a": {"type": "object", "properties": {}}}},
        {"properties": {"a": {"type": "array"}}},
        {"properties": {"a": {"type": "array", "items": {"type": "string"}}}},
        {"properties": {"a": {"type": "array", "items": {"type": "string", "enum": []}}}},
        {"properties": {"a": {"type": "array", "items": {"anyOf": []}}}},
        {"properties": {"a": {"type": "array", "items": {"anyOf": [{"const": 1}]}}}},
        {"properties": {"a": {"type": "array", "items": [{"enum": ["x"]}]}}},
        {"properties": {"a": {"type": "array", "items": {"enum": ["x"]}, "minItems": 2}}},
        {"properties": {"a": {"type": "array", "items": {"enum": ["x", "y"]}, "minItems": 2, "maxItems": 1}}},
        {"properties": {"a": {"type": "string", "items": 5}}},
        {"properties": {"a": {"type": "string", "items": None}}},
        {"properties": {"a": {"type": "string", "items": [{}]}}},
        {"properties": {"a": {"type": "array", "items": {"enum": ["x"], "type": "integer"}}}},
        {"properties": {"a": {"type": "array", "items": {"enum": ["x"]}, "uniqueItems": "yes"}}},
        {"properties": {"a": {"type": "integer", "enum": ["x"]}}},
        {"properties": {"a": {"type": "string", "oneOf": []}}},
        {"properties": {"a": {"type": "string", "oneOf": [{"const": "x", "title": 5}]}}},
        {"properties": {"a": {"type": "string", "enum": ["x", "x"]}}},
        {"properties": {"a": {"type": "string", "enum": ["x"], "enumNames": 5}}},
        {"properties": {"a": {"type": "string", "minLength": 2.5}}},
        {"properties": {"a": {"type": "string", "maxLength": -1}}},
        {"properties": {"a": {"type": "string", "format": "date", "maxLength": 9}}},
        {"properties": {"1": {"type": "string"}}, "required": [1]},
        {"properties": {"a": {"type": "integer", "minimum": 0.2, "maximum": 0.8}}},
        {"properties": {"a": {"type": "integer", "minimum": 2, "maximum": 1}}},
        {"properties": {"a": {"type": "string", "minLength": MAX_TEXT_CHARS + 1}}},
        {"properties": {"a": {"type": ["string", "null"]}}},
        {"properties": {"a": {"type": "string", "enum": []}}},
        {"properties": {"a": {"enum": [1, 2]}}},
        {"properties": {"a": {"type": "string", "minLength": "x"}}},
        {"properties": {"a": {"type": "string", "minLength": math.inf}}},
        {"properties": {"a": {"type": "integer", "minimum": 10**400}}},
        {"properties": {"a": {"type": "string", "title": 3}}},
        {"properties": {"a": {"type": "string"}}, "required": ["b"]},
        {"properties": {"a": {"type": "string"}}, "required": "a"},
        {"properties": {f"f{n}": {"type": "string"} for n in range(MAX_FIELDS + 1)}},
    ],
)
def test_a_form_that_nobody_could_fill_in_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_schema(ask(schema))
    assert refused.value.param == "action.schema"


def test_other_actions_have_no_form() -> None:
    check_schema(Command(command="x"))
    assert not needs_fields(Command(command="x"))
    assert choice_of(Command(command="x"), "accept") == "accept"
    assert [choice_of(ask(), word) for word in ("accept", "decline", "once")] == ["once", "deny", "once"]


@pytest.mark.parametrize("schema", [None, {}, {"type": "object"}, {"properties": {"a": {"type": "string"}}}])
def test_without_required_fields_a_bare_yes_is_an_answer(schema: dict[str, Any] | None) -> None:
    assert not needs_fields(ask(schema))
    assert checked(ask(schema), {}) == {}


def test_what_fits_is_taken() -> None:
    content = {"project": "api", "days": 3.0, "share": 0.5, "urgent": True, "mail": "a@b.example"}
    assert checked(ask(FORM), content) == {**content, "days": 3}
    assert isinstance(checked(ask(FORM), content)["days"], int)
    assert needs_fields(ask(FORM))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"project": "ops"}, "content.project"),
        ({"project": 1}, "content.project"),
        ({"days": 0}, "content.days"),
        ({"days": 31}, "content.days"),
        ({"days": 1.5}, "content.days"),
        ({"days": True}, "content.days"),
        ({"days": "3"}, "content.days"),
        ({"share": math.inf}, "content.share"),
        ({"share": 10**400}, "content.share"),
        ({"share": math.nan}, "content.share"),
        ({"urgent": "yes"}, "content.urgent"),
        ({"mail": "nobody"}, "content.mail"),
        ({"mail": "a@" + "b" * 40}, "content.mail"),
        ({"mail": {"a": 1}}, "content.mail"),
        ({"more": "x"}, "content"),
        ({"days": None}, "content.days"),
    ],
)
def test_what_does_not_fit_names_its_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked(ask(FORM), {"project": "web", "days": 3, **change})
    assert refused.value.param == field


def test_what_is_required_is_named() -> None:
    with pytest.raises(InvalidInput, match="days is required"):
        checked(ask(FORM), {"project": "web"})


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        ("date", "2026-02-28", "2026-02-30"),
        ("date-time", "2026-02-28T09:00:00Z", "2026-02-28"),
        ("uri", "https://x.example/a", "x y"),
        ("email", "a@b", "a b@c"),
        ("hostname", "anything", None),
    ],
)
def test_formats(form: str, good: str, bad: str | None) -> None:
    action = ask({"properties": {"a": {"type": "string", "format": form}}})
    assert checked(action, {"a": good}) == {"a": good}
    if bad is not None:
        with pytest.raises(InvalidInput):
            checked(action, {"a": bad})


def test_titled_choices() -> None:
    schema = {"properties": {"a": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g"}]}}}
    [field] = fields_of(schema)
    assert field.options == (("r", "Red"), ("g", "g"))
    assert from_text(field, "Red") == "r"


TAGS = {
    "type": "array",
    "title": "Tags",
    "items": {
        "anyOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}, {"const": "a,b", "title": "A, B"}]
    },
    "minItems": 1,
    "maxItems": 2,
    "default": ["r"],
}


def of_several(**change: Any) -> Elicitation:
    """A question with one choice of several."""
    return ask({"properties": {"tags": {**TAGS, **change}}})


def test_a_choice_of_several() -> None:
    [field] = fields_of(of_several().schema)
    assert (field.kind, field.options, field.min_items, field.max_items) == (
        "choices",
        (("r", "Red"), ("g", "Green"), ("a,b", "A, B")),
        1,
        2,
    )
    facts = 'at least 1 chosen; at most 2 chosen; default ["r"]; may be left out'
    told = f"tags (any of: r (Red), g (Green), a,b (A, B); {facts}) Tags"
    assert plain_text(of_several()).splitlines() == ["Which project?", told]
    assert checked(of_several(), {"tags": ["g", "r"]}) == {"tags": ["g", "r"]}
    untitled = ask({"properties": {"tags": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}}}})
    assert words(untitled) == "Which project?\ntags (any of: x, y; may be left out)"
    assert checked(untitled, {"tags": []}) == {"tags": []}
    assert words(of_several(items={"enum": ["x"], "maxLength": 3})).endswith("}"), (
        "what the line does not tell is shown"
    )


@pytest.mark.parametrize("value", [[], ["r", "g", "a,b"], ["r", "r"], ["x"], [1], [["r"]], "r", None, {"r": 1}])
def test_what_is_no_choice_of_several(value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked(of_several(), {"tags": value})
    assert refused.value.param == "content.tags"


def test_several_are_typed() -> None:
    [field] = fields_of(of_several().schema)
    for text, value in (
        ("r", ["r"]),
        (" Red , g ", ["r", "g"]),
        ("A, B", ["a,b"]),
        ('["a,b", "Red"]', ["a,b", "r"]),
    ):
        assert from_text(field, text) == value
    for text in ("", "r, g, r", "blue", "[1]", "[", "a,b,r"):
        with pytest.raises(InvalidInput):
            from_text(field, text)


def test_several_are_ticked_in_a_form() -> None:
    [field] = fields_of(of_several().schema)
    assert from_texts(field, ["g", "a,b"]) == ["g", "a,b"]
    assert from_texts(field, []) is None, "left out"
    [field] = fields_of(of_several(minItems=0).schema)
    assert from_texts(field, []) == [], "the default is taken away"
    [field] = fields_of({"properties": {"tags": TAGS}, "required": ["tags"]})
    with pytest.raises(InvalidInput, match="at least 1 chosen"):
        from_texts(field, [])
    assert from_texts(Field(name="a", kind="integer"), ["1", "2"]) == 2
    assert from_texts(Field(name="a", kind="string"), [""]) is None


def test_people_read_every_field() -> None:
    text = plain_text(ask(FORM))
    assert text.splitlines() == [
        "Which project?",
        "project (one of: web (Web site), api (API); required) Project",
        "mail (text; email; at most 40 characters; may be left out)",
        "days (whole number; at least 1; at most 30; required)",
        "share (number; at least 0; may be left out)",
        "urgent (yes or no; default false; may be left out)",
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "string", "pattern": "x"}}},
        {"properties": {"a": {"type": "string"}}, "title": "T"},
        {"properties": {"a": {"type": "string"}}, "x-other": 1},
    ],
)
def test_what_the_lines_do_not_tell_stands_as_it_is(schema: dict[str, Any]) -> None:
    last = words(ask(schema)).splitlines()[-1]
    assert last.startswith("{")
    assert last.endswith("}")


KINDS = st.sampled_from(["string", "integer", "number", "boolean"])


@given(kind=KINDS, text=st.text(max_size=30))
def test_typed_text_is_a_value_that_fits_or_is_refused(kind: str, text: str) -> None:
    """Whatever a person types becomes a value that the same form takes, or an error that names the field."""
    action = ask({"properties": {"a": {"type": kind}}})
    [field] = fields_of(action.schema)
    try:
        value = from_text(field, text)
    except InvalidInput as error:
        assert error.param == "content.a"
        return
    assert checked(action, {"a": value}) == {"a": value}


@given(value=st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_any_json_is_taken_whole_or_refused(value: Any) -> None:
    for kind in ("string", "integer", "number", "boolean"):
        action = ask({"properties": {"a": {"type": kind}}})
        try:
            taken = checked(action, {"a": value})["a"]
        except InvalidInput:
            continue
        assert taken == value
        assert isinstance(taken, bool) is (kind == "boolean")


def test_a_field_line_without_a_title() -> None:
    assert field_line(Field(name="a", kind="string")) == "a (text; may be left out)"


def test_the_words_of_the_buttons_are_typed_too() -> None:
    assert parse("/accept k4xw9") == Approve(target="K4XW9")
    assert parse("decline not yours", addressed=True) == Deny(reason="not yours")
    assert parse("accept") == Loose("accept")
