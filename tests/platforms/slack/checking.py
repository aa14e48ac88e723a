"""Collects what is wrong with blocks, in the words and with the pointers that Slack uses, and counts characters."""

from __future__ import annotations

from collections.abc import Sequence

from .model import JsonObject


class Findings:
    """What was found wrong so far; `characters` counts text over all blocks."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.characters = 0

    def add(self, problem: str, at: str) -> None:
        """Note a problem at a JSON pointer."""
        self.messages.append(f"[ERROR] {problem} [json-pointer:{at}]")

    def string(self, value: object, at: str, longest: int, *, shortest: int = 1, counted: bool = True) -> bool:
        """Check a string's length in characters; whether it is a string."""
        if not isinstance(value, str):
            self.add("must be a string", at)
            return False
        if counted:
            self.characters += len(value)
        if len(value) > longest:
            self.add(f"must be less than {longest + 1} characters", at)
        if len(value) < shortest:
            self.add(f"must be more than {shortest - 1} characters", at)
        return True

    def text(self, value: object, at: str, longest: int, kinds: Sequence[str] = ("plain_text", "mrkdwn")) -> None:
        """Check a text object."""
        if not isinstance(value, dict):
            self.add("must be a valid text object", at)
            return
        kind = value.get("type")
        if kind not in kinds:
            self.add(f"must be one of: {', '.join(kinds)}", f"{at}/type")
        allowed = {"type", "text", "emoji"} if kind == "plain_text" else {"type", "text", "verbatim"}
        self.known(value, at, allowed)
        self.string(value.get("text"), f"{at}/text", longest)

    def known(self, value: JsonObject, at: str, allowed: set[str]) -> None:
        """Refuse fields that Slack does not know there."""
        for name in value:
            if name not in allowed:
                self.add(f"no more than {len(allowed)} known fields: invalid additional property: {name}", at)

    def items(self, value: object, at: str, most: int, *, least: int = 1) -> list[JsonObject]:
        """Check a list of objects; those that are objects."""
        if not isinstance(value, list):
            self.add("must be an array", at)
            return []
        if len(value) > most:
            self.add(f"no more than {most} items allowed", at)
        if len(value) < least:
            self.add(f"no fewer than {least} items allowed", at)
        for index, each in enumerate(value):
            if not isinstance(each, dict):
                self.add("must be an object", f"{at}/{index}")
        return [each for each in value if isinstance(each, dict)]
