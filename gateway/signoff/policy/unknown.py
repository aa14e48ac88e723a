"""Programs that no rule knows: what about them asks a person."""

import re
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal

import msgspec

from signoff.policy.rule import Rule
from signoff.policy.shell import UNKNOWN, Word

UnknownCommands = Literal["verbs", "ask", "allow"]

MAX_WORD_CHARS = 40
"""Longer words are texts, not verbs."""

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_:-]*")
_CUT = re.compile(r"[-_:.]+")
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MAX_OPERANDS = 3
"""A verb stands among the first operands; what follows them are names of things."""


class Destructive(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data of `unknown.toml`."""

    verbs: frozenset[str]
    flags: frozenset[str]
    flag_starts: tuple[str, ...]
    plain: frozenset[str]
    commonplace: frozenset[str]


@cache
def table() -> Destructive:
    """The verbs and flags that make a program without rules ask."""
    raw = files("signoff.policy.rules").joinpath("unknown.toml").read_bytes()
    return msgspec.toml.decode(raw, type=Destructive)


def _verb(text: str) -> str | None:
    """The destructive verb in a word such as `delete`, `delete-user`, `users:destroy`, `dropTable`."""
    if len(text) > MAX_WORD_CHARS or not _PLAIN.fullmatch(text):
        return None
    verbs = table().verbs
    if text.islower():
        if text in verbs:
            return text
        if text.isalpha():
            return None
    else:
        text = _CAPITAL.sub("-", text)
    return next((part for part in (part.lower() for part in _CUT.split(text)) if part in verbs), None)


def destructive(words: tuple[Word, ...], name: str) -> str | None:
    """The verb or flag by which a program without rules asks, or None."""
    known = table()
    if name in known.plain:
        return None
    base = name.removeprefix("./")
    for part in _CUT.split(base):
        if part in known.verbs:
            return part
    operands = 0
    for word in words[1:]:
        text = word.text
        if text[:1] == "-":
            flag = text.partition("=")[0]
            if flag in known.flags or flag.startswith(known.flag_starts):
                return flag
        elif operands < _MAX_OPERANDS:
            operands += 1
            verb = _verb(text)
            if verb is not None:
                return verb
    return None


NAME = Rule(
    key="unknown.name", verdict="ask", severity="high", sentence="runs a program whose name is not in plain letters"
)
IMPOSTOR = Rule(
    key="unknown.impostor",
    verdict="ask",
    severity="high",
    sentence="runs a file that has the name of a known program, from another place",
)
PROGRAM = Rule(key="unknown.program", verdict="ask", sentence="runs a program that no rule knows")
HIDDEN = Rule(
    key="unknown.hidden", verdict="ask", severity="high", sentence="runs a program that is only known when it runs"
)

VERB = "unknown.verb"


@cache
def verb_rule(verb: str) -> Rule:
    """What is said of a program without rules that is told to do something destructive."""
    return Rule(key=VERB, verdict="ask", sentence=f"runs a program that no rule knows, with {verb}")


def names(rule: Rule) -> bool:
    """Whether the program's name is all that is known of what it speaks of."""
    return rule.key in (PROGRAM.key, VERB)


def named(rule: Rule, program: str) -> str:
    """What a rule says, with the program's name where that is all that is known of it."""
    if not names(rule):
        return rule.sentence
    return rule.sentence.replace("runs a program", f"runs {program}, a program", 1)


_STREAMS = ("/proc/", "/dev/fd/")
"""Files of this kind are links to what a process holds open."""

_READABLE = re.compile(
    r"(?:/[ -~]*|[!-~]*)/[ -.0-~]*[A-Za-z0-9][ -.0-~]*|(?![!=^].)[!-.0-~]*[A-Za-z0-9][!-.0-~]*|\[\[?|\]\]|[:.!{}]|\(\("
)
"""Names that people can read: plain ones with a letter or a digit in them, and the signs that shells know. A blank may
stand in a whole path only: `rm\\ x` is a program of that name, and looks like another one. zsh takes `=rm` for `rm`,
and nu `^rm`."""

MAX_NAME_CHARS = 255
"""No file system in use takes longer names."""


@lru_cache(maxsize=1024)
def _plain_name(text: str) -> bool:
    return len(text) - text.rfind("/") <= MAX_NAME_CHARS and _READABLE.fullmatch(text) is not None


def reason(words: tuple[Word, ...], name: str, *, known: bool, impostor: bool, how: UnknownCommands) -> Rule | None:
    """Why a command without a rule that fired asks, or None when it may run.

    `known` says that there are rules about its program, which were all silent; `impostor` that it is a file with the
    name of a program that everybody knows, where none is installed.
    """
    if UNKNOWN in words[0].text or words[0].text.startswith(_STREAMS):
        return HIDDEN
    if how == "allow":
        return None
    if not _plain_name(words[0].text):
        return NAME
    if impostor:
        return IMPOSTOR
    if how == "ask":
        return PROGRAM
    verb = None if known else destructive(words, name)
    return None if verb is None else verb_rule(verb)
