"""A server's question and a protected file: only a person refuses, and every other ending keeps its own words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.unit.core.harness import BY_ANN, World, choices_of
from tests.unit.core.test_delivery import REFUSED

from signoff.endings import user_summary
from signoff.errors import ChoiceNotOffered
from signoff.model import Action, ApprovalRequest, Elicitation, FileWrite, Outcome
from signoff.record import record_of
from signoff.settings import ApprovalSettings, Profile

ASKS = Elicitation(server="jira", message="Which project?", schema={"properties": {"project": {"type": "string"}}})
WRITES = FileWrite(path="docs/AGENTS.md", diff="--- a/docs/AGENTS.md\n+++ b/docs/AGENTS.md\n@@ -1 +1 @@\n-a\n+b\n")
REFUSALS = ("denied", "declin", "rejected", "refused by")
"""Words of a refusal by a person; that nobody refused may be said."""

both = pytest.mark.parametrize("action", [ASKS, WRITES], ids=["elicitation", "protected file"])


async def timed_out(world: World, action: Action) -> ApprovalRequest:
    row = await world.ask(action, turn_id="t", timeout_s=300)
    await world.advance(300)
    return row


async def turn_over(world: World, action: Action) -> ApprovalRequest:
    row = await world.ask(action, turn_id="t")
    await world.sessions.end_turn("default", "t", "turn_ended", None)
    await world.settle()
    return row


async def taken_back(world: World, action: Action) -> ApprovalRequest:
    row = await world.ask(action, turn_id="t")
    await world.cancel(row)
    await world.settle()
    return row


async def stopped(world: World, action: Action) -> ApprovalRequest:
    row = await world.ask(action, turn_id="t")
    await world.sessions.stop("default", "s", BY_ANN)
    await world.settle()
    return row


async def undelivered(world: World, action: Action) -> ApprovalRequest:
    world.chat.fail(REFUSED)
    return await world.ask(action, turn_id="t")


@both
@pytest.mark.parametrize(
    ("happens", "outcome", "cause", "told", "summary"),
    [
        (timed_out, "timeout", None, "BLOCKED: timeout. Nobody answered within 5 minutes.", "Timeout"),
        (turn_over, "cancelled", "turn_ended", "BLOCKED: cancelled (turn_ended). The question", "Cancelled"),
        (taken_back, "cancelled", "withdrawn", "BLOCKED: cancelled (withdrawn). The question", "Cancelled"),
        (stopped, "cancelled", "stop_requested", "BLOCKED: cancelled (stop_requested). The question", "Cancelled"),
        (undelivered, "notify_failed", None, "BLOCKED: notify_failed. The question could not", "Notify failed"),
    ],
)
async def test_what_nobody_refused_is_no_refusal(
    world: World,
    action: Action,
    happens: Callable[[World, Action], Awaitable[ApprovalRequest]],
    outcome: Outcome,
    cause: str | None,
    told: str,
    summary: str,
) -> None:
    row = await world.row(await happens(world, action))
    assert (row.outcome, row.cause, row.choice, row.decided_by) == (outcome, cause, None, ())
    message, now = await world.message(row), world.clock.now()
    assert message.startswith(told)
    assert "Nobody refused, but " in message
    record: dict[str, Any] = record_of(row, now)
    assert (record["outcome"], record["cause"], record["message"]) == (outcome, cause, message)
    assert (record["decided_by"], record["reason"], record["choice"]) == ([], None, None)
    assert record["user_summary"].startswith(summary)
    cards = [card.text for card in await world.cards(row)]
    assert len(cards) == (0 if outcome == "notify_failed" else 1)
    for text in (message, record["user_summary"], *cards):
        assert not [word for word in REFUSALS if word in text.lower()]
    (event,) = [each for each in await world.events("approval.resolved") if each.request_id == row.request_id]
    assert (event.data["outcome"], event.data["cause"], event.data["choice"]) == (outcome, cause, None)


@both
async def test_nothing_that_nobody_refused_holds_for_the_next_time(world: World, action: Action) -> None:
    for happens in (timed_out, taken_back, undelivered):
        await happens(world, action)
        again = await world.ask(action, turn_id="t")
        assert (again.outcome, again.repeat_of, len(await world.cards(again))) == (None, None, 1)
        await world.cancel(again)


@both
async def test_a_person_who_refuses_is_told_as_that(world: World, action: Action) -> None:
    row = await world.ask(action)
    await world.decide(row, "deny", reason="not now")
    await world.flush()
    row = await world.row(row)
    assert (row.outcome, row.choice, row.decided_by, row.reason) == ("denied", "deny", (BY_ANN,), "not now")
    message = await world.message(row)
    assert message.startswith("BLOCKED: denied. A person denied ")
    record = record_of(row, world.clock.now())
    assert (record["outcome"], record["message"], record["decided_by"][0]["name"]) == ("denied", message, "Ann")
    told = user_summary(row, world.clock.now())
    assert told.startswith("Denied")
    assert "by “Ann”" in told
    assert "Denied" in (await world.card(row)).text


@both
async def test_one_yes_is_for_one_time(world: World, action: Action) -> None:
    row = await world.ask(action)
    for choice in ("session", "always", "30m"):
        with pytest.raises(ChoiceNotOffered):
            await world.decide(row, choice)
    assert (await world.row(row)).outcome is None
    await world.decide(row, "once")
    assert await world.broker.grants("default") == []
    again = await world.ask(action)
    assert again.outcome is None
    assert not {"session", "always", "30m"} & set(choices_of(await world.card(again)))


async def test_a_protected_file_is_asked_for_whatever_is_switched_off(make_world: Callable[..., World]) -> None:
    # 1.3.6
    off = Profile(approvers={"fake": ("1", "2")}, approvals=ApprovalSettings(mode="off"))
    for world in (make_world(), make_world(profile=off)):
        await world.session()
        if world.profile is not off:
            await world.sessions.bypass("default", "s", BY_ANN)
        assert (await world.submit(FileWrite(path="src/main.py"))).outcome == "approved"
        row = await world.ask(WRITES)
        assert (row.outcome, row.rung, row.once_only, row.rule_keys) == (None, "protected", True, ("file.protected",))
        assert len(await world.cards(row)) == 1
        world.chat.fail(REFUSED)
        lost = await world.ask(FileWrite(path="CLAUDE.md"))
        assert (lost.outcome, lost.decided_by) == ("notify_failed", ())
        await world.cancel(row)


@pytest.mark.parametrize("mode", ["deny", "approve"])
@pytest.mark.parametrize("kind", ["cron", "webhook", "single_query", "worker", "api"])
async def test_where_nobody_can_be_asked_a_protected_file_is_blocked_and_says_so(
    make_world: Callable[..., World], kind: str, mode: str
) -> None:
    settings: dict[str, Any] = dict.fromkeys(("cron_mode", "unattended_mode", "single_query_mode"), mode)
    world = make_world(profile=Profile(approvers={"fake": ("1",)}, approvals=ApprovalSettings(**settings)))
    await world.session(kind=kind, destination=None)
    row = await world.ask(WRITES)
    assert (row.outcome, row.rung, row.decided_by[0].rule) == ("blocked", "protected", "file.protected")
    assert await world.message(row) == (
        "BLOCKED: blocked. docs/AGENTS.md is protected and nobody can be asked here. "
        "Do not retry it, rephrase it or reach the same effect another way."
    )
    told = user_summary(row, world.clock.now())
    assert told == "Blocked: docs/AGENTS.md is protected and nobody can be asked here, not run."
    assert row.why == ("`docs/AGENTS.md` tells agents how to behave, and nobody can be asked.",)
    assert world.chat.calls == []
    asked = await world.ask(ASKS)
    assert asked.outcome == ("approved" if mode == "approve" else "blocked")
    if mode == "deny":
        name = {"cron": "cron_mode", "single_query": "single_query_mode"}.get(kind, "unattended_mode")
        assert (asked.decided_by[0].setting or "").startswith(f"approvals.{name}")
        assert "nobody can be asked in " in await world.message(asked)
