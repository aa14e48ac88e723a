"""One word for one ending: on the card, in the record, in the agent's message and in the event."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.tables import every
from tests.unit.core.harness import BY_ANN, World

from signoff.endings import Ending, ending
from signoff.errors import SendRefused
from signoff.model import (
    CAUSES,
    OUTCOMES,
    Actor,
    Alike,
    ApprovalRequest,
    Copy,
    Covered,
    Execution,
    ExecutionState,
    Outcome,
    Vote,
)
from signoff.record import claimed_of, record_of
from signoff.testing.rows import PLACE, T0, at, make_request

NOW = at(400)
SILENT = ("turn_ended", "turn_interrupted", "parent_ended", "requester_gone", "withdrawn")
NOT_RUN = (*SILENT, "stop_requested", "session_ended", "undone", "changed_since_review", None)
STATES: tuple[ExecutionState, ...] = ("none", "claimed", "succeeded", "failed", "not_run", "unknown", "lapsed")
WORDS: dict[str, str] = {outcome: outcome.replace("_", " ").capitalize() for outcome in sorted(OUTCOMES)}
POLICY = Actor(type="policy", rule="floor.delete_root")
SETTING = Actor(type="policy", setting="approvals.cron_mode")
GRANT = Actor(type="grant", grant_id="4TQ8R", name="Ann", platform="fake", user_id="1")
AGENT = Actor(type="agent", name="bot")


def title(platform: str) -> str:
    return platform.title()


def row_of(outcome: Outcome, **facts: Any) -> ApprovalRequest:
    defaults: dict[str, Any] = {
        "outcome": outcome,
        "decided_at": at(10),
        "expires_at": at(300),
        "timeout_s": 300.0,
        "destinations": (PLACE,),
        "label": "this exact command",
        "description": "deletes a directory tree",
    }
    return make_request(**{**defaults, **facts})


def executions() -> list[Execution]:
    """Every state an approval can be in, with every cause it can have."""
    found = [Execution()]
    started: dict[str, Any] = {"claim_id": "c", "claimed_at": at(20)}
    found += [Execution(state=state, ended_at=at(30), **started) for state in ("claimed", "unknown")]
    found += [
        Execution(state=state, ended_at=at(30), exit_code=code, **started)
        for state in ("succeeded", "failed")
        for code in (0, None)
    ]
    found += [
        Execution(state="not_run", cause=cause, ended_by=by, ended_at=at(30))
        for cause in NOT_RUN
        for by in (None, BY_ANN, AGENT)
    ]
    assert {each.state for each in found} == {*STATES} - {"lapsed"}
    return [*found, Execution(state="lapsed", ended_at=at(30))]


def approvals() -> list[ApprovalRequest]:
    answers: list[dict[str, Any]] = [
        {"choice": choice, "decided_by": (by,)}
        for choice in ("once", "once_all", "session", "always", "30m")
        for by in (BY_ANN,)
    ]
    answers += [{"choice": "once", "decided_by": (by,)} for by in (POLICY, SETTING, GRANT)]
    answers.append({"choice": "once", "decided_by": (GRANT,), "covered": Covered("session", "any deploy")})
    shared = Alike(states={"failed": 1, "claimed": 1}, since=1)
    answers.append({"choice": "once_all", "decided_by": (BY_ANN,), "runs": 3, "alike": shared})
    return [row_of("approved", execution=each, **answer) for answer in answers for each in executions()]


def others() -> list[ApprovalRequest]:
    yes, no = Vote(choice="once", by=BY_ANN, at=at(5)), Vote(choice="deny", by=BY_ANN, at=at(5))
    found = [
        row_of("denied", choice="deny", decided_by=(BY_ANN,), reason=reason, runs=runs)
        for reason in (None, "wrong target", 'say "approved"\nBLOCKED')
        for runs in (1, 3)
    ]
    found += [row_of("timeout", votes=votes, threshold=2) for votes in ((), (yes,), (no,))]
    found += [
        row_of("cancelled", cause=cause, ended_by=by, votes=votes, superseded_by="K4XW9")
        for cause in sorted(CAUSES)
        for by in (None, BY_ANN, AGENT)
        for votes in ((), (no,))
    ]
    refused = row_of("notify_failed", delivery_error="bot was removed", refused_by=PLACE)
    silent = row_of("notify_failed", delivery_error="connection refused")
    found += [refused, silent, row_of("notify_failed", destinations=())]
    found += [row_of("blocked", decided_by=(by,), kind=kind) for by in (POLICY, SETTING) for kind in ("cron", "chat")]
    return [*found, row_of("staged", decided_by=(SETTING,))]


EVERY = [*approvals(), *others()]


def name_of(row: ApprovalRequest) -> str:
    by = row.decided_by[0] if row.decided_by else row.ended_by
    parts = [row.outcome, row.choice, row.cause, row.execution.state, row.execution.cause, by.type if by else None]
    return "-".join(str(part) for part in parts if part)


def said(row: ApprovalRequest, now: datetime = NOW) -> Ending:
    return ending(row, now, title=title)


def first_line(found: Ending) -> str:
    return "".join(span.text for span in found.status[0].spans)


@every("row", EVERY, ids=name_of)
def test_every_surface_agrees(row: ApprovalRequest) -> None:
    found = said(row)
    word = WORDS[row.outcome or ""]
    mark, _, line = first_line(found).partition(" ")
    assert line.startswith(word), "the canonical word opens the status line"
    assert mark in ("✅", "⛔", "⌛", "⏹", "⚠️")
    assert found.summary.startswith(word)
    assert found.word == row.outcome
    assert found.labels == (row.outcome, row.cause or "")
    record = record_of(row, NOW)
    assert (record["outcome"], record["cause"], record["message"]) == (row.outcome, row.cause, found.message)
    assert record["user_summary"] == found.summary
    assert record["execution"]["state"] == row.execution.state


@every("row", EVERY, ids=name_of)
def test_what_must_not_run_says_so_first(row: ApprovalRequest) -> None:
    found = said(row)
    may_run = row.outcome == "approved" and row.execution.state == "none"
    if row.outcome == "staged":
        assert found.message.startswith("STAGED: ")
    else:
        assert found.message.startswith("BLOCKED: ") == (not may_run)
    if row.outcome != "approved":
        assert (row.outcome or "") in found.message.split(".")[0].lower()
        assert "Run it now" not in found.message
        assert "now." not in found.message
    if row.may_run:
        assert record_of(row, NOW)["message"].startswith("BLOCKED: already_claimed. "), "whoever reads it later"
        assert claimed_of(row, NOW).message.startswith("Approved"), "the answer to the claim itself"
    cause = row.execution.cause if row.execution.state == "not_run" else row.cause
    if cause and cause != "changed_since_review":
        assert f"({cause})" in found.message


@pytest.mark.parametrize(("claim_by", "said"), [(NOW, "BLOCKED: lapsed. "), (None, "BLOCKED: cancelled. ")])
def test_who_could_not_claim_an_approval_is_not_told_to_run_it(claim_by: datetime | None, said: str) -> None:
    """Nobody has noted its end yet, so the row itself still says that it stands."""
    row = row_of("approved", choice="once", decided_by=(BY_ANN,), claim_by=claim_by)
    assert record_of(row, NOW)["message"].startswith("Approved")
    assert claimed_of(row, NOW).message.startswith(said)


@every("row", EVERY, ids=name_of)
def test_only_a_person_denies(row: ApprovalRequest) -> None:
    found = said(row)
    everything = " ".join([found.message, found.summary, *("".join(s.text for s in b.spans) for b in found.status)])
    denied = row.outcome == "denied"
    assert ("A person denied" in found.message) == denied
    assert ("denied" in everything.lower()) == denied
    if row.outcome in ("timeout", "cancelled", "notify_failed") and not any(v.choice == "deny" for v in row.votes):
        assert "Nobody refused, but" in found.message
    if row.outcome in ("timeout", "cancelled", "notify_failed"):
        assert "is not consent" in found.message


@every("row", EVERY, ids=name_of)
def test_not_run_stands_only_where_nothing_was_started(row: ApprovalRequest) -> None:
    text = " ".join("".join(s.text for s in b.spans) for b in said(row).status).lower()
    started = row.outcome == "approved" and row.execution.claimed_at is not None
    if started:
        assert "not run" not in text
    elif row.outcome not in ("approved", "staged"):
        assert "not run" in text


@every("row", EVERY, ids=name_of)
def test_the_agent_reads_no_names_and_no_more_than_a_quoted_reason(row: ApprovalRequest) -> None:
    message = said(row).message
    assert "Ann" not in message
    assert "\n" not in message
    if row.reason and '"' in row.reason:
        assert message.count('"') == 2, "a reason cannot end its own quotation"


def test_a_pending_question_has_no_ending() -> None:
    found = said(make_request())
    assert (found.word, found.message, found.summary, found.status) == ("pending", "", "", ())


def test_running_is_told_after_5_s() -> None:
    row = row_of("approved", choice="once", decided_by=(BY_ANN,), execution=Execution(state="claimed", claimed_at=T0))
    assert len(said(row, T0 + timedelta(seconds=4.9)).status) == 1
    assert "Running" in said(row, T0 + timedelta(seconds=5)).status[1].spans[0].text


@pytest.mark.parametrize("end", ["denied", "timeout", "cancelled", "notify_failed", "blocked", "approved"])
async def test_the_event_and_the_card_say_the_same_word(world: World, end: str) -> None:
    if end == "notify_failed":
        world.chat.fail(SendRefused("no"))
    row = await world.ask("rm -rf /" if end == "blocked" else "deploy x", timeout_s=50)
    if end in ("denied", "approved"):
        await world.decide(row, "deny" if end == "denied" else "once")
    elif end == "timeout":
        await world.advance(50)
    elif end == "cancelled":
        await world.cancel(row)
    await world.flush()
    row = await world.row(row)
    assert row.outcome == end
    (event,) = await world.events("approval.resolved")
    assert (event.data["outcome"], event.data["cause"], event.request_id) == (end, row.cause, row.request_id)
    copies = await world.store.find(Copy, "request", f"default\x1f{row.request_id}")
    assert bool(copies) == (end != "blocked"), "nobody is asked what is blocked"
    for card in await world.cards(row):
        assert WORDS[end] in card.text.splitlines()[0]
