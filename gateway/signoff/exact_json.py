"""Whether a tool's arguments come back from JSON exactly as they went in: what is kept is what was asked."""

from __future__ import annotations

import math
from typing import Any

from signoff.errors import InvalidInput
from signoff.model import Action, Tool

MAX_DEPTH = 64
"""Nesting of lists and objects."""
_PLAIN = (str, bool, int, type(None))


def check_exact(action: Action) -> None:
    """Raise `InvalidInput`, naming the place, for arguments of a tool that are no plain JSON values."""
    if isinstance(action, Tool):
        _check(action.arguments, "arguments", 0)


def _check(value: Any, path: str, depth: int) -> None:
    kind = type(value)
    if kind in _PLAIN:
        return
    if depth > MAX_DEPTH:
        raise InvalidInput(f"The action nests deeper than {MAX_DEPTH} levels.", param="action")
    if kind is float:
        if not math.isfinite(value):
            raise InvalidInput(f"{path} is {value}, which JSON has no word for; send it as text.", param="action")
    elif kind is list:
        for number, item in enumerate(value):
            _check(item, f"{path}[{number}]", depth + 1)
    elif kind is dict:
        for name, item in value.items():
            if type(name) is not str:
                raise InvalidInput(f"{path} has the key {name!r}; keys of JSON objects are text.", param="action")
            _check(item, f"{path}.{name}", depth + 1)
    else:
        raise InvalidInput(
            f"{path} is a {kind.__name__}, which does not come back from JSON as it is; use plain JSON values.",
            param="action",
        )
