"""Texts without their comments, which run nothing and speak only to whoever reads them."""

import ast
import time
from collections.abc import Callable

from signoff.policy.languages import is_python
from signoff.policy.shell.deadline import Deadline, GivenUpError
from signoff.policy.shell.syntax import parse

MAX_CHARS = 32_768
"""A longer text is left as it is."""

SHELL_NAMES = frozenset({"shell", "bash", "sh", "dash", "ash", "ksh", "mksh", "zsh", "shellscript", "posix"})


def without_comments(text: str, language: str, *, clock: Callable[[], float] = time.thread_time) -> str:
    """A text for a shell or Python code without its comments; any other, and what cannot be read, as it is.

    `language` is `shell` or the name of a shell or of Python, in letters of any case.
    """
    if len(text) > MAX_CHARS:
        return text
    if language.casefold() in SHELL_NAMES:
        return _shell(text, clock)
    return _python(text) if is_python(language) else text


def _shell(text: str, clock: Callable[[], float]) -> str:
    data = text.encode("utf-8", "surrogatepass")
    try:
        todo = [parse(data, Deadline(clock)).root_node]
    except GivenUpError:
        return text
    comments: list[tuple[int, int]] = []
    while todo:
        node = todo.pop()
        if node.type == "comment":
            comments.append((node.start_byte, node.end_byte))
        else:
            todo += node.children
    if any(b"`" in data[start:end] for start, end in comments):
        return text  # where a comment between backticks ends is not seen
    for start, end in sorted(comments, reverse=True):
        data = data[:start] + data[end:]
    return data.decode("utf-8", "surrogatepass").strip()


def _python(text: str) -> str:
    try:
        return ast.unparse(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
