"""The form of a tool server's question: the fields that it asks for, and what people read of each. Pure.

MCP allows a flat form only: an object whose properties are texts, numbers, yes/no, or choices of one or of several.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from signoff.errors import InvalidInput

MAX_FIELDS = 40
"""A form with more fields cannot be read on a card, which holds some 40 lines at most."""
MAX_TEXT_CHARS = 10_000
"""The longest text of one field, unless its own schema says less."""

FieldKind = Literal["string", "integer", "number", "boolean", "enum", "choices"]
"""`enum` is one of its options, `choices` any of them."""

_KEYWORDS = {
    *("type", "title", "description", "default", "enum", "enumNames", "oneOf"),
    *("minLength", "maxLength", "minimum", "maximum", "format"),
    *("items", "minItems", "maxItems", "uniqueItems"),
}
"""What the lines for people tell of a field; any other keyword stands in the raw schema, which is then shown too."""
_OF_ITEMS = {"type", "enum", "oneOf", "anyOf"}
_LENGTHS: dict[str, tuple[int, int]] = {
    "date": (10, 10),
    "date-time": (20, MAX_TEXT_CHARS),
    "email": (3, MAX_TEXT_CHARS),
    "uri": (3, MAX_TEXT_CHARS),
}
"""How many characters a text of each form has at least and at most."""
_AROUND = {"$schema", "type", "properties", "required", "additionalProperties", "title", "description"}
_TYPES: dict[str, FieldKind] = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}
KIND_WORDS: dict[FieldKind, str] = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "yes or no",
    "enum": "one of",
    "choices": "any of",
}


class Field(Struct, frozen=True, kw_only=True):
    """One field of the form. `options` are values with what people read for them."""

    name: str
    kind: FieldKind
    required: bool = False
    title: str = ""
    description: str = ""
    options: tuple[tuple[str, str], ...] = ()
    default: Any = None
    format: str = ""
    minimum: float | None = None
    maximum: float | None = None
    min_length: int = 0
    max_length: int = MAX_TEXT_CHARS
    min_items: int = 0
    max_items: int | None = None
    """How many options may be chosen; None: all of them."""


def fields_of(schema: Mapping[str, Any] | None) -> tuple[Field, ...]:
    """The fields of a form, in the schema's order. Raises `InvalidInput` for what is no flat form."""
    if not schema:
        return ()
    properties = schema.get("properties", {})
    if schema.get("type", "object") != "object" or not isinstance(properties, dict):
        raise _bad("the schema must be an object with properties")
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) and name in properties for name in required):
        raise _bad("required must list names of properties")
    if len(properties) > MAX_FIELDS:
        raise _bad(f"it has {len(properties)} fields; at most {MAX_FIELDS} can be asked for at once")
    return tuple(_field(name, found, name in required) for name, found in properties.items())


def fields_to_show(schema: Mapping[str, Any] | None) -> tuple[Field, ...]:
    """The fields of a form that is kept; none of one that an earlier version took and that is no flat form."""
    try:
        return fields_of(schema)
    except InvalidInput:
        return ()


def check_form(schema: Mapping[str, Any] | None) -> None:
    """Raise `InvalidInput` for what is no flat form, and for one with a field that nothing can be put into."""
    for field in fields_of(schema):
        least, most = field.minimum, field.maximum
        if field.kind == "integer":
            least, most = (None if least is None else math.ceil(least)), (None if most is None else math.floor(most))
        if least is not None and most is not None and least > most:
            raise _bad(f"{field.name!r} allows no number")
        shortest, longest = _LENGTHS.get(field.format, (0, MAX_TEXT_CHARS)) if field.kind == "string" else (0, 0)
        if max(field.min_length, shortest) > min(field.max_length, longest) and field.kind == "string":
            raise _bad(f"{field.name!r} allows no text; the longest has {MAX_TEXT_CHARS} characters")
        most_chosen = min(len(field.options), len(field.options) if field.max_items is None else field.max_items)
        if field.kind == "choices" and field.min_items > most_chosen:
            raise _bad(f"{field.name!r} wants {field.min_items} chosen, and {most_chosen} can be")


def _bad(why: str) -> InvalidInput:
    return InvalidInput(f"This form cannot be put to a person: {why}.", param="action.schema")


def _field(name: str, found: Any, required: bool) -> Field:
    if not isinstance(found, dict):
        raise _bad(f"{name!r} is no schema of a field")
    kind, options = _kind(name, found)
    if not isinstance(found.get("items", {}), dict):
        raise _bad(f"items of {name!r} is no schema")
    if not isinstance(found.get("uniqueItems", False), bool):
        raise _bad(f"uniqueItems of {name!r} is neither true nor false")
    longest = _count(name, found, "maxLength")
    return Field(
        name=name,
        kind=kind,
        required=required,
        title=_text(name, found, "title"),
        description=_text(name, found, "description"),
        options=options,
        default=found.get("default"),
        format=_text(name, found, "format"),
        minimum=_bound(name, found, "minimum"),
        maximum=_bound(name, found, "maximum"),
        min_length=_count(name, found, "minLength") or 0,
        max_length=MAX_TEXT_CHARS if longest is None else min(MAX_TEXT_CHARS, longest),
        min_items=_count(name, found, "minItems") or 0,
        max_items=_count(name, found, "maxItems"),
    )


def _kind(name: str, found: dict[str, Any]) -> tuple[FieldKind, tuple[tuple[str, str], ...]]:
    """What kind of field it is, with the values of a choice."""
    options = _options(name, found)
    if found.get("type") == "array":
        return "choices", _options_of_items(name, found.get("items"))
    if options and found.get("type", "string") == "string":
        return "enum", options
    kind = None if options else _TYPES.get(str(found.get("type")))
    if kind is None:
        raise _bad(
            f"{name!r} is {found.get('type')!r}; MCP allows string, integer, number, boolean, enum and an array of enum"
        )
    return kind, ()


def _options_of_items(name: str, items: Any) -> tuple[tuple[str, str], ...]:
    """The values of a choice of several."""
    options = _options(name, items, "anyOf" if "anyOf" in items else "oneOf") if isinstance(items, dict) else ()
    if not options or items.get("type", "string") != "string":
        raise _bad(f"{name!r} is an array; MCP allows one of a choice only, with items of enum or anyOf")
    return options


def _options(name: str, found: dict[str, Any], titled: str = "oneOf") -> tuple[tuple[str, str], ...]:
    """The values of a choice, each with its title where it has one."""
    if titled in found:
        each = found[titled]
        if not isinstance(each, list) or not each or not all(map(_is_option, each)):
            raise _bad(f"{titled} of {name!r} must list texts as const")
        return _each_once(name, [(o["const"], o.get("title", o["const"])) for o in each])
    values, titles = found.get("enum"), found.get("enumNames", [])
    if not _is_texts(titles):
        raise _bad(f"enumNames of {name!r} must list texts")
    if "enum" not in found:
        return ()
    if not _is_texts(values) or not values:
        raise _bad(f"enum of {name!r} must list texts")
    named = titles if len(titles) == len(values) else values
    return _each_once(name, list(zip(values, named, strict=True)))


def _is_option(found: object) -> bool:
    return (
        isinstance(found, dict)
        and all(isinstance(found.get(key, ""), str) for key in ("const", "title"))
        and ("const" in found)
    )


def _is_texts(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(each, str) for each in found)


def _each_once(name: str, options: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    if len({value for value, _ in options}) < len(options):
        raise _bad(f"{name!r} names a value twice")
    return tuple(options)


def _text(name: str, found: dict[str, Any], keyword: str) -> str:
    value = found.get(keyword, "")
    if not isinstance(value, str):
        raise _bad(f"{keyword} of {name!r} is no text")
    return value


def _bound(name: str, found: dict[str, Any], keyword: str) -> float | None:
    value = found.get(keyword)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not finite(value):
        raise _bad(f"{keyword} of {name!r} is no number")
    return value


def _count(name: str, found: dict[str, Any], keyword: str) -> int | None:
    value = _bound(name, found, keyword)
    if value is not None and (value < 0 or value != int(value)):
        raise _bad(f"{keyword} of {name!r} is no count")
    return None if value is None else int(value)


def finite(value: float) -> bool:
    """Whether a number can be compared and shown; a whole number of JSON may have any length."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


# --- what people read of it ----------------------------------------------------------------------


def tells_all(schema: Mapping[str, Any], fields: tuple[Field, ...]) -> bool:
    """Whether the lines tell all that the schema says."""
    properties = schema.get("properties", {})
    plain = isinstance(properties, dict) and len(fields) == len(properties)
    aside = set(schema) - _AROUND or schema.get("title") or schema.get("description")
    return plain and not aside and all(map(_field_told, properties.values()))


def _field_told(found: dict[str, Any]) -> bool:
    return set(found) <= _KEYWORDS and set(found.get("items", ())) <= _OF_ITEMS


def field_line(field: Field) -> str:
    """`project (one of: web, api; required) Project key · Which one?`"""
    kind = KIND_WORDS[field.kind]
    if field.options:
        kind += f": {_option_words(field)}"
    facts = [kind, *_bounds(field)]
    if field.default is not None:
        facts.append(f"default {msgspec.json.encode(field.default).decode()}")
    told = " · ".join(text for text in (field.title, field.description) if text)
    line = f"{field.name} ({'; '.join((*facts, _needed(field)))})"
    return f"{line} {told}" if told else line


def field_hint(field: Field) -> str:
    """What a form says below a field, whose title, options and default stand in the form already:
    `days (whole number; required) · Since when?`"""
    named = field.title and field.title.casefold() != field.name.casefold().replace("_", " ")
    kind = [] if field.options or field.kind == "boolean" else [KIND_WORDS[field.kind]]
    if any(value != title for value, title in field.options):
        kind = [f"{KIND_WORDS[field.kind]}: {_option_words(field)}"]
    facts = "; ".join((*kind, *_bounds(field), _needed(field)))
    line = f"{field.name} ({facts})" if named else facts
    return f"{line} · {field.description}" if field.description and field.description != field.title else line


def _option_words(field: Field) -> str:
    return ", ".join(value if value == title else f"{value} ({title})" for value, title in field.options)


def _needed(field: Field) -> str:
    return "required" if field.required else "may be left out"


def _bounds(field: Field) -> list[str]:
    facts = []
    if field.format:
        facts.append(field.format)
    if field.min_length:
        facts.append(f"at least {field.min_length} characters")
    if field.max_length != MAX_TEXT_CHARS:
        facts.append(f"at most {field.max_length} characters")
    if field.minimum is not None:
        facts.append(f"at least {field.minimum:g}")
    if field.maximum is not None:
        facts.append(f"at most {field.maximum:g}")
    if field.kind == "choices":
        facts += how_many(field)
    return facts


def how_many(field: Field) -> list[str]:
    least = [f"at least {field.min_items} chosen"] if field.min_items else []
    return least + ([f"at most {field.max_items} chosen"] if field.max_items is not None else [])
