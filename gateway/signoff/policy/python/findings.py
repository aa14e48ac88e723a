"""What the rules about Python code say of code that was read."""

from collections.abc import Iterator

import msgspec

from signoff.policy.path_classes import CLASSES, MAX_PATH_CHARS
from signoff.policy.python.checks import CHECKS, Seen, is_secret_name
from signoff.policy.python.model import Call, PythonScript, text_of
from signoff.policy.python.rule import CodeRule, CodeRules, shipped
from signoff.policy.seen import OwnFacts
from signoff.policy.shell.deadline import Deadline
from signoff.policy.shell.model import UNKNOWN, Word

PROGRAM = "python"
"""What a grant names as the program of rules about code."""


class CodeFinding(msgspec.Struct, frozen=True):
    """A rule that fired on a call; `text` is the line of code as shown."""

    rule: CodeRule
    call: Call
    text: str

    @property
    def line(self) -> int:
        """The line of the code, counted from 1."""
        return self.call.line

    @property
    def program(self) -> str:
        """What the rule is about, as a grant names it."""
        return PROGRAM

    @property
    def coverage(self) -> str:
        """What a grant must hold to cover this finding: the rule for this program."""
        return f"{self.rule.key}@{PROGRAM}"


def find(
    script: PythonScript, facts: OwnFacts, deadline: Deadline, rules: CodeRules | None = None
) -> tuple[CodeFinding, ...]:
    """The rules that fire, those that block first. Raises `OutOfTimeError`.

    The commands in `script.shell` are not looked at: they are judged as any command is.
    """
    table = rules or shipped()
    found: dict[tuple[str, int], CodeFinding] = {}
    for call in script.calls:
        deadline.check()
        for rule in table.about(call.kind, call.name):
            if _fires(rule, Seen(call, script, facts)):
                found.setdefault((rule.key, call.line), CodeFinding(rule, call, call.source))
    return tuple(sorted(found.values(), key=lambda finding: finding.rule.verdict != "block"))


def _fires(rule: CodeRule, seen: Seen) -> bool:
    if rule.carries and not _carries(rule, seen):
        return False
    if (rule.operands or rule.words or rule.prefixes or rule.contains) and not _argument_fits(rule, seen):
        return False
    return all(CHECKS[name](seen) for name in rule.only_if) and not any(CHECKS[name](seen) for name in rule.unless)


def _carries(rule: CodeRule, seen: Seen) -> bool:
    for source in seen.call.carries:
        kind, _colon, name = source.partition(":")
        if kind == "file":
            if "secret_file" in rule.carries and _is_of("secret_file", name, seen):
                return True
        elif not name:
            if "environ" in rule.carries:
                return True
        elif "secret_name" in rule.carries and is_secret_name(name):
            return True
    return False


def _argument_fits(rule: CodeRule, seen: Seen) -> bool:
    for text in _looked_at(rule, seen):
        if text == UNKNOWN:
            if rule.unknown:
                return True
            continue
        if text in rule.words or (rule.prefixes and text.startswith(rule.prefixes)):
            return True
        if any(part in text for part in rule.contains):
            return True
        if any(_is_of(name, text, seen) for name in rule.operands):
            return True
    return False


def _looked_at(rule: CodeRule, seen: Seen) -> Iterator[str]:
    if rule.object:
        return map(text_of, seen.call.of)
    if rule.argument is None and not rule.keyword:
        return seen.texts()
    return map(text_of, seen.call.argument(rule.argument, rule.keyword) or ())


def _is_of(name: str, text: str, seen: Seen) -> bool:
    """Whether a path or address is of a class, from whichever folder the code may be in."""
    if len(text) > MAX_PATH_CHARS:
        return False
    check = CLASSES[name]
    word = Word(text)
    return any(check(word, folder, seen.facts.paths) for folder in seen.script.folders)
