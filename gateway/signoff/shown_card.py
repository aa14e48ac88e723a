"""A card as plain data, for whoever puts a question before a person by other means than a chat: answer clients and the
terminal. Every text in it is masked, and control characters in it are written out."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

from signoff.elicitation_form import Field


class Part(Struct, frozen=True, kw_only=True):
    """A paragraph, the action as code, a quotation or small print. `strong`: the line that says how bad it is."""

    kind: Literal["text", "code", "quote", "small"]
    text: str
    strong: bool = False


class Way(Struct, frozen=True, kw_only=True):
    """An answer that may be given. `sentence` says how far it reaches; `confirm` is the question of a second step."""

    choice: str
    label: str
    sentence: str = ""
    confirm: str = ""


class FormField(Struct, frozen=True, kw_only=True):
    """One field that a server's question asks for: `field` for checking, the rest for showing."""

    field: Field
    label: str
    hint: str


class ShownCard(Struct, frozen=True, kw_only=True):
    """The card of one question. `ways` is empty once it has ended, and then its first parts say how."""

    object: Literal["signoff.card"] = "signoff.card"
    request_id: str
    short_id: str
    session_id: str
    digest: str
    severity: Literal["low", "medium", "high", "critical"]
    pending: bool
    parts: tuple[Part, ...]
    hidden_chars: int
    """How many characters of the action the parts leave out; before a yes the reader must have been shown `whole`."""
    whole: str
    """The whole action, where the parts leave some of it out; else empty."""
    ways: tuple[Way, ...]
    fields: tuple[FormField, ...]
    page: str = ""
    """The whole address of the page that a server's question asks to be opened; empty for all others. It holds plain
    letters only, and is not masked, since with a part of it nobody could open the page."""
    expires_at: datetime | None
