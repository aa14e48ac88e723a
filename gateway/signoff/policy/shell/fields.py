"""From pieces to words: tilde, field splitting, quote removal, globs."""

import re

from signoff.policy.shell.braces import Piece, expand
from signoff.policy.shell.model import UNKNOWN, Word

_GLOB = re.compile(r"[*?\[]")
_GLOB_ESCAPE = re.compile(r"([*?\[\]\\])")
_TILDE = re.compile(r"~([A-Za-z_][\w.-]*)?(?=/|$)")
DEFAULT_IFS = " \t\n"


def words(pieces: list[Piece], home: str, ifs: str = DEFAULT_IFS) -> list[Word]:
    """The words that one source word stands for."""
    if len(pieces) == 1 and pieces[0].kind == "bare" and not _GLOB.search(pieces[0].text) and pieces[0].text[:1] != "~":
        text = pieces[0].text
        if "{" not in text and UNKNOWN not in text:
            return [Word(text)]
    return [word for part in expand(pieces) for word in _split(_tilde(part, home), ifs)]


def assigned(pieces: list[Piece], home: str) -> str:
    """The value an assignment gives: no splitting, no globs, no braces."""
    return "".join(piece.text if piece.kind != "break" else " " for piece in _tilde(pieces, home))


def _tilde(pieces: list[Piece], home: str) -> list[Piece]:
    """Replace a tilde at the start; another user's home becomes a path that `paths` knows as a home."""
    first = next((index for index, piece in enumerate(pieces) if piece.text or piece.kind != "bare"), -1)
    if first < 0 or pieces[first].kind != "bare":
        return pieces
    stop = first + 1
    while stop < len(pieces) and pieces[stop].kind == "bare":
        stop += 1
    text = "".join(piece.text for piece in pieces[first:stop])
    match = _TILDE.match(text)
    if match is None or (match.end() == len(text) and stop < len(pieces)):
        return pieces
    name = match.group(1)
    value = home if name is None else "/root" if name == "root" else f"/home/~{name}"
    return [Piece(value, "quoted"), Piece(text[match.end() :], "bare"), *pieces[stop:]]


class _Field:
    """One word in the making."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.pattern: list[str] = []
        self.glob = False
        self.many = False
        self.started = False

    def add(self, text: str, *, quoted: bool) -> None:
        self.started = True
        self.text.append(text)
        self.pattern.append(_GLOB_ESCAPE.sub(r"\\\1", text) if quoted else text)
        self.glob = self.glob or (not quoted and _GLOB.search(text) is not None)

    def word(self) -> Word:
        return Word("".join(self.text), pattern="".join(self.pattern) if self.glob else None, many=self.many)


def _split(pieces: list[Piece], ifs: str) -> list[Word]:
    found: list[Word] = []
    field = _Field()
    for piece in pieces:
        if piece.kind == "break":
            found, field = _close(found, field)
        elif piece.kind != "split":
            if piece.text or piece.kind == "quoted":
                field.add(piece.text, quoted=piece.kind == "quoted")
        elif not ifs:
            field.add(piece.text, quoted=False)
        else:
            found, field = _split_value(piece.text, ifs, found, field)
    return _close(found, field)[0]


def _split_value(text: str, ifs: str, found: list[Word], field: _Field) -> tuple[list[Word], _Field]:
    parts = re.split(f"[{re.escape(ifs)}]+", text)
    for index, part in enumerate(parts):
        if index:
            found, field = _close(found, field)
        if part:
            field.add(part, quoted=False)
            field.many = field.many or UNKNOWN in part
    return found, field


def _close(found: list[Word], field: _Field) -> tuple[list[Word], _Field]:
    if field.started:
        found.append(field.word())
    return found, _Field()
