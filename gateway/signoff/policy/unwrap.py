"""The exact text of a command without wrappers that change neither who, where nor what."""

import time

import tree_sitter

from signoff.policy.shell import syntax
from signoff.policy.shell.carriers import find
from signoff.policy.shell.deadline import Deadline, GivenUpError
from signoff.policy.shell.model import Word
from signoff.policy.shell.quoting import bare, double_quoted
from signoff.policy.shell.source import MAX_BYTES, first_odd, overload
from signoff.policy.shell.unwrapping import unwrap

TRANSPARENT = frozenset({"bash", "sh", "env", "nohup", "timeout", "nice", "setsid"})
"""Wrappers that are left out: what they run is the same command, by the same user, in the same place."""

_FOLDERS = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/", "/run/current-system/sw/bin/")
_MAX_LEVELS = 8
BUDGET_S = 0.01
"""The time for it, beside that for judging; a text that needs more stays as it is."""

_PLAIN_NODES = frozenset(
    {"word", "number", "raw_string", "string", "concatenation", "string_content", "command_name", '"'}
)


def is_transparent(program: str) -> bool:
    """Whether a program's word is one of these wrappers: by its name alone, or in a folder of the system. A file of
    that name in any other place is somebody's own."""
    folder, slash, name = program.rpartition("/")
    return name in TRANSPARENT and (not slash or f"{folder}/" in _FOLDERS)


def unwrapped(command: str) -> str | None:
    """The inner text of `command`, exactly as it stands there, or the command itself where nothing wraps it.

    None unless it is one simple command of plain words: without redirection, assignment, expansion or a second command.
    """
    deadline = Deadline(time.thread_time, BUDGET_S)
    text = command.strip()
    for _level in range(_MAX_LEVELS):
        try:
            words = _plain_words(text, deadline)
        except GivenUpError:
            return None
        if words is None:
            return None
        if words[0][1].text not in TRANSPARENT or len(words) == 1:
            return text
        inner = _inner_text(text, words)
        if inner is None:
            return None
        text = inner.strip()
    return None


def _inner_text(text: str, words: list[tuple[int, Word]]) -> str | None:
    """What a transparent wrapper runs; None when it does more than that, or when it is told of no command."""
    resolved = tuple(word for _start, word in words)
    inners = [inner for carrier, seen, _before in find(resolved) for inner in unwrap(carrier, seen)]
    if len(inners) != 1 or inners[0].assignments:
        return None
    inner = inners[0]
    if inner.words:
        return None if _env_options(resolved, inner.own) else text.encode()[words[inner.own][0] :].decode()
    shell_text = resolved[0].text in {"bash", "sh"} and len(resolved) == 3 and resolved[1].text == "-c"
    return inner.text if shell_text and inner.text and inner.text.strip() else None


def _env_options(words: tuple[Word, ...], own: int) -> bool:
    """Whether env is told to change the environment: then it is no longer the same command."""
    return words[0].text == "env" and own > 1


def _plain_words(text: str, deadline: Deadline) -> list[tuple[int, Word]] | None:
    """The words of one simple command with the byte at which each starts, or None when it is anything else."""
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_BYTES or overload(text) or "\x00" in text:
        return None
    root = syntax.parse(data, deadline).root_node
    if (
        root.has_error
        or len(root.children) != 1
        or root.children[0].type != "command"
        or first_odd(text, root, deadline)
    ):
        return None
    words: list[tuple[int, Word]] = []
    for node in syntax.children_of(root.children[0]):
        value = _literal(node, data)
        if value is None:
            return None
        words.append((node.start_byte, Word(value)))
    return words


def _literal(node: tree_sitter.Node, data: bytes) -> str | None:
    """The value of a word that holds nothing to expand."""
    if node.type not in _PLAIN_NODES:
        return None
    text = syntax.text_of(node, data)
    if node.type == "raw_string":
        return text[1:-1]
    if node.type == "string":
        return (
            double_quoted(text[1:-1]) if all(child.type in _PLAIN_NODES for child in syntax.children_of(node)) else None
        )
    if node.child_count:
        values = [_literal(child, data) for child in syntax.children_of(node)]
        return None if None in values else "".join(value for value in values if value is not None)
    if any(mark in text for mark in "*?[{~\n"):
        return None
    return "".join(part for part, _quoted in bare(text))
