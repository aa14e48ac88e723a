"""The text of an action as people see it: readable, masked, with everything invisible written out."""

from __future__ import annotations

import msgspec

from signoff import elicitation
from signoff.display import WINDOW_CHARS, shown, shown_beginning
from signoff.errors import InvalidInput
from signoff.model import Action, Code, Command, Elicitation, FileWrite, Rule, Tool

LINE_CHARS = 120
"""An action on one line is cut here, with the count of what is hidden."""


HEADLINE_CHARS = 40
"""A name up to so long stands whole in a headline."""
USUAL_SHELLS = frozenset({"bash", "sh"})
SAYS: dict[type[Action], str] = {
    Command: "command",
    Code: "code",
    Tool: "name",
    FileWrite: "path",
    Elicitation: "message",
    Rule: "rule_key",
}
"""The field without which an action says nothing."""


def check_says(action: Action) -> None:
    """Raise `InvalidInput` for an action without words: nobody could read on a card what they agree to."""
    field = SAYS[type(action)]
    text: str = getattr(action, field)
    if not text or text.isspace():
        raise InvalidInput(f"action.{field} is empty, so there is nothing to decide.", param=f"action.{field}")


def plain_text(action: Action) -> str:
    """The whole action as readable text, unmasked: what will be run, or each argument on its line, longest last.

    All that the digest binds is in it or whole in the headline, so that nobody agrees to what was not in reach. What
    stands around a command comes before it, where no clip can hide it behind the command's own length.
    """
    if isinstance(action, Command):
        around = _around(action)
        return "\n".join((*around, action.command)) if around else action.command
    if isinstance(action, Code):
        return action.code
    if isinstance(action, FileWrite):
        if action.diff is None:
            return action.path
        return f"{action.path}\n{action.diff}" if len(action.path) > HEADLINE_CHARS else action.diff
    if isinstance(action, Elicitation):
        return elicitation.words(action)
    if isinstance(action, Rule):
        return f"{action.tool}\n{action.reason}"
    name = [action.name] if len(action.name) > HEADLINE_CHARS or not action.arguments else []
    return "\n".join((*name, *_argument_lines(action)))


def _around(action: Command) -> list[str]:
    """What else decides what a command does: its shell, where it is no usual one, and its environment."""
    lines = [f"shell: {action.shell}"] if action.shell and action.shell not in USUAL_SHELLS else []
    return lines + [f"env {name}={value}" for name, value in sorted(action.env.items())] if action.env else lines


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
    head = " ".join(text[: LINE_CHARS * 4 + WINDOW_CHARS].split("\n"))
    line = shown_beginning(head, LINE_CHARS * 4, prose=not isinstance(action, Command))
    hidden = len(line) - LINE_CHARS
    rest = max(0, len(text) - LINE_CHARS * 4)
    return line if hidden <= 0 and not rest else f"{line[:LINE_CHARS]} ⟨{max(0, hidden) + rest:,} hidden⟩"
