"""The operator's allowlist: texts of commands that run without being asked, with `*` as the only special character."""

from __future__ import annotations

import re
from collections.abc import Iterable

from signoff.policy.deny import fits, pattern_parts
from signoff.policy.shell import UNKNOWN, Command, Script
from signoff.policy.shell.quoting import requote
from signoff.policy.unwrap import is_transparent, unwrapped

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-")
_GLOB = _PLAIN | frozenset("*?[]!^")
"""What needs no quotes when a word, or one that names files by a pattern, is written out for a comparison."""
_OPERATORS = frozenset("&;|<>()$`\n\r")
"""What may join, redirect or start commands; a text of plain words may hold them in quotes."""
_ODD_BLANK = re.compile(r"[^\S \t]")


class Entries:
    """Entries made ready once: exact ones are looked up, those with a star are tried in turn."""

    __slots__ = ("_exact", "_patterns", "texts")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        """Take the entries as they are written; blank ones admit nothing."""
        self.texts = tuple(dict.fromkeys(text for text in texts if text.strip()))
        parts = {text: pattern_parts(text) for text in self.texts}
        # Where anything but plain blanks stands between words, the entry means that text and no other.
        whole = {text for text in parts if _ODD_BLANK.search(text.strip())}
        plain = {text: found for text, found in parts.items() if text not in whole}
        self._exact = {" ".join(found): text for text, found in plain.items() if len(found) == 1}
        self._exact |= {text.strip(): text for text, found in plain.items() if len(found) == 1 and "\\" not in text}
        self._exact |= {_meant(text): text for text in whole}
        self._patterns = [(text, found) for text, found in plain.items() if len(found) > 1]

    def __bool__(self) -> bool:
        return bool(self.texts)

    def exact(self, spellings: Iterable[str]) -> str | None:
        """The entry without a star that is one of these texts."""
        return next((self._exact[text] for text in spellings if text in self._exact), None)

    def pattern(self, spellings: Iterable[str]) -> str | None:
        """The first entry with a star that fits one of these texts."""
        texts = tuple(spellings)
        return next((text for text, parts in self._patterns if any(fits(parts, each) for each in texts)), None)


def _meant(entry: str) -> str:
    """The one text that an entry of odd blanks fits: without the backslashes before its stars, if it has no other."""
    text = entry.strip()
    return text if len(pattern_parts(text)) > 1 else re.sub(r"\\([*\\])", r"\1", text)


class Allowlist:
    """What a profile allows: `commands` while somebody could answer, `unattended_commands` always."""

    __slots__ = ("_all", "_unattended", "commands", "unattended_commands")

    def __init__(self, commands: Iterable[str] = (), unattended_commands: Iterable[str] = ()) -> None:
        """Take both lists as they stand in the operator's file."""
        self._unattended = Entries(unattended_commands)
        self._all = Entries((*commands, *self._unattended.texts))
        self.commands = tuple(commands)
        self.unattended_commands = tuple(unattended_commands)

    def find(self, text: str, script: Script, *, attended: bool) -> str | None:
        """The entry that admits this command, or None.

        Only one simple command without redirection, assignment or anything unknown can be admitted, whatever wraps it
        without changing who, where or what; one that carries a command inside a word only by an entry without a star.
        """
        entries = self._all if attended else self._unattended
        if not entries or script.problems or script.opaque or script.fork_bombs:
            return None
        own = [command for command in script.commands if not is_transparent(command.program)]
        if not own:
            own = list(script.commands)
        if not own or not all(_plain(command) for command in script.commands):
            return None
        inner = unwrapped(text)
        if inner is None and (len(script.commands) > 1 or _OPERATORS.intersection(text.strip())):
            return None
        outer = min(own, key=lambda command: len(command.chain))  # what no other wrapper carries
        spellings = [_spelled(outer), text.strip() if inner is None else inner]
        found = entries.exact(spellings)
        if found is not None:
            return found
        return entries.pattern(spellings) if all(_in_words(command, outer) for command in own) else None


NOTHING = Allowlist()
"""The allowlist of a profile that has none."""


def _plain(command: Command) -> bool:
    """Whether it is told whole by its words."""
    return (
        bool(command.words)
        and not command.redirects
        and not command.assignments
        and not command.fed
        and command.stdin is None
        and not any(UNKNOWN in word.text or word.given for word in command.words)
    )


def _in_words(command: Command, outer: Command) -> bool:
    """Whether the command is the outer one, or stands word by word at the end of it where an entry can see it."""
    texts = [word.text for word in command.words]
    return texts == [word.text for word in outer.words][-len(texts) :]


def _spelled(command: Command) -> str:
    """The words with single blanks between them, quoted where that makes a difference."""
    return " ".join(
        word.text
        if word.text and (_PLAIN if word.pattern is None else _GLOB).issuperset(word.text)
        else requote(word.text)
        for word in command.words
    )
