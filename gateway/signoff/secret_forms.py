"""Secrets that are known by their own form, wherever they stand.

Each finder yields half-open spans `(start, end)` of the text and walks it once: a pattern either begins only where a
run begins, or gives up after a bounded number of characters.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Final

from signoff.randomness import MIN_WORD, could_be_program, looks_like_path, looks_random

Span = tuple[int, int]

# Prefixes as their issuers document them; shorter than issued ones, so that a clipped token is masked as well.
_ISSUED: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"gh[pousr]_[A-Za-z0-9]{8,}|github_pat_[A-Za-z0-9_]{8,}|gl(?:pat|dt|rt|cbt|ptt|soat)-[A-Za-z0-9_.-]{8,}"
    r"|xox[abceoprs]-[A-Za-z0-9.-]{8,}|xapp-[A-Za-z0-9-]{8,}|A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{12,}|AIza[A-Za-z0-9_-]{20,}"
    r"|sk-(?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_-]{12,}|[srp]k_(?:live|test)_[A-Za-z0-9]{8,}|whsec_[A-Za-z0-9+/=]{8,}"
    r"|npm_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{16,}|do[opr]_v1_[A-Za-z0-9]{16,}"
    r"|hv[sb]\.[A-Za-z0-9_-]{16,}|dckr_pat_[A-Za-z0-9_-]{8,}|shp(?:at|ca|pa|ss)_[A-Za-z0-9]{8,}|ya29\.[A-Za-z0-9_-]{8,}"
    r"|SG\.[A-Za-z0-9_-]{8,64}\.[A-Za-z0-9_-]{8,}|lin_api_[A-Za-z0-9]{8,}"
    r")"
)
_JWT: Final = re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{4,}+\.[A-Za-z0-9_-]{4,}+(?:\.[A-Za-z0-9_-]*+)?")
_BOT_TOKEN: Final = re.compile(r"(?<![0-9])[0-9]{6,12}:([A-Za-z0-9_-]{30,})")
_HOOK: Final = re.compile(
    r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9_]{1,32}/[A-Za-z0-9_]{1,32}/"
    r"|discord(?:app)?\.com/api/webhooks/[0-9]{1,24}/)([A-Za-z0-9_-]+)"
)
# User and password end at whatever could begin a command, so that no mask covers an operator's other side.
_USERINFO: Final = re.compile(
    r"(?<![A-Za-z0-9_+.-])[A-Za-z][A-Za-z0-9+.-]{0,30}://"
    r"[^\s/:@\"'<>;|&{},!()$`\\]*+:([^\s/@\"'<>;|&{},!()$`\\]++)@"
)
_GAP: Final = r"[ \t]{1,4}"
_IDENTIFIED: Final = re.compile(
    rf"\b(?:identified{_GAP}by{_GAP}(?:password{_GAP})?|(?:user|role){_GAP}\S{{1,64}}{_GAP}(?:\w{{1,12}}{_GAP}){{0,4}}?"
    rf"password{_GAP})\\?['\"]([^'\"\s$`]{{1,256}})",
    re.IGNORECASE | re.ASCII,
)
_SCHEME: Final = re.compile(r"\b(?:bearer|basic)[ \t]{1,4}([A-Za-z0-9_+/=.-]{8,})", re.IGNORECASE | re.ASCII)
_LONG: Final = re.compile(rf"(?<![A-Za-z0-9_+/.-])[A-Za-z0-9_+/.-]{{{MIN_WORD - 2},}}={{0,2}}")
_LONG_ENOUGH: Final = re.compile(rf"[A-Za-z0-9_+/=.-]{{{MIN_WORD - 2}}}")
# What follows a token in an address that goes on: `…/getMe`.
_NAMED_TAIL: Final = re.compile(r"/[a-z]{2,}+(?:[A-Z][a-z]++)*+\Z")
_LONGEST_TAIL: Final = 40

_PEM: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END: Final = "-----END"
# In a string of a program a line ends with a backslash and a letter, which is no part of the next one.
_PEM_WORD: Final = re.compile(r"(?:(?<=\\)[nr]|(?<!\\)(?=[A-Za-z0-9+/]))([A-Za-z0-9+/]++={0,2})")
_BETWEEN: Final = re.compile(r"(?:[\s\"',+]|\\[nr]?)*+")
_ALONE: Final = re.compile(r"[ \t]*+(?:[\r\n\"'\\]|-----END|\Z)")
_PEM_LINE: Final = 16
_PEM_HEADERS: Final = 512
"""The body of a key begins so soon."""
_JUDGED: Final = 128


def may_stand_alone(text: str) -> bool:
    """Tell whether a word of the text could be a secret by itself: with a prefix, or so long that it is looked at."""
    return any(pattern.search(text) for pattern in (_LONG_ENOUGH, _ISSUED, _JWT))


def issued(text: str) -> Iterator[Span]:
    """Yield tokens with a prefix of their issuer, and JSON web tokens."""
    for pattern in (_ISSUED, _JWT):
        for match in pattern.finditer(text):
            yield match.span()


def addressed(text: str) -> Iterator[Span]:
    """Yield passwords in addresses and in SQL, secret parts of hook addresses, bot tokens, and words after Bearer and
    Basic."""
    small = text.lower()
    for pattern in (_BOT_TOKEN, _HOOK, _USERINFO):
        for match in pattern.finditer(text):
            yield match.span(1)
    if "identified" in small or "password" in small:
        yield from (match.span(1) for match in _IDENTIFIED.finditer(text))
    for match in _SCHEME.finditer(text) if "bearer" in small or "basic" in small else ():
        # Prose goes on with words ("basic authentication"); credentials have digits or capitals.
        word = match[1][:_JUDGED]
        if any(char.isdigit() for char in word) or not (word.islower() or word.istitle()):
            yield match.span(1)


def random_words(text: str) -> Iterator[Span]:
    """Yield long words that look drawn by lot; in a path nothing, in an address the parts between its slashes."""
    for match in _LONG.finditer(text):
        word, start = match[0], match.start()
        if start and text.startswith("://", start - 1):
            yield from _random_parts(word, start)
        elif looks_random(word) and not looks_like_path(word):
            tail = _NAMED_TAIL.search(word, max(0, len(word) - _LONGEST_TAIL))
            yield start, tail.start() if tail else match.end()


def _random_parts(word: str, start: int) -> Iterator[Span]:
    for part in re.finditer(r"[^/]+", word):
        if looks_random(part[0]):
            yield start + part.start(), start + part.end()


def private_keys(text: str, *, prose: bool) -> Iterator[Span]:
    """Yield the words of the bodies of private keys in PEM, line by line.

    A body's lines mix capitals, small letters and digits, but for the last ones, which may be short. A command that
    stands between the two marks stays readable, but not in `prose`. Of a block that was cut off, the lines count that
    follow its beginning.
    """
    begin, ends = _PEM.search(text), True
    while begin:
        end = text.find(_PEM_END, begin.end()) if ends else -1
        ends = end >= 0
        at = yield from _key_lines(text, begin.end(), end if ends else len(text), prose)
        begin = _PEM.search(text, end if ends else at)


def _key_lines(text: str, start: int, end: int, prose: bool) -> Generator[Span, None, int]:
    """Yield the lines of a key between two places; where the second is no mark, up to what is none of them. Return
    the place behind."""
    cut_off = end == len(text)
    in_body, at = False, start
    for match in _PEM_WORD.finditer(text, start, end):
        long = len(match[1]) >= _PEM_LINE
        is_line = _is_key_line(match[1]) if long else in_body and _is_last_line(text, at, match, prose)
        if cut_off and not is_line and (in_body or match.start() > start + _PEM_HEADERS):
            break
        in_body, at = is_line, match.end()
        if is_line:
            yield match.span(1)
    return at


def _is_key_line(word: str) -> bool:
    kinds = (any(map(str.isupper, word)), any(map(str.islower, word)), any(map(str.isdigit, word)))
    return all(kinds) and not (word.startswith("/") and looks_like_path(word))


def _is_last_line(text: str, before: int, match: re.Match[str], prose: bool) -> bool:
    """Tell whether a short word stands alone on its line, behind another line of the key that ends at `before`."""
    alone = _BETWEEN.fullmatch(text, before, match.start()) and _ALONE.match(text, match.end())
    return alone is not None and (prose or not could_be_program(match[1]))
