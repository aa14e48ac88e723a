"""One request's parameters, however they came: form, multipart, JSON or query string."""

from __future__ import annotations

from typing import Any

import msgspec

from .model import JsonObject
from .refusal import bad_request

INTEGER_MAX_DIGITS = 20


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """A file sent with the request."""

    file_name: str
    content: bytes


class Parameters:
    """Reads values by name and refuses wrong ones with 400.

    Forms carry everything as text, with objects and arrays as JSON inside; a JSON body carries them as they are. Both
    are read alike.
    """

    def __init__(self, values: JsonObject, uploads: dict[str, Upload] | None = None) -> None:
        self.values = values
        self.uploads = uploads or {}

    def text(self, name: str, default: str | None = None) -> str | None:
        """A string, or the default when absent."""
        value = self.values.get(name, default)
        if value is not None and not isinstance(value, str):
            raise bad_request(f"{name} must be a string")
        return value

    def integer(self, name: str, default: int | None = None) -> int | None:
        """A whole number, or the default when absent."""
        value = self.values.get(name)
        if value is None or value == "":
            return default
        if isinstance(value, str) and len(value) <= INTEGER_MAX_DIGITS:
            try:
                return int(value)
            except ValueError:
                raise bad_request(f"{name} must be an integer") from None
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise bad_request(f"{name} must be an integer")

    def required_integer(self, name: str, problem: str) -> int:
        """A whole number that must be there; `problem` is the error's text when it is not."""
        value = self.integer(name)
        if value is None:
            raise bad_request(problem)
        return value

    def flag(self, name: str) -> bool:
        """A boolean, false when absent."""
        value = self.values.get(name, False)
        if isinstance(value, str):
            return value.lower() in ("true", "1", "yes", "y")
        return bool(value)

    def parsed(self, name: str) -> Any:
        """An object or array, sent as JSON text or as itself; none when absent."""
        value = self.values.get(name)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            return value
        try:
            return msgspec.json.decode(value.encode("utf-8", "surrogatepass"))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise bad_request(f"can't parse {name} JSON object") from None

    def upload(self, name: str) -> Upload | None:
        """A file sent under this name, directly or by `attach://` reference."""
        reference = self.values.get(name)
        if isinstance(reference, str) and reference.startswith("attach://"):
            return self.uploads.get(reference.removeprefix("attach://"))
        return self.uploads.get(name)

    def for_log(self) -> JsonObject:
        """The values with objects parsed and files replaced by name and size."""
        shown: JsonObject = {}
        for name, value in self.values.items():
            shown[name] = value
            if isinstance(value, str) and value[:1] in ("{", "["):
                try:
                    shown[name] = msgspec.json.decode(value.encode("utf-8", "surrogatepass"))
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    continue
        for name, upload in self.uploads.items():
            shown[name] = {"file_name": upload.file_name, "size_bytes": len(upload.content)}
        return shown
