"""Commands that only print help or a version, whatever they would do otherwise."""

import re
from functools import cache
from importlib.resources import files

import msgspec

from signoff.policy.programs import is_installed, name_of
from signoff.policy.rule import Rule
from signoff.policy.shell import Command
from signoff.policy.unwrap import is_transparent

RULE = Rule(key="read.manual", verdict="allow")
"""What allows such a command, in the place of the rules that would ask."""

_MAX_WORDS = 8
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*")


class Manual(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of `manuals.toml`, where the fields are explained."""

    programs: frozenset[str]
    options: frozenset[str]
    words: tuple[str, ...] = ("",)
    deep: bool = False


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    manual: tuple[Manual, ...]


@cache
def table() -> tuple[Manual, ...]:
    """All rows."""
    raw = files("signoff.policy.rules").joinpath("manuals.toml").read_bytes()
    return msgspec.toml.decode(raw, type=_Table).manual


def only_prints(command: Command, rows: tuple[Manual, ...] | None = None) -> bool:
    """Whether all that the command is told is to print its help or version, by these rows or by all.

    The option is the last word and the only one, the words before it are plain, and nothing stands around the command
    that could change what it means: assignments, and wrappers but those that leave a command as it is.
    """
    words = [word.text for word in command.words]
    if not 2 <= len(words) <= _MAX_WORDS or command.own != len(words):
        return False
    if command.assignments or command.place != "here":
        return False
    if not all(map(is_transparent, command.chain)) or not is_installed(words[0], command.cwd):
        return False
    name, told, option = name_of(words[0], command.cwd), words[1:-1], words[-1]
    if not all(map(_PLAIN.fullmatch, told)):
        return False
    return any(
        name in row.programs and option in row.options and any(_begin(entry.split(), told, row) for entry in row.words)
        for row in (table() if rows is None else rows)
    )


def _begin(entry: list[str], told: list[str], row: Manual) -> bool:
    if len(told) < len(entry) or (len(told) > len(entry) and not row.deep):
        return False
    return all(part in {"*", word} for part, word in zip(entry, told, strict=False))
