"""From pieces to words: tilde, field splitting, quote removal, globs."""

import re

from signoff.policy.shell.braces import Piece, expand
from signoff.policy.shell.model import UNKNOWN, Word
from signoff.policy.shell.scope import DEFAULT_IFS

MAX_PIECES = 1024
"""A word in more pieces is not known either: each costs some microseconds."""

_MAX_TILDES = 256
"""The same for places of a value where a tilde may stand."""

MAX_CHARS = 64 * 1024
"""A word that expansion makes longer than this is not known: `$a$a$a` may be as long as you like."""

_GLOB = re.compile(r"[*?\[]")
_SPECIAL = re.compile(r"[*?\[{},~\s\x00]")
"""What keeps an unquoted stretch from being just its text."""

_GLOB_ESCAPE = re.compile(r"([*?\[\]\\])")
_TILDE = re.compile(r"~([A-Za-z_][\w.-]*|[+-]?\d*)(?=[/:]|$)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")


def words(pieces: list[Piece], home: str, ifs: str = DEFAULT_IFS) -> list[Word]:
    """The words that one source word stands for. `ifs` are the characters at which values are split; with `UNKNOWN` in
    it nobody knows into what they fall."""
    if len(pieces) > 1 and _is_too_much(pieces):
        return [Word(UNKNOWN, many=True)]
    texts: list[str] = []
    for text, kind in pieces:
        if kind != "quoted" and (not text or kind == "break" or _SPECIAL.search(text) is not None):
            break
        texts.append(text)
    else:
        if ifs == DEFAULT_IFS or all(kind != "split" for _text, kind in pieces):
            return [Word("".join(texts))] if texts else []
    return [word for part in expand(pieces) for word in _split(_tildes(part, home), ifs)]


def _is_too_much(pieces: list[Piece]) -> bool:
    return len(pieces) > MAX_PIECES or sum([len(piece.text) for piece in pieces]) > MAX_CHARS


def assigned(pieces: list[Piece], home: str) -> str:
    """The value an assignment gives: no splitting, no globs, no braces."""
    if len(pieces) > 1 and _is_too_much(pieces):
        return UNKNOWN
    return "".join(piece.text if piece.kind != "break" else " " for piece in _all_tildes(pieces, home))


def _tildes(pieces: list[Piece], home: str) -> list[Piece]:
    """Replace the tildes of a word: the one at its start, or those of the value where it looks like an assignment."""
    head = _ASSIGNMENT.match(pieces[0].text) if pieces and pieces[0].kind == "bare" else None
    if head is None:
        return _tilde(pieces, home)
    value = [Piece(pieces[0].text[head.end() :], "bare"), *pieces[1:]]
    return [Piece(head.group(), "bare"), *_all_tildes(value, home)]


def _all_tildes(pieces: list[Piece], home: str) -> list[Piece]:
    """Replace the tildes of a value: at its start, and behind each colon."""
    if not any(piece.kind == "bare" and "~" in piece.text for piece in pieces):
        return pieces
    parts: list[list[Piece]] = [[]]
    for piece in pieces:
        first, *others = piece.text.split(":") if piece.kind == "bare" else [piece.text]
        parts[-1].append(Piece(first, piece.kind))
        if len(parts) + len(others) > _MAX_TILDES:
            return [Piece(UNKNOWN, "quoted")]
        parts += [[Piece(other, "bare")] for other in others]
    found = list(_tilde(parts[0], home))
    for part in parts[1:]:
        found += (Piece(":", "bare"), *_tilde(part, home))
    return found


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
    value = _home_of(match.group(1), home)
    return [Piece(value, "quoted"), Piece(text[match.end() :], "bare"), *pieces[stop:]]


def _home_of(name: str, home: str) -> str:
    if not name:
        return home
    if name[0] in "+-0123456789":  # a folder of the directory stack
        return UNKNOWN
    return "/root" if name == "root" else f"/home/~{name}"


class _Field:
    """One word in the making."""

    __slots__ = ("glob", "many", "parts")

    def __init__(self) -> None:
        self.parts: list[tuple[str, bool]] = []
        self.glob = False
        self.many = False

    def add(self, text: str, *, quoted: bool) -> None:
        self.parts.append((text, quoted))
        if not quoted and not self.glob and _GLOB.search(text) is not None:
            self.glob = True

    def word(self) -> Word:
        text = "".join([part for part, _quoted in self.parts])
        if not self.glob:
            return Word(text, many=self.many)
        pattern = [_GLOB_ESCAPE.sub(r"\\\1", part) if quoted else part for part, quoted in self.parts]
        return Word(text, pattern="".join(pattern), many=self.many)


def _split(pieces: list[Piece], ifs: str) -> list[Word]:
    found: list[Word] = []
    field = _Field()
    for piece in pieces:
        if piece.kind == "break":
            found, field = _close(found, field)
        elif piece.kind != "split":
            if piece.text or piece.kind == "quoted":
                field.add(piece.text, quoted=piece.kind == "quoted")
        elif UNKNOWN in ifs:
            field.add(UNKNOWN, quoted=False)
            field.many = True
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
    if field.parts:
        found.append(field.word())
    return found, _Field()
