"""The operator's deny rules: words in which `*` alone is special."""

import re
from collections.abc import Callable

from signoff.policy.programs import module_of, name_of
from signoff.policy.shell import UNKNOWN, Command, Script
from signoff.policy.shell.deadline import Deadline
from signoff.policy.shell.names import without_version
from signoff.policy.shell.options import OptionSpec, arguments

OptionsOf = Callable[[str], tuple[OptionSpec, OptionSpec]]
"""Which options of a program take a value, before its first operand and behind it."""

_PART = re.compile(r"\\(.)|(\*)", re.S)


def pattern_parts(rule: str) -> list[str]:
    """A rule cut at its stars, blanks made single; `\\*` is a star that stands for itself."""
    parts = [""]
    position = 0
    text = " ".join(rule.split())
    for match in _PART.finditer(text):
        parts[-1] += text[position : match.start()]
        if match.group(2):
            parts.append("")
        else:
            parts[-1] += match.group(1) if match.group(1) in "*\\" else match.group()
        position = match.end()
    parts[-1] += text[position:]
    return parts


def fits(parts: list[str], text: str) -> bool:
    """Whether the whole text fits; in time that grows with its length only."""
    if len(parts) == 1:
        return text == parts[0]
    first, last = parts[0], parts[-1]
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    position, end = len(first), len(text) - len(last)
    for part in parts[1:-1]:
        position = text.find(part, position, end)
        if position < 0:
            return False
        position += len(part)
    return True


def find(
    rules: tuple[str, ...], script: Script, text: str, deadline: Deadline, options_of: OptionsOf
) -> tuple[str, str] | None:
    """The first rule that a command of the script falls under, and that command. Raises `OutOfTimeError`.

    Wrappers count as commands, and so does the text itself, in case it could not be read.
    """
    if not rules:
        return None
    shown: dict[str, str] = {}
    for command in script.commands:
        deadline.check()
        for spelling in _spellings(command, options_of):
            shown.setdefault(spelling, command.source or command.text)
    shown.setdefault(" ".join(text.split()), text)
    for rule in rules:
        parts = pattern_parts(rule)
        # `git push *` also means a bare `git push`: an operator who forbids all pushes means that one too.
        bare = parts[0].rstrip() if len(parts) == 2 and not parts[1] and parts[0].endswith(" ") else None
        for spelling, source in shown.items():
            deadline.check()
            if spelling == bare or fits(parts, spelling):
                return rule, source.replace(UNKNOWN, "…")
    return None


def _spellings(command: Command, options_of: OptionsOf) -> list[str]:
    """The ways to write a command that a rule may mean: with its path or without, with assignments, as written, and
    without options before what it is told to do."""
    if not command.words:
        return [command.source] if command.source else []
    words = [word.text for word in command.words]
    plain = " ".join(words)
    found = [plain, " ".join([words[0].rpartition("/")[2], *words[1:]]), " ".join(command.source.split())]
    found += _by_its_verbs(command, options_of)
    if command.assignments:
        found.append(" ".join([*(f"{name}={value}" for name, value in command.assignments), plain]))
    if command.redirects:
        found.append(" ".join([plain, *(f"{item.operator} {item.target.text}" for item in command.redirects)]))
    return found


def _by_its_verbs(command: Command, options_of: OptionsOf) -> list[str]:
    """`git -C x push` as `git push`, `docker compose -f x down` as `docker compose down`: the program by its plain
    name, without the options before its first operand, and without those before its second either."""
    name = name_of(command.words[0].text, command.cwd)
    name, words = module_of(command.words, name) or (name.removeprefix("./"), command.words)
    name = without_version(name) or name
    found = [" ".join([name, *(word.text for word in words[1:])])]
    verbs = [name]
    for spec in options_of(name):
        given = arguments(words, spec, stop=True)
        if given.rest >= len(words):
            break
        words = words[given.rest :]
        found.append(" ".join([*verbs, *(word.text for word in words)]))
        verbs.append(words[0].text)
    return found
