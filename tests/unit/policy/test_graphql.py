"""GraphQL requests: who only asks, and who changes something."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signoff.policy import graphql
from signoff.policy.shell import UNKNOWN


@pytest.mark.parametrize(
    "text",
    [
        "{ viewer { login } }",
        "query { viewer { login } }",
        'query Q($a: String = "mutation {") { x(a: $a) { mutation } }',
        "# mutation { x }\nquery { y }",
        'query { x(text: """ } mutation { y } """) { id } }',
        "fragment F on X { id } query { x { ...F } }",
        "query A { a } query B { b }",
        f'query {{ x(a: "{UNKNOWN}") {{ id }} }}',
    ],
)
def test_questions(text: str) -> None:
    assert graphql.changes(text) is False


@pytest.mark.parametrize(
    "text",
    [
        "mutation { x }",
        "mutation M($a: ID!) { x(a: $a) { id } }",
        "query { a } mutation { b }",
        "\n\n  # nothing\n mutation{x}",
        "subscription { x }",
        "fragment F on X { id } mutation { x { ...F } }",
    ],
)
def test_changes(text: str) -> None:
    assert graphql.changes(text) is True


@pytest.mark.parametrize("text", ["", "@query.graphql", UNKNOWN, f"query {{ {UNKNOWN} }}", "hello", "{" * 70_000])
def test_what_cannot_be_told(text: str) -> None:
    assert graphql.changes(text) is None


@settings(deadline=None)
@given(st.text(alphabet='querymtaion {}()"#\n\x00$!:', max_size=60))
def test_no_text_is_too_odd(text: str) -> None:
    assert graphql.changes(text) in {True, False, None}


@pytest.mark.parametrize("piece", ['"', '"""', "{", "#", '"a', "\\"])
def test_long_texts_are_read_in_time(piece: str) -> None:
    start = time.thread_time()
    graphql.changes(piece * (60_000 // len(piece)))
    assert time.thread_time() - start < 0.5
