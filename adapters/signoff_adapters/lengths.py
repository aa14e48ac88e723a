"""How long a text is for a platform."""

from __future__ import annotations

from signoff.errors import SendRefused


def units(text: str) -> int:
    """Length in UTF-16 code units. Raises `SendRefused` for half a character, which no platform takes."""
    try:
        return len(text.encode("utf-16-le")) // 2
    except UnicodeEncodeError:
        raise SendRefused("The card holds half a character (a lone surrogate).", reason="not_text") from None
