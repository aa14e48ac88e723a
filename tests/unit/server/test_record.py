"""The public record: every field, masked for everybody but the agent that asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.model import (
    Action,
    Actor,
    ApprovalRequest,
    Code,
    Command,
    Destination,
    Elicitation,
    FileWrite,
    Operand,
    Rule,
    Tool,
    Vote,
    replace,
)
from signoff.record import masked_action, record_of

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
ROW = ApprovalRequest(
    request_id="r1",
    profile="default",
    short_id="7K3FQ",
    session_id="s1",
    action=Command(command=f"curl -H 'Authorization: Bearer {TOKEN}' https://example.com", cwd="/srv"),
    digest="d",
    created_at=NOW,
    destinations=(Destination("telegram", "-100", "7"),),
)
FIELDS = {
    "object",
    "request_id",
    "short_id",
    "session_id",
    "turn_id",
    "status",
    "outcome",
    "choice",
    "cause",
    "decided_by",
    "ended_by",
    "reason",
    "votes",
    "rule_keys",
    "description",
    "severity",
    "digest",
    "leader_id",
    "waiters",
    "choices",
    "action",
    "agent",
    "requested_by",
    "kind",
    "destinations",
    "superseded_by",
    "warnings",
    "created_at",
    "expires_at",
    "decided_at",
    "execution",
    "delivered_to",
    "repeat_of",
    "message",
    "user_summary",
}


def test_every_promised_field_is_there() -> None:
    record = record_of(ROW, NOW)
    assert set(record) >= FIELDS
    assert (record["object"], record["status"], record["outcome"]) == ("signoff.approval", "pending", None)
    assert record["created_at"] == "2026-01-05T09:00:00Z"
    assert record["destinations"] == ["telegram:-100/7"]
    assert {"state", "cause", "ended_by", "claimed_at", "exit_code"} <= set(record["execution"])


def test_a_person_who_decided_is_named() -> None:
    ann = Actor(type="person", platform="telegram", user_id="5", name="Ann", via="button")
    row = replace(ROW, outcome="denied", choice="deny", decided_by=(ann,), decided_at=NOW + timedelta(seconds=3))
    record = record_of(row, NOW)
    assert record["status"] == "resolved"
    assert record["decided_by"] == [
        {"type": "person", "platform": "telegram", "user_id": "5", "name": "Ann", "via": "button"}
    ]
    assert record["message"].startswith("BLOCKED:")


def test_once_all_is_offered_while_somebody_waits() -> None:
    assert record_of(ROW, NOW)["choices"] == ["once", "session", "always", "deny"]
    assert "once_all" in record_of(replace(ROW, waiters=2), NOW)["choices"]
    critical = record_of(replace(ROW, waiters=2, severity="critical"), NOW)
    assert critical["choices"] == ["once", "deny"]


ACTIONS: list[Action] = [
    ROW.action,
    Command(command="ls", env={"API_TOKEN": "short"}, operands=(Operand(path=f"/x {TOKEN}", sha256="ab", bytes=1),)),
    Code(language="python", code=f"t = '{TOKEN}'"),
    Tool(name="t", arguments={"password": "hunter2", "list": [TOKEN, 1, None, {"api_key": "abc"}], "n": 1.5}),
    FileWrite(path="/srv/.env", diff=f"+TOKEN={TOKEN}"),
    Elicitation(server="s", message=f"use {TOKEN}?", schema={"type": "object"}),
    Rule(tool="t", rule_key="k", reason=f"because {TOKEN}"),
]


@pytest.mark.parametrize("action", ACTIONS, ids=lambda a: type(a).__name__)
def test_masked_in_every_kind_and_still_of_its_kind(action: Action) -> None:
    masked = masked_action(action)
    assert type(masked) is type(action)
    text = msgspec.json.encode(masked).decode()
    for secret in (TOKEN, "hunter2", '"abc"', '"short"'):
        assert secret not in text


@pytest.mark.parametrize("exact", [True, False])
def test_a_description_moves_no_terminal(exact: bool) -> None:
    """It carries names that an agent chose: of a tool, a path, a server, a language."""
    row = replace(ROW, description="calls tool x\x1b[2J\u202e\u200b of y")
    told = record_of(row, NOW, exact=exact)["description"]
    assert told.startswith("calls tool x")
    assert told.isprintable()
    assert not set("\x1b\u202e\u200b") & set(told)


def test_a_typed_reason_is_masked_as_on_a_card() -> None:
    ann = Actor(type="person", platform="telegram", user_id="5")
    reason = f"do not use {TOKEN}"
    vote = Vote(choice="deny", by=ann, at=NOW, reason=reason)
    row = replace(ROW, outcome="denied", choice="deny", decided_by=(ann,), reason=reason, votes=(vote,), decided_at=NOW)
    assert TOKEN not in msgspec.json.encode(record_of(row, NOW)).decode()
    exact = record_of(row, NOW, exact=True)
    assert (exact["reason"], exact["votes"][0]["reason"]) == (reason, reason)


def test_exact_is_exact() -> None:
    assert record_of(ROW, NOW, exact=True)["action"] == msgspec.to_builtins(ROW.action)


def test_two_digests_are_not_mixed_up() -> None:
    one = record_of(replace(ROW, digest="d1", action=Command(command="echo one")), NOW)
    two = record_of(replace(ROW, digest="d2", action=Command(command="echo two")), NOW)
    assert (one["action"]["command"], two["action"]["command"]) == ("echo one", "echo two")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
        max_leaves=8,
    )
)
def test_any_arguments_can_be_masked(value: object) -> None:
    masked = masked_action(Tool(name="t", arguments={"a": value}))
    assert isinstance(masked, Tool)
    assert list(masked.arguments) == ["a"]
