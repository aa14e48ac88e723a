"""Parses Python code in parts, so that the time it takes can be bounded."""

import ast
import re
import warnings
from typing import NamedTuple

from signoff.policy.shell.deadline import Deadline, OutOfTimeError

MAX_BYTES = 256 * 1024
"""Longer code is not read: nobody can judge it in a chat either."""

PART_CHARS = 4096
"""The size of a part. Parsing cannot be interrupted; 4 kB take 1 ms as people write, 9 ms at the worst (measured)."""

MAX_TOKENS = 16_000
"""The largest single statement, in tokens: the parser takes up to 2.3 microseconds for each (measured)."""

MAX_FIELD_WORK = 100_000_000
"""Fields of format strings times characters: Python 3.11 takes time by the square, here 20 ms (measured)."""

_PLAIN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_ \t\r\n"
_BOUNDARY = re.compile(r"\n(?=[A-Za-z_@])(?!(?:else|elif|except|finally)\b)")
_TOKEN = re.compile(
    r"([rbfuRBFU]{0,2})(?:\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*+\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*+'''"
    r"|\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+')|#[^\n]*+|\w++|[^\w\s]",
    re.S,
)


_COOKIE = re.compile(r"(?:[ \t\f]*(?:#[^\n]*)?\r?\n)?[ \t\f]*#[^\n]*?coding[:=][ \t]*([-\w.]+)")
"""The line by which a file says in which encoding it is written: the first, or the second behind a comment."""

_ENCODINGS = frozenset(
    {"utf-8", "utf8", "utf-8-sig", "u8", "ascii", "us-ascii", "latin-1", "latin1", "iso-8859-1", "iso8859-1", "cp1252"}
    | {"utf-8-unix", "utf-8-dos", "utf-8-mac", "iso-8859-15", "iso-latin-1-unix", "latin-1-unix"}
)
"""Encodings in which plain letters and signs are themselves."""


class UnreadableError(Exception):
    """The code cannot be parsed; `reason` ends a sentence that begins with "cannot be understood"."""

    def __init__(self, reason: str) -> None:
        """Keep the reason."""
        super().__init__(reason)
        self.reason = reason


class Part(NamedTuple):
    """Some whole statements; `offset` lines of the code stand before them."""

    tree: ast.Module
    offset: int


def parse(text: str, deadline: Deadline) -> list[Part]:
    """All statements of the code. Raises `UnreadableError` and `OutOfTimeError`."""
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise UnreadableError(f"it is longer than {MAX_BYTES // 1024} kB")
    if "\x00" in text:
        raise UnreadableError("it contains a NUL character")
    cookie = _COOKIE.match(text)
    if cookie is not None and cookie.group(1).lower().replace("_", "-") not in _ENCODINGS:
        raise UnreadableError("it declares an encoding in which it may say something else")
    # Escapes that Python frowns on would be told on our own error stream, or raised where warnings are errors.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _parts(text.removeprefix("\ufeff"), deadline)


def _parts(text: str, deadline: Deadline) -> list[Part]:
    parts: list[Part] = []
    start = offset = 0
    while start < len(text):
        size = PART_CHARS
        while True:
            deadline.check()
            found = _BOUNDARY.search(text, start + size)
            end = found.start() + 1 if found else len(text)
            tree = _tree(text[start:end], deadline, last=end == len(text))
            if tree is not None:
                break
            # A statement may go on behind the cut (in a long text, a bracket, behind a decorator).
            size = 2 * (end - start)
        parts.append(Part(tree, offset))
        offset += text.count("\n", start, end)
        start = end
    return parts


def _tree(text: str, deadline: Deadline, *, last: bool) -> ast.Module | None:
    """Parse; None when it may be that more text is wanted."""
    if len(text) > 2 * PART_CHARS and _too_heavy(text, deadline):
        raise OutOfTimeError
    try:
        return ast.parse(text)
    except SyntaxError as error:
        if not last:
            return None
        raise UnreadableError("its syntax cannot be read") from error
    except (ValueError, OverflowError) as error:
        raise UnreadableError("it holds characters that are no text") from error
    except (RecursionError, MemoryError) as error:
        raise UnreadableError("it nests too deeply") from error


def _too_heavy(text: str, deadline: Deadline) -> bool:
    """Whether parsing would take too long, which only shows before it begins."""
    fields = text.count("{") * len(text)
    at_most = len(text.split()) + 2 * len(text.encode("utf-8", "replace").translate(None, _PLAIN))
    if at_most <= MAX_TOKENS and fields <= MAX_FIELD_WORK:
        return False
    work = 0
    for count, token in enumerate(_TOKEN.finditer(text)):
        if count >= MAX_TOKENS:
            return True
        if not count & 7:
            deadline.check()
        prefix = token.group(1)
        if prefix and "f" in prefix.casefold():
            work += token.group().count("{")
            if work * len(text) > MAX_FIELD_WORK:
                return True
    return False
