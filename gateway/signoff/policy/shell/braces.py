"""Brace expansion, done on pieces so that quoted braces stay what they are."""

import re
from typing import NamedTuple

from signoff.policy.shell.model import UNKNOWN

MAX_WORDS = 64
"""How many words one brace expansion may make; beyond that it is unknown."""

MAX_ATOMS = 1000
"""How many braces, commas and stretches between them one word may have."""

MAX_GROUPS = 64
"""How many open braces one word may have: the end of each is looked for."""

_SEQUENCE = re.compile(r"(-?\d{1,6}|[A-Za-z])\.\.(-?\d{1,6}|[A-Za-z])(?:\.\.([+-]?\d{1,6}))?")
_PADDED = re.compile(r"-?0\d")


class Piece(NamedTuple):
    """A stretch of a word. `kind`: `bare` unquoted source text, `quoted`, `split` the value of an unquoted expansion,
    `break` the border between two fields."""

    text: str
    kind: str


_CLOSING = Piece("}", "bare")


def expand(pieces: list[Piece]) -> list[list[Piece]]:
    """The words that these pieces stand for, one list of pieces each."""
    if not any(piece.kind == "bare" and "{" in piece.text for piece in pieces):
        return [pieces]
    done: list[list[Piece]] = []
    todo = [_atoms(pieces)]
    if len(todo[0]) > MAX_ATOMS or sum([text == "{" for text, _kind in todo[0]]) > MAX_GROUPS:
        return [[Piece(UNKNOWN, "split")]]
    while todo:
        word = todo.pop()
        found = _first_group(word)
        if found is None:
            done.append(word)
            continue
        start, end, options = found
        if len(done) + len(todo) + len(options) > MAX_WORDS:
            return [[Piece(UNKNOWN, "split")]]
        todo += [word[:start] + option + word[end + 1 :] for option in reversed(options)]
    return done


def _atoms(pieces: list[Piece]) -> list[Piece]:
    """The pieces with each bare brace and comma on its own."""
    atoms: list[Piece] = []
    for piece in pieces:
        if piece.kind == "bare":
            atoms += [Piece(text, "bare") for text in re.split(r"([{},])", piece.text) if text]
        else:
            atoms.append(piece)
    return atoms


def _first_group(word: list[Piece]) -> tuple[int, int, list[list[Piece]]] | None:
    """The first brace group that expands: its borders and its options."""
    for index, atom in enumerate(word):
        if atom.kind != "bare" or atom.text != "{" or (index == 0 and word[1:2] == [_CLOSING]):
            continue  # a word that starts with an empty pair starts with plain text
        end = _group_end(word, index)
        options = _options(word[index + 1 : end]) if end else None
        if options is not None:
            return index, end, options
    return None


def _group_end(word: list[Piece], start: int) -> int:
    """The place of the brace that ends the group, or 0. One before any comma is text, unless it ends a group within
    this one."""
    depth = 0
    ends = False
    for index in range(start + 1, len(word)):
        text, kind = word[index]
        if kind != "bare":
            continue
        if text == "{":
            depth += 1
        elif text == "}" and depth:
            depth -= 1
        elif text == "}" and ends:
            return index
        elif depth == 0 and (text == "," or ".." in text):
            ends = True
    return 0


def _options(inside: list[Piece]) -> list[list[Piece]] | None:
    """The options between two braces, or None when they are plain text."""
    options: list[list[Piece]] = [[]]
    depth = 0
    for atom in inside:
        mark = atom.text if atom.kind == "bare" else ""
        depth = max(depth + (mark == "{") - (mark == "}"), 0)
        if mark == "," and depth == 0:
            options.append([])
        else:
            options[-1].append(atom)
    if len(options) > 1:
        return options
    text = "".join(atom.text for atom in inside)
    match = _SEQUENCE.fullmatch(text) if all(atom.kind == "bare" for atom in inside) else None
    return _sequence(match.group(1), match.group(2), match.group(3) or "1") if match else None


def _sequence(first: str, last: str, by: str) -> list[list[Piece]] | None:
    numeric = first.lstrip("-").isdigit() and last.lstrip("-").isdigit()
    if not numeric and (first.lstrip("-").isdigit() or last.lstrip("-").isdigit()):
        return None
    low, high = (int(first), int(last)) if numeric else (ord(first), ord(last))
    if abs(high - low) >= MAX_WORDS:
        return [[Piece(UNKNOWN, "split")]]
    # Where one end is written with zeros before it, all are as long as the longer end.
    width = max(len(first), len(last)) if _PADDED.match(first) or _PADDED.match(last) else 0
    sign = 1 if high >= low else -1
    values = range(low, high + sign, sign * max(abs(int(by)), 1))
    return [[Piece(f"{value:0{width}d}" if numeric else chr(value), "bare")] for value in values]
