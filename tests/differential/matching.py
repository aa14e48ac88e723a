"""Whether a program that ran is among the commands that were read from the text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from signoff.policy.shell import UNKNOWN, Command, Script, Word

ANY = ".*"


def missing(script: Script, ran: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The programs that ran and that no command of the script accounts for."""
    patterns = [re.compile(_pattern(command), re.S) for command in script.commands if command.words]
    return [words for words in ran if not any(pattern.fullmatch(_line(words)) for pattern in patterns)]


def _line(words: tuple[str, ...]) -> str:
    return "".join(word + "\0" for word in words)


def _pattern(command: Command) -> str:
    first, *rest = command.words
    name = Word(first.text.rpartition("/")[2], pattern=first.pattern, many=first.many)
    return "".join(_word(word) for word in [name, *rest])


def _word(word: Word) -> str:
    if word.given:
        return "/dev/fd/[0-9]+\0"
    if word.many or word.pattern is not None:
        return "(?:[^\0]*\0)*"
    return ANY.join(re.escape(part) for part in word.text.split(UNKNOWN)).replace(ANY, "[^\0]*") + "\0"


def says_nothing(script: Script) -> bool:
    """Whether a part of the script was not understood, or is only known when it runs: then anything may follow."""
    opaque = any(
        UNKNOWN in command.program or (command.words and command.words[0].pattern) for command in script.commands
    )
    return bool(script.problems or script.opaque or opaque)
