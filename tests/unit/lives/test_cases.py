"""Cases that went wrong elsewhere: what is dead stays dead, silence is no refusal, and one yes is one run."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.unit.core.harness import BY_ANN, OTHER_PLACE, PLACE, World, tokens_of

from signoff.authorize import local_actor
from signoff.blocking import BlockingGateway
from signoff.broker import Ask
from signoff.config import load_config
from signoff.errors import ClaimRefused, SendRefused
from signoff.gateway import Gateway
from signoff.model import ApprovalRequest, Cause, Command, Elicitation, FileWrite, Tool
from signoff.settings import ApprovalSettings, Profile
from signoff.testing.fake_adapter import FakeAdapter

ANN = local_actor(1000)
LIMIT_S = 30.0


def ending(row: ApprovalRequest) -> tuple[str | None, str | None]:
    return row.outcome, row.cause


# --- G2-04, G2-39: what ended accepts no approval ---------------------------------------------------


async def test_the_card_of_a_stopped_session_starts_nothing(world: World) -> None:  # G2-04
    await world.session("b", destination=OTHER_PLACE)
    other = await world.ask("deploy other", "b")
    row = await world.ask(turn_id="t")
    message, token = await world.button(row, "once")
    await world.sessions.stop("default", "s", BY_ANN)
    before = await world.row(row)
    told = (await world.press(token, message)).text
    assert "stopped" in told.lower()
    assert "not run" in told.lower()
    assert await world.row(row) == before
    with pytest.raises(ClaimRefused) as refused:
        await world.claim(row)
    assert refused.value.claim_code == "not_approved"
    assert (await world.row(other)).outcome is None, "a stop is for its session"


async def test_an_approval_that_was_not_started_before_the_stop_is_refused_after_it(world: World) -> None:  # G2-04
    row = await world.ask(turn_id="t")
    await world.tap(row, "once")
    await world.sessions.stop("default", "s", BY_ANN)
    with pytest.raises(ClaimRefused) as refused:
        await world.claim(row)
    assert (refused.value.claim_code, refused.value.status) == ("cancelled", 409)
    assert (await world.row(row)).outcome == "approved", "the decision stays what it was"
    assert (await world.message(row)).startswith("BLOCKED:")


@pytest.mark.parametrize("how", ["caller", "turn", "cancel"])
async def test_a_question_ends_with_the_call_that_asked_it(world: World, how: str) -> None:  # G2-39
    ask = Ask(action=Command(command="deploy build"), session_id="s", turn_id="t", request_id="call-1")
    asking = asyncio.create_task(world.broker.ask("default", ask))
    async with asyncio.timeout(LIMIT_S):
        while not (rows := await world.rows()):  # noqa: ASYNC110  # the asker is a task of its own
            await asyncio.sleep(0)
    (row,) = rows
    await world.flush()
    message, token = await world.button(row, "once")
    if how == "caller":
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    elif how == "turn":
        await world.sessions.end_turn("default", "t", "turn_ended", None)
    else:
        await world.cancel(row)
    await asyncio.gather(asking, return_exceptions=True)
    before = await world.row(row)
    cause = {"caller": "turn_interrupted", "turn": "turn_ended", "cancel": "withdrawn"}[how]
    assert ending(before) == ("cancelled", cause)
    told = (await world.press(token, message)).text
    assert "Cancelled" in told
    assert "pproved" not in told
    assert await world.row(row) == before


# --- G2-05, #22992, #112308: nobody's silence is anybody's no ---------------------------------------


async def test_silence_is_told_as_silence(world: World) -> None:  # G2-05
    row = await world.ask(timeout_s=60)
    await world.advance(60)
    row = await world.row(row)
    assert (row.outcome, row.decided_by, row.execution.state) == ("timeout", (), "none")
    message = await world.message(row)
    assert message.startswith("BLOCKED: timeout")
    assert "silence is not consent" in message
    for text in (message, (await world.card(row)).text):
        assert "denied" not in text.lower()


ACTIONS = (
    Command(command="deploy build"),
    Elicitation(server="mail", message="Which address?"),
    FileWrite(path="/srv/.env"),
    Tool(name="delete_all"),
)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: str(action.__struct_config__.tag))
@pytest.mark.parametrize("how", ["refused", "gone", "interrupted"])
async def test_what_was_not_delivered_or_not_awaited_was_denied_by_nobody(  # #22992
    world: World, action: Command, how: str
) -> None:
    """For a command as for a server's question and a file."""
    if how == "refused":
        world.chat.fail(SendRefused("bot was removed"))
    row = await world.submit(action)
    assert row.outcome is None
    await world.flush()
    if how == "gone":
        await world.cancel(row, "notifier_gone")
    elif how == "interrupted":
        await world.cancel(row, "turn_interrupted")
    row = await world.row(row)
    expected = ("notify_failed", None) if how == "refused" else ("cancelled", row.cause)
    assert ending(row) == expected
    assert row.decided_by == ()
    message = await world.message(row)
    assert message.startswith(f"BLOCKED: {row.outcome}")
    assert "denied" not in message.lower()


CAUSES: tuple[Cause, ...] = ("turn_ended", "turn_interrupted", "parent_ended", "withdrawn")


@pytest.mark.parametrize("cause", CAUSES)
async def test_each_withdrawal_is_cancelled_with_its_cause(world: World, cause: Cause) -> None:  # #112308
    leader, follower = await world.ask(turn_id="t"), await world.ask(turn_id="t")
    await world.sessions.end_turn("default", "t", cause, None)
    for row in (leader, follower):
        assert ending(await world.row(row)) == ("cancelled", cause)
        message = await world.message(row)
        assert message.startswith(f"BLOCKED: cancelled ({cause})")
        assert "not consent" in message


# --- G2-06, G2-28, G2-30: one yes is one run --------------------------------------------------------


async def test_once_is_one_run_of_one_request(world: World) -> None:  # G2-06
    row = await world.ask("rm -rf x")
    await world.tap(row, "once")
    assert (await world.claim(row)).may_run
    assert await world.broker.grants("default") == []
    again = await world.ask("rm -rf y")
    assert again.outcome is None
    assert (await world.cards(again))[0].card.rows


async def test_a_slow_continuation_and_its_fallback_run_once(world: World) -> None:  # G2-28
    """The agent's first wait gives up, its fallback asks under the same id; then both hear of the one yes."""
    ask = Ask(action=Command(command="deploy build"), session_id="s", request_id="p1")
    first = asyncio.create_task(world.broker.ask("default", ask))
    second = asyncio.create_task(world.broker.ask("default", ask))
    async with asyncio.timeout(LIMIT_S):
        while len(world.broker.waiters) < 2 or not (rows := await world.rows()):  # noqa: ASYNC110  # they are tasks
            await asyncio.sleep(0)
    await world.flush()
    assert len(world.chat.messages) == 1
    await world.tap(rows[0], "once")
    answers = await asyncio.gather(first, second, return_exceptions=True)
    ran = [each for each in answers if isinstance(each, ApprovalRequest) and each.may_run]
    refused = [each for each in answers if isinstance(each, ClaimRefused)]
    assert (len(ran), len(refused)) == (1, 1)
    assert refused[0].claim_code == "already_claimed"
    claims = [e for e in await world.events("approval.execution") if e.data["state"] == "claimed"]
    assert len(claims) == 1


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[tuple[Gateway, FakeAdapter]]:
    environ = {"SIGNOFF_GATEWAY__STATE_DIR": str(tmp_path), "SIGNOFF_GATEWAY__STORE": "memory://"}
    environ["SIGNOFF_PROFILES__DEFAULT__APPROVALS__TIMEOUT_S"] = "300"
    chat = FakeAdapter()
    config = load_config(None, environ)
    async with Gateway(config, adapters={("default", "fake"): chat}) as made:
        await made.session("a", kind="chat", destination=PLACE)
        yield made, chat


@pytest.mark.parametrize(
    ("choice", "ran", "left"), [("once_all", 3, 0), ("once", 1, 2), ("deny", 0, 0)], ids=["each", "one", "none"]
)
async def test_three_threads_that_ask_the_same_share_a_card(  # G2-30
    gateway: tuple[Gateway, FakeAdapter], choice: str, ran: int, left: int
) -> None:
    made, chat = gateway
    door = BlockingGateway(made)
    runs: list[str] = []

    def work() -> None:
        answer = door.request(Command(command="rm -rf x"), session_id="a")
        if answer.may_run:
            runs.append(answer.request_id)
            door.result(answer.request_id, "succeeded", 0)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    async with asyncio.timeout(LIMIT_S):
        while len(rows := await made.pending()) < 3 or not chat.shown():  # noqa: ASYNC110  # threads ask
            await asyncio.sleep(0.01)
        leader = next(row for row in rows if row.leader_id is None)
        assert sorted(row.leader_id or "" for row in rows) == ["", leader.request_id, leader.request_id]
        assert leader.waiters == 2
        assert len(chat.messages) == 1, "one card"
        await made.decide(leader.request_id, choice, ANN)
        while sum(thread.is_alive() for thread in threads) > left:  # noqa: ASYNC110  # they are no tasks
            await asyncio.sleep(0.01)
        while len(chat.messages) < (2 if left else 1):  # noqa: ASYNC110  # the dispatcher tells nobody
            await asyncio.sleep(0.01)
    assert len(runs) == len(set(runs)) == ran
    pending = await made.pending()
    assert len(pending) == left
    assert [row.leader_id is None for row in pending] == ([True, False] if left else [])
    await made.stop("a", ANN)
    for thread in threads:
        await asyncio.to_thread(thread.join, LIMIT_S)
    assert not any(thread.is_alive() for thread in threads)


async def test_only_the_very_same_question_is_the_same_question(world: World) -> None:  # G2-31
    await world.session("b", destination=PLACE)
    rows = [
        await world.submit(Command(command="rm -rf x", cwd="/a"), turn_id="t", tool_call_id="item"),
        await world.submit(Command(command="rm -rf x", cwd="/b"), turn_id="t", tool_call_id="item"),
        await world.submit(Command(command="rm -rf y", cwd="/a"), turn_id="t", tool_call_id="item"),
        await world.submit(Command(command="rm -rf x", cwd="/a"), session_id="b", tool_call_id="item"),
    ]
    await world.flush()
    assert [row.leader_id for row in rows] == [None] * 4
    assert len(world.chat.messages) == 4
    await world.tap(rows[0], "once")
    assert [(await world.row(row)).outcome for row in rows] == ["approved", None, None, None]


# --- G2-23: a restart -------------------------------------------------------------------------------


async def test_after_a_restart_the_card_and_the_agent_find_the_same_question(  # G2-23
    world: World, make_world: Callable[..., World]
) -> None:
    ask = Ask(action=Command(command="deploy build"), session_id="s", request_id="p1")
    await world.broker.submit("default", ask)
    await world.flush()
    row = await world.row("p1")
    message, token = await world.button(row, "once")
    await world.sweeper.resume()
    await world.aclose()
    await world.clock.advance(120)
    after = make_world(chat=world.chat)
    await after.sweeper.resume()
    await after.settle()
    assert (await after.press(token, message)).text == "Approved once. The agent is told."
    resumed = await after.broker.ask("default", ask)
    assert (resumed.request_id, resumed.may_run) == ("p1", True), "asked again under its id it is the same question"
    with pytest.raises(ClaimRefused):
        await after.broker.ask("default", ask)
    assert len(after.chat.messages) == 1
    assert "already approved" in (await after.press(token, message)).text
    await after.settle()
    assert not tokens_of(after.chat.messages[0])


async def test_a_question_that_died_with_the_gateway_says_so_plainly(  # G2-23
    world: World, make_world: Callable[..., World]
) -> None:
    await world.turn("leased", lease_s=30)
    row = await world.ask(turn_id="leased")
    message, token = await world.button(row, "once")
    await world.sweeper.resume()
    await world.aclose()
    await world.clock.advance(120)
    after = make_world(chat=world.chat)
    await after.sweeper.resume()
    await after.advance(31)
    assert ending(await after.row(row)) == ("cancelled", "requester_gone")
    assert "Cancelled" in after.chat.shown()[-1].text
    assert "the agent went silent" in (await after.press(token, message)).text
    late = await after.submit(turn_id="leased")
    assert ending(late) == ("cancelled", "requester_gone"), "no loop: the agent reads why"


# --- #86412: every window is one that can be waited for ---------------------------------------------


@pytest.mark.parametrize("asked", [1e18, math.inf, 10**30, 86401.0])
async def test_a_window_of_any_size_is_one_that_a_timer_takes(  # #86412
    make_world: Callable[..., World], asked: float
) -> None:
    world = make_world(profile=Profile(approvals=ApprovalSettings(max_timeout_s=1e18)))
    await world.session()
    row = await world.submit(timeout_s=asked)
    assert row.timeout_s is not None
    assert row.timeout_s <= 365 * 86400
    if asked > 365 * 86400:
        assert "the window is" in row.warnings[0]
    lock = threading.Lock()
    assert lock.acquire(timeout=row.timeout_s)
