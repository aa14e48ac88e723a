"""What may stand where a value of a wrong form was found: for sentences that refuse it. Pure.

msgspec says what is wrong and where; here is what would have been right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_args

import msgspec
from msgspec import inspect

from signoff.errors import InvalidInput
from signoff.model import Action

_AT = re.compile(r" - at `(?:key in )?\$\.?([^`]*)`$")
_PART = re.compile(r"[^.\[\]]+|\[[^\]]*\]")
_BOUND = re.compile(r"^Expected `(?:int|float)` (<=|>=|<|>) (\S+)$")
_BOUNDS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}


def problem(error: msgspec.ValidationError, kind: Any) -> tuple[str, str]:
    """The place in a value of `kind`, empty for the whole of it, and what is wrong there, without its full stop. Where
    only certain words may stand, they are named."""
    text = str(error)
    at = _AT.search(text)
    path, plain = (at[1], text[: at.start()]) if at else ("", text)
    bound = _BOUND.match(plain)
    if bound:
        return path, f"must be a number of {_BOUNDS[bound[1]]} {float(bound[2]):,.10g}"
    words = words_at(kind, path) if plain.startswith("Invalid ") else ()
    said = f"{plain[:1].lower()}{plain[1:]}"
    return path, f"{said}; it is one of {', '.join(words)}" if words else said


def action_of(raw: Action | Mapping[str, Any]) -> Action:
    """An action from its Struct or from plain JSON values; raises `InvalidInput` naming what is wrong."""
    if isinstance(raw, msgspec.Struct):
        return raw
    if not isinstance(raw, Mapping):
        raise InvalidInput(
            f'An action is one such as Command(command="make"), or {{"kind": "command", "command": "make"}}; '
            f"{type(raw).__name__} is none.",
            param="action",
        )
    try:
        return msgspec.convert(raw, Action)  # type: ignore[no-any-return]  # a union is a valid type here
    except msgspec.ValidationError as error:
        path, said = problem(error, Action)
        raise InvalidInput(f"The action cannot be understood: {path}{path and ': '}{said}.", param="action") from None


def check_word(value: str, words: Any, param: str) -> None:
    """Raise `InvalidInput` unless it is one of the words, a `Literal`."""
    known = get_args(words)
    if value not in known:
        raise InvalidInput(f"{param} {value!r} is none; it is one of {', '.join(sorted(known))}.", param=param)


def words_at(kind: Any, path: str) -> tuple[str, ...]:
    """The words that may stand at that place, such as `("succeeded", "failed", "not_run")`; empty where any may."""
    found = [value for each in _at(kind, path) if isinstance(each, inspect.LiteralType) for value in each.values]
    return tuple(dict.fromkeys(map(str, found)))


def fields_at(kind: Any, path: str) -> tuple[str, ...]:
    """The names of the fields that what stands at that place may have."""
    structs = [each for each in _at(kind, path) if isinstance(each, inspect.StructType)]
    tags = [each.tag_field for each in structs if each.tag_field is not None]
    names = [field.encode_name for each in structs for field in each.fields]
    return tuple(sorted({*tags, *names}))


def _at(kind: Any, path: str) -> list[inspect.Type]:
    found = list(_plain(_described(kind)))
    for part in _PART.findall(path):
        found = [inner for each in found for inner in _inside(each, part)]
    return found


@cache
def _described(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def _plain(kind: inspect.Type) -> Iterator[inspect.Type]:
    """The types that a union or a described type stands for."""
    if isinstance(kind, inspect.Metadata):
        yield from _plain(kind.type)
    elif isinstance(kind, inspect.UnionType):
        for each in kind.types:
            yield from _plain(each)
    else:
        yield kind


def _inside(kind: inspect.Type, part: str) -> Iterator[inspect.Type]:
    """What may stand in a value of that type under a field's name, or as an item."""
    if isinstance(kind, inspect.StructType):
        if part == kind.tag_field and kind.tag is not None:
            yield inspect.LiteralType((kind.tag,))
        for field in kind.fields:
            if field.encode_name == part:
                yield from _plain(field.type)
    elif isinstance(kind, inspect.ListType | inspect.VarTupleType):
        yield from _plain(kind.item_type)
    elif isinstance(kind, inspect.DictType):
        yield from _plain(kind.value_type)
