"""Where the grammar takes a text apart otherwise than the shell, without an error in its tree."""

import re

import tree_sitter

from signoff.policy.shell import syntax
from signoff.policy.shell.deadline import Deadline

_SUSPECT = re.compile(
    rb"""\\(?:[\s$]|(?<=[^\s;&|(]\\)[^\n]) # an escape of a blank or within a word, which may end it or be lost
    | \$(?![\w{('@*#?$!-])             # a dollar that is text: the next word becomes its name
    | \$(?<=[^\s"'(]\$)[\w@*#?$!-]     # a second variable in a word: its sign ends the word
    | \$(?<=[^\s(]["']\$)[\w@*#?$!-]
    | \$'[^']*\\\\ | \#(?<=[^\s;&|(]\#) | =[~=]
    """,
    re.X,
)
"""What stands in every text that was ever found to be taken apart wrongly, and in some that are not: only those are
looked at closely, which costs a third of the time to read them."""

_PID_BEFORE_BRACE = b"$${"
"""The grammar sees a dollar and a variable in braces."""

_BLANKS = b" \t\n"
_WORD = re.compile(rb"(?:\\.|[^\\\s])*+", re.S)
_ANSI = re.compile(rb"\$'(?:\\.|[^'\\])*+'", re.S)

_OPERATOR = re.compile(rb"[|&;<>\n()]")
_ESCAPED = re.compile(rb"\\.", re.S)
_QUOTING = frozenset({"string", "raw_string", "ansi_c_string", "expansion", "command_substitution"})
_AFTER_BRACKET = frozenset({b" ", b"\t", b"\n"})
_WHOLE = frozenset({"concatenation", "variable_assignment", "simple_expansion", "command_name", "translated_string"})
"""Nodes whose parts touch each other."""

_OF_WORDS = frozenset(
    {"command", "declaration_command", "unset_command", "array", "for_statement", "case_statement", "case_item"}
    | {"file_redirect", "herestring_redirect", "heredoc_redirect", "redirected_statement"}
)
"""Nodes whose parts, where they are words, have blanks between them."""

_SIGNS = frozenset({"$", "==", "=~"})
"""Marks without a name that are words, or the start of one."""

_OF_TEXT = frozenset({"string", "heredoc_body", "expansion", "arithmetic_expansion", "subscript"})
"""Nodes between whose parts anything may stand; words within them follow other rules."""

_STARTS_CODE = frozenset({"command_substitution", "process_substitution"})
_TOUCHING = frozenset(
    {"file_redirect", "herestring_redirect", "heredoc_redirect", "heredoc_start", "heredoc_body", "heredoc_end"}
)
"""Parts that may follow a word at once."""


def is_misread(root: tree_sitter.Node, source: bytes, deadline: Deadline) -> bool:
    """Whether words in the tree of `source` touch each other, or lack what stands between them. Raises
    `OutOfTimeError` and `TooManyWordsError`."""
    if b"[" in source and any(_is_no_test(node, source, deadline) for node in syntax.tests(root, deadline)):
        return True
    if _PID_BEFORE_BRACE in source:
        return True
    if _SUSPECT.search(source) is None:
        return False
    parts = syntax.children_of(root)
    ends = source[: parts[0].start_byte] + source[parts[-1].end_byte :] if parts else source
    if ends.strip(_BLANKS + b";&"):
        return True
    todo = [(root, False)]
    while todo:
        deadline.check()
        node, as_text = todo.pop()
        kind = node.type
        children = syntax.children_of(node)
        if not children:
            if _is_odd_leaf(node, kind, source, as_text):
                return True
            continue
        if kind in _STARTS_CODE:
            as_text = False
        elif kind in _OF_TEXT:
            as_text = True
        if not as_text and (kind == "number" or _is_torn(kind, children, source, deadline)):
            return True
        todo += [(child, as_text) for child in children]
    return False


def _is_odd_leaf(node: tree_sitter.Node, kind: str, source: bytes, as_text: bool) -> bool:
    if not as_text and not node.is_named:
        return node.end_byte - node.start_byte != len(kind)  # it swallowed a backslash before it
    if kind == "ansi_c_string":
        return _ANSI.fullmatch(source, node.start_byte, node.end_byte) is None
    if as_text:
        return False
    if kind == "word":
        return _WORD.fullmatch(source, node.start_byte, node.end_byte) is None
    return kind == "regex" and (node.parent is None or node.parent.type != "binary_expression")


def _is_torn(kind: str, children: list[tree_sitter.Node], source: bytes, deadline: Deadline) -> bool:
    """Whether something other than blanks stands between these parts, or nothing where there must be a blank."""
    whole, of_words = kind in _WHOLE, kind in _OF_WORDS
    before = children[0]
    for child in children[1:]:
        deadline.check()
        start, end = before.end_byte, child.start_byte
        if start < end:
            if whole:
                return True
            lost = source[start:end].strip(_BLANKS)
            if lost and lost != b"-":
                return True
        elif of_words and _is_of_word(before) and _is_of_word(child) and child.type not in _TOUCHING:
            return True
        before = child
    return False


def _is_no_test(node: tree_sitter.Node, source: bytes, deadline: Deadline) -> bool:
    """Whether this is a command like any other: `[` is one to the shell, which sees operators behind it."""
    deadline.check()
    start = node.start_byte
    if source[start] != 0x5B:  # (( ... ))
        return False
    position = start + 1 + (source[start + 1] == 0x5B)
    if source[position : position + 1] not in _AFTER_BRACKET:
        return True
    if position > start + 1 or _OPERATOR.search(source, position, node.end_byte) is None:
        return False
    bare: list[bytes] = []
    todo = node.children[:0:-1]
    while todo:
        deadline.check()
        part = todo.pop()
        if part.type in _QUOTING:
            bare.append(source[position : part.start_byte])
            position = part.end_byte
        else:
            todo += reversed(part.children)
    bare.append(source[position : node.end_byte])
    return _OPERATOR.search(_ESCAPED.sub(b"", b"_".join(bare))) is not None


def _is_of_word(node: tree_sitter.Node) -> bool:
    return node.is_named or node.type in _SIGNS


_GLUED = re.compile(rb"\$\{[^{}]*(?:,|\.\.)|\{.*\$(?:,.*)?\}[A-Za-z0-9_]", re.S)


def is_glued(source: bytes, parts: list[tree_sitter.Node]) -> bool:
    """Whether the shell puts other letters behind the name of a variable in this word: `{a,$b}c` is `ac $bc` to it."""
    kinds = [part.type for part in parts]
    if "$" in kinds:
        return True
    if "simple_expansion" not in kinds:
        return False
    text = b""
    for kind, part in zip(kinds, parts, strict=True):
        known = source[part.start_byte : part.end_byte] if kind in {"word", "number", "brace_expression"} else b"-"
        text += b"$" if kind == "simple_expansion" else known
    return _GLUED.search(text) is not None
