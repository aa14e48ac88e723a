"""Every character a person cannot see, or could take for another, written out where it stands.

What a person reads on a card must be what runs. Characters without a shape of their own (controls, direction marks,
zero-width characters, variation selectors, tags, private use, unassigned code points, unusual spaces) are shown as
`⟨U+202E⟩`; three frequent ones have names: `⟨CR⟩`, `⟨ESC⟩`, `⟨TAB⟩` (a tab that indents a line stays). Long runs of
blanks are counted: `⟨300 spaces⟩`. A byte that is no UTF-8 is `⟨byte FF⟩`. The brackets themselves are escaped, so
text cannot imitate an escape or a mask. All functions are linear in the text's length.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Final

OPEN: Final = "⟨"
CLOSE: Final = "⟩"
LINE_END: Final = " ⏎ "
"""Stands for the end of a line where a text has one line only."""

MAX_BLANKS: Final = 8
"""Blanks in a row that are shown as they are, outside the indentation of a line."""
MAX_INDENT_COLUMNS: Final = 80
"""Columns of indentation shown as they are (a tab counts 8). A line that starts further right may leave the screen."""
MAX_MARKS: Final = 4
"""Combining marks in a row shown as they are. No living script needs more; stacks of them cover the neighbours."""

_NAMED: Final = {"\r": "CR", "\x1b": "ESC", "\t": "TAB"}
_INVISIBLE_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
# Unicode calls these letters, marks or symbols, yet they are drawn as nothing (Default_Ignorable_Code_Point of
# DerivedCoreProperties.txt, and three blanks that property leaves out: braille, musical notehead, object replacement).
_INVISIBLE_RANGES: Final = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2800, 0x2800), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFFC, 0xFFFC), (0x16FE4, 0x16FE4), (0x1D159, 0x1D159), (0xE0100, 0xE01EF),
)  # fmt: skip
# Blocks that hold pictographs (emoji-data.txt, widened to whole blocks: only used to leave joined emoji whole).
_EMOJI_RANGES: Final = (
    (0x2190, 0x21FF), (0x2300, 0x23FF), (0x25A0, 0x27BF), (0x2934, 0x2935), (0x2B00, 0x2BFF), (0x1F000, 0x1FAFF),
)  # fmt: skip
_EMOJI_SINGLES: Final = frozenset("\u00a9\u00ae\u203c\u2049\u2122\u2139\u3030\u303d\u3297\u3299")
_JOINER: Final = "\u200d"
_EMOJI_STYLE: Final = "\ufe0f"
_KEYCAP: Final = "\u20e3"
_KEYCAP_BASES: Final = frozenset("0123456789#*")

_PIECE: Final = re.compile(r"(?P<indent>^[ \t]+)|(?P<blanks> {9,})|(?P<odd>[^\n\x20-\x7e]+)", re.MULTILINE)
_INDENT_RUN: Final = re.compile(r" +|\t+")
_BLANK_RUN: Final = re.compile(r" {9,}|\t")
_STEP: Final = 100_000
_LONG_RUN: Final = " " * (MAX_BLANKS + 1)


class _Kind(Enum):
    PLAIN = 0
    EMOJI = 1
    MARK = 2
    INVISIBLE = 3
    BRACKET = 4


def _within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= code <= high for low, high in ranges)


@lru_cache(maxsize=4096)
def _kind(char: str) -> _Kind:
    if char in (OPEN, CLOSE):
        return _Kind.BRACKET
    code = ord(char)
    category = unicodedata.category(char)
    if category in _INVISIBLE_CATEGORIES or _within(code, _INVISIBLE_RANGES):
        return _Kind.PLAIN if char in " \n" else _Kind.INVISIBLE
    if category.startswith("M"):
        return _Kind.MARK
    if char in _EMOJI_SINGLES or _within(code, _EMOJI_RANGES):
        return _Kind.EMOJI
    return _Kind.PLAIN


def is_hidden(char: str) -> bool:
    """Tell whether `char` is one that `visible` writes out wherever it is not part of an emoji or an indentation."""
    return _kind(char) in (_Kind.INVISIBLE, _Kind.BRACKET)


@lru_cache(maxsize=4096)
def escape(char: str) -> str:
    """Return the escape that stands for one character, e.g. `⟨U+200B⟩`, whether or not it needs one."""
    code = ord(char)
    # surrogateescape keeps an undecodable byte 0xNN as the lone surrogate U+DCNN (PEP 383).
    name = f"byte {code - 0xDC00:02X}" if 0xDC80 <= code <= 0xDCFF else _NAMED.get(char, f"U+{code:04X}")
    return f"{OPEN}{name}{CLOSE}"


class _Writer:
    """Rewrites one text and counts what had to be written out."""

    def __init__(self, line_start: bool) -> None:
        self.line_start = line_start
        self.invisible = 0

    def __call__(self, match: re.Match[str]) -> str:
        run = match[0]
        if match.lastgroup == "odd":
            return self._odd(run, match.string, match.start(), match.end())
        if match.lastgroup == "indent" and (self.line_start or match.start() > 0):
            return _indent(run)
        return _BLANK_RUN.sub(_blanks, run)

    def _odd(self, run: str, text: str, start: int, end: int) -> str:
        kinds = {char: _kind(char) for char in set(run)}
        if _Kind.MARK in kinds.values() or _Kind.EMOJI in kinds.values():
            return self._in_context(run, text, start, end)
        hidden = {ord(char): escape(char) for char, kind in kinds.items() if kind is not _Kind.PLAIN}
        uncounted = dict.fromkeys(char for char in hidden if kinds[chr(char)] is _Kind.BRACKET or char == ord("\t"))
        if hidden:
            self.invisible += len(_changed(run, uncounted)) - len(_changed(run, dict.fromkeys(hidden)))
        return _changed(run, hidden) if hidden else run

    def _in_context(self, run: str, text: str, start: int, end: int) -> str:
        """Rewrite a run that holds marks or emoji, where what stands before a character decides about it."""
        before = text[start - 1] if start else ""
        keycap = before in _KEYCAP_BASES and run.startswith(_EMOJI_STYLE + _KEYCAP)
        after = text[end] if end < len(text) else ""
        has_base = before not in ("", " ", "\n")  # a mark needs something of the text itself to stand on
        marks, joinable, stylable = 0, False, False
        written: list[str] = []
        for index, char in enumerate(run):
            kind = _kind(char)
            if kind is _Kind.PLAIN or kind is _Kind.EMOJI:
                written.append(char)
                has_base, marks = True, 0
                joinable = stylable = kind is _Kind.EMOJI
                continue
            following = run[index + 1] if index + 1 < len(run) else after
            if kind is _Kind.MARK and has_base and marks < MAX_MARKS:
                written.append(char)
                marks, joinable, stylable = marks + 1, False, False
            elif char == _EMOJI_STYLE and (stylable or (keycap and index == 0)):
                written.append(char)
                stylable = False
            elif char == _JOINER and joinable and following and _kind(following) is _Kind.EMOJI:
                written.append(char)
                joinable = stylable = False
            else:
                written.append(escape(char))
                self.invisible += kind is not _Kind.BRACKET and char != "\t"
                has_base, joinable, stylable = False, False, False
        return "".join(written)


def _changed(run: str, table: Mapping[int, str | None]) -> str:
    """As `translate`, in steps: one call for a million characters keeps all other threads waiting."""
    return "".join(run[at : at + _STEP].translate(table) for at in range(0, len(run), _STEP))


def _indent(run: str) -> str:
    if len(run) + 7 * run.count("\t") <= MAX_INDENT_COLUMNS:
        return run
    return _INDENT_RUN.sub(lambda part: f"{OPEN}{len(part[0])} {'spaces' if part[0][0] == ' ' else 'tabs'}{CLOSE}", run)


def _blanks(match: re.Match[str]) -> str:
    return escape("\t") if match[0] == "\t" else f"{OPEN}{len(match[0])} spaces{CLOSE}"


def visible(text: str, *, line_start: bool = True) -> str:
    """Return `text` with every invisible character, odd space, long blank run and bracket `⟨ ⟩` written out.

    Newlines, ordinary letters, accents and emoji (joined ones included) stay. `line_start` says whether the text
    begins a line, where blanks and tabs are indentation; pass False for the continuation of one.
    """
    return text if _plain(text) else _PIECE.sub(_Writer(line_start), text)


def _plain(text: str) -> bool:
    """Tell at a glance that all of it is printable ASCII and line ends, without long runs of blanks."""
    printable = text.isascii() and (text.isprintable() or text.replace("\n", "").isprintable())
    return printable and _LONG_RUN not in text


def invisible_count(text: str) -> int:
    """Return how many characters of `text` are shown as an escape because they cannot be seen.

    Literal brackets, tabs and counted runs of blanks are not part of the number: they are visible, or blank as they
    look. Marks beyond `MAX_MARKS`, marks without a letter to stand on, and undecodable bytes are.
    """
    if _plain(text):
        return 0
    writer = _Writer(line_start=True)
    _PIECE.sub(writer, text)
    return writer.invisible


# Letters drawn like a Latin one. `_TWINS` are the same shape in common fonts; `_NEAR` are close, and so frequent in
# ordinary words of their own script that only a word which also holds Latin letters makes them suspicious.
_TWINS: Final = frozenset(
    "аеһіјорсухѕԁԛԝӏАВЕЅІЈКМНОРСТХУҮӀԌԚԜ"  # Cyrillic
    "νορϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϺͿ"  # Greek
    "օսոհցյՕՍԼ"  # Armenian
    "ᎠᎡᎢᎥᎪᎫᎬᎳᎵᎷᎻᏀᏂᏃᏆᏒᏔᏙᏚᏞᏟᏢᏦᏧ"  # Cherokee
    "ɡɑɩ"  # Latin letters of phonetic alphabets
)
_NEAR: Final = frozenset("вгкмнптьбчшαβγεηικτυχωաեՏᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢıʏʟɴʀɪʜɢʙ")
_WORD: Final = re.compile(r"\w+")
_MAX_LETTERS: Final = 6


@lru_cache(maxsize=4096)
def _dressed(char: str) -> bool:
    """Tell whether a letter is a Latin one in other dress: full-width, mathematical, circled, Roman numeral."""
    return not char.isascii() and char.isalpha() and unicodedata.normalize("NFKC", char).isascii()


def _suspects(word: str) -> str:
    letters = [char for char in word if char.isalpha()]
    mixed = any(char.isascii() for char in letters)
    twins = len(letters) > 1 and all(char in _TWINS or _dressed(char) for char in letters)
    suspicious = (_TWINS | _NEAR) if mixed else _TWINS if twins else frozenset()
    return "".join(char for char in letters if char in suspicious or _dressed(char))


def lookalikes(text: str) -> list[str]:
    """Return the letters that only look Latin, one entry a word: `ｒｍ (U+FF52 U+FF4D)`, each once, in order.

    Letters in other dress (full-width, mathematical) always count. Cyrillic, Greek, Armenian and Cherokee twins count
    in a word that mixes them with Latin letters, and in a word of two letters or more that holds nothing else. At most
    six letters of a word are listed; a count follows for the rest.
    """
    if text.isascii():
        return []
    found: dict[str, None] = {}
    for match in _WORD.finditer(text):
        if match[0].isascii():
            continue
        suspects = _suspects(match[0])
        if suspects:
            shown, rest = suspects[:_MAX_LETTERS], len(suspects) - _MAX_LETTERS
            codes = " ".join(f"U+{ord(char):04X}" for char in shown)
            found[f"{shown} ({codes})" if rest <= 0 else f"{shown} ({codes} {OPEN}{rest} more{CLOSE})"] = None
    return list(found)
