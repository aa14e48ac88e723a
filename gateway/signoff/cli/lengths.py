"""Lengths of time as people type them after an option: `90`, `90s`, `5m`, `1h30m`."""

from __future__ import annotations

import re
from typing import Any

import click

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_COUNT = "[0-9]{1,15}(?:[.][0-9]{1,6})?"
_PLAIN = re.compile(rf"({_COUNT})\s*(?:s|sec|seconds?)?\Z")
_PARTS = re.compile("".join(rf"(?:({_COUNT})\s*{unit}\s*)?" for unit in ("d", "h", "m(?:in)?", "s")) + r"\Z")


class Length(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """Seconds, or a length with units; its value is in seconds. Anything else is refused with the forms there are."""

    name = "length"

    def __init__(self, least_s: float = 0.0, most_s: float | None = None) -> None:
        """`least_s` counts as allowed, unless it is 0."""
        self._least_s, self._most_s = least_s, most_s

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds. Raises `BadParameter`."""
        found = value if isinstance(value, (int, float)) else seconds_of(str(value))
        if found is None:
            self.fail(f"{str(value)!r} is no length of time. Write seconds, or such as 90s, 5m, 2h or 1d", param, ctx)
        if found <= 0 or found < self._least_s or (self._most_s is not None and found > self._most_s):
            self.fail(f"{value} is out of bounds: it must be {self._bounds()}", param, ctx)
        return float(found)

    def _bounds(self) -> str:
        if self._most_s is None:
            return "more than 0 seconds"
        return f"{self._least_s:g} to {self._most_s:,.10g} seconds"


def seconds_of(text: str) -> float | None:
    """The seconds that a length names, None for what is none."""
    told = text.strip().lower()
    plain = _PLAIN.match(told)
    if plain is not None:
        return float(plain[1])
    parts = _PARTS.match(told)
    if not told or parts is None:
        return None
    return sum(float(count) * size for count, size in zip(parts.groups(), _UNITS.values(), strict=True) if count)
