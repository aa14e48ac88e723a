"""Parameters of a request: from a query, a form or JSON, where nested values may be JSON texts."""

from __future__ import annotations

from typing import Any

import msgspec

from .model import JsonObject
from .refusal import Refused

LOGGED_MAX = 200_000


class Parameters:
    """Reads values as Slack does: null and absent are the same, numbers and booleans may be texts."""

    def __init__(self, values: JsonObject) -> None:
        self.values = {name: value for name, value in values.items() if value is not None and name != "token"}

    def text(self, name: str, default: str = "") -> str:
        """A text; `default` when absent."""
        value = self.values.get(name, default)
        if isinstance(value, bool | dict | list):
            raise Refused("invalid_arguments", messages=[f"[ERROR] must be a string [json-pointer:/{name}]"])
        return str(value)

    def needed(self, name: str, error: str = "invalid_arguments") -> str:
        """A text that must not be empty."""
        value = self.text(name)
        if not value:
            raise Refused(error, messages=[f"[ERROR] missing required field: {name}"] if "arg" in error else ())
        return value

    def has(self, name: str) -> bool:
        """Whether it was given at all."""
        return name in self.values

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A switch."""
        value = self.values.get(name, default)
        return value if isinstance(value, bool) else str(value).lower() in ("1", "true")

    def number(self, name: str, default: int) -> int:
        """A whole number."""
        try:
            return int(self.text(name, str(default)))
        except ValueError:
            raise Refused("invalid_arguments", messages=[f"[ERROR] must be a number [json-pointer:/{name}]"]) from None

    def json(self, name: str, error: str = "invalid_arguments") -> Any:
        """A nested value, itself or as JSON text; none when absent."""
        value = self.values.get(name)
        if not isinstance(value, str):
            return value
        if not value:
            return None
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError:
            raise Refused(error) from None

    def for_log(self) -> JsonObject:
        """What the log keeps."""
        return {
            name: value if not isinstance(value, str) or len(value) <= LOGGED_MAX else value[:LOGGED_MAX]
            for name, value in self.values.items()
        }
