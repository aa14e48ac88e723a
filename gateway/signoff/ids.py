"""Identifiers: random, short where people type them."""

from __future__ import annotations

import base64
import re
import secrets

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: no I, L, O or U, so that no letter is read as another."""

SHORT_LENGTH = 5
SHORT = re.compile(rf"^[{ALPHABET}]{{{SHORT_LENGTH}}}\Z")
REQUEST_ID = re.compile(r"^[A-Za-z0-9_-]{1,64}\Z")


def new_short() -> str:
    """A random short id that holds a digit and a letter, so that it is neither a number nor a word."""
    while True:
        text = "".join(secrets.choice(ALPHABET) for _ in range(SHORT_LENGTH))
        if is_short(text):
            return text


def is_short(text: str) -> bool:
    """Whether `text` has the form of a short id, in any case."""
    if not text.isascii():
        return False
    upper = text.upper()
    return bool(SHORT.match(upper)) and any(c.isdigit() for c in upper) and any(c.isalpha() for c in upper)


def new_id(prefix: str) -> str:
    """A random id of 96 bits such as `req_Zk3…`; it fits `REQUEST_ID`."""
    return f"{prefix}_{random_text(12)}"


def random_text(size: int) -> str:
    """`size` random bytes as base64url without padding."""
    return base64.urlsafe_b64encode(secrets.token_bytes(size)).rstrip(b"=").decode()
