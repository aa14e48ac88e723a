"""Text that the shell evaluates once more: arithmetic, subscripts that builtins take, prompts."""

import re
from itertools import pairwise
from typing import Protocol

from signoff.policy.shell.deadline import Deadline
from signoff.policy.shell.model import UNKNOWN, Command, Word
from signoff.policy.shell.options import OptionSpec, arguments
from signoff.policy.shell.scope import INTEGERS, Scope

ARITHMETIC_TESTS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"})
"""Operators of tests whose operands are evaluated as arithmetic, or as a variable with a subscript."""

PROMPTS = frozenset({"PS0", "PS1", "PS2", "PS4"})
"""Variables whose value the shell expands when it prompts or traces."""

_NAME = re.compile(r"[A-Za-z_]\w*")
_CHANGED = re.compile(
    r"(?<!\w)([A-Za-z_]\w*+)(?:\[[^\]]{0,200}+\])?\s*+(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)"
    r"|(?:\+\+|--)\s*+([A-Za-z_]\w*+)"
)
_MAX_ROUNDS = 64
"""So many values are followed from one expression: variables may name each other in a ring. Where there are more, what
they run is not known."""

_NAMES_TAKEN = frozenset({"unset", "read", "mapfile", "readarray", "wait", "getopts", "test", "[", "printf"})
_TESTING = frozenset({"test", "["})
_NUMBERS = frozenset({"integer", "float"})
"""zsh's `declare -i`, by names of their own."""
_DECLARING = frozenset({"declare", "typeset", "local", "export", "readonly", *_NUMBERS})
_COMPLETING_OPTIONS = OptionSpec(short_values="AoGWFCXPSV")
_DECLARING_OPTIONS = OptionSpec()


class Reader(Protocol):
    """What evaluation needs from the machine."""

    scope: Scope
    commands: list[Command]
    deadline: Deadline

    def evaluate_elements(self, text: str) -> None:
        """Read the text of an array between brackets, which the shell reads once more."""

    def expand(self, text: str) -> None:
        """Read the substitutions in a text that the shell expands as between double quotes."""

    def note_opaque(self, what: str) -> None:
        """Code that only exists when the text runs."""

    def may_fail(self) -> None:
        """Arithmetic that may make no sense: then the shell drops the rest of the line, whatever it would set."""


def arithmetic(machine: Reader, text: str) -> None:
    """Follow an expression: substitutions in it, and in the values of the variables and arrays it names."""
    seen: set[str] = set()
    todo = [text]
    while todo:
        machine.deadline.check()
        current = todo.pop()
        names = _NAME.findall(current)
        if not names or current in seen:  # a number runs nothing
            continue
        if len(seen) >= _MAX_ROUNDS:
            machine.note_opaque("arithmetic")
            break
        seen.add(current)
        if "$(" in current or "`" in current:
            machine.expand(current)
            machine.may_fail()
        for name in names:
            todo += machine.scope.values.get(name, ())
            todo += machine.scope.placed.get(name, ())
            for elements in machine.scope.arrays.get(name, ()):
                todo += elements or ()


def drain(machine: Reader) -> None:
    """Follow what variables with the integer attribute were given."""
    values = machine.scope.integer_values
    while values:
        arithmetic(machine, values.pop())


def changed(machine: Reader, text: str) -> None:
    """Forget the variables that an arithmetic expression sets; its value is not computed."""
    if "=" in text or "++" in text or "--" in text:
        for match in _CHANGED.finditer(text):
            machine.scope.forget(match.group(1) or match.group(2))


def builtin(machine: Reader, words: tuple[Word, ...]) -> None:
    """Follow what a builtin evaluates of its words."""
    name = words[0].text
    if name == "let":
        for word in words[1:]:
            arithmetic(machine, word.text)
            changed(machine, word.text)
    elif name in _NAMES_TAKEN:
        if name == "printf":
            words = words[1:3] if words[1:2] == (Word("-v"),) else ()
        for before, word in pairwise(words):
            # The grammar cuts `unset name[index]` in two.
            whole = before.text + word.text if word.text[:1] == "[" else word.text
            _subscript(machine, whole, changes=name not in _TESTING)
    elif name in {"compgen", "complete"}:
        for option in arguments(words, _COMPLETING_OPTIONS).options:
            if option.name == "-W" and option.value is not None:
                machine.expand(option.value.text.replace(UNKNOWN, ""))
    elif name in _DECLARING:
        _declared(machine, words)


def _subscript(machine: Reader, text: str, *, changes: bool = True) -> None:
    """Follow the index in `name[index]`, whose element is changed, or only looked at."""
    name, bracket, index = text.partition("[")
    if bracket and name:
        arithmetic(machine, index)
        if changes:
            machine.scope.forget(name)


def _declared(machine: Reader, words: tuple[Word, ...]) -> None:
    """`declare 'a[...]=1'`, and with `-i` or `-n` the values, which are expressions or names with subscripts."""
    given = arguments(words, _DECLARING_OPTIONS)
    counts = given.has("-i") or words[0].text in _NUMBERS
    evaluates = counts or given.has("-n")
    for _place, word in given.operands:
        target, equals, value = word.text.partition("=")
        _subscript(machine, target)
        if counts:
            machine.scope.count(target.partition("[")[0].rstrip("+"))
        if evaluates and equals:
            arithmetic(machine, value)
        if value[:1] == "(" and value[-1:] == ")":
            machine.evaluate_elements(value)
        if evaluates or given.has("-u", "-l", "-c"):
            machine.scope.change(target)
            if given.has("-n") and value.isidentifier():
                machine.scope.place(target, (value,))
                machine.scope.change(value)


def assigned(machine: Reader, name: str, value: str) -> None:
    """Follow a value whose variable the shell expands by itself."""
    if name in INTEGERS or name in machine.scope.integers:
        arithmetic(machine, value)
    elif name in PROMPTS and value and UNKNOWN not in value:
        machine.expand(value)
