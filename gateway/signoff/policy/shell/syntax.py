"""The parser: text to syntax tree within a deadline."""

import re
from collections.abc import Iterator

import tree_sitter
import tree_sitter_bash

from signoff.policy.shell.deadline import Deadline, OutOfTimeError, TooManyWordsError

CHUNK_BYTES = 1024
"""Small, since each reading asks for the time: while the parser skips what makes no sense it calls nothing else."""

MAX_PARTS = 12_000
"""How many words one command, or parts one word, may have: 3 ms to list them, and up to 15 for a rule that looks at
each, during which no time is looked at."""

_LANGUAGE = tree_sitter.Language(tree_sitter_bash.language())
_RUNNING = tree_sitter.Query(
    _LANGUAGE,
    "[(command) (declaration_command) (command_substitution) (process_substitution)] @runs (comment) @comments",
)


_ERRORS = tree_sitter.Query(_LANGUAGE, "(ERROR) @errors")
_TESTS = tree_sitter.Query(_LANGUAGE, "(test_command) @tests")

HERE_STRING = b"<<<"
_HERE_STRING = re.compile(rb"<<<[ \t]*[^\s<]")
_SEARCHED_BYTES = 32 * 1024
"""So much of a text is searched at once."""

_MAX_ROUNDS = 4
"""So often a text is parsed again whose here-strings the grammar does not know where they stand."""

_PLAIN = bytes(byte if byte < 0x80 else ord(".") for byte in range(256))
"""Every byte of a character beyond ASCII becomes a dot, which is an ordinary part of a word and of no name.

The grammar's scanner hands characters to C's `isalnum` and its kin, which read outside their tables for large ones: a
brace before `U+10FFFD` ended the whole process (tree-sitter-bash 0.25). All offsets stay, so texts are read from the
original. Here-document delimiters that differ only beyond ASCII look alike to the parser; a document then seems to end
too early, and data is judged as commands, never the other way round.
"""


def parse(source: bytes, deadline: Deadline) -> tree_sitter.Tree:
    """The syntax tree of `source`, errors included.

    The grammar knows no here-string behind another redirection or a group. Such a one becomes a `file_redirect` in the
    tree, at whose operator `source` has `HERE_STRING`.

    Raises `OutOfTimeError` when the deadline passes while parsing: then the text seems to end where it was read to,
    since the parser must never be given another text at a place it has seen.
    """
    plain = source.translate(_PLAIN)
    tree = _parsed(plain, deadline)
    for _round in range(_MAX_ROUNDS):
        if not tree.root_node.has_error or HERE_STRING not in plain:
            break
        known = _without_here_strings(plain, tree.root_node)
        if known == plain:
            break
        plain = known
        tree = _parsed(plain, deadline)
    return tree


def _without_here_strings(plain: bytes, root: tree_sitter.Node) -> bytes:
    """The same with a plain `<` for each here-string at which the parser stumbled."""
    found = bytearray(plain)
    for node in tree_sitter.QueryCursor(_ERRORS).captures(root).get("errors", []):
        start = node.start_byte
        if plain[start : node.end_byte] == b"<<" and _HERE_STRING.match(plain, start):
            found[start : start + 3] = b"<  "
    return bytes(found)


def _parsed(plain: bytes, deadline: Deadline) -> tree_sitter.Tree:
    # A parser of its own for each text: an aborted one keeps its state, and texts may be read on several threads.
    parser = tree_sitter.Parser(_LANGUAGE)
    if len(plain) <= CHUNK_BYTES:
        tree = parser.parse(plain)  # the parser is quadratic at its worst: 3 ms for so little
        deadline.check()
        return tree
    given = 0

    def read(offset: int, _point: tree_sitter.Point) -> bytes:
        nonlocal given
        end = given if deadline.expired() else max(given, offset + CHUNK_BYTES)
        given = max(given, end)
        return plain[offset : min(end, offset + CHUNK_BYTES)]

    def stop(_offset: int, _has_error: bool) -> bool:
        return deadline.expired()

    try:
        tree = parser.parse(read, progress_callback=stop)
    except ValueError:
        raise OutOfTimeError from None
    deadline.check()
    return tree


def understood_prefix(source: bytes, deadline: Deadline) -> bytes:
    """The longest run of whole lines at the start that parses without an error.

    A shell runs what it has read before it meets the error, so these lines count although the text is broken.
    """
    lines = source.splitlines(keepends=True)
    low, high = 0, len(lines) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if parse(b"".join(lines[:middle]), deadline).root_node.has_error:
            high = middle - 1
        else:
            low = middle
    return b"".join(lines[:low])


def children_of(node: tree_sitter.Node) -> list[tree_sitter.Node]:
    """The parts of a command or a word. Raises `TooManyWordsError` where looking at them would take too long."""
    if node.child_count > MAX_PARTS:
        raise TooManyWordsError
    return node.children


def running(root: tree_sitter.Node) -> tuple[list[tree_sitter.Node], list[tree_sitter.Node]]:
    """Every command and substitution below `root`, and every comment: 0.8 microseconds for each (measured)."""
    found = tree_sitter.QueryCursor(_RUNNING).captures(root)
    return found.get("runs", []), found.get("comments", [])


def tests(root: tree_sitter.Node, deadline: Deadline) -> Iterator[tree_sitter.Node]:
    """Every `[ ... ]` and `[[ ... ]]` below `root`, some of them twice. Raises `OutOfTimeError`."""
    cursor = tree_sitter.QueryCursor(_TESTS)
    for start in range(root.start_byte, root.end_byte, _SEARCHED_BYTES):
        deadline.check()
        cursor.set_byte_range(start, start + _SEARCHED_BYTES)
        yield from cursor.captures(root).get("tests", [])


def text_of(node: tree_sitter.Node, source: bytes) -> str:
    """The text of a node."""
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")
