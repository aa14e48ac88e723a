"""A tool server's question to the person: the fields that it asks for, the answer that fits them, and how it ended.

MCP allows a flat form only: an object whose properties are texts, numbers, yes/no or choices. An answer is `accept`
with the content of the fields, `decline`, or `cancel`; only a person declines, and whatever is no answer is a cancel.
Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct

from signoff.errors import InvalidInput
from signoff.model import Action, ApprovalRequest, Elicitation

MAX_FIELDS = 40
"""A form with more fields cannot be read on a card, which holds some 40 lines at most."""
MAX_TEXT_CHARS = 10_000
"""The longest text of one field, unless its own schema says less."""
MAX_LISTED, MAX_LISTED_CHARS = 20, 400
"""So many options of a choice, and so much of them, are named to whoever gave another value."""
SYNONYMS = {"accept": "once", "decline": "deny"}
"""MCP's words for the two answers, beside the ones that all kinds share."""
FORMATS = ("email", "uri", "date", "date-time")

FieldKind = Literal["string", "integer", "number", "boolean", "enum"]
Word = Literal["accept", "decline", "cancel"]

_KEYWORDS = {
    *("type", "title", "description", "default", "enum", "enumNames", "oneOf"),
    *("minLength", "maxLength", "minimum", "maximum", "format"),
}
"""What the lines for people tell of a field; any other keyword stands in the raw schema, which is then shown too."""
_AROUND = {"$schema", "type", "properties", "required", "additionalProperties", "title", "description"}
_TYPES: dict[str, FieldKind] = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}
_WORDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "yes or no", "enum": "one of"}
_YES, _NO = frozenset({"yes", "y", "true", "on", "1"}), frozenset({"no", "n", "false", "off", "0"})
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+")


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


class Elicited(Struct, frozen=True, kw_only=True):
    """How a server's question was answered. `content` stands there once the asker has taken the answer."""

    action: Word
    content: dict[str, Any] | None = None


# --- the form ------------------------------------------------------------------------------------


def fields_of(schema: Mapping[str, Any] | None) -> tuple[Field, ...]:
    """The fields of a form, in the schema's order. Raises `InvalidInput` for what is no flat form."""
    if not schema:
        return ()
    properties = schema.get("properties", {})
    if schema.get("type", "object") != "object" or not isinstance(properties, dict):
        raise _bad("the schema must be an object with properties")
    required = schema.get("required", [])
    if not isinstance(required, list) or not set(map(str, required)) <= set(properties):
        raise _bad("required must list names of properties")
    if len(properties) > MAX_FIELDS:
        raise _bad(f"it has {len(properties)} fields; at most {MAX_FIELDS} can be asked for at once")
    return tuple(_field(name, found, name in required) for name, found in properties.items())


def check_schema(action: Action) -> None:
    """Raise `InvalidInput` where this is a server's question for fields that nobody could fill in."""
    if isinstance(action, Elicitation):
        fields_of(action.schema)


def needs_fields(action: Action) -> bool:
    """Whether it can be accepted only with fields filled in."""
    return isinstance(action, Elicitation) and bool((action.schema or {}).get("required"))


def _bad(why: str) -> InvalidInput:
    return InvalidInput(f"This form cannot be put to a person: {why}.", param="action.schema")


def _field(name: str, found: Any, required: bool) -> Field:
    if not isinstance(found, dict):
        raise _bad(f"{name!r} is no schema of a field")
    options = _options(name, found)
    kind = "enum" if options else _TYPES.get(str(found.get("type")))
    if kind is None:
        raise _bad(f"{name!r} is {found.get('type')!r}; MCP allows string, integer, number, boolean and enum")
    longest = _bound(name, found, "maxLength")
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
        min_length=int(_bound(name, found, "minLength") or 0),
        max_length=MAX_TEXT_CHARS if longest is None else min(MAX_TEXT_CHARS, int(longest)),
    )


def _options(name: str, found: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The values of a choice, each with its title where it has one."""
    if "oneOf" in found:
        each = found["oneOf"]
        if not isinstance(each, list) or not all(isinstance(o, dict) and isinstance(o.get("const"), str) for o in each):
            raise _bad(f"oneOf of {name!r} must list texts as const")
        return tuple((o["const"], str(o.get("title", o["const"]))) for o in each)
    if "enum" not in found:
        return ()
    values, titles = found["enum"], found.get("enumNames", [])
    if not isinstance(values, list) or not values or not all(isinstance(value, str) for value in values):
        raise _bad(f"enum of {name!r} must list texts")
    named = titles if isinstance(titles, list) and len(titles) == len(values) else values
    return tuple((value, str(title)) for value, title in zip(values, named, strict=True))


def _text(name: str, found: dict[str, Any], keyword: str) -> str:
    value = found.get(keyword, "")
    if not isinstance(value, str):
        raise _bad(f"{keyword} of {name!r} is no text")
    return value


def _bound(name: str, found: dict[str, Any], keyword: str) -> float | None:
    value = found.get(keyword)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _finite(value):
        raise _bad(f"{keyword} of {name!r} is no number")
    return value


def _finite(value: float) -> bool:
    """Whether a number can be compared and shown; a whole number of JSON may have any length."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


# --- what people read of it ----------------------------------------------------------------------


def words(action: Elicitation) -> str:
    """The question as readable text, unmasked: the server's message, then a line for each field.

    A schema with anything else in it follows as it is, so that nobody agrees to what was not in reach.
    """
    try:
        fields = fields_of(action.schema)
    except InvalidInput:
        fields = ()
    lines = [action.message, *map(field_line, fields)]
    if action.schema and not _told(action.schema, fields):
        lines.append(msgspec.json.encode(action.schema).decode())
    return "\n".join(lines)


def _told(schema: Mapping[str, Any], fields: tuple[Field, ...]) -> bool:
    """Whether the lines tell all that the schema says."""
    properties = schema.get("properties", {})
    plain = isinstance(properties, dict) and len(fields) == len(properties)
    aside = set(schema) - _AROUND or schema.get("title") or schema.get("description")
    return plain and not aside and all(set(found) <= _KEYWORDS for found in properties.values())


def field_line(field: Field) -> str:
    """`project (one of: web, api; required) Project key · Which one?`"""
    kind = _WORDS[field.kind]
    if field.options:
        kind += ": " + ", ".join(value if value == title else f"{value} ({title})" for value, title in field.options)
    facts = [kind, *_bounds(field), "required" if field.required else "may be left out"]
    told = " · ".join(text for text in (field.title, field.description) if text)
    line = f"{field.name} ({'; '.join(facts)})"
    return f"{line} {told}" if told else line


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
    if field.default is not None:
        facts.append(f"default {msgspec.json.encode(field.default).decode()}")
    return facts


# --- an answer -----------------------------------------------------------------------------------


def choice_of(action: Action, word: str) -> str:
    """The choice that a word means: `accept` and `decline` are known for a server's question."""
    return SYNONYMS.get(word, word) if isinstance(action, Elicitation) else word


def content_for(action: Action, choice: str, content: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The content that an answer carries: checked for an accepted question, none for all else.

    Raises `InvalidInput` naming the field.
    """
    if not isinstance(action, Elicitation) or choice == "deny":
        if content is not None:
            raise InvalidInput("content goes with an accepted question of a server only.", param="content")
        return None
    return checked(action, content or {})


def checked(action: Elicitation, content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with each value as its field wants it. Raises `InvalidInput` naming the field."""
    fields = fields_of(action.schema)
    known = {field.name for field in fields}
    strange = [name for name in content if name not in known]
    if strange:
        raise InvalidInput(f"The form has no field {strange[0][:100]!r}.", param="content")
    answered = {}
    for field in fields:
        if field.name in content:
            answered[field.name] = _value(field, content[field.name])
        elif field.required:
            raise _wrong(field, "is required")
    return answered


def from_text(field: Field, text: str) -> Any:
    """A typed value as the field wants it; raises `InvalidInput` saying what it must be."""
    if field.kind == "boolean":
        word = text.strip().lower()
        if word not in _YES | _NO:
            raise _wrong(field, "must be yes or no")
        return word in _YES
    if field.kind == "enum":
        plain = text.strip()
        by_title = {title: value for value, title in field.options}
        return _value(field, plain if any(plain == value for value, _ in field.options) else by_title.get(plain, plain))
    if field.kind in ("integer", "number"):
        return _value(field, _number(field, text))
    return _value(field, text)


def _number(field: Field, text: str) -> float:
    plain = text.strip()
    try:
        return int(plain) if re.fullmatch(r"[+-]?[0-9]{1,18}", plain) else float(plain)
    except ValueError:
        raise _wrong(field, f"must be a {_WORDS[field.kind]}") from None


def _wrong(field: Field, why: str) -> InvalidInput:
    return InvalidInput(f"{field.name} {why}.", param=f"content.{field.name}")


def _value(field: Field, value: Any) -> Any:
    return _CHECKS[field.kind](field, value)


def _checked_text(field: Field, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(field, "must be a text")
    if len(value) < field.min_length or len(value) > field.max_length:
        raise _wrong(field, f"must have {field.min_length} to {field.max_length} characters")
    if field.format in FORMATS and not _formed(field.format, value):
        raise _wrong(field, f"must be a {field.format}")
    return value


def _formed(form: str, value: str) -> bool:
    """Whether it has the form; a form that is not known binds nobody."""
    try:
        if form == "date":
            return bool(_DATE.fullmatch(value) and date.fromisoformat(value))
        if form == "date-time":
            return bool(_DATE_TIME.fullmatch(value) and datetime.fromisoformat(value.upper().replace("Z", "+00:00")))
    except ValueError:
        return False
    return bool((_EMAIL if form == "email" else _URI).fullmatch(value))


def _checked_enum(field: Field, value: Any) -> str:
    if not isinstance(value, str) or all(value != each for each, _ in field.options):
        raise _wrong(field, f"must be one of {_listed([each for each, _ in field.options])}")
    return value


def _listed(options: list[str]) -> str:
    """The options as far as there is room for them, with how many were left out; a form may have thousands."""
    told: list[str] = []
    room = MAX_LISTED_CHARS
    for option in options[:MAX_LISTED]:
        if len(option) > room and told:
            break
        told.append(option if len(option) <= room else f"{option[:room]}…")
        room -= len(told[-1])
    rest = len(options) - len(told)
    return ", ".join(told) + (f" and {rest:,} more" if rest else "")


def _checked_boolean(field: Field, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(field, "must be true or false")
    return value


def _checked_number(field: Field, value: Any) -> float:
    whole = field.kind == "integer"
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _finite(value):
        raise _wrong(field, f"must be a {_WORDS[field.kind]}")
    if whole and value != int(value):
        raise _wrong(field, "must be a whole number")
    below = field.minimum is not None and value < field.minimum
    above = field.maximum is not None and value > field.maximum
    if below or above:
        low, high = field.minimum, field.maximum
        least = [f"at least {low:g}"] if low is not None else []
        most = [f"at most {high:g}"] if high is not None else []
        raise _wrong(field, f"must be {' and '.join((*least, *most))}")
    return int(value) if whole else value


_CHECKS: dict[FieldKind, Callable[[Field, Any], Any]] = {
    "string": _checked_text,
    "integer": _checked_number,
    "number": _checked_number,
    "boolean": _checked_boolean,
    "enum": _checked_enum,
}


# --- how it ended --------------------------------------------------------------------------------


def elicited(row: ApprovalRequest) -> Elicited | None:
    """How a server's question ended; None for other kinds, and while it waits.

    `accept` while the yes stands; its content from the claim on, since until then it can be taken back. `decline`
    where a person said no. Whatever else ended it is a `cancel`: nobody answered.
    """
    if not isinstance(row.action, Elicitation) or row.outcome is None:
        return None
    if row.outcome == "denied" and any(actor.type == "person" for actor in row.decided_by):
        return Elicited(action="decline")
    if row.outcome != "approved" or row.execution.state in ("not_run", "lapsed"):
        return Elicited(action="cancel")
    return Elicited(action="accept", content=None if row.execution.state == "none" else row.content or {})


def taken(found: Elicited | None, *, may_run: bool) -> Elicited:
    """What the asker gives the server: an `accept` only with the claim, without which it may be taken back yet."""
    if found is None or (found.action == "accept" and not may_run):
        return Elicited(action="cancel")
    return found
