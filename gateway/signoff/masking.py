"""Secrets taken out of text that people, logs and records see; the exact text stays with its own agent.

A secret is found by its form (prefixes of issuers, JWT, private keys, addresses with a password), by the name beside
it (`DB_PASSWORD=…`, `--token …`, `Authorization: …`) or above it in YAML, by the command or header that takes one
(`zip -P …`, `Cookie: …`), or because a long word looks drawn by lot. A mask covers only characters of
`[A-Za-z0-9_+/=.-]` inside one word: `gh⟨36 masked⟩9k` from 16 characters up, `⟨9 masked⟩` below.

Never covered: a command word that has arguments, operators, expansions (`$(…)`, `$NAME`), paths, the value of a
variable that the same text runs, and a value that could name a program where the text could run it (`secret_names`
has the rule). A mask must not hide what is done, so in doubt the word stays; a word with a known form, with a digit or
a capital beside a secret name, or drawn by lot is masked all the same.
Known limits: a password with blanks, or in YAML one on several lines, is masked only where nothing in it could be run;
lower-case letters alone never count as random; 40 and 64 hexadecimal digits and UUIDs are names unless a name beside
them says otherwise; a secret spelt in pieces (`gh"p_…"`) is not put together.

Every scan walks the text once; no pattern can start twice on the same stretch. Most names and sentences on a card get
no further than `unremarkable`, one quick look that is sure of what it says.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final

import msgspec

from signoff import secret_forms, secret_logins
from signoff.randomness import looks_like_path
from signoff.secret_names import NAME_PARTS, NamedSecrets
from signoff.visible import CLOSE, OPEN, is_hidden

Span = tuple[int, int]

SHOWN_FROM: Final = 16
"""A masked word of at least this length shows two characters at each end; of a shorter one that would be too much."""
_SHOWN: Final = 2
_LOOK_BACK: Final = 64

_WORD_CHARS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=.-"
_WORD: Final = re.compile(r"[A-Za-z0-9_+/=.-]+")
_ODD: Final = re.compile(r"[^\n\t\x20-\x7e]")
_OPERATORS: Final = "\n;|&(`{!"
# What every secret has in it, or stands beside: without any of these, in small letters, only a long word can be one.
_MARKS: Final = (*NAME_PARTS, "://", "bearer", "basic", "hooks", "identified", *secret_logins.LOGIN_MARKS)
_LONG_WORD: Final = re.compile(r"[A-Za-z0-9_+/=.-]{12,}")
"""The shortest token known by its form has twelve characters."""
_PREFIX_WORD: Final = re.compile(
    r"(?:^|[\s;|&(`{!\"'])(?:sudo|doas|exec|command|eval|env|nohup|time|xargs|then|do|else|if|while|until|-c"
    r"|[A-Za-z_][A-Za-z0-9_]*=\S*)[ \t]+[\"'\\]*\Z"
)
_ARGUMENT: Final = re.compile(r"[A-Za-z0-9_+/=.-]{0,64}[\"']?[ \t]++(?![#;|&)}])\S")


class Mask(msgspec.Struct, frozen=True, kw_only=True):
    """One covered stretch of a text: `text[start:end]` is shown as `shown`."""

    start: int
    end: int
    shown: str


def mask(text: str, *, prose: bool = False) -> str:
    """Return `text` with its secrets masked and nothing else changed.

    For logs and records. What people read goes through `signoff.display.shown`, which also keeps text from imitating
    a mask. `prose` says that the text is no command, so that its first words are no command words.
    """
    pieces, at = [], 0
    for covered in masks(text, prose=prose):
        pieces += [text[at : covered.start], covered.shown]
        at = covered.end
    return "".join(pieces) + text[at:]


def unremarkable(text: str) -> bool:
    """Tell at a glance that a text of plain characters holds no secret; False says only that a closer look is needed.

    Plain are printable ASCII and line ends.
    """
    if not (text.isascii() and (text.isprintable() or text.replace("\n", "").isprintable())):
        return False
    small = text.lower()
    for mark in _MARKS:  # written out, since it runs for every text that is shown
        if mark in small:
            return False
    words = _LONG_WORD.findall(text)
    return not words or not secret_forms.may_stand_alone(" ".join(words))


def masks(text: str, *, prose: bool = False) -> list[Mask]:
    """Return the masks for `text`, in order and apart from each other.

    Secrets are looked for in the text as it stands and once more without the characters nobody can see, so that a
    zero-width space inside a token does not uncover it. A secret that such a character or any other divides is masked
    in pieces that show nothing of their own.
    """
    return [] if unremarkable(text) else _covering(text, _all_secrets(text, prose))


def masks_before(end: int, text: str, *, prose: bool = False) -> list[Mask]:
    """Return the masks that begin before `end`, found in what stands there alone, as if the text ended there.

    What follows is looked at for one thing only: a secret that goes on across `end`, or up to it, is masked whole even
    where what stands before `end` alone could not be told for one.
    """
    if unremarkable(text):
        return []
    across = [span for span in _all_secrets(text, prose) if span[0] < end <= span[1]]
    return _covering(text, [*_all_secrets(text[:end], prose), *across])


def _all_secrets(text: str, prose: bool) -> list[Span]:
    found = list(_secrets(text, prose))
    if _ODD.search(text):
        found += _behind_hidden(text, prose)
    return found


def _covering(text: str, found: list[Span]) -> list[Mask]:
    covered: list[Mask] = []
    for start, end in _merged([span for span in found if not _is_path(text, *span)]):
        words = list(_WORD.finditer(text, start, end))
        alone = len(words) == 1
        covered += [Mask(start=word.start(), end=word.end(), shown=_label(word[0], alone=alone)) for word in words]
    return covered


def _label(secret: str, *, alone: bool) -> str:
    if alone and len(secret) >= SHOWN_FROM:
        return f"{secret[:_SHOWN]}{OPEN}{len(secret) - 2 * _SHOWN:,} masked{CLOSE}{secret[-_SHOWN:]}"
    return f"{OPEN}{len(secret):,} masked{CLOSE}"


def _secrets(text: str, prose: bool) -> Iterator[Span]:
    anywhere: tuple[Callable[[str], Iterable[Span]], ...] = (secret_forms.issued, secret_forms.random_words)
    for span in chain.from_iterable(find(text) for find in anywhere):
        if prose or not _is_command_word(text, span):
            yield span
    yield from secret_forms.addressed(text)
    yield from secret_forms.private_keys(text, prose=prose)
    yield from secret_logins.logins(text)
    yield from secret_logins.cookies(text, prose=prose)
    yield from NamedSecrets(text, prose=prose).spans()


def _is_path(text: str, start: int, end: int) -> bool:
    return text.startswith(("/", "./", "../", "~"), start) and looks_like_path(text[start:end])


def _is_command_word(text: str, span: Span) -> bool:
    """Tell whether the word is the first of a simple command and has arguments.

    A word alone on its line is data (a line of a file that is being written) far oftener than a command.
    """
    if not _ARGUMENT.match(text, span[1]):
        return False
    near = text[max(0, span[0] - _LOOK_BACK) : span[0]]
    start = span[0] - len(near) + len(near.rstrip(_WORD_CHARS))
    if _PREFIX_WORD.search(text, max(0, start - _LOOK_BACK), start):
        return True
    while start > 0 and text[start - 1] in " \t\"'\\":
        start -= 1
    return start == 0 or text[start - 1] in _OPERATORS


def _behind_hidden(text: str, prose: bool) -> Iterator[Span]:
    hidden = {char for char in set(text) if char not in "\n\t" and is_hidden(char)}
    if not hidden:
        return
    spans = list(_secrets(text.translate(dict.fromkeys(map(ord, hidden))), prose))
    if spans:
        positions = array("L", (at for at, char in enumerate(text) if char not in hidden))
        yield from ((positions[start], positions[end - 1] + 1) for start, end in spans if end > start)


def _merged(spans: list[Span]) -> Iterator[Span]:
    last: Span | None = None
    for start, end in sorted(spans):
        if last is None:
            last = (start, end)
        elif start <= last[1]:
            last = (last[0], max(last[1], end))
        else:
            yield last
            last = (start, end)
    if last is not None:
        yield last
