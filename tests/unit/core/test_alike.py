"""One answer for several runs: one card tells how all of them went."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.harness import BY_ANN, SIGNER, World

from signoff.cards import Facts
from signoff.changes.digests import Listed
from signoff.digest_cards import digest_card
from signoff.endings import ending
from signoff.model import Alike, ApprovalRequest, Block, Execution
from signoff.testing.rows import T0, make_copy, make_request

SEVERAL = 3


async def approved(world: World, choice: str = "once_all", count: int = SEVERAL) -> list[ApprovalRequest]:
    """So many identical questions, approved by one tap; the leader first."""
    rows = [await world.submit() for _ in range(count)]
    await world.flush()
    assert (await world.tap(rows[0], choice)).text.startswith("Approved")
    await world.flush()
    return [await world.row(row) for row in rows]


async def started(world: World, *rows: ApprovalRequest) -> None:
    for row in rows:
        await world.claim(row, f"c-{row.request_id}")


async def second_line(world: World, row: ApprovalRequest) -> str:
    return (await world.card(row)).text.splitlines()[1]


@pytest.mark.parametrize("choice", ["once_all", "session"])
async def test_the_card_counts_every_run(world: World, choice: str) -> None:
    leader, second, third = await approved(world, choice)
    lines = (await world.card(leader)).text.splitlines()
    assert any(line.startswith("Waiting for the agent to start them; lapses ") for line in lines)
    await started(world, leader, second)
    await world.advance(6)
    assert "Started 2 of 3." in (await world.card(leader)).text.splitlines()
    await world.broker.result("default", leader.request_id, "succeeded", 0)
    await world.broker.result("default", second.request_id, "failed", 2)
    await world.advance(6)
    assert "⚠️ Succeeded 1, failed 1, not started 1." in (await world.card(leader)).text.splitlines()
    await started(world, third)
    await world.broker.result("default", third.request_id, "failed", 1)
    await world.flush()
    text = (await world.card(leader)).text
    assert "⚠️ Succeeded 1, failed 2." in text.splitlines(), "the last result is told at once"
    assert "exit code" not in text, "no run's own result stands for all of them"


async def test_no_card_says_that_one_runs_which_is_over_soon(world: World) -> None:
    """An agent that reports one run after the other is between two of them for a moment only."""
    leader, second = await approved(world, count=2)
    await started(world, leader, second)
    await world.broker.result("default", leader.request_id, "not_run")
    await world.flush()
    assert "running" not in (await world.card(leader)).text
    await world.broker.result("default", second.request_id, "not_run")
    await world.flush()
    assert (await second_line(world, leader)).startswith("Not run: "), "the last one is told at once"


async def test_the_card_is_closed_only_when_no_run_is_left(world: World) -> None:
    leader, second, third = await approved(world)
    await started(world, leader, second, third)
    for row in (leader, third):
        await world.broker.result("default", row.request_id, "succeeded", 0)
    await world.advance(60)
    assert "Succeeded 2, running 1." in (await world.card(leader)).text.splitlines()
    assert (await world.copy(leader)).state == "sent"
    await world.broker.result("default", second.request_id, "succeeded", 0)
    await world.flush()
    assert await second_line(world, leader) == "Succeeded 3."
    assert (await world.copy(leader)).state == "final"


@pytest.mark.parametrize(
    ("end", "says"),
    [
        ("undo", "⏹ Not run: “Ann” [fake 1] took the approval back at 09:00 UTC, before it started."),
        ("lapse", "⌛ Lapsed: the agent did not start it within 5 min."),
        ("stop", "⏹ Not run: “Ann” [fake 1] stopped the session at 09:00 UTC, before it started."),
    ],
)
async def test_what_ended_all_of_them_is_told_in_words(world: World, end: str, says: str) -> None:
    await world.session()
    leader, *_ = await approved(world)
    await end_all(world, leader, end)
    assert (await second_line(world, leader)).startswith(says)
    assert (await world.copy(leader)).state == "final"


async def end_all(world: World, leader: ApprovalRequest, end: str) -> None:
    by = leader.decided_by[0]
    if end == "undo":
        await world.broker.undo("default", leader.request_id, by)
    elif end == "stop":
        await world.sessions.stop("default", "s", by)
    else:
        await world.advance(400)
    await world.settle()


@pytest.mark.parametrize("end", ["undo", "stop", "turn"])
async def test_an_end_of_all_counts_each_once(world: World, end: str) -> None:
    """The rows of one end are read before it changes them, and the leader's among them."""
    await world.session()
    turn = await world.turn()
    rows = [await world.submit(turn_id=turn.turn_id) for _ in range(SEVERAL)]
    await world.flush()
    await world.tap(rows[0], "once_all")
    leader, second, third = [await world.row(row) for row in rows]
    await started(world, third)
    if end == "turn":
        await world.sessions.end_turn("default", turn.turn_id, "turn_ended", None)
    else:
        await end_all(world, leader, end)
    await world.settle()
    alike = (await world.row(leader)).alike
    assert alike is not None
    assert sum(alike.states.values()) == SEVERAL - 1
    states = [(await world.row(row)).execution.state for row in (second, third)]
    assert alike.states == {state: states.count(state) for state in states}
    line = await second_line(world, leader)
    if end == "undo":
        assert line == "Succeeded 0, running 1, not run 2."
    else:
        assert line.startswith("⚠️ Succeeded 0, not run 2, unknown 1. What is unknown may have run. Look at ")


async def test_a_hundred_results_are_few_edits(world: World) -> None:
    """Changes of the count alone wait for each other, also those that come while an edit is under way."""
    rows = await approved(world, count=100)
    before = world.sent["update", "ok"]
    for row in rows:
        await started(world, row)
        await world.broker.result("default", row.request_id, "succeeded", 0)
        await world.advance(0.3)
    await world.advance(10)
    assert await second_line(world, rows[0]) == "Succeeded 100."
    assert world.sent["update", "ok"] - before <= 30 / 5 + 3


async def test_a_count_that_changes_during_an_edit_waits_for_others(world: World) -> None:
    leader, second, third = await approved(world)
    await started(world, second)
    await world.clock.advance(5)
    world.chat.stall("update")
    await world.dispatcher.start_due()
    await started(world, third)
    world.chat.go_on("update")
    await world.flush()
    assert "Started 1 of 3." in (await world.card(leader)).text.splitlines()
    await world.advance(5)
    assert "Started 2 of 3." in (await world.card(leader)).text.splitlines()


async def test_a_decision_during_an_edit_does_not_wait(world: World) -> None:
    rows = [await world.submit() for _ in range(SEVERAL)]
    await world.flush()
    world.chat.stall("update")
    await world.submit()
    await world.dispatcher.start_due()
    await world.decide(rows[0], "once_all")
    world.chat.go_on("update")
    await world.flush()
    assert (await world.card(rows[0])).text.startswith("✅ Approved once for all 4 by "), "shown without a wait"


def test_a_digest_counts_every_run_too() -> None:
    facts: dict[str, Any] = {"outcome": "approved", "choice": "once_all", "decided_at": T0, "decided_by": (BY_ANN,)}
    run = Execution(state="succeeded", claimed_at=T0, ended_at=T0, exit_code=0)
    shared = make_request(
        "r1", runs=3, alike=Alike(states={"failed": 1, "claimed": 1}, since=1), execution=run, **facts
    )
    alone = make_request("r2", execution=run, **facts)
    listed = [Listed(make_copy(row.request_id * 8, state="sent"), row) for row in (shared, alone)]
    digest = make_copy("d" * 16, kind="digest", request_id=None)
    card = digest_card(digest, listed, Facts(now=T0, title=str), SIGNER, max_units=2000, attach=True, file=None)
    lines = ["".join(span.text for span in block.spans) for block in card.blocks]
    assert "⚠️ Succeeded 2, failed 1, running 1." in lines


async def test_a_followers_own_record_tells_its_own_run(world: World) -> None:
    """A request's own record and words stay those of its own run."""
    leader, second, _ = await approved(world)
    await started(world, leader, second)
    await world.broker.result("default", second.request_id, "failed", 2)
    row = await world.row(second)
    assert row.alike is None
    lines = ["".join(span.text for span in block.spans) for block in said(world, row)]
    assert lines[1].startswith("⚠️ Failed: exit code 2 after ")


def said(world: World, row: ApprovalRequest) -> tuple[Block, ...]:
    return ending(row, world.clock.now(), title=str.title).status


async def test_a_leader_of_before_tells_its_own_run(world: World) -> None:
    """Rows that an older version ended do not count."""
    leader, second, third = await approved(world)
    row = await world.row(leader)
    await world.put(type(row)(**{name: getattr(row, name) for name in row.__struct_fields__ if name != "alike"}))
    await started(world, leader, second, third)
    await world.broker.result("default", second.request_id, "failed", 2)
    await world.broker.result("default", leader.request_id, "succeeded", 0)
    await world.flush()
    assert (await second_line(world, leader)).startswith("Succeeded: exit code 0 after ")
