"""What a decision is bound to: the vectors of docs/digest.md, whose canonical texts were written by hand."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from signoff.digest import digest_of
from signoff.errors import InvalidInput
from signoff.expected import action_of
from signoff.model import Command, Tool

PAGE = (Path(__file__).parents[3] / "docs" / "digest.md").read_text(encoding="utf-8")
VECTORS = re.findall(r"### (.+)\n\n```json\n(.+)\n```\n\n```text\n([0-9a-f]{64})\n```", PAGE)


def test_the_page_has_its_vectors() -> None:
    assert len(VECTORS) == PAGE.count("\n### ") >= 10
    assert len({digest for _, _, digest in VECTORS}) == len(VECTORS)
    kinds = {json.loads(canonical)["action"]["kind"] for _, canonical, _ in VECTORS}
    assert kinds == {"command", "code", "tool", "file_write", "elicitation", "rule"}


@pytest.mark.parametrize(("name", "canonical", "digest"), VECTORS, ids=[name for name, _, _ in VECTORS])
def test_vectors(name: str, canonical: str, digest: str) -> None:
    assert hashlib.sha256(canonical.encode()).hexdigest() == digest
    sent = json.loads(canonical)
    assert digest_of(action_of(sent["action"]), sent["host"]) == digest


def test_order_of_keys_and_what_was_left_out_do_not_matter() -> None:
    one = digest_of(Tool(name="t", arguments={"a": 1, "b": {"c": 2, "d": 3}}), None)
    assert digest_of(Tool(name="t", arguments={"b": {"d": 3, "c": 2}, "a": 1}), None) == one
    assert digest_of(Command(command="ls", cwd=None, env=None, operands=()), None) == digest_of(
        action_of({"kind": "command", "command": "ls"}), None
    )


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "command", "command": "ls "},
        {"kind": "command", "command": "ls", "cwd": "/"},
        {"kind": "command", "command": "ls", "shell": "sh"},
        {"kind": "command", "command": "ls", "env": {"A": ""}},
        {"kind": "command", "command": "ls", "operands": [{"path": "a", "sha256": "b", "bytes": 1}]},
        {"kind": "code", "language": "sh", "code": "ls"},
        {"kind": "tool", "name": "ls"},
    ],
)
def test_everything_that_will_be_used_counts(other: dict[str, Any]) -> None:
    plain = digest_of(Command(command="ls"), None)
    assert digest_of(action_of(other), None) != plain
    assert digest_of(Command(command="ls"), "") != plain


def test_bytes_that_are_no_text_are_flagged() -> None:
    name = b"deploy \xff\xfe".decode("utf-8", "surrogateescape")
    raw = base64.b64encode(name.encode("utf-8", "surrogatepass")).decode()
    canonical = f'{{"action":{{"command":{{"$bytes":"{raw}"}},"kind":"command"}},"host":null}}'
    assert digest_of(Command(command=name), None) == hashlib.sha256(canonical.encode()).hexdigest()
    other = b"deploy \xff\xfd".decode("utf-8", "surrogateescape")
    assert digest_of(Command(command=other), None) != digest_of(Command(command=name), None)
    assert digest_of(Command(command="deploy \ufffd\ufffd"), None) != digest_of(Command(command=name), None)


@pytest.mark.parametrize("number", [2**53, -(2**53), 2**64, 10**30, float("nan"), float("inf"), -float("inf")])
def test_numbers_that_not_every_reader_reads_alike_are_refused(number: float) -> None:
    with pytest.raises(InvalidInput, match="Send such a number as a string") as caught:
        digest_of(Tool(name="t", arguments={"n": number}), None)
    assert caught.value.param == "action"


def test_the_last_numbers_that_are_taken() -> None:
    assert digest_of(Tool(name="t", arguments={"n": 2**53 - 1}), None) != digest_of(
        Tool(name="t", arguments={"n": 2**53 - 2}), None
    )


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers(-9, 9) | st.booleans(), max_size=5))
def test_any_order_gives_one_digest(arguments: dict[str, Any]) -> None:
    turned = dict(reversed(arguments.items()))
    assert digest_of(Tool(name="t", arguments=arguments), None) == digest_of(Tool(name="t", arguments=turned), None)


@given(st.text(max_size=8), st.text(max_size=8))
def test_two_texts_have_two_digests(one: str, other: str) -> None:
    alike = digest_of(Command(command=one), None) == digest_of(Command(command=other), None)
    assert alike == (one == other)


def test_an_object_never_looks_like_flagged_bytes() -> None:
    flagged = digest_of(Tool(name="t", arguments={"x": "\udcff"}), None)
    literal = digest_of(Tool(name="t", arguments={"x": {"$bytes": "7bO/"}}), None)
    wrapped = digest_of(Tool(name="t", arguments={"x": {"$literal": {"$bytes": "7bO/"}}}), None)
    assert len({flagged, literal, wrapped}) == 3


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    # Surrogates are flagged bytes; names beyond the basic plane sort otherwise in UTF-16 than by code points.
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.sampled_from("ab\x00\x7f\"\\é\uffff\U00010000")), inner),
)  # fmt: skip


@given(JSON)
@example({"\uffff": 1, "\U00010000": 2})
@example(0.5)
def test_the_quick_way_writes_the_same_bytes(arguments: Any) -> None:
    sent: Any = {"action": {"kind": "tool", "name": "t", "arguments": {"x": arguments}}, "host": None}
    digest = digest_of(Tool(name="t", arguments={"x": arguments}), None)
    assert digest == hashlib.sha256(rfc8785.dumps(sent)).hexdigest()
