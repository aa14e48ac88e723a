"""What cannot be seen is written out, counted, and cannot be imitated; what can be seen stays."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signoff.visible import escape, invisible_count, lookalikes, visible

ODD = "\u200b\u202e\u00a0\r\x1b\t\x00\x7f\ufe0f\u200d\U000e0100\U000e0041\u3164\ue000\ud800\udcff⟨⟩\u0301\u115f\u2028"
TEXT = st.text(alphabet=st.one_of(st.sampled_from(ODD + " \nab/é中👩💻1"), st.characters()), max_size=60)
ESCAPE = re.compile(r"⟨(?:U\+[0-9A-F]{4,6}|CR|ESC|TAB|byte [0-9A-F]{2}|[0-9]+ (?:spaces|tabs))⟩")
EMOJI_CONTEXT = re.compile(
    r"(?<=[^\x00-\x7f])\ufe0f|(?<=[0-9#*])\ufe0f(?=\u20e3)|(?<=[^\x00-\x7f])\u200d(?=[^\x00-\x7f])"
)
JOINED = "👩\u200d💻 🏳\ufe0f\u200d🌈 ⚠\ufe0f 1\ufe0f\u20e3 👍🏽"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("ls \u200b-l", "ls ⟨U+200B⟩-l"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("a\U000e0100b", "a⟨U+E0100⟩b"),
        ("ok\rrm -rf /", "ok⟨CR⟩rm -rf /"),
        ("\x1b[2K", "⟨ESC⟩[2K"),
        ("a\tb", "a⟨TAB⟩b"),
        ("x:\n\tif y:\n\t    z", "x:\n\tif y:\n\t    z"),
        ("\tx", "\tx"),
        ("a" + " " * 8 + "b", "a" + " " * 8 + "b"),
        ("ls" + " " * 300 + "; rm -rf src", "ls⟨300 spaces⟩; rm -rf src"),
        ("ls\n" + " " * 40 + "x", "ls\n" + " " * 40 + "x"),
        ("ls\n" + " " * 300 + "rm", "ls\n⟨300 spaces⟩rm"),
        ("ls\n" + "\t" * 50 + "rm", "ls\n⟨50 tabs⟩rm"),
        ("⟨36 masked⟩", "⟨U+27E8⟩36 masked⟨U+27E9⟩"),
        ("x\udcffy", "x⟨byte FF⟩y"),
        ("x\ud800y", "x⟨U+D800⟩y"),
        ("a\u00a0b\u3000c", "a⟨U+00A0⟩b⟨U+3000⟩c"),
        ("\ue000\u3164\u2800", "⟨U+E000⟩⟨U+3164⟩⟨U+2800⟩"),
        ("naïve Grüße 中文 Привет עברית", "naïve Grüße 中文 Привет עברית"),
        ("e\u0301 и\u0306", "e\u0301 и\u0306"),
        (JOINED, JOINED),
        ("a\u200db 👩\u200dx a\ufe0f ⚠\ufe0f\ufe0f", "a⟨U+200D⟩b 👩⟨U+200D⟩x a⟨U+FE0F⟩ ⚠\ufe0f⟨U+FE0F⟩"),
        ("1\ufe0f2", "1⟨U+FE0F⟩2"),
        ("e" + "\u0301" * 6, "e" + "\u0301" * 4 + "⟨U+0301⟩" * 2),
        ("\u0301a \u0301", "⟨U+0301⟩a ⟨U+0301⟩"),
        ("\u200b\u0338", "⟨U+200B⟩⟨U+0338⟩"),
    ],
)
def test_what_is_seen(text: str, seen: str) -> None:
    assert visible(text) == seen


def test_the_continuation_of_a_line_has_no_indentation() -> None:
    assert visible("\t" + " " * 9 + "x", line_start=False) == "⟨TAB⟩⟨9 spaces⟩x"
    assert visible("\n\tx", line_start=False) == "\n\tx"


def test_a_card_with_everything_hidden_in_it_shows_and_counts_it() -> None:
    command = "echo hi\u200b\u202e\U000e0100" + " " * 300 + "; rm -rf src\r\x1b"
    assert visible(command) == "echo hi⟨U+200B⟩⟨U+202E⟩⟨U+E0100⟩⟨300 spaces⟩; rm -rf src⟨CR⟩⟨ESC⟩"
    assert invisible_count(command) == 5


@given(TEXT)
@example("👩\u200d👩\u200d\u200b")
@example("1\ufe0f\u20e3\ufe0f")
def test_the_result_holds_nothing_invisible(text: str) -> None:
    rest = EMOJI_CONTEXT.sub("", re.sub(r"(?m)^[ \t]+", "", visible(text)))
    for char in rest:
        assert char in " \n" or unicodedata.category(char) not in {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"}, rest
        assert not 0xFE00 <= ord(char) <= 0xFE0F and not 0xE0000 <= ord(char) <= 0xE0FFF, rest
    assert not re.search(r"(?m)(?<=[^ ]) {9,}", rest)


@given(TEXT)
@example("⟨U+202E⟩")
def test_every_bracket_of_the_result_belongs_to_an_escape(text: str) -> None:
    assert not set("⟨⟩") & set(ESCAPE.sub("", visible(text)))


@given(TEXT)
@example("e\u0301⟨\t\u200b")
def test_the_count_is_the_number_of_escapes_for_one_hidden_character(text: str) -> None:
    escapes = ESCAPE.findall(visible(text))
    others = {"⟨U+27E8⟩", "⟨U+27E9⟩", "⟨TAB⟩"}
    assert invisible_count(text) == sum(found not in others and not found.endswith("s⟩") for found in escapes)


def _read_back(found: re.Match[str]) -> str:
    name = found[0][1:-1]
    if name.startswith("U+"):
        return chr(int(name[2:], 16))
    if name.startswith("byte "):
        return chr(0xDC00 + int(name[5:], 16))
    if name.endswith(("spaces", "tabs")):
        count, _, what = name.partition(" ")
        return int(count) * (" " if what == "spaces" else "\t")
    return {"CR": "\r", "ESC": "\x1b", "TAB": "\t"}[name]


@given(TEXT)
def test_nothing_is_lost_or_added(text: str) -> None:
    assert ESCAPE.sub(_read_back, visible(text)) == text


@given(st.text(alphabet=st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=80))
def test_plain_text_stays(text: str) -> None:
    assert visible(text) == text
    assert invisible_count(text) == 0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ｒｍ -rf /", ["ｒｍ (U+FF52 U+FF4D)"]),
        ("𝐫𝐦 x", ["𝐫𝐦 (U+1D42B U+1D426)"]),
        ("pаypal", ["а (U+0430)"]),
        ("сору now", ["сору (U+0441 U+043E U+0440 U+0443)"]),
        ("gοοgle gοοgle", ["οο (U+03BF U+03BF)"]),
        ("привет как дела", []),
        ("και το", []),
        ("я и ты, а он", []),
        ("naïve Straße résumé 中文", []),
        ("rm -rf /", []),
        ("ｒ" * 8, ["ｒｒｒｒｒｒ (U+FF52 U+FF52 U+FF52 U+FF52 U+FF52 U+FF52 ⟨2 more⟩)"]),
    ],
)
def test_letters_that_only_look_latin(text: str, found: list[str]) -> None:
    assert lookalikes(text) == found


def test_an_escape_has_one_form() -> None:
    assert [escape(char) for char in "\u200b\r\t\x1b\udc80"] == ["⟨U+200B⟩", "⟨CR⟩", "⟨TAB⟩", "⟨ESC⟩", "⟨byte 80⟩"]
