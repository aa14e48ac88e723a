"""What a record is about, in a line: its action in short form."""

from __future__ import annotations

from typing import Any

import msgspec

from signoff.cli.output import Shown
from signoff.client.records import ApprovalRecord
from signoff.visible import CLOSE, LINE_END, OPEN, escape, visible

VALUE_CHARS = 40
"""A tool's argument is cut here: each of them is to have its place in the line."""
CUT = "…"

_ENDS = '"]}'
_TEXTS = ("command", "code", "path", "message", "rule_key")


def summary(record: ApprovalRecord) -> Shown:
    """The action in one line, whole but for a tool's arguments: `send_email(to="ben@example.com", body="Hello …")`."""
    action = record.action
    if action.get("kind") == "tool":
        given = action.get("arguments") or {}
        words = ", ".join(f"{name}={_value(value)}" for name, value in given.items())
        return in_a_line(f"{action.get('name')}({words})")
    text = next((str(action[name]) for name in _TEXTS if isinstance(action.get(name), str)), record.description)
    page = action.get("url")
    return in_a_line(f"{text} (a page to open: {page})" if page else text)


def in_a_line(text: str) -> Shown:
    """One line of a record's text. For operators the gateway has masked it and written out what cannot be seen, so its
    brackets stay; for the agent that asked it is as the agent wrote it."""
    lines = (" ".join(line.split()) for line in text.strip().splitlines())
    told = visible(LINE_END.join(lines))
    return Shown(told.replace(escape(OPEN), OPEN).replace(escape(CLOSE), CLOSE))


def _value(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    if len(text) <= VALUE_CHARS:
        return text
    end = text[-1] if text[-1] in _ENDS else ""
    return f"{text[: VALUE_CHARS - 1]}{CUT}{end}"
