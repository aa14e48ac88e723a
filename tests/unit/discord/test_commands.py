"""Slash commands: what is registered, how one reads as a typed line, and what is offered for a half-typed id."""

from __future__ import annotations

import pytest

from signoff.grammar import VERBS, Approve, Deny, parse
from signoff.model import Suggestion
from signoff_adapters.discord.commands import COMMANDS, Mistyped, choices, line_of
from signoff_adapters.discord.wire import Data, Option

WAITING = (
    Suggestion("K4XW9", "medium · git push --force origin main"),
    Suggestion("7Q2MK", "high · rm -rf ./build " + "x" * 200),
)


def given(name: str, **values: str) -> Data:
    return Data(name=name, options=tuple(Option(key, value) for key, value in values.items()))


def test_every_verb_has_a_command() -> None:
    assert {each["name"] for each in COMMANDS} == set(VERBS)
    for each in COMMANDS:
        assert len(each["description"]) <= 100
        assert all(len(option["description"]) <= 100 for option in each["options"])


def test_ids_that_wait_are_offered_only_where_one_is_meant() -> None:
    completed = {each["name"] for each in COMMANDS if any(option.get("autocomplete") for option in each["options"])}
    assert completed == {"approve", "deny", "why"}


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (given("approve", scope="session", id="k4xw9"), "/approve k4xw9 session"),
        (given("approve", id="all"), "/approve all"),
        (given("approve"), "/approve"),
        (given("deny", id="K4XW9", reason=" wrong\n target "), "/deny K4XW9 wrong target"),
        (given("deny", reason="too risky"), "/deny too risky"),
        (given("revoke", grant="4TQ8R"), "/revoke 4TQ8R"),
        (given("pending"), "/pending"),
        (given("yolo"), "/yolo"),
        (given("yolo", minutes="45"), "/yolo 45"),
        (given("yolo", minutes="off"), "/yolo off"),
    ],
)
def test_a_command_reads_as_a_typed_line(data: Data, line: str) -> None:
    assert line_of(data) == line


@pytest.mark.parametrize("value", ["foo", "K4XW9 now", "K4XW", "everything"])
@pytest.mark.parametrize("name", ["approve", "deny"])
def test_what_is_no_id_decides_nothing(name: str, value: str) -> None:
    with pytest.raises(Mistyped, match="nothing was decided"):
        line_of(given(name, id=value))


def test_all_is_no_id_where_one_is_asked_for() -> None:
    with pytest.raises(Mistyped):
        line_of(given("undo", id="all"))


@pytest.mark.parametrize("reason", ["all of this looks wrong", "ALL", "K4XW9 is the same, ask once", " k4xw9"])
def test_a_reason_that_would_name_requests_decides_nothing(reason: str) -> None:
    with pytest.raises(Mistyped, match="nothing was decided"):
        line_of(given("deny", reason=reason))
    named = parse(line_of(given("deny", id="7Q2MK", reason=reason)))
    assert isinstance(named, Deny)
    assert (named.target, named.everything) == ("7Q2MK", False)
    assert named.reason == " ".join(reason.split())
    everything = parse(line_of(given("deny", id="all", reason=reason)))
    assert isinstance(everything, Deny)
    assert everything.everything


@pytest.mark.parametrize("reason", ["allow nothing here", "build 4 is broken", "not all of it"])
def test_other_reasons_are_reasons(reason: str) -> None:
    assert parse(line_of(given("deny", reason=reason))) == Deny(reason=reason)


def test_the_lines_are_understood() -> None:
    assert parse(line_of(given("approve", id="K4XW9", scope="30m"))) == Approve(target="K4XW9", choice="30m")
    assert parse(line_of(given("deny", id="K4XW9", reason="no"))) == Deny(target="K4XW9", reason="no")


def test_half_typed_ids() -> None:
    typing = Data(name="approve", options=(Option("id", "7q", focused=True),))
    assert [each["value"] for each in choices(typing, WAITING)] == ["7Q2MK"]
    assert all(len(each["name"]) <= 100 for each in choices(typing, WAITING))
    by_words = Data(name="deny", options=(Option("id", "force", focused=True),))
    assert [each["value"] for each in choices(by_words, WAITING)] == ["K4XW9"]
    empty = Data(name="approve", options=(Option("id", "", focused=True),))
    assert [each["value"] for each in choices(empty, WAITING)] == ["K4XW9", "7Q2MK", "all"]
    assert [each["value"] for each in choices(Data(name="why"), WAITING)] == ["K4XW9", "7Q2MK"]
    assert choices(empty, ()) == []
    many = tuple(Suggestion(f"A{n:04d}", "") for n in range(40))
    assert len(choices(empty, many)) == 25
    assert choices(empty, many)[-1] == {"name": "all 40 that wait here", "value": "all"}
