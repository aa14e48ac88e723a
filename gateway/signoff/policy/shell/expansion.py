"""Expansion of one source word: from its syntax node to pieces, with every value it may have."""

import itertools
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import tree_sitter

from signoff.policy.shell import misread, quoting
from signoff.policy.shell.braces import Piece
from signoff.policy.shell.deadline import Deadline
from signoff.policy.shell.evaluating import ARITHMETIC_TESTS
from signoff.policy.shell.fields import MAX_PIECES, assigned
from signoff.policy.shell.model import PLACEHOLDER, UNKNOWN
from signoff.policy.shell.scope import Elements, Scope
from signoff.policy.shell.syntax import children_of, text_of

MAX_ALTERNATIVES = 8
"""How many values of one word are followed; beyond that it is unknown."""

_BARE_NODES = (
    "word", "number", "variable_name", "special_variable_name", "brace_expression", "regex", "extglob_pattern",
    "test_operator",
)  # fmt: skip
_TOKENS = frozenset({"word", "regex", "extglob_pattern"})
_SIGNED = frozenset({"expansion", "command_substitution", "arithmetic_expansion"})
_EVALUATED = frozenset({"variable_name", "word", "raw_string", "ansi_c_string"})
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_ALL_ELEMENTS = re.compile(r'"\$(?:@|\{@\}|\{\w+\[@\]\})"')
_BLANK = re.compile(r"\s")
_BRACES = re.compile(r"\$?\{[^{}]*\}")
_DEFAULTS = frozenset({":-", "-", ":=", "=", ":+", "+"})

Pieces = list[Piece]
Alternatives = list[Pieces]


class Host(Protocol):
    """What expansion needs from the reader."""

    scope: Scope
    unsure: int
    source: bytes
    deadline: Deadline

    def substitute(self, node: tree_sitter.Node) -> str | None:
        """Read the code of a substitution; its output, or None when that is not known."""

    def note_unreadable(self) -> None:
        """The grammar reads a part of the text in another way than the shell."""

    def note_opaque(self, what: str) -> None:
        """Code that only exists when the text runs."""

    def evaluate_again(self, text: str) -> None:
        """Follow a text that is evaluated as arithmetic."""

    def change(self, text: str) -> None:
        """Forget the variables that an arithmetic expression sets."""

    def expand(self, text: str) -> None:
        """Read the substitutions in a text that the shell expands as between double quotes."""

    def may_fail(self) -> None:
        """Arithmetic that may make no sense: then the shell drops the rest of the line, whatever it would set."""

    def nested(self) -> AbstractContextManager[bool]:
        """One level deeper; False when that is too deep, which is noted."""


def _unknown(quoted: bool) -> Alternatives:
    return [[Piece(UNKNOWN, "quoted" if quoted else "split")]]


def product(parts: list[Alternatives]) -> Alternatives:
    """All ways to put the parts side by side; where there are too many, those after the first few become unknown."""
    for part in parts:
        if len(part) != 1:
            return _product(parts)
    return [[piece for part in parts for piece in part[0]]]


def _product(parts: list[Alternatives]) -> Alternatives:
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
    return _EVALUATORS.get(node.type, _others)(host, node, quoted)


def _bare(host: Host, node: tree_sitter.Node, quoted: bool) -> Alternatives:
    text = text_of(node, host.source)
    if "$(" in text or "`" in text:
        host.expand(text)  # the grammar overlooks a substitution in some patterns
    if "$[" in text:
        host.note_unreadable()  # and arithmetic of the old form within `${...}`
    if quoted:
        return [[Piece(quoting.double_quoted(text), "quoted")]]
    if "\\" not in text:
        return [[Piece(text, "bare")]]
    if text.count("\\") > MAX_PIECES:
        return _unknown(quoted=False)
    return [[Piece(part, "quoted" if escaped else "bare") for part, escaped in quoting.bare(text)]]


def _raw_string(host: Host, node: tree_sitter.Node, quoted: bool) -> Alternatives:
    if quoted:
        return _plain_quotes(host, text_of(node, host.source))
    return [[Piece(text_of(node, host.source)[1:-1].replace(PLACEHOLDER, UNKNOWN), "quoted")]]


def _plain_quotes(host: Host, text: str) -> Alternatives:
    """`'...'` inside `${...}` between double quotes or in a here-document: there the quotes are plain characters."""
    if '"' in text or _BRACES.sub("", text).count("}"):
        # The word ends before the second quote, so the grammar took code for data.
        host.note_unreadable()
    if "$" in text or "`" in text:
        host.expand(text)
        return _unknown(quoted=True)
    return [[Piece(text, "quoted")]]


def _ansi_string(host: Host, node: tree_sitter.Node, quoted: bool) -> Alternatives:
    if quoted:
        return _plain_quotes(host, text_of(node, host.source))
    return [[Piece(quoting.ansi_c(text_of(node, host.source)[2:-1]), "quoted")]]


def _nested_string(host: Host, node: tree_sitter.Node, quoted: bool) -> Alternatives:
    with host.nested() as deeper:
        return _string(host, node) if deeper else _unknown(quoted)


def _nested_parameter(host: Host, node: tree_sitter.Node, quoted: bool) -> Alternatives:
    with host.nested() as deeper:
        return _parameter(host, node, quoted) if deeper else _unknown(quoted)


def _substitution(host: Host, node: tree_sitter.Node, quoted: bool) -> Alternatives:
    output = host.substitute(node)
    return [[Piece(UNKNOWN if output is None else output.rstrip("\n"), "quoted" if quoted else "split")]]


def _concatenation(host: Host, node: tree_sitter.Node, quoted: bool) -> Alternatives:
    parts: list[Alternatives] = []
    source, start, end = host.source, node.start_byte, node.end_byte
    children = children_of(node)
    if source.startswith(_BEFORE_BRACE, start) and children[0].type == "raw_string":
        children = children[1:]
    for child in children:
        host.deadline.check()
        if not quoted and starts_translated(source, child):
            continue
        parts.append(_EVALUATORS.get(child.type, _others)(host, child, quoted))
    found = product(parts)
    if _UNSPLIT.search(source, start, end) is not None:
        _note_unsplit(host, found)
    if source.find(b"{", start, end) >= 0 and misread.is_glued(source, children):
        host.note_unreadable()
    return found


_UNSPLIT = re.compile(rb"'\$'|\$\Z|\$\{?!")
_BEFORE_BRACE = b"''{"
"""A brace expansion at the start of a word, behind quotes that are put there for the grammar."""


def _note_unsplit(host: Host, found: Alternatives) -> None:
    """A word with a dollar that is text, or with `$!` before anything runs behind, is none that bash splits, against
    all rules."""
    if any(piece.kind == "split" and _BLANK.search(piece.text) for pieces in found for piece in pieces):
        host.note_unreadable()


def starts_translated(source: bytes, node: tree_sitter.Node) -> bool:
    """Whether this is the sign before a string that is translated, which the grammar takes for a part of the word."""
    return node.type == "$" and source[node.end_byte : node.end_byte + 1] == b'"'


def _string_content(host: Host, node: tree_sitter.Node, _quoted: bool) -> Alternatives:
    return [[Piece(quoting.double_quoted(text_of(node, host.source)), "quoted")]]


def _others(host: Host, node: tree_sitter.Node, quoted: bool) -> Alternatives:
    if node.child_count == 0:
        return [[Piece(text_of(node, host.source), "quoted" if quoted else "bare")]]
    visit(host, node)
    return _unknown(quoted=True)


def visit(host: Host, node: tree_sitter.Node, *, arithmetic: bool = False) -> None:
    """Read the substitutions inside a node whose own value does not matter (arithmetic, tests, subscripts), and what
    the variables of an arithmetic expression hold."""
    changing = [node] if arithmetic else []
    todo = [(node, arithmetic)]
    while todo:
        host.deadline.check()
        current, inside = todo.pop()
        kind = current.type
        if _visited_leaf(host, current, inside):
            continue
        if kind in {"binary_expression", "unary_expression"} and _is_arithmetic_test(host, current):
            for child in current.children:
                for pieces in evaluate(host, child):
                    host.evaluate_again("".join(piece.text for piece in pieces))
            changing.append(current)
        else:
            if not inside and kind in {"arithmetic_expansion", "subscript"}:
                inside = True
                changing.append(current)
            todo += [(child, inside) for child in reversed(current.children)]
    for changed in changing:  # `x++` evaluates what x holds before it changes that
        host.change(text_of(changed, host.source))


def _visited_leaf(host: Host, node: tree_sitter.Node, inside: bool) -> bool:
    """Read a node that is visited as a whole; False where its parts are. `inside` arithmetic or a subscript."""
    kind = node.type
    if kind in {"command_substitution", "process_substitution"}:
        host.substitute(node)
        if inside:
            host.may_fail()
        if inside and kind == "process_substitution":
            # It is none here: its text is expanded as between double quotes.
            host.expand(text_of(node, host.source))
    elif kind == "string":
        for pieces in _nested_string(host, node, True):
            if inside:
                host.evaluate_again("".join(piece.text for piece in pieces))
    elif inside and kind in _EVALUATED:
        # Single quotes do not quote here.
        host.evaluate_again(text_of(node, host.source))
    elif kind in _TOKENS and node.child_count == 0:
        _bare(host, node, False)
    else:
        return False
    return True


def _is_arithmetic_test(host: Host, node: tree_sitter.Node) -> bool:
    return any(
        child.type == "test_operator" and text_of(child, host.source) in ARITHMETIC_TESTS for child in node.children
    )


def _string(host: Host, node: tree_sitter.Node) -> Alternatives:
    """Double quotes. The grammar drops blanks between expansions, so the gaps are taken from the text."""
    inner = node.children[-1] if node.type == "translated_string" else node
    # All elements of an empty list are no word at all, even between quotes.
    source, first, end = host.source, inner.start_byte, inner.end_byte
    alone = source.find(b"@", first, end) > 0 and _ALL_ELEMENTS.fullmatch(text_of(inner, source)) is not None
    parts: list[Alternatives] = [] if alone else [[[Piece("", "quoted")]]]
    position = first + 1
    for child in children_of(inner)[1:-1]:
        host.deadline.check()
        start = child.start_byte
        if child.type in _SIGNED and source[start] != 0x24:
            start = source.find(b"$", start, child.end_byte)  # a backslash and a blank before it became a part of it
        if start > position:
            parts += _gap(host, position, start)
        parts.append(_EVALUATORS.get(child.type, _others)(host, child, True))
        position = child.end_byte
    return product([*parts, *_gap(host, position, end - 1)] if position < end - 1 else parts)


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
    if name in {"@", "*"}:
        return _all(host, (host.scope.positional,), name, quoted)
    if name == "PWD" and host.scope.cwd is not None:
        return [[Piece(host.scope.cwd, kind)]]
    values = host.scope.values_of(name)
    if values is None:
        return _unknown(quoted)
    return [[Piece(value, kind)] for value in values]


def _all(host: Host, lists: tuple[Elements, ...], mark: str, quoted: bool) -> Alternatives:
    """All elements of a list: words of their own, or one word where the mark is a quoted star."""
    joined = quoted and mark == "*"
    separators = host.scope.values["IFS"]
    if joined and (len(separators) > 1 or separators[0][:1] == UNKNOWN):
        return _unknown(quoted)
    found: Alternatives = []
    for elements in lists:
        if elements is None:
            found += _unknown(joined)
        elif joined:
            found.append([Piece(separators[0][:1].join(elements), "quoted")])
        else:
            found.append(_separated(elements, "quoted" if quoted else "split"))
    return found


def _element(host: Host, node: tree_sitter.Node, quoted: bool) -> Alternatives:
    """`${name[index]}`: one element where the index is a number, else any of them."""
    visit(host, node)
    name_node, index_node = node.child_by_field_name("name"), node.child_by_field_name("index")
    name = text_of(name_node, host.source) if name_node is not None else ""
    index = text_of(index_node, host.source) if index_node is not None else ""
    lists = host.scope.elements_of(name) or (None,)
    if index in {"@", "*"}:
        return _all(host, lists, index, quoted)
    known = [elements for elements in lists if elements is not None]
    some = _unknown(quoted) if len(known) < len(lists) else []
    kind = "quoted" if quoted else "split"
    if re.fullmatch(r"\d{1,6}", index):
        at = int(index)
        return [*([Piece(elements[at] if at < len(elements) else "", kind)] for elements in known), *some]
    every = dict.fromkeys(element for elements in known for element in elements)
    return [*([Piece(element, kind)] for element in list(every)[:MAX_ALTERNATIVES]), *_unknown(quoted)]


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
        if len(children) == 1:
            return _element(host, children[0], quoted)
        return _changed_element(host, node, children, quoted)
    elif children and children[0].type in {"variable_name", "special_variable_name"}:
        name = text_of(children[0], host.source)
    else:
        return _indirect(host, node, quoted)
    if len(children) == 1:
        return variable(host, name, quoted)
    operator = text_of(children[1], host.source)
    if operator in _DEFAULTS:
        return _default(host, name, operator, children[2:], quoted)
    for child in children[2:]:
        visit(host, child, arithmetic=operator == ":")
        if quoted and operator in {":?", "?"} and child.type in {"raw_string", "ansi_c_string"}:
            _plain_quotes(host, text_of(child, host.source))
    if operator in {":?", "?"}:
        return variable(host, name, quoted)
    if operator == "@" and text_of(children[-1], host.source) == "P":
        _prompted(host, name)
    return _changed(host, name, operator, children[2:], quoted)


def _changed_element(
    host: Host, node: tree_sitter.Node, children: list[tree_sitter.Node], quoted: bool
) -> Alternatives:
    """`${name[index]...}` with something done to the element: not followed, but for what a default holds."""
    operator = text_of(children[1], host.source)
    every = text_of(children[0], host.source).endswith(("[@]", "[*]"))
    nothing = _unknown(quoted and not every)
    if operator not in _DEFAULTS:
        visit(host, node)
        return nothing
    visit(host, children[0])
    parts = product([evaluate(host, child, quoted=quoted) for child in children[2:]])
    return [*(_word_of(host, pieces, quoted) for pieces in parts), *nothing]


def _word_of(host: Host, pieces: Pieces, quoted: bool) -> Pieces:
    """The word of a default as a part of the word around it: what is quoted there is not split."""
    if quoted or not any(piece.kind == "quoted" for piece in pieces):
        return [Piece(assigned(pieces, host.scope.home), "quoted" if quoted else "split")]
    return [piece if piece.kind in {"quoted", "break"} else Piece(piece.text, "split") for piece in pieces]


def _prompted(host: Host, name: str) -> None:
    """`${name@P}` expands the value once more."""
    for value in host.scope.values_of(name) or (UNKNOWN,):
        if UNKNOWN in value:
            host.note_opaque(f"${{{name}@P}}")
        else:
            host.expand(value)


def _indirect(host: Host, node: tree_sitter.Node, quoted: bool) -> Alternatives:
    """`${!name}` and `${#name}`."""
    text = text_of(node, host.source)
    match = re.fullmatch(r"\$\{!(\w+)\}", text)
    values = host.scope.values_of(match.group(1)) if match else None
    if values is not None and len(values) == 1 and re.fullmatch(r"\w+", values[0]):
        return variable(host, values[0], quoted)
    for value in values or ():
        host.evaluate_again(value.partition("[")[2])
    visit(host, node)
    return _unknown(quoted)


def _default(host: Host, name: str, operator: str, nodes: list[tree_sitter.Node], quoted: bool) -> Alternatives:
    """`${name:-word}` and its kin: of a variable that is not known, the word is a value like any other."""
    parts = product([evaluate(host, child, quoted=quoted) for child in nodes]) if nodes else [[Piece("", "bare")]]
    kind = "quoted" if quoted else "split"
    if operator[-1] == "=":
        words: Alternatives = [[Piece(assigned(pieces, host.scope.home), kind)] for pieces in parts]
    else:
        words = [_word_of(host, pieces, quoted) for pieces in parts]
    if name in {"@", "*"}:
        positional = host.scope.positional
        values: tuple[str, ...] | None = None if positional is None else ("x",) if positional else ("",)
    else:
        values = host.scope.values_of(name)
    colon, empty = operator[0] == ":", values is None or any(value in {"", UNKNOWN} for value in values)
    if operator[-1] == "+":
        filled = values is None or not colon or any(values)
        return [*(words if filled else []), *([[Piece("", kind)]] if empty else [])]
    found = words if empty else []
    if operator[-1] == "=" and empty:
        former = (UNKNOWN,) if values is None else tuple(value for value in values if value)
        given = tuple(pieces[0].text for pieces in words)
        host.scope.assign(name, (*given, *former), surely=not host.unsure)
    if values is None or any(values) or not colon:
        found = [*found, *variable(host, name, quoted)] if operator[-1] != "=" else [*found, *_filled(values, kind)]
    return found


def _filled(values: tuple[str, ...] | None, kind: str) -> Alternatives:
    return [[Piece(value, kind)] for value in values or (UNKNOWN,) if value]


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


_EVALUATORS: dict[str, Callable[[Host, tree_sitter.Node, bool], Alternatives]] = {
    **dict.fromkeys(_BARE_NODES, _bare),
    "raw_string": _raw_string,
    "ansi_c_string": _ansi_string,
    "string": _nested_string,
    "translated_string": _nested_string,
    "expansion": _nested_parameter,
    "simple_expansion": _simple,
    "command_substitution": _substitution,
    "concatenation": _concatenation,
    "command_name": _concatenation,
    "string_content": _string_content,
}
