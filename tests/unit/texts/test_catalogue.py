"""The catalogue: right values or a clear error, plural forms, one set of words on every surface, limits and tone."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from tests.tables import every

from signoff.clipping import NAME_UNITS, units
from signoff.model import CAUSES, OUTCOMES
from signoff.texts import Catalogue, TextError, plural_form

TEXTS = Catalogue.load()
KEYS = sorted(TEXTS.keys())
FOR_AGENTS = "agent."
NAMES_A_PERSON = {"stop_requested", "undone"}

NAME = "N" * NAME_UNITS
LONGEST: dict[str, str | int] = {
    "action": "a" * 60,
    "added": 1_234_567,
    "agreed": 99,
    "account": "tg 123456789012",
    "approved": 9_999,
    "breadth": "b" * 60,
    "cause": "c" * 60,
    "choice": "This session",
    "clock": "28 Nov 2027 02:00 UTC",
    "code": "255",
    "count": 9_999,
    "digest": "9f3a1c2e",
    "duration": "9,999 days",
    "file": NAME,
    "grant": "4TQ8R",
    "id": "7Q2MK",
    "label": "l" * 20,
    "needed": 99,
    "people": f"{NAME} and {NAME}",
    "platform": "telegram",
    "prefix": "/signoff ",
    "reason": "r" * 80,
    "user": "12345678901234567890",
}


def longest(key: str) -> str:
    """Return the text of a key with the longest value in every place, and its longest plural form."""
    values: dict[str, str | int] = {name: LONGEST.get(name, NAME) for name in TEXTS.placeholders(key)}
    return TEXTS.text(key, **values)


def of(prefix: str) -> list[str]:
    return [key for key in KEYS if key.startswith(prefix)]


def test_values_go_in_as_they_are() -> None:
    assert TEXTS.text("status.reason_given", reason="{person} <b>*x*</b> {0}") == (
        "Reason given: “{person} <b>*x*</b> {0}”"
    )


def test_numbers_carry_separators_and_choose_the_form() -> None:
    assert TEXTS.text("clip.hidden_with_link", count=1) == "1 character hidden here; whole text at the id"
    assert TEXTS.text("clip.hidden_with_file", count=18_412, file="7Q2MK.txt") == (
        "18,412 characters hidden here; whole text in 7Q2MK.txt"
    )
    assert TEXTS.text("pending.title", count=1, cards="1 card") == "1 waits here (1 card)"


@pytest.mark.parametrize("count", [0, 2, 11, 21, 101])
def test_only_one_is_singular(count: int) -> None:
    assert plural_form(count) == "other"
    assert plural_form(1) == "one"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: TEXTS.text("ending.cancelled.nonsense"), "ending.cancelled.nonsense"),
        (lambda: TEXTS.text("ending.cancelled.stop_requested"), "person"),
        (lambda: TEXTS.text("tap.received", person="Ana"), "person"),
        (lambda: TEXTS.text("clip.hidden_with_link", count="many"), "number"),
        (lambda: TEXTS.placeholders("no.such"), "no.such"),
        (lambda: TEXTS.forms("no.such"), "no.such"),
        (lambda: Catalogue.load("xx"), "xx"),
        (lambda: Catalogue.load("../en"), "language"),
        (lambda: Catalogue("xx", {"a": "{x.y}"}), "plain name"),
        (lambda: Catalogue("xx", {"a": "{x!r}"}), "plain name"),
        (lambda: Catalogue("xx", {"a": "{}"}), "plain name"),
        (lambda: Catalogue("xx", {"a": "{open"}), "'a'"),
        (lambda: Catalogue("xx", {"a": 3}), "sentence"),
    ],
)
def test_a_mistake_is_named(call: Callable[[], object], says: str) -> None:
    with pytest.raises(TextError, match=re.escape(says)):
        call()


def test_a_catalogue_is_read_once() -> None:
    assert Catalogue.load("en") is Catalogue.load("en")


def test_every_text_can_be_filled() -> None:
    for key in KEYS:
        assert "{" not in longest(key), key
        for form in TEXTS.forms(key):
            assert form and form == form.strip(), key


def test_plural_forms_have_the_same_places() -> None:
    for key in KEYS:
        needed = TEXTS.placeholders(key) - {"count"}
        for form in TEXTS.forms(key):
            assert set(re.findall(r"{(\w+)}", form)) - {"count"} == needed, key


@pytest.mark.parametrize("outcome", sorted(OUTCOMES))
@pytest.mark.parametrize("surface", ["verdict", "tap", "summary", "agent", "outcome_word"])
def test_every_outcome_has_its_words_on_every_surface(outcome: str, surface: str) -> None:
    by_a_person = surface == "tap" and outcome in ("approved", "denied")
    prefix = f"tap.already.{outcome}" if by_a_person else f"{surface}.{outcome}"
    found = [key for key in KEYS if key == prefix or key.startswith((f"{prefix}.", f"{prefix}_"))]
    assert found, f"no text for {outcome} on {surface}"


WORDS = {"notify_failed": "Notify failed"}


@pytest.mark.parametrize("outcome", sorted(OUTCOMES))
def test_the_canonical_word_opens_the_line_on_every_surface(outcome: str) -> None:
    word = WORDS.get(outcome, outcome.capitalize())
    for key in KEYS:
        if key in (f"verdict.{outcome}", f"summary.{outcome}") or key.startswith(
            (f"verdict.{outcome}.", f"summary.{outcome}.")
        ):
            assert all(form.startswith(word) for form in TEXTS.forms(key)), key
    for key in of(f"agent.{outcome}."):
        start = "" if outcome == "approved" else "STAGED: " if outcome == "staged" else "BLOCKED: "
        opening = "Approved" if outcome == "approved" else "kept" if outcome == "staged" else outcome
        assert all(form.startswith(start + opening) for form in TEXTS.forms(key)), key


@pytest.mark.parametrize(
    "surface",
    ["ending.cancelled", "tap.cancelled", "summary.cancelled", "agent.cancelled", "agent.cancelled_contested"],
)
@every("cause", sorted(CAUSES))
def test_every_cause_has_its_words_on_every_surface(cause: str, surface: str) -> None:
    assert f"{surface}.{cause}" in KEYS


@pytest.mark.parametrize("key", of("ending.cancelled."))
def test_a_cause_is_told_in_the_same_words_everywhere(key: str) -> None:
    cause = key.rpartition(".")[2]
    (words,) = TEXTS.forms(key)
    assert words in TEXTS.forms(f"summary.cancelled.{cause}")[0]
    if not cause.startswith("stop_requested"):  # the answer to a tap says who stopped it, and when
        assert words in TEXTS.forms(f"tap.cancelled.{cause}")[0]
    if cause in CAUSES and cause not in NAMES_A_PERSON:
        assert words in TEXTS.forms(f"agent.cancelled.{cause}")[0]


def test_no_cause_is_told_that_does_not_exist() -> None:
    for surface in ("ending", "tap", "summary"):
        told = {key.rpartition(".")[2] for key in of(f"{surface}.cancelled.")}
        assert {re.sub(r"_(by|unnamed)$", "", cause) for cause in told} == CAUSES


def test_agents_read_no_names_and_what_to_do_next() -> None:
    for key in of(FOR_AGENTS):
        assert not TEXTS.placeholders(key) & {"person", "people", "requester", "user"}, key
    for key in [*of("agent.cancelled"), *of("agent.denied"), *of("agent.timeout"), *of("agent.blocked")]:
        assert "Do not retry it, rephrase it or reach the same effect another way." in TEXTS.forms(key)[0], key


def test_only_a_denial_says_that_a_person_denied() -> None:
    for key in KEYS:
        for form in TEXTS.forms(key):
            if "A person denied" in form:
                assert key.startswith("agent.denied."), key
            if form.startswith("Denied"):
                assert key.startswith(("tap.done.deny", "all.denied")) or TEXTS.placeholders(key) & {"person", "people"}


def test_nobody_refused_is_not_said_once_somebody_voted_against_it() -> None:
    for key in [*of("agent.cancelled_contested."), "agent.timeout.contested"]:
        assert "refused" not in TEXTS.forms(key)[0]


@every("key", of("tap."))
def test_an_answer_to_a_tap_fits_a_toast(key: str) -> None:
    assert units(longest(key)) <= 200, longest(key)


@pytest.mark.parametrize("key", of("button."))
def test_a_label_fits_a_button(key: str) -> None:
    values: dict[str, str | int] = {name: LONGEST[name] for name in TEXTS.placeholders(key)}
    if "duration" in values:
        values["duration"] = "1,440 min"  # the longest time box, 24 h
    assert units(TEXTS.text(key, **values)) <= 34


def test_a_confirmation_fits_the_dialog_of_slack() -> None:
    assert units(longest("panel.confirm_critical")) <= 300
    assert units(longest("panel.confirm_always")) <= 300
    assert units(longest("button.confirm_once")) <= 30
    assert units(longest("button.confirm_always")) <= 30


def test_a_typed_reason_has_a_prompt_that_fits_the_field() -> None:
    assert units(longest("panel.type_prompt")) <= 45  # the label of a field in a Discord dialog


FORBIDDEN = re.compile(
    r"\b(?:execut(?:e|es|ed|ing)|reject\w*|authori[sz]\w*|resolve\w*|invalid|sorry|failed to|ignored|missed)\b|!"
    r"|you denied",
    re.IGNORECASE,
)


def test_people_read_no_forbidden_word() -> None:
    for key in KEYS:
        if not key.startswith(FOR_AGENTS):
            for form in TEXTS.forms(key):
                assert not FORBIDDEN.search(form), f"{key}: {form}"


def test_please_stands_only_where_an_effort_is_asked_for() -> None:
    asking = {key for key in KEYS if "lease " in " ".join(TEXTS.forms(key))}
    tapping = {"tap.not_saved", "tap.unhandled", "tap.too_slow", "tap.no_dialog", "tap.nobody_named"}
    assert asking == {*tapping, "reply.not_first_hand", "reply.unhandled"}


def test_people_read_short_sentences() -> None:
    for key in KEYS:
        if key.startswith((FOR_AGENTS, "why.")):
            continue
        for form in TEXTS.forms(key):
            for sentence in re.split(r"[.;:·](?:\s|$)", form):
                assert len(sentence.split()) <= 15, f"{key}: {sentence}"


def test_marks_and_markup_stand_outside() -> None:
    for key in KEYS:
        for form in TEXTS.forms(key):
            assert not re.search(r"[*`│▏]|[\u2600-\u27bf]\ufe0f?|[\U0001f000-\U0001ffff]|[⌛⏹]", form), f"{key}: {form}"
            assert "  " not in form, key
