"""The text of an action as people see it: readable, masked, with everything invisible written out."""

from __future__ import annotations

import msgspec

from signoff.display import shown
from signoff.model import Action, Code, Command, Elicitation, FileWrite, Rule, Tool

LINE_CHARS = 120
"""An action on one line is cut here, with the count of what is hidden."""


def plain_text(action: Action) -> str:
    """The whole action as readable text, unmasked: what will be run, or each argument on its line, longest last."""
    if isinstance(action, Command):
        return action.command
    if isinstance(action, Code):
        return action.code
    if isinstance(action, FileWrite):
        return action.diff or action.path
    if isinstance(action, Elicitation):
        return action.message
    if isinstance(action, Rule):
        return f"{action.tool}\n{action.reason}"
    return "\n".join(_argument_lines(action)) or action.name


def _argument_lines(action: Tool) -> list[str]:
    lines = []
    for name, value in action.arguments.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        lines.append(f"{name}: {text}")
    return sorted(lines, key=len)


def whole_text(action: Action) -> str:
    """The whole action as people may see it."""
    return shown(plain_text(action), prose=not isinstance(action, Command))


def one_line(action: Action) -> str:
    """The masked action on one line, for lists and grants."""
    text = plain_text(action)
    head = " ".join(text[: LINE_CHARS * 4].split("\n"))
    line = shown(head, prose=not isinstance(action, Command))
    hidden = len(line) - LINE_CHARS
    rest = max(0, len(text) - LINE_CHARS * 4)
    return line if hidden <= 0 and not rest else f"{line[:LINE_CHARS]} ⟨{max(0, hidden) + rest:,} hidden⟩"
