"""How long a text is for a platform, and its beginning where it is longer."""

from __future__ import annotations

from signoff.errors import SendRefused


def units(text: str) -> int:
    """Length in UTF-16 code units. Raises `SendRefused` for half a character, which no platform takes."""
    try:
        return len(text.encode("utf-16-le")) // 2
    except UnicodeEncodeError:
        raise SendRefused("The card holds half a character (a lone surrogate).", reason="not_text") from None


def cut(text: str, max_chars: int) -> str:
    """The text, or as much of it as fits, and a sign that there is more."""
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"
