"""The words and assignments of a syntax node, resolved within a machine's scope."""

import re

import tree_sitter

from signoff.policy.shell import fields
from signoff.policy.shell.expansion import evaluate, visit
from signoff.policy.shell.machine import UNREADABLE, Machine
from signoff.policy.shell.model import UNKNOWN, Word
from signoff.policy.shell.syntax import children_of, text_of

_FIXED = re.compile(rb"[\w./:@%+,-]+|-[\w./:@%+,=-]+|'[^'$]*'|\"[^\"$`\\\\]*\"")
"""Words whose text alone says what they are: nothing in them expands, and no assignment or redirection looks so."""


_SUBSCRIPT = re.compile(r"[(\s]\[(.*?)\]\+?=", re.S)
_SUBSCRIPT_END = re.compile(r"\]\+?=")


def fixed(source: bytes, start: int, end: int) -> Word | None:
    """The word at these bytes where nothing in it expands, or None where it must be looked at closely."""
    if _FIXED.fullmatch(source, start, end) is None:
        return None
    if source[start] in b"'\"":
        return Word(source[start + 1 : end - 1].decode("utf-8", "replace"))
    return Word(source[start:end].decode("utf-8", "replace"))


def values(machine: Machine, node: tree_sitter.Node) -> list[str]:
    """The values a node may have where words are not split (assignments, here-strings)."""
    return [fields.assigned(pieces, machine.scope.home) for pieces in evaluate(machine, node)]


def plain(machine: Machine, node: tree_sitter.Node) -> list[Word]:
    """All words a node may stand for, whichever value it has."""
    return [word for found in alternatives(machine, node) for word in found]


def alternatives(machine: Machine, node: tree_sitter.Node) -> list[list[Word]]:
    """The words a node stands for, once for each value it may have."""
    if node.type == "process_substitution":
        content = machine.substitute(node)
        return [[Word("/dev/fd/63", content=content, given=True)]]
    known = fixed(machine.source, node.start_byte, node.end_byte)
    if known is not None:
        return [[known]]
    if machine.source[node.start_byte] in b"\n":
        # The grammar takes a backslash that starts a line for a part of the line before.
        machine.problems.setdefault(UNREADABLE)
    first, *others = machine.scope.values["IFS"]
    evaluated = evaluate(machine, node)
    found = [fields.words(pieces, machine.scope.home, first) for pieces in evaluated]
    more = [fields.words(pieces, machine.scope.home, ifs) for ifs in others for pieces in evaluated]
    return [*found, *(line for line in more if line not in found)]


def _elements(machine: Machine, array: tree_sitter.Node) -> list[Word]:
    found: list[Word] = []
    for child in children_of(array):
        machine.deadline.check()
        if child.is_named:
            found += plain(machine, child)
    return found


def assigned(machine: Machine, node: tree_sitter.Node) -> list[tuple[str, tuple[str, ...]]]:
    """The variable and the values of one assignment node; an array comes once more, as `name[]`, with its elements."""
    name_node, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name_node is None:
        return []
    if name_node.type == "subscript":
        visit(machine, name_node)
        base = name_node.child_by_field_name("name")
        name = text_of(base, machine.source) if base is not None else ""
        machine.scope.arrays.pop(name, None)
        given = tuple(values(machine, value)) if value is not None else ()
        machine.scope.note_values(name, given)
        machine.scope.place(name, given)
        return [(name, (UNKNOWN,))]
    name = text_of(name_node, machine.source)
    if value is None:
        return [(name, ("",))]
    if value.type == "array":
        found = _elements(machine, value)
        elements = tuple(word.text for word in found)
        for subscript in _SUBSCRIPT.findall(text_of(value, machine.source)):
            if "$" in subscript or "`" in subscript:
                machine.evaluate_again(" ".join(elements))  # what is expanded there is evaluated in turn
                if "'" in subscript:
                    machine.expand(subscript)  # single quotes do not quote there
        for element in elements:
            # The grammar may cut an element in two behind its bracket.
            if element[:1] == "[" or "]=" in element or "]+=" in element:
                machine.evaluate_again(_SUBSCRIPT_END.split(element, maxsplit=1)[0].removeprefix("["))
                machine.scope.place(name, (element.partition("=")[2],))
        if any(word.many or word.pattern is not None for word in found):
            return [(name, (UNKNOWN,))]
        return [(name, elements[:1] or ("",)), (name + "[]", elements)]
    return [(name, tuple(values(machine, value)))]
