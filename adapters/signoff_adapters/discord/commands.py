"""Slash commands: what Discord's menu offers, and how a command that came in reads as a typed line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from signoff.ids import is_short
from signoff.model import Suggestion

from ..lengths import cut
from .wire import Data

SUGGESTIONS_MAX = 25
"""API, autocomplete: choices."""
CHOICE_MAX_CHARS = 100
"""API, choice: name and value."""
REASON_MAX_CHARS = 280
"""What the agent reads of a reason."""
_TEXT = 3
_GUILD, _BOT_DM = 0, 1
_SCOPES = ("once", "session", "always", "30m")


def _option(name: str, about: str, **more: Any) -> dict[str, Any]:
    return {"type": _TEXT, "name": name, "description": about, **more}


_ID = _option("id", "The request's id, or all; empty: the only one that waits here", autocomplete=True)
_ONE_ID = _option("id", "The request's id", autocomplete=True)
_APPROVED = _option("id", "The approval's id; empty: the last one that you gave here")
"""Not completed: what waits, which is all that is offered, can not be taken back."""
_SCOPE = _option("scope", "How far the approval reaches", choices=[{"name": each, "value": each} for each in _SCOPES])
_REASON = _option("reason", "The agent reads it", max_length=REASON_MAX_CHARS)
_GRANT = _option("grant", "The standing approval's id", required=True)
_MINUTES = _option("minutes", "1 to 1440, or off to ask again; empty: 30", max_length=8)
_TABLE: tuple[tuple[str, str, tuple[dict[str, Any], ...]], ...] = (
    ("approve", "Approve a request", (_ID, _SCOPE)),
    ("deny", "Deny a request", (_ID, _REASON)),
    ("stop", "Stop the session and withdraw what it asks", ()),
    ("pending", "What waits here", ()),
    ("grants", "Standing approvals", ()),
    ("revoke", "End a standing approval", (_GRANT,)),
    ("new", "Begin a new session", ()),
    ("yolo", "Stop asking in this session for a while", (_MINUTES,)),
    ("why", "Why a request is asked", (_ONE_ID,)),
    ("undo", "Take an approval back that has not started", (_APPROVED,)),
    ("help", "All commands", ()),
)
COMMANDS: tuple[dict[str, Any], ...] = tuple(
    {"type": 1, "name": name, "description": about, "options": list(options), "contexts": [_GUILD, _BOT_DM]}
    for name, about, options in _TABLE
)
"""All global commands; registering them replaces whatever was there."""
_ORDER = {name: [each["name"] for each in options] for name, _, options in _TABLE}


class Mistyped(ValueError):
    """A field holds what does not belong there; the text is for the person."""


def line_of(data: Data) -> str:
    """The command as somebody would have typed it: `/approve K4XW9 session`.

    Raises `Mistyped` when the field for an id holds anything else: in a typed line it would begin the reason, and the
    only waiting request would be denied by mistake. So it does when a reason without an id begins with `all` or like an
    id: in a typed line that would name what is denied.
    """
    given = {option.name: " ".join(str(option.value).split()) for option in data.options if option.value is not None}
    words = [f"/{data.name}"]
    for name in _ORDER.get(data.name, []):
        value = given.get(name, "")
        if not value:
            continue
        if name == "id" and not is_short(value) and not (value.lower() == "all" and data.name in ("approve", "deny")):
            raise Mistyped(f"“{value[:CHOICE_MAX_CHARS]}” is not a request's id; nothing was decided.")
        words.append(value)
    first = given.get("reason", "").split(" ")[0]
    if not given.get("id") and (is_short(first) or first.lower() == "all"):
        raise Mistyped(
            "The reason begins like an id, or with “all”. Name the request in the field id, or begin the reason with "
            "another word; nothing was decided."
        )
    return " ".join(words)


def half_typed(data: Data) -> str:
    """What stands so far in the field that is being filled in."""
    return next((str(option.value or "") for option in data.options if option.focused), "")


def choices(data: Data, suggestions: Sequence[Suggestion]) -> list[dict[str, str]]:
    """What the menu offers for a half-typed id: those that begin with it, then those whose line holds it."""
    typed = half_typed(data).strip().lower()
    begins = [each for each in suggestions if each.short_id.lower().startswith(typed)]
    holds = [each for each in suggestions if each not in begins and typed in each.line.lower()]
    found = [{"name": _name(each), "value": each.short_id} for each in [*begins, *holds]]
    if data.name in ("approve", "deny") and len(suggestions) > 1 and "all".startswith(typed):
        return [*found[: SUGGESTIONS_MAX - 1], {"name": f"all {len(suggestions)} that wait here", "value": "all"}]
    return found[:SUGGESTIONS_MAX]


def _name(suggestion: Suggestion) -> str:
    name = f"{suggestion.short_id} · {suggestion.line}" if suggestion.line else suggestion.short_id
    return cut(name, CHOICE_MAX_CHARS)
