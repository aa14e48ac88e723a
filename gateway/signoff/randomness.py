"""Which words look drawn by lot (keys, tokens), and which somebody wrote: names, paths, programs."""

from __future__ import annotations

import re
from typing import Final

MIN_WORD: Final = 32
"""Shortest word that is taken for a secret by its looks alone; most issued keys are at least as long."""
_MIN_RANDOM: Final = 20
"""Characters of the word that must lie in pieces without a pattern; image and pod names carry 10 to 20 of them."""
_MIN_PIECE: Final = 4
_TURNOVER: Final = 0.25
"""Share of neighbours of different kinds (lower, upper, digit). Drawn characters show 0.40 (base 36) to 0.65
(base 64), written names below 0.15."""
_NAME_SHARE: Final = 5
"""One part in so many of a relative path is written names at least; in base 64 it is one in fifty by chance."""
_MAX_JUDGED: Final = 4096

# Git object names (SHA-1, SHA-256) and UUIDs are names, not secrets, and people compare them.
_NAMES: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:[0-9a-f]{40}|[0-9a-f]{64}"
    r"|[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12})(?![A-Za-z0-9])"
)
_PIECE: Final = re.compile(r"[A-Za-z0-9]+")
_NAME_PART: Final = re.compile(
    r"(?<![A-Za-z0-9+=])(?:[A-Za-z][a-z]{2,}+|[a-z]{2,}+)(?:[A-Z][a-z]++)*+[0-9]{0,3}(?![A-Za-z0-9+=])"
)


MAX_PROGRAM: Final = 20
"""Longest plain word that is taken for a possible program; names of programs are rarely longer."""
_PLAIN_WORD: Final = re.compile(r"[a-z][a-z/._-]*")
_NUMBERED_PROGRAM: Final = re.compile(
    r"(?:python|pypy|perl|ruby|php|lua|node|pip|gcc)[0-9][0-9.]{0,4}|base(?:32|64)|(?:md5|sha(?:1|224|256|384|512))sum"
    r"|b2sum|bzip2|bunzip2|7z[arz]?|k3s|s3cmd|gpg2|e2fsck|mke2fs|tune2fs|mkfs\.[a-z0-9]+"
)


def could_be_program(word: str) -> bool:
    """Tell whether a word of at most 20 characters could name a program: small letters without digits, `./` and `-`.

    A few programs with digits in their names count as well (`python3`, `sha256sum`).
    """
    if len(word) > MAX_PROGRAM:
        return False
    return _PLAIN_WORD.fullmatch(word) is not None or _NUMBERED_PROGRAM.fullmatch(word) is not None


def _turns(piece: str) -> int:
    """Count the neighbours of different kinds; an upper-case letter that begins a word (`fooBar`) counts once."""
    count, previous, capital = 0, "", False
    for char in piece:
        kind = "0" if char.isdigit() else "A" if char.isupper() else "a"
        if previous and kind != previous:
            count += not (capital and kind == "a")
        capital = kind == "A" and previous != "A"
        previous = kind
    return count


def _is_random(piece: str) -> bool:
    return len(piece) >= _MIN_PIECE and _turns(piece) >= _TURNOVER * (len(piece) - 1)


def looks_random(word: str) -> bool:
    """Tell whether a word of at least 32 characters is mostly made of pieces without a pattern."""
    if len(word) < MIN_WORD:
        return False
    judged = _NAMES.sub("", word[:_MAX_JUDGED])
    return sum(len(piece) for piece in _PIECE.findall(judged) if _is_random(piece)) >= _MIN_RANDOM


def looks_like_path(word: str) -> bool:
    """Tell whether a word with a slash reads as a path: it starts as one, or a fifth of it is written names.

    An absolute one needs a single name. Only the first 4,096 characters are looked at.
    """
    if "/" not in word:
        return False
    if word.startswith(("./", "../", "~/")):
        return True
    judged = word[:_MAX_JUDGED]
    if word.startswith("/"):
        return _NAME_PART.search(judged) is not None
    return _NAME_SHARE * sum(len(name) for name in _NAME_PART.findall(judged)) >= len(judged)
