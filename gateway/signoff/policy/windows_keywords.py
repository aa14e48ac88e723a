"""Commands of cmd and PowerShell that stand behind their keywords."""

import re

MAX_KEYWORDS = 16
"""So many keywords before one command are looked behind."""


def behind_keywords(words: list[str]) -> list[list[str]]:
    """A command of cmd, and those it runs in turn: `if exist x del x`, `do del x`, `call del x`, `@del x`."""
    found = [words]
    while words and len(found) <= MAX_KEYWORDS:
        words = [words[0].lstrip("@"), *words[1:]]
        name = words[0].casefold()
        at = _condition_words(words) if name == "if" else 1 if name in {"do", "else", "call"} or not name else 0
        if not at:
            break
        words = words[at:]
        if words:
            found.append(words)
    if words and words is not found[-1]:
        found.append(words)
    return found


_COMMAND_NAME = re.compile(r"[A-Za-z][\w.-]*")


def behind_return(words: list[str]) -> list[list[str]]:
    """A command of PowerShell, and one whose output it gives back: `return Remove-Item x`."""
    gives = len(words) > 1 and words[0].casefold() in {"return", "throw", "exit"}
    return [words, words[1:]] if gives and _COMMAND_NAME.fullmatch(words[1]) else [words]


def _condition_words(words: list[str]) -> int:
    """How many words `if` and its condition take: `if not exist x`, `if /i a==b`, `if a equ b`."""
    at = 1
    while at < len(words) and words[at].casefold() in {"not", "/i"}:
        at += 1
    given = words[at].casefold() if at < len(words) else ""
    if given in {"exist", "defined", "errorlevel", "cmdextversion"}:
        return at + 2
    return at + 1 if "==" in given else at + 3
