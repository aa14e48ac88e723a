"""A text that is one simple command of plain words: most are, and such a one needs no parser."""

import re

from signoff.policy.shell.model import Word

MAX_CHARS = 1000
"""Longer texts are parsed; the time that spares is nothing beside that of judging them."""

_BARE = r"[A-Za-z0-9_./:@%+,-]++"
_QUOTED = r"""'[ -#%&(-~]*+'|"[ !#%-\[\]-_a-~]*+\""""
_WORD = rf"(?:--?[A-Za-z][A-Za-z0-9_-]*+=(?:[A-Za-z0-9_./:@%+,=-]++|{_QUOTED})|{_BARE}|{_QUOTED})"
COMMAND = rf"{_BARE}(?:[ \t]++(?!2>){_WORD})*+"
"""One simple command of plain words, as an expression; the number in `2>&1` is none of its words."""

_COMMAND = re.compile(rf"[ \t\n]*+{COMMAND}[ \t\n]*+")
_WORDS = re.compile(_WORD)

_OTHERS = frozenset(
    {"if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function"}
    | {"in", "time", "coproc", "declare", "typeset", "export", "readonly", "local", "unset", "unsetenv"}
)
"""First words to which the shell, or the grammar, gives a meaning of their own."""


def words(text: str) -> tuple[Word, ...] | None:
    """The words of the only command in `text`; None where anything in it may be more than a plain word."""
    if len(text) > MAX_CHARS or _COMMAND.fullmatch(text) is None:
        return None
    return words_of(text)


def words_of(command: str) -> tuple[Word, ...] | None:
    """The words of a text that `COMMAND` fits; None where the shell may take its first word for more than a program."""
    first, *rest = _WORDS.findall(command)
    if first in _OTHERS:
        return None
    return (Word(first), *[Word(word if word[-1] not in _QUOTES else _unquoted(word)) for word in rest])


_QUOTES = frozenset("'\"")


def _unquoted(word: str) -> str:
    """A word that ends in a quote, without it and its other half: `--name='a b'`."""
    name, _quote, rest = word.partition(word[-1])
    return name + rest[:-1]
