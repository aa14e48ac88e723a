"""The digest that binds a decision to the exact action: SHA-256 over RFC 8785 JSON.

It covers the action and the agent's host, as they were sent: no Unicode normalisation, nothing masked. A string with
bytes that are no UTF-8 (Python's surrogate escapes) is hashed as `{"$bytes": <base64>}`, so that two different byte
strings never look alike; an object that itself has a member `$bytes` or `$literal` is hashed as
`{"$literal": <object>}`, so that it never looks like such a string. Test vectors stand in docs/digest.md; every
client must agree with them.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import msgspec
import rfc8785

from signoff.errors import InvalidInput
from signoff.model import Action

MAX_WHOLE = 2**53 - 1
"""What every language's numbers hold exactly (RFC 8785, section 3.2.2.3)."""
_SORTED = json.JSONEncoder(ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":"))


def digest_of(action: Action, host: str | None) -> str:
    """The hexadecimal digest of `action` on `host`.

    Raises `InvalidInput` for what RFC 8785 cannot write: whole numbers beyond 2**53, NaN and infinity.
    """
    document: dict[str, Any] = {"action": _plain(msgspec.to_builtins(action)), "host": _plain(host)}
    try:
        return hashlib.sha256(_canonical(document)).hexdigest()
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise InvalidInput(
            f"The action cannot be bound to a digest: {error}. Send such a number as a string.", param="action"
        ) from None


def _canonical(document: Any) -> bytes:
    # Where the two formats cannot differ, the interpreter's own encoder writes the same bytes; a text of a megabyte
    # takes it a twentieth of the time.
    return _SORTED.encode(document).encode() if _is_simple(document) else rfc8785.dumps(document)


def _is_simple(value: Any) -> bool:
    """Whether it has no fractions, no whole numbers beyond 2**53, and only names that any order sorts alike."""
    kind = type(value)
    if kind is dict:
        return all(type(key) is str and key.isascii() and _is_simple(item) for key, item in value.items())
    if kind is list:
        return all(map(_is_simple, value))
    return kind is str or kind is bool or value is None or (kind is int and abs(value) <= MAX_WHOLE)


def _plain(value: Any) -> Any:
    """`value` with undecodable strings replaced by their flagged bytes."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return {"$bytes": base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()}
        return value
    if isinstance(value, dict):
        plain = {key: _plain(item) for key, item in value.items()}
        return {"$literal": plain} if {"$bytes", "$literal"} & plain.keys() else plain
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
