"""What typed text asks for; and that nothing outside the grammar can decide."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from signoff.changes.grants import time_box
from signoff.grammar import (
    ALIASES,
    LOOSE_WORDS,
    NO_WORDS,
    VERBS,
    YES_WORDS,
    Approve,
    Deny,
    Loose,
    NotACommand,
    Other,
    Typed,
    Unclear,
    Unknown,
    Yolo,
    is_command,
    loose_answer,
    nearest,
    parse,
)
from signoff.ids import ALPHABET, is_short

SHORT = st.text(ALPHABET, min_size=5, max_size=5).filter(is_short)
SCOPES = st.sampled_from(["once", "session", "always", "30m", "1m", "24h", "999m"])
BLANK = st.sampled_from([" ", "  ", "\n", "\t", "\u00a0"])


def spoken(text: str, addressed: bool = False) -> Typed:
    return parse(text, addressed=addressed)


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("/approve", Approve()),
        ("!Approve", Approve()),
        ("/approve@signoff_bot 7q2mk", Approve(target="7Q2MK")),
        ("/signoff approve all", Approve(everything=True)),
        ("@signoff_bot, /approve", Approve()),
        ("<@U0BOT> !approve session", Approve(choice="session")),
        ("  /approve   ALWAYS 7Q2MK  ", Approve(target="7Q2MK", choice="always")),
        ("/approve 30M all", Approve(everything=True, choice="30m")),
        ("/approve 1440m", Approve(target="1440M")),
        ("/approve all 7Q2MK", Unclear(word="7Q2MK", like_id=True)),
        ("/approve K4XW9 7Q2MK", Unclear(word="7Q2MK", like_id=True)),
        ("/approve once session", Unclear(word="session")),
        ("/approve 25h", Unclear(word="25h")),
        ("/approve 7Q2MO", Unclear(word="7Q2MO", like_id=True)),
        ("/approve it", Unclear(word="it")),
        ("/approve K4XW9.", Unclear(word="K4XW9.")),
        ("/deny", Deny()),
        ("/deny 7q2mk", Deny(target="7Q2MK")),
        ("/deny 7Q2MK wrong\ntarget", Deny(target="7Q2MK", reason="wrong target")),
        ("/deny wrong target", Deny(reason="wrong target")),
        ("/deny ALL not now", Deny(everything=True, reason="not now")),
        ("/deny once is enough", Deny(reason="once is enough")),
        ("/stop now please", Other(verb="stop")),
        ("/reset", Other(verb="new")),
        ("/start K4XW9B83", Other(verb="help")),
        ("/why 7q2mk", Other(verb="why", target="7Q2MK")),
        ("/why not", Other(verb="why", word="not")),
        ("/undo", Other(verb="undo")),
        ("/revoke 4tq8r", Other(verb="revoke", target="4TQ8R")),
        ("/yolo", Yolo()),
        ("/YOLO 5", Yolo(minutes=5)),
        ("/signoff yolo 1440", Yolo(minutes=1440)),
        ("!yolo 2H", Yolo(minutes=120)),
        ("/yolo 90m", Yolo(minutes=90)),
        ("/yolo Off", Yolo(off=True)),
        ("/yolo 0", Yolo(word="0")),
        ("/yolo 1441", Yolo(word="1441")),
        ("/yolo 30 minutes", Yolo(word="minutes")),
        ("/yolo off now", Yolo(word="now")),
        ("/yolo \uff15", Yolo(word="\uff15")),
        ("/yoloo", Unknown("yoloo", "yolo")),
        ("/aprove", Unknown("aprove", "approve")),
        ("/dney 7Q2MK", Unknown("dney", "deny")),
        ("!pendng", Unknown("pendng", "pending")),
        ("/weather", Unknown("weather")),
        ("!important", NotACommand()),
        ("/etc/hosts is broken", NotACommand()),
        ("/", NotACommand()),
        ("", NotACommand()),
        ("@signoff_bot", NotACommand()),
        ("please /approve", NotACommand()),
        ("/ approve", NotACommand()),
        ("/\u0251pprove", NotACommand()),
        ("/\uff41pprove", NotACommand()),
        ("ok", Loose("ok")),
        ("Yes, but check first", Loose("yes")),
        ("👍🏽", Loose("👍")),
        ("“OK!”", Loose("ok")),
        ("approve 7Q2MK", Loose("approve")),
        ("ok so this is a longer story about the build", NotACommand()),
        ("not yet", NotACommand()),
    ],
)
def test_examples(text: str, typed: Typed) -> None:
    assert spoken(text) == typed


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("approve", Approve()),
        ("deny wrong target", Deny(reason="wrong target")),
        ("approve it", Unclear(word="it")),
        ("approve, but check first", Loose("approve")),
        ("stop", Other(verb="stop")),
        ("stop by the office", NotACommand()),
        ("new idea", NotACommand()),
        ("why 7Q2MK", Other(verb="why", target="7Q2MK")),
        ("why not", NotACommand()),
        ("help me", NotACommand()),
        ("yolo", Yolo()),
        ("yolo 10", Yolo(minutes=10)),
        ("yolo everybody", NotACommand()),
        ("yolo 10 more", NotACommand()),
        ("yes", Loose("yes")),
    ],
)
def test_a_bare_verb_counts_only_when_we_are_addressed(text: str, typed: Typed) -> None:
    assert spoken(text, addressed=True) == typed
    assert not is_command(spoken(text))


def test_a_reason_is_cut_and_the_rest_counted() -> None:
    assert spoken("/deny " + "x" * 281) == Deny(reason="x" * 280, cut=1)
    assert spoken("/deny " + "x" * 280) == Deny(reason="x" * 280)


@given(st.text(max_size=400), st.booleans())
@example("/" + "a" * 5000, False)
@example("/approve \ud800", True)
@example("/deny \u017f1234", False)
def test_it_never_raises(text: str, addressed: bool) -> None:
    spoken(text, addressed)


@given(st.text(max_size=80))
def test_without_a_prefix_or_our_name_nothing_is_a_command(text: str) -> None:
    assume(text.lstrip()[:1] not in ("/", "!", "@", "<"))
    assert not is_command(spoken(text))
    assert not isinstance(spoken(text), Unknown)


words = st.one_of(
    SHORT, SCOPES, st.sampled_from(["all", "ALL", "please", "not", "7Q2MO"]), st.text(min_size=1, max_size=8)
)


@given(st.sampled_from(["/approve", "!approve", "/APPROVE", "/aprove", "approve"]), st.lists(words, max_size=5))
def test_only_the_grammar_s_own_words_approve(head: str, rest: list[str]) -> None:
    """An independent reading of the rule: each word is an id, `all` or a scope, at most one of each kind."""
    text = " ".join([head, *rest])
    said = spoken(text)
    if not isinstance(said, Approve):
        return
    first, *others = text.split()
    assert first.lower() in ("/approve", "!approve")
    kinds = []
    for word in others:
        if is_short(word) or word.lower() == "all":
            kinds.append("which")
        else:
            assert word.lower() in ("once", "session", "always") or time_box(word.lower())
            kinds.append("scope")
    assert len(kinds) == len(set(kinds))
    assert said.everything == any(word.lower() == "all" for word in others)


@given(SHORT, SCOPES, BLANK, st.booleans(), st.booleans(), st.booleans())
def test_order_case_and_spacing_do_not_matter(
    short: str, scope: str, blank: str, swapped: bool, upper: bool, bang: bool
) -> None:
    rest = [scope, short] if swapped else [short, scope]
    text = blank.join(["!approve" if bang else "/approve", *rest])
    text = text.upper() if upper else text.lower()
    assert spoken(text + blank) == Approve(target=short, choice=scope)


@given(st.sampled_from(VERBS), st.integers(0, 20), st.sampled_from("abcdefghijklmnopqrstuvwxyz"))
def test_one_wrong_letter_finds_the_verb_again(verb: str, at: int, letter: str) -> None:
    at %= len(verb)
    slips = {verb[:at] + verb[at + 1 :], verb[:at] + letter + verb[at:], verb[:at] + letter + verb[at + 1 :]}
    for slip in slips:
        assert nearest(slip) is not None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("yes", "approve"), (" Ok. ", "approve"), ("LGTM!", "approve"), ("✔️", "approve"), ("no", "deny"),
        ("Don’t!", "deny"), ("👎🏿", "deny"), ("yes yes", None), ("yes?", None), ("(yes)", None), ("“ok”", None),
        ("yes…", None), ("stop", None), ("cancel", None), ("go", None), ("continue", None), ("", None), ("/yes", None),
        ("yes" * 200, None), ("ｙｅｓ", None), ("уes", None),
    ],
)  # fmt: skip
def test_what_a_word_alone_says(text: str, says: str | None) -> None:
    assert loose_answer(text) == says


@pytest.mark.parametrize(("row", "words"), [("approves once", YES_WORDS), ("denies", NO_WORDS)])
def test_the_documentation_names_each_word_that_answers(row: str, words: frozenset[str]) -> None:
    text = (Path(__file__).parents[3] / "docs" / "commands.md").read_text("utf-8")
    [line] = [line for line in text.splitlines() if line.startswith(f"| {row} |")]
    assert set(line.split("|")[2].replace("`", "").split()) == words


def test_loose_words_are_no_verbs_with_a_prefix() -> None:
    for word in LOOSE_WORDS:
        assert not is_command(spoken(word))
        if word not in VERBS and word not in ALIASES:
            assert not isinstance(spoken(f"/{word}"), Approve | Deny)
