"""What the log says of decisions, and what it leaves out."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from signoff.decision_log import EVERY_S, RefusedCalls, heard
from signoff.model import Actor, ApprovalRequest, Change, Command, Event, Execution, replace

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
ANA = Actor(type="person", principal="ana", platform="telegram", user_id="81", name="Ana\nroot", via="button")
ROW = ApprovalRequest(
    request_id="r1", short_id="7K2Q", profile="ops", session_id="s\n1", agent="ci", digest="d", severity="high",
    action=Command(command="rm -rf /srv/secret"), created_at=NOW, reason="because secret", outcome="denied",
    decided_by=(ANA,),
)  # fmt: skip


def lines(caplog: pytest.LogCaptureFixture, kind: str, row: ApprovalRequest | None, **data: str) -> list[str]:
    """What one event makes the log say."""
    caplog.set_level(logging.INFO, logger="signoff.decisions")
    caplog.clear()
    heard([Change(Event(profile="ops", type=kind, at=NOW, data=dict(data)), row)])
    return [record.getMessage() for record in caplog.records]


def test_a_decision_is_a_line_without_what_it_was_about(caplog: pytest.LogCaptureFixture) -> None:
    [line] = lines(caplog, "approval.resolved", ROW)
    assert line == "ops: 7K2Q denied by ana via button, asked by ci in s 1"
    timeout = replace(ROW, outcome="cancelled", cause="stop_requested", decided_by=())
    assert lines(caplog, "approval.resolved", timeout) == ["ops: 7K2Q cancelled (stop_requested), asked by ci in s 1"]
    assert lines(caplog, "approval.requested", ROW) == []


def test_what_was_allowed_unasked_has_no_line(caplog: pytest.LogCaptureFixture) -> None:
    rule = Actor(type="policy", rule="reads")
    assert lines(caplog, "approval.resolved", replace(ROW, outcome="approved", decided_by=(rule,))) == []
    [line] = lines(caplog, "approval.resolved", replace(ROW, outcome="blocked", decided_by=(rule,)))
    assert line.startswith("ops: 7K2Q blocked by reads, ")
    [line] = lines(caplog, "approval.resolved", replace(ROW, outcome="approved"))
    assert line.startswith("ops: 7K2Q approved by ana via button, ")


def test_runs_that_did_not_succeed_and_refused_presses(caplog: pytest.LogCaptureFixture) -> None:
    lost = replace(ROW, execution=Execution(state="unknown", cause="lost_claimant"))
    assert lines(caplog, "approval.execution", lost) == ["ops: the run of 7K2Q is unknown (lost_claimant)"]
    done = replace(ROW, execution=Execution(state="succeeded"))
    assert lines(caplog, "approval.execution", done) == []
    [line] = lines(caplog, "tap.refused", None, why="not_allowed", platform="telegram", user_id="9", name="secret")
    assert line == "ops: what telegram:9 did to no question of ours decided nothing (not_allowed)"


def test_nothing_is_written_at_a_higher_level(caplog: pytest.LogCaptureFixture) -> None:
    lines(caplog, "approval.resolved", ROW)
    caplog.set_level(logging.WARNING, logger="signoff.decisions")
    caplog.clear()
    heard([Change(Event(profile="ops", type="approval.resolved", at=NOW), ROW)])
    assert not caplog.records


def test_calls_without_a_key_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="signoff.decisions")
    now_s = 0.0
    refused = RefusedCalls(lambda: now_s)
    for _ in range(50):
        refused.tell("invalid_api_key", "GET /v1/x", "10.0.0.9")
    now_s = EVERY_S
    refused.tell("insufficient_scope", "GET /v1/x", None)
    assert [record.getMessage() for record in caplog.records] == [
        "refused GET /v1/x from 10.0.0.9: invalid_api_key",
        "refused GET /v1/x from the local socket: insufficient_scope; 49 more since the last such line",
    ]
