"""The pure parts of the client: what is sent, what an answer means, and how an event stream is cut into events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff import errors
from signoff.client import _wire, operands_of
from signoff.client._link import FIRST_PAUSE_S, LONGEST_PAUSE_S, Backoff
from signoff.client._sse import Parser, Sent
from signoff.client.records import Question
from signoff.errors import ActionRefused, ClaimRefused, InvalidInput, SignoffError
from signoff.model import Command, Operand, replace

QUESTION = Question(action=Command(command="ls"), digest="d", request_id="r", session_id="s")


def test_only_what_was_said_is_sent() -> None:
    assert _wire.submit(QUESTION).body == {
        "action": {"kind": "command", "command": "ls"},
        "request_id": "r",
        "session_id": "s",
    }
    assert _wire.submit(replace(QUESTION, timeout_s=None)).body["timeout_s"] is None


def test_ids_are_quoted_into_the_path() -> None:
    assert _wire.get("a/b ä", 99).path == "/v1/approvals/a%2Fb%20%C3%A4"
    assert _wire.get("a", 99).query == (("wait", "60"),)
    assert _wire.claim("r", "d", "c", [Operand(path="p", sha256="x", bytes=1)]).body["operands"] == (
        {"path": "p", "sha256": "x", "bytes": 1},
    )


def test_what_would_do_twice_is_not_repeatable() -> None:
    once = [_wire.decide("r", "once", None), _wire.undo("r"), _wire.stop("s"), _wire.create_key("agent", None, None)]
    again = [_wire.submit(QUESTION), _wire.get("r"), _wire.claim("r", "d", "c", ()), _wire.cancel("r", "withdrawn")]
    again += [_wire.result("r", "succeeded", 0), _wire.open_turn("s", "t", 60), _wire.end_turn("t", "turn_ended")]
    assert not any(call.repeatable for call in once)
    assert all(call.repeatable for call in again)


def test_operands_name_the_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    [operand] = operands_of(["a"], tmp_path)
    assert operand == Operand(
        path="a", sha256="ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", bytes=3
    )
    with pytest.raises(InvalidInput, match="not a readable file"):
        operands_of(["missing"], tmp_path)


def test_undecodable_text_cannot_be_sent() -> None:
    with pytest.raises(InvalidInput):
        _wire.encode({"command": "ls \udcff"})


def all_errors(root: type[SignoffError]) -> list[type[SignoffError]]:
    return [root, *(deeper for child in root.__subclasses__() for deeper in all_errors(child))]


@pytest.mark.parametrize(
    "kind",
    [
        k
        for k in all_errors(SignoffError)
        if k.__module__ == "signoff.errors" and not issubclass(k, (errors.AdapterError, ActionRefused, ClaimRefused))
    ],
)
def test_each_code_is_read_back_as_its_class(kind: type[SignoffError]) -> None:
    body = json.dumps({"error": {"message": "m", "code": kind.code, "param": "p"}, "cause": "x", "self": 1}).encode()
    error = _wire.failure(kind.status, body)
    assert type(error) is kind
    assert (error.message, error.param, error.facts) == ("m", "p", {"cause": "x"})


@pytest.mark.parametrize("code", sorted(_wire.CLAIM_CODES))
def test_claim_refusals_keep_their_code(code: str) -> None:
    error = _wire.failure(409, json.dumps({"error": {"message": "m", "code": code}}).encode())
    assert isinstance(error, ClaimRefused)
    assert error.claim_code == code


@pytest.mark.parametrize("code", sorted(_wire.ACTION_CODES))
def test_refusals_of_kept_actions_keep_their_code(code: str) -> None:
    error = _wire.failure(409, json.dumps({"error": {"message": "m", "code": code}}).encode())
    assert isinstance(error, ActionRefused)
    assert error.code == code


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.integers(400, 599), st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_answer_becomes_an_error(status: int, body: bytes) -> None:
    assert isinstance(_wire.failure(status, body), SignoffError)


@given(st.dictionaries(st.sampled_from(["error", "self", "code", "approval", "kind"]), JSON))
def test_any_facts_beside_an_error_are_carried(raw: dict[str, Any]) -> None:
    raw["error"] = {"code": "conflict", "message": "m", **(raw["error"] if isinstance(raw.get("error"), dict) else {})}
    assert isinstance(_wire.failure(409, json.dumps(raw).encode()), SignoffError)


@given(st.binary(max_size=300))
def test_any_other_answer_is_told_as_none_of_ours(body: bytes) -> None:
    with pytest.raises(SignoffError, match="not one of a Signoff gateway"):
        _wire.record(body)


def test_a_newer_gateways_record_is_read_and_a_claim_in_it_is_not_believed() -> None:
    raw = {
        "request_id": "r", "session_id": "s", "status": "resolved", "digest": "d", "outcome": "something new",
        "created_at": "2026-01-01T00:00:00Z", "execution": {"state": "claimed", "new": 1}, "claimed_here": True,
        "field": {"of": "tomorrow"}, "decided_by": [{"type": "robot", "x": 1}],
    }  # fmt: skip
    record = _wire.record(json.dumps(raw).encode())
    assert record.outcome == "something new"
    assert not record.claimed_here


STREAM = (
    b": a comment\n\nid: 1\nevent: a\ndata: one\n\n\r\nid: 2\r\ndata: two\r\ndata:  three\r\n\r\n"
    b"id: 3\n\ndata\n\nid: 4\ndata: \xc3\xa4\n\nevent: unfinished\ndata: x"
)
EVENTS = [
    Sent(data="one", event="a", id="1"),
    Sent(data="two\n three", id="2"),
    Sent(data="", id="3"),
    Sent(data="ä", id="4"),
]


@given(st.lists(st.integers(1, 12), min_size=1))
def test_a_stream_may_be_cut_anywhere(sizes: list[int]) -> None:
    parser, found, at, turn = Parser(), [], 0, 0
    while at < len(STREAM):
        size = sizes[turn % len(sizes)]
        found += parser.feed(STREAM[at : at + size])
        at, turn = at + size, turn + 1
    assert found == EVENTS
    assert parser.last_id == "4"


@given(st.lists(st.binary(max_size=50)))
def test_any_bytes_are_a_stream(chunks: list[bytes]) -> None:
    parser = Parser()
    for chunk in chunks:
        parser.feed(chunk)


def test_an_event_without_an_end_is_given_up() -> None:
    parser = Parser()
    with pytest.raises(ValueError, match="no end"):
        for _ in range(20):
            parser.feed(b"x" * 1024 * 1024)


def test_pauses_grow_to_a_limit_and_vary() -> None:
    pauses = [[backoff.pause_s() for _ in range(10)] for backoff in (Backoff(), Backoff())]
    assert pauses[0] != pauses[1]
    assert all(FIRST_PAUSE_S / 2 <= pause <= LONGEST_PAUSE_S for row in pauses for pause in row)
    assert pauses[0][-1] >= LONGEST_PAUSE_S / 2
    assert Backoff().pause_s(9) == 9
