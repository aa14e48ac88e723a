"""Expansion of one source word: from its syntax node to pieces, with every value it may have."""

import itertools
import re
from contextlib import AbstractContextManager
from typing import Protocol

import tree_sitter

from signoff.policy.shell import quoting
from signoff.policy.shell.braces import Piece
from signoff.policy.shell.deadline import Deadline
from signoff.policy.shell.fields import assigned
from signoff.policy.shell.model import UNKNOWN
from signoff.policy.shell.scope import Scope
from signoff.policy.shell.syntax import children_of, text_of

MAX_ALTERNATIVES = 8
"""How many values of one word are followed; beyond that it is unknown."""

_BARE_NODES = frozenset(
    {"word", "number", "variable_name", "special_variable_name", "brace_expression", "regex", "extglob_pattern"}
    | {"test_operator"}
)
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_ALL_ELEMENTS = re.compile(r'"\$(?:@|\{@\}|\{\w+\[@\]\})"')
_DEFAULTS = frozenset({":-", "-", ":=", "=", ":+", "+"})

Pieces = list[Piece]
Alternatives = list[Pieces]


class Host(Protocol):
    """What expansion needs from the reader."""

    scope: Scope
    source: bytes
    deadline: Deadline

    def substitute(self, node: tree_sitter.Node) -> str | None:
        """Read the code of a substitution; its output, or None when that is not known."""

    def note_opaque(self, what: str) -> None:
        """Code that only exists when the text runs."""

    def nested(self) -> AbstractContextManager[bool]:
        """One level deeper; False when that is too deep, which is noted."""


def _unknown(quoted: bool) -> Alternatives:
    return [[Piece(UNKNOWN, "quoted" if quoted else "split")]]


def product(parts: list[Alternatives]) -> Alternatives:
    """All ways to put the parts side by side; where there are too many, those after the first few become unknown."""
    total = 1
    kept: list[Alternatives] = []
    for part in parts:
        if total * len(part) > MAX_ALTERNATIVES:
            kept.append(_unknown(quoted=False))
        else:
            total *= len(part)
            kept.append(part)
    return [[piece for part in combination for piece in part] for combination in itertools.product(*kept)]


def evaluate(host: Host, node: tree_sitter.Node, *, quoted: bool = False) -> Alternatives:
    """The values that the word at `node` may have."""
    kind = node.type
    if kind in _BARE_NODES:
        text = text_of(node, host.source)
        if quoted:
            return [[Piece(quoting.double_quoted(text), "quoted")]]
        return [[Piece(part, "quoted" if escaped else "bare") for part, escaped in quoting.bare(text)]]
    if kind == "raw_string":
        return [[Piece(text_of(node, host.source)[1:-1], "quoted")]]
    if kind == "ansi_c_string":
        return [[Piece(quoting.ansi_c(text_of(node, host.source)[2:-1]), "quoted")]]
    if kind in {"string", "translated_string", "expansion"}:
        with host.nested() as deeper:
            if not deeper:
                return _unknown(quoted)
            return _parameter(host, node, quoted) if kind == "expansion" else _string(host, node)
    if kind == "simple_expansion":
        return _simple(host, node, quoted)
    if kind == "command_substitution":
        output = host.substitute(node)
        return [[Piece(UNKNOWN if output is None else output.rstrip("\n"), "quoted" if quoted else "split")]]
    return _others(host, node, quoted)


def _others(host: Host, node: tree_sitter.Node, quoted: bool) -> Alternatives:
    if node.type in {"concatenation", "command_name"}:
        return product([evaluate(host, child, quoted=quoted) for child in children_of(node)])
    if node.type == "string_content":
        return [[Piece(quoting.double_quoted(text_of(node, host.source)), "quoted")]]
    if node.child_count == 0:
        return [[Piece(text_of(node, host.source), "quoted" if quoted else "bare")]]
    visit(host, node)
    return _unknown(quoted=True)


def visit(host: Host, node: tree_sitter.Node) -> None:
    """Read the substitutions inside a node whose own value does not matter (arithmetic, tests, subscripts)."""
    todo = [node]
    while todo:
        host.deadline.check()
        current = todo.pop()
        if current.type in {"command_substitution", "process_substitution"}:
            host.substitute(current)
        else:
            todo += reversed(current.children)


def _string(host: Host, node: tree_sitter.Node) -> Alternatives:
    """Double quotes. The grammar drops blanks between expansions, so the gaps are taken from the text."""
    inner = node.children[-1] if node.type == "translated_string" else node
    # All elements of an empty list are no word at all, even between quotes.
    alone = _ALL_ELEMENTS.fullmatch(text_of(inner, host.source)) is not None
    parts: list[Alternatives] = [] if alone else [[[Piece("", "quoted")]]]
    position = inner.start_byte + 1
    for child in children_of(inner)[1:-1]:
        parts += _gap(host, position, child.start_byte)
        parts.append(evaluate(host, child, quoted=True))
        position = child.end_byte
    return product([*parts, *_gap(host, position, inner.end_byte - 1)])


def _gap(host: Host, start: int, end: int) -> list[Alternatives]:
    text = host.source[start:end].decode("utf-8", "replace") if start < end else ""
    return [[[Piece(quoting.double_quoted(text), "quoted")]]] if text else []


def _simple(host: Host, node: tree_sitter.Node, quoted: bool) -> Alternatives:
    text = text_of(node, host.source)
    blank, _dollar, name = text.partition("$")
    lead = [Piece(blank, "quoted" if quoted else "split")] if blank else []
    match = _NAME.match(name)
    if match is None:
        # `$` before a blank: the grammar sees a variable where the shell sees plain text.
        return [[*lead, Piece(quoting.double_quoted(f"${name}"), "quoted")]]
    rest = [Piece(name[match.end() :], "quoted" if quoted else "bare")] if match.end() < len(name) else []
    return [lead + pieces + rest for pieces in variable(host, match.group(), quoted)]


def variable(host: Host, name: str, quoted: bool) -> Alternatives:
    """The values of `$name`."""
    kind = "quoted" if quoted else "split"
    elements = host.scope.list_of(name)
    if elements is not None:
        if quoted and name == "*":
            return [[Piece(" ".join(elements), "quoted")]]
        return [_separated(elements, kind)]
    if name == "IFS" and "IFS" not in host.scope.values:
        return [[Piece(" \t\n", kind)]]
    if name == "PWD" and host.scope.cwd is not None:
        return [[Piece(host.scope.cwd, kind)]]
    values = host.scope.values_of(name)
    if values is None:
        return _unknown(quoted)
    return [[Piece(value, kind)] for value in values]


def _separated(elements: tuple[str, ...], kind: str) -> Pieces:
    pieces: Pieces = []
    for index, element in enumerate(elements):
        if index:
            pieces.append(Piece("", "break"))
        pieces.append(Piece(element, kind))
    return pieces


def _parameter(host: Host, node: tree_sitter.Node, quoted: bool) -> Alternatives:
    """`${...}` in its forms; a form that is not followed gives an unknown value."""
    children = node.children[1:-1]
    if children and children[0].type == "subscript":
        visit(host, children[0])
        name_node = children[0].child_by_field_name("name")
        name = text_of(name_node, host.source) if name_node is not None else ""
    elif children and children[0].type in {"variable_name", "special_variable_name"}:
        name = text_of(children[0], host.source)
    else:
        return _indirect(host, node, quoted)
    if len(children) == 1:
        return variable(host, name, quoted)
    operator = text_of(children[1], host.source)
    if operator in _DEFAULTS:
        return _default(host, name, operator, children[2:], quoted)
    visit(host, node)
    if operator in {":?", "?"}:
        return variable(host, name, quoted)
    if operator == "@" and text_of(children[-1], host.source) == "P":
        host.note_opaque(f"${{{name}@P}}")
    return _changed(host, name, operator, children[2:], quoted)


def _indirect(host: Host, node: tree_sitter.Node, quoted: bool) -> Alternatives:
    """`${!name}` and `${#name}`."""
    text = text_of(node, host.source)
    match = re.fullmatch(r"\$\{!(\w+)\}", text)
    values = host.scope.values_of(match.group(1)) if match else None
    if values is not None and len(values) == 1 and re.fullmatch(r"\w+", values[0]):
        return variable(host, values[0], quoted)
    visit(host, node)
    return _unknown(quoted)


def _default(host: Host, name: str, operator: str, nodes: list[tree_sitter.Node], quoted: bool) -> Alternatives:
    """`${name:-word}` and its kin: of a variable that is not known, the word is a value like any other."""
    parts = product([evaluate(host, child, quoted=quoted) for child in nodes]) if nodes else [[Piece("", "bare")]]
    kind = "quoted" if quoted else "split"
    words: Alternatives = [[Piece(assigned(pieces, host.scope.home), kind)] for pieces in parts]
    known = host.scope.values_of(name) if host.scope.list_of(name) is None else host.scope.list_of(name)
    if operator in {":+", "+"}:
        return words if known is None or any(known) else [[Piece("", kind)]]
    if known is not None and any(known) and UNKNOWN not in known:
        return variable(host, name, quoted)
    if operator in {":=", "="} and known is None:
        host.scope.assign(name, tuple(pieces[0].text for pieces in words), surely=False)
    return words if known is not None else [*words, *_unknown(quoted)]


def _changed(host: Host, name: str, operator: str, nodes: list[tree_sitter.Node], quoted: bool) -> Alternatives:
    """Substrings, case changes and plain replacements of a value that is known; anything else is unknown."""
    values = host.scope.values_of(name)
    arguments = [text_of(node, host.source) for node in nodes]
    if values is None or any(UNKNOWN in value for value in values):
        return _unknown(quoted)
    kind = "quoted" if quoted else "split"
    changed = [change(value, operator, arguments) for value in values]
    return _unknown(quoted) if None in changed else [[Piece(value or "", kind)] for value in changed]


def change(value: str, operator: str, arguments: list[str]) -> str | None:
    """`value` after `${value<operator><arguments>}`, or None for a form that is not followed."""
    if operator in {"^^", ",,"} and not arguments:
        return value.upper() if operator == "^^" else value.lower()
    if operator in {"^", ","} and not arguments:
        return (value[:1].upper() if operator == "^" else value[:1].lower()) + value[1:]
    if operator == ":":
        numbers = [int(text) for text in arguments if re.fullmatch(r"\d{1,6}", text)]
        if [text for text in arguments if text != ":" and not re.fullmatch(r"\d{1,6}", text)] or not numbers:
            return None
        return value[numbers[0] : numbers[0] + numbers[1] if len(numbers) > 1 else None]
    if operator in {"/", "//"} and arguments and re.fullmatch(r"[\w .-]+", arguments[0]):
        replacement = arguments[2] if len(arguments) > 2 else ""
        if re.fullmatch(r"[\w./ -]*", replacement) and len(value) < 4096:
            return value.replace(arguments[0], replacement, -1 if operator == "//" else 1)
    return None
