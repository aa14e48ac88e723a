"""A tool server's question to the person: the answer that fits its form, and how it ended.

An answer is `accept` with the content of the fields, `decline`, or `cancel`; only a person declines, and whatever is no
answer is a cancel. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct

from signoff.elicitation_form import (
    KIND_WORDS,
    Field,
    FieldKind,
    check_form,
    field_line,
    fields_of,
    fields_to_show,
    finite,
    how_many,
    tells_all,
)
from signoff.elicitation_page import check_page
from signoff.errors import InvalidInput
from signoff.model import Action, ApprovalRequest, Elicitation

MAX_LISTED, MAX_LISTED_CHARS = 20, 400
"""So many options of a choice, and so much of them, are named to whoever gave another value."""
SYNONYMS = {"accept": "once", "decline": "deny"}
"""MCP's words for the two answers, beside the ones that all kinds share."""
FORMATS = ("email", "uri", "date", "date-time")

Word = Literal["accept", "decline", "cancel"]

_YES, _NO = frozenset({"yes", "y", "true", "on", "1"}), frozenset({"no", "n", "false", "off", "0"})
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+")


class Elicited(Struct, frozen=True, kw_only=True):
    """How a server's question was answered. `content` stands there once the asker has taken the answer.

    `cause` says why nobody's answer counts where it is a `cancel`: the outcome (`timeout`, `notify_failed`, `blocked`),
    the cause of a withdrawal (`turn_ended`, `stop_requested`, ...), or what became of an accepted one that was never
    handed over (`lapsed`, `undone`, `not_run`, `not_claimed`).
    """

    action: Word
    content: dict[str, Any] | None = None
    cause: str | None = None


# --- the question --------------------------------------------------------------------------------


def check_schema(action: Action) -> None:
    """Raise `InvalidInput` where this is a server's question for fields that nobody could fill in, or for a page that
    cannot be shown."""
    if not isinstance(action, Elicitation):
        return
    check_form(action.schema)
    if action.url is None:
        return
    check_page(action.url)
    if action.schema:
        raise InvalidInput("A question asks for a form or for a page, not for both.", param="action.schema")


def needs_fields(action: Action) -> bool:
    """Whether it can be accepted only with fields filled in."""
    return isinstance(action, Elicitation) and bool((action.schema or {}).get("required"))


def needs_somebody(action: Action) -> bool:
    """Whether only a person can accept it, for itself: there are fields to fill in, or a page to open."""
    return needs_fields(action) or (isinstance(action, Elicitation) and action.url is not None)


def words(action: Elicitation, *, with_fields: bool = True) -> str:
    """The question as readable text, unmasked: the server's message, then the page or a line for each field, unless
    a form beside it shows them.

    A schema with anything else in it follows as it is, so that nobody agrees to what was not in reach.
    """
    fields = fields_to_show(action.schema)
    lines = [action.message, *(map(field_line, fields) if with_fields else ())]
    if action.url is not None:
        lines.append(f"page: {action.url}")
    if action.schema and not tells_all(action.schema, fields):
        lines.append(msgspec.json.encode(action.schema).decode())
    return "\n".join(lines)


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
        return _value(field, _option(field, text))
    if field.kind == "choices":
        return _value(field, [_option(field, each) for each in _named(field, text)])
    if field.kind in ("integer", "number"):
        return _value(field, _number(field, text))
    return _value(field, text)


def from_texts(field: Field, texts: Sequence[str]) -> Any:
    """What was chosen or typed for a field in a form, which for a choice of several is one text for each option.

    None where the field was left out. Nothing chosen is an answer where it must be one, or where it takes a default
    away. Raises `InvalidInput`.
    """
    given = [text for text in texts if text]
    if field.kind == "choices":
        wanted = field.required or (field.default and not field.min_items)
        return _value(field, given) if given or wanted else None
    return from_text(field, given[-1]) if given else None


def _option(field: Field, text: str) -> str:
    """The value of the option that is meant, by itself or by its title; the text where there is none."""
    plain = text.strip()
    by_title = {title: value for value, title in field.options}
    return plain if any(plain == value for value, _ in field.options) else by_title.get(plain, plain)


def _named(field: Field, text: str) -> list[str]:
    """The options that are named, with commas between; one that has a comma itself stands alone, or in a JSON list."""
    plain = text.strip()
    if any(plain in option for option in field.options):
        return [plain]
    if plain.startswith("["):
        try:
            return msgspec.json.decode(plain, type=list[str])
        except msgspec.MsgspecError:
            raise _wrong(field, "must be a list of texts") from None
    return [each for each in plain.split(",") if each.strip()]


def _number(field: Field, text: str) -> float:
    plain = text.strip()
    try:
        return int(plain) if re.fullmatch(r"[+-]?[0-9]{1,18}", plain) else float(plain)
    except ValueError:
        raise _wrong(field, f"must be a {KIND_WORDS[field.kind]}") from None


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


def _checked_choices(field: Field, value: Any) -> list[str]:
    if not isinstance(value, list):
        raise _wrong(field, "must be a list")
    known = {each for each, _ in field.options}
    chosen = [each if isinstance(each, str) and each in known else _checked_enum(field, each) for each in value]
    if len(set(chosen)) != len(chosen):
        raise _wrong(field, "must name each option once")
    if len(chosen) < field.min_items or (field.max_items is not None and len(chosen) > field.max_items):
        raise _wrong(field, f"must have {' and '.join(how_many(field))}")
    return chosen


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
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not finite(value):
        raise _wrong(field, f"must be a {KIND_WORDS[field.kind]}")
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
    "choices": _checked_choices,
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
    if row.outcome != "approved":
        return Elicited(action="cancel", cause=row.cause or row.outcome)
    if row.execution.state in ("not_run", "lapsed"):
        return Elicited(action="cancel", cause=row.execution.cause or row.execution.state)
    return Elicited(action="accept", content=None if row.execution.state == "none" else row.content or {})


def taken(found: Elicited | None, *, may_run: bool) -> Elicited:
    """What the asker gives the server: an `accept` only with the claim, without which it may be taken back yet."""
    if found is None or (found.action == "accept" and not may_run):
        return Elicited(action="cancel", cause="not_claimed")
    return found
