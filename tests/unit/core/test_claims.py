"""The approved action is started once, by whom it was approved for, as it was shown; and what becomes of it after."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.core.harness import BEN, BY_ANN, World, operand

from signoff import waiters
from signoff.broker import Ask, Broker
from signoff.errors import ClaimRefused, Conflict, NotPermitted, UndoTooLate
from signoff.model import Action, Actor, ApprovalRequest, Command, Operand, replace
from signoff.ports import Store, Tx

BY_BEN = Actor(type="person", platform="fake", user_id=BEN, name="Ben", via="api")


async def approved(world: World, **facts: Any) -> ApprovalRequest:
    """An approved request with its card edited."""
    row = await world.ask(**facts)
    await world.decide(row, "once")
    await world.flush()
    return await world.row(row)


async def refused(world: World, row: ApprovalRequest, claim_id: str = "c1", **facts: Any) -> str:
    """The code with which a claim is refused."""
    with pytest.raises(ClaimRefused) as caught:
        await world.claim(row, claim_id, **facts)
    return caught.value.claim_code


async def test_a_decision_alone_is_no_permission(world: World) -> None:
    row = await approved(world)
    assert not row.may_run
    with pytest.raises(TypeError):
        bool(row)


async def test_once(world: World) -> None:
    row = await approved(world)
    assert (await world.claim(row, "c1")).may_run
    assert (await world.claim(row, "c1")).may_run, "the same claim again gets the same answer"
    assert await refused(world, row, "c2") == "already_claimed"
    assert len([e for e in await world.events("approval.execution") if e.data["state"] == "claimed"]) == 1


async def test_sixteen_at_once_have_one_winner(world: World) -> None:
    row = await approved(world)
    answers = await asyncio.gather(*(world.claim(row, f"c{i}") for i in range(16)), return_exceptions=True)
    won = [a for a in answers if isinstance(a, ApprovalRequest)]
    lost = [a for a in answers if isinstance(a, ClaimRefused)]
    assert (len(won), len(lost)) == (1, 15)
    assert {a.claim_code for a in lost} == {"already_claimed"}
    assert (await world.row(row)).execution.claim_id == won[0].execution.claim_id


async def test_another_action_is_not_what_was_approved(world: World) -> None:
    row = await approved(world)
    other = await world.submit("deploy elsewhere")
    assert await refused(world, row, digest=other.digest) == "digest_mismatch"
    assert (await world.row(row)).execution.state == "none"
    assert (await world.claim(row)).may_run


@pytest.mark.parametrize("choice", ["deny", None])
async def test_what_is_not_approved(world: World, choice: str | None) -> None:
    row = await world.ask()
    if choice:
        await world.decide(row, choice)
    assert await refused(world, row) == "not_approved"


async def test_a_changed_file_takes_the_approval_away(world: World) -> None:
    action = Command(command="deploy run.sh", operands=(operand(sha256="aa"),))
    row = await approved(world, action=action)
    assert await refused(world, row, operands=(operand(sha256="bb"),)) == "changed_since_review"
    after = await world.row(row)
    assert (after.outcome, after.execution.state, after.execution.cause) == (
        "approved",
        "not_run",
        "changed_since_review",
    )
    assert (await world.message(row)).startswith("BLOCKED: not_run. run.sh changed after a person looked at it.")
    await world.flush()
    assert "⚠️ Not run: run.sh changed after “Ann” [fake 1] looked at it." in (await world.card(row)).text
    assert await refused(world, row, operands=(operand(sha256="aa"),)) == "changed_since_review"


@pytest.mark.parametrize("operands", [None, (), (operand(sha256="aa"), operand("more.sh"))])
async def test_files_not_named_again_count_as_changed(world: World, operands: Any) -> None:
    row = await approved(world, action=Command(command="deploy run.sh", operands=(operand(sha256="aa"),)))
    assert await refused(world, row, operands=operands) == "changed_since_review"


async def test_the_same_files_are_no_change(world: World) -> None:
    row = await approved(world, action=Command(command="deploy run.sh", operands=(operand(),)))
    assert (await world.claim(row, operands=(operand(),))).may_run


async def test_an_unclaimed_approval_lapses(world: World) -> None:
    row = await approved(world)
    await world.advance(299)
    assert (await world.row(row)).execution.state == "none"
    await world.advance(1)
    after = await world.row(row)
    assert (after.outcome, after.execution.state) == ("approved", "lapsed")
    assert await refused(world, row) == "lapsed"
    assert (await world.message(row)).startswith("BLOCKED: lapsed. It was approved, but not started within 5 minutes.")
    card = await world.card(row)
    assert "⌛ Lapsed: the agent did not start it within 5 min. The approval is used up. Not run." in card.text
    assert not card.card.rows


async def test_a_claim_at_the_instant_it_lapses_is_late(world: World) -> None:
    row = await approved(world)
    await world.clock.advance(300)
    assert await refused(world, row) == "lapsed"


@pytest.mark.parametrize("how", ["stop", "clear", "turn", "lease", "undo", "withdrawn"])
async def test_an_unstarted_approval_ends_with_its_ground(world: World, how: str) -> None:
    await world.turn("short", lease_s=60)
    row = await approved(world, turn_id="short")
    causes = {
        "stop": "stop_requested",
        "clear": "session_ended",
        "turn": "turn_ended",
        "lease": "requester_gone",
        "undo": "undone",
        "withdrawn": "withdrawn",
    }
    by: Actor | None = BY_ANN
    if how == "stop":
        await world.sessions.stop("default", "s", BY_ANN)
    elif how == "clear":
        await world.sessions.clear("default", "s", BY_ANN, close=False)
    elif how == "turn":
        await world.sessions.end_turn("default", "short", "turn_ended", BY_ANN)
    elif how == "lease":
        await world.advance(60)
        by = None
    elif how == "undo":
        await world.broker.undo("default", row.request_id, BY_ANN)
    else:
        await world.cancel(row, by=BY_ANN)
    after = await world.row(row)
    assert (after.outcome, after.choice, after.cause) == ("approved", "once", None), "the outcome stays"
    assert (after.execution.state, after.execution.cause, after.execution.ended_by) == ("not_run", causes[how], by)
    assert not after.may_run
    assert await refused(world, row) == "cancelled"
    assert (await world.message(row)).startswith(f"BLOCKED: not_run ({causes[how]}).")
    await world.flush()
    card = await world.card(row)
    assert "⏹ Not run: " in card.text
    assert not card.card.rows


async def test_a_result(world: World) -> None:
    row = await approved(world)
    with pytest.raises(Conflict):
        await world.broker.result("default", row.request_id, "succeeded", 0)
    await world.claim(row)
    await world.clock.advance(12)
    await world.broker.result("default", row.request_id, "failed", 2)
    again = await world.broker.result("default", row.request_id, "failed", 2)
    assert (again.execution.state, again.execution.exit_code) == ("failed", 2)
    with pytest.raises(Conflict):
        await world.broker.result("default", row.request_id, "succeeded", 0)
    await world.flush()
    assert "⚠️ Failed: exit code 2 after 12 s." in (await world.card(row)).text
    assert await refused(world, row, "c2") == "already_claimed"


async def test_a_run_of_an_instant_is_told_in_milliseconds(world: World) -> None:
    row = await approved(world)
    await world.claim(row)
    await world.clock.advance(0.018)
    await world.broker.result("default", row.request_id, "succeeded", 0)
    await world.flush()
    assert "Succeeded: exit code 0 after 18 ms." in (await world.card(row)).text


async def test_a_run_without_result_is_unknown_when_its_turn_ends_and_a_late_result_is_welcome(world: World) -> None:
    row = await approved(world, turn_id="t")
    await world.claim(row)
    await world.sessions.end_turn("default", "t", "turn_ended", None)
    after = await world.row(row)
    assert (after.outcome, after.execution.state) == ("approved", "unknown")
    assert (await world.message(row)).startswith("BLOCKED: already_claimed."), "it is not to be repeated"
    assert await refused(world, row, "c2") == "already_claimed"
    await world.flush()
    assert "It may have run." in (await world.card(row)).text
    late = await world.broker.result("default", row.request_id, "succeeded", 0)
    assert late.execution.state == "succeeded"
    await world.flush()
    assert "Succeeded: exit code 0" in (await world.card(row)).text


async def test_a_run_without_a_turn_is_unknown_after_a_day(world: World) -> None:
    row = await approved(world)
    await world.claim(row)
    await world.advance(86399)
    assert (await world.row(row)).execution.state == "claimed"
    await world.advance(1)
    assert (await world.row(row)).execution.state == "unknown"


async def test_undo_is_for_who_decided_and_only_before_the_start(world: World) -> None:
    row = await approved(world)
    with pytest.raises(NotPermitted):
        await world.broker.undo("default", row.request_id, BY_BEN)
    await world.claim(row)
    with pytest.raises(UndoTooLate):
        await world.broker.undo("default", row.request_id, BY_ANN)
    assert (await world.row(row)).execution.state == "claimed"


async def test_undo_takes_back_every_run_of_the_answer_that_has_not_started(world: World) -> None:
    rows = [await world.submit() for _ in range(3)]
    other = await world.submit("deploy other")
    await world.flush()
    await world.decide(rows[0], "once_all")
    await world.decide(other, "once")
    await world.claim(rows[1])
    await world.broker.undo("default", rows[0].request_id, BY_ANN)
    states = [(await world.row(row)).execution.state for row in (*rows, other)]
    assert states == ["not_run", "claimed", "not_run", "none"]


async def test_undoing_a_follower_revokes_the_grant_that_came_with_it(world: World) -> None:
    leader, follower = await world.submit(), await world.submit()
    await world.decide(leader, "session")
    assert len(await world.broker.grants("default")) == 1
    await world.broker.undo("default", follower.request_id, BY_ANN)
    assert await world.broker.grants("default") == []


# --- asking, waiting and claiming in one ------------------------------------------------------------


async def test_ask_claims_inside(world: World) -> None:
    asked = asyncio.ensure_future(world.broker.ask("default", Ask(action=Command(command="deploy x"), session_id="s")))
    await _until_asked(world)
    (row,) = await world.rows()
    await world.decide(row, "once")
    assert (await asked).may_run


async def test_the_same_question_asked_twice_runs_once(world: World) -> None:
    """A second continuation with the same id must not take the first one's claim for its own permission."""
    ask = Ask(action=Command(command="deploy x"), session_id="s", request_id="r1")
    first, second = (asyncio.ensure_future(world.broker.ask("default", ask)) for _ in range(2))
    await _until_asked(world)
    await world.decide(await world.row("r1"), "once")
    answers = await asyncio.gather(first, second, return_exceptions=True)
    assert sum(isinstance(a, ApprovalRequest) and a.may_run for a in answers) == 1
    assert [a.claim_code for a in answers if isinstance(a, ClaimRefused)] == ["already_claimed"]
    with pytest.raises(ClaimRefused):
        await world.broker.ask("default", ask)


async def test_a_cancelled_asker_withdraws_its_question(world: World) -> None:
    asked = asyncio.ensure_future(world.broker.ask("default", Ask(action=Command(command="deploy x"), session_id="s")))
    await _until_asked(world)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    (row,) = await world.rows()
    assert (row.outcome, row.cause) == ("cancelled", "turn_interrupted")
    assert len(world.broker.waiters) == 0


async def test_an_asker_cancelled_before_its_claim_leaves_no_approval_behind(world: World) -> None:
    """An approval whose asker is gone must not stay claimable."""
    reading = asyncio.Event()

    async def recollect(_action: Action) -> tuple[Operand, ...] | None:
        reading.set()
        return await asyncio.Future()

    ask = Ask(action=Command(command="deploy x"), session_id="s", request_id="r1")
    asked = asyncio.ensure_future(world.broker.ask("default", ask, recollect=recollect))
    await _until_asked(world)
    await world.decide(await world.row("r1"), "once")
    await _until(reading.is_set)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    row = await world.row("r1")
    assert (row.outcome, row.execution.state, row.execution.cause) == ("approved", "not_run", "turn_interrupted")
    assert await refused(world, row) == "cancelled"


class Held:
    """The world's store, whose commits of a claim are answered late: `claimed` is set, and then nothing comes."""

    def __init__(self, store: Store) -> None:
        self._store, self.claimed = store, asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def transact(self, change: Callable[[Tx], Any], *, bulk: bool = False) -> Any:
        """Commit; keep the answer of a claim back."""
        value = await self._store.transact(change, bulk=bulk)
        if isinstance(value, ApprovalRequest) and value.execution.state == "claimed":
            self.claimed.set()
            await asyncio.Future()
        return value


@pytest.mark.parametrize("turn_id", ["t", None])
async def test_an_asker_cancelled_after_its_claim_ran_nothing(world: World, turn_id: str | None) -> None:
    """Nobody waits for a run that never began, and nobody is told that it may have run."""
    held: Any = Held(world.store)
    world.broker = Broker(held, world.clock, {"default": world.profile}, lambda _: frozenset({"fake"}))
    ask = Ask(action=Command(command="deploy x"), session_id="s", request_id="r1", turn_id=turn_id)
    asked = asyncio.ensure_future(world.broker.ask("default", ask))
    await _until_asked(world)
    await world.decide(await world.row("r1"), "once")
    await _until(held.claimed.is_set)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert (await world.row("r1")).execution.state == "not_run"


async def test_a_waiter_keeps_its_turns_lease(world: World) -> None:
    await world.turn("short", lease_s=10)
    ask = Ask(action=Command(command="deploy x"), session_id="s", turn_id="short")
    asked = asyncio.ensure_future(world.broker.ask("default", ask))
    await _until_asked(world)
    await world.advance(100)
    (row,) = await world.rows()
    assert row.outcome is None
    await world.decide(row, "deny")
    assert not (await asked).may_run
    await world.advance(10)
    assert (await world.store.events("default", 0, limit=1000))[-1].data["cause"] == "requester_gone"


async def test_a_long_poll_ends_with_the_row_as_it_stands(world: World) -> None:
    row = await world.ask()
    assert (await world.broker.wait("default", row.request_id, 0.001)).outcome is None
    waiting = asyncio.ensure_future(world.broker.wait("default", row.request_id))
    await _until(lambda: len(world.broker.waiters) == 1)
    await world.decide(row, "deny")
    assert (await waiting).outcome == "denied"
    assert (await world.broker.wait("default", row.request_id)).outcome == "denied"
    assert len(world.broker.waiters) == 0


async def test_turns_that_were_waited_for_are_not_remembered_for_ever(world: World) -> None:
    for number in range(waiters.REMEMBERED_TURNS + 10):
        async with world.broker.waiters.keeping(f"t{number}"):
            pass
    assert len(world.broker.waiters._ended) == waiters.REMEMBERED_TURNS
    assert world.broker.waiters.seen([f"t{waiters.REMEMBERED_TURNS + 9}"])


async def test_a_claim_of_somebody_elses_row_is_seen_as_it_is(world: World) -> None:
    row = await approved(world)
    taken = replace(row, execution=replace(row.execution, state="claimed", claim_id="other"))
    await world.put(taken)
    assert await refused(world, row) == "already_claimed"


async def _until_asked(world: World) -> None:
    async with asyncio.timeout(15):
        while not await world.rows():  # noqa: ASYNC110  # no event tells that the store holds it
            await asyncio.sleep(0)
    await _until(lambda: len(world.broker.waiters) > 0)
    await asyncio.sleep(0)


async def _until(holds: Any) -> None:
    async with asyncio.timeout(15):
        while not holds():  # noqa: ASYNC110  # the same of what waits
            await asyncio.sleep(0)


@pytest.mark.parametrize("end", ["result", "stop"])
async def test_a_claim_that_was_used_is_not_given_again(world: World, end: str) -> None:
    row = await approved(world)
    await world.claim(row, "c1")
    if end == "result":
        await world.broker.result("default", row.request_id, "succeeded", 0)
    else:
        turn = await world.sessions.open_turn("default", "s")
        other = await approved(world, action="deploy other", turn_id=turn.turn_id)
        await world.claim(other, "c1")
        await world.sessions.stop("default", "s", BY_BEN)
        row = other
    assert await refused(world, row, "c1") == "already_claimed"
