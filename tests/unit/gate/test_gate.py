"""The one function that calls tools: what it gives back, what it reports, and whom the first gate tells the second."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.core.harness import BY_ANN
from tests.unit.gate.kept import GATE, MAIL, KeptWorld, profile_with

from signoff.broker import Ask
from signoff.changes.staging import State
from signoff.context import bind
from signoff.errors import ClaimRefused, GatePassRefused, InvalidInput, SessionNotFound, StoreError
from signoff.gate import Called
from signoff.gate_pass import new_pass, read_pass
from signoff.held_pass import HeldPass, holding, take
from signoff.model import ApprovalRequest, Command, Tool, replace
from signoff.staged import state_of

DEFERRED = replace(GATE, default_mode="deferred")


async def answered(world: KeptWorld, choice: str = "once") -> ApprovalRequest:
    """Answer the question that waits; it."""
    async with asyncio.timeout(60):
        while not (rows := await world.broker.pending("default")):  # noqa: ASYNC110  # another task asks
            await asyncio.sleep(0)
    await world.decide(rows[0], choice)
    return rows[0]


async def call(world: KeptWorld, **facts: Any) -> Called:
    """Call the mail tool in the chat."""
    return await world.gate.call(MAIL.name, MAIL.arguments, session_id="s", **facts)


async def test_what_a_person_approves_runs_with_its_value(world: KeptWorld) -> None:
    asked = asyncio.ensure_future(call(world))
    await answered(world)
    called = await asked
    assert (called.outcome, called.value) == ("ran", "sent 1")
    assert called.record is not None
    assert called.record.execution.state == "succeeded"


async def test_what_a_person_denies_does_not_run(world: KeptWorld) -> None:
    asked = asyncio.ensure_future(call(world))
    await answered(world, "deny")
    called = await asked
    assert called.outcome == "refused"
    assert called.message.startswith("BLOCKED: denied.")
    assert world.ran == []
    with pytest.raises(TypeError):
        bool(called)


async def test_staged_is_no_error(make: Callable[..., KeptWorld]) -> None:  # 1.4.3
    world = make(profile=profile_with(DEFERRED))
    await world.session()
    called = await call(world)
    assert (called.outcome, called.value) == ("staged", None)
    assert called.message.startswith("STAGED: kept as ")
    assert called.record is not None
    assert called.record.kept_as is not None
    assert world.ran == []


async def test_what_the_tool_raises_is_reported_and_raised(world: KeptWorld) -> None:
    world.fails = LookupError("no such mailbox")
    asked = asyncio.ensure_future(call(world))
    row = await answered(world)
    with pytest.raises(LookupError):
        await asked
    assert (await world.row(row)).execution.state == "failed"


async def test_a_call_that_is_cancelled_while_it_runs_may_have_run(world: KeptWorld) -> None:
    begun, never = asyncio.Event(), asyncio.Event()

    async def run(_arguments: dict[str, Any]) -> None:
        begun.set()
        await never.wait()

    asked = asyncio.ensure_future(call(world, run=run))
    row = await answered(world)
    async with asyncio.timeout(60):
        await begun.wait()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert (await world.row(row)).execution.state == "unknown"


@pytest.mark.parametrize("way", ["gives", "raises", "cancelled"])
async def test_a_store_that_fails_takes_nothing_from_what_ran(
    world: KeptWorld, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The tool has run, so its value or error is the caller's; how it went is saved once the store takes it."""
    monkeypatch.setattr("signoff.reports.AGAIN_S", 0.01)
    transact = world.store.transact
    tries: list[int] = []

    async def failing(change: Any, *, bulk: bool = False) -> Any:
        tries.append(len(tries))
        if len(tries) < 4:
            raise StoreError("the disk is full")
        return await transact(change, bulk=bulk)

    async def run(_arguments: dict[str, Any]) -> str:
        monkeypatch.setattr(world.store, "transact", failing)
        if way == "raises":
            raise LookupError("no such mailbox")
        if way == "cancelled":
            asked.cancel()
            await asyncio.Future()
        return "sent"

    asked = asyncio.ensure_future(call(world, run=run))
    row = await answered(world)
    [called] = await asyncio.gather(asked, return_exceptions=True)
    if isinstance(called, Called):
        assert called.value == "sent"
    else:
        assert type(called) is {"raises": LookupError, "cancelled": asyncio.CancelledError}[way]
    state = {"gives": "succeeded", "raises": "failed", "cancelled": "unknown"}[way]
    async with asyncio.timeout(60):
        while (await world.row(row)).execution.state != state:  # noqa: ASYNC110  # it is saved behind the call
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("closed", ["after", "before"])
async def test_a_gate_that_is_closed_tells_the_store_no_more(
    world: KeptWorld, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    async def failing(*_facts: object, **_more: object) -> None:
        raise StoreError("the disk is full")

    async def run(_arguments: dict[str, Any]) -> str:
        monkeypatch.setattr(world.store, "transact", failing)
        if closed == "before":
            await world.gate.aclose()
        return "sent"

    asked = asyncio.ensure_future(call(world, run=run))
    row = await answered(world)
    assert (await asked).value == "sent"
    await world.gate.aclose()
    assert f"report-{row.request_id}" not in {task.get_name() for task in asyncio.all_tasks()}


async def test_what_was_reported_otherwise_before_costs_no_value(world: KeptWorld) -> None:
    async def run(_arguments: dict[str, Any]) -> str:
        await world.broker.result("default", row.request_id, "failed")
        return "sent"

    asked = asyncio.ensure_future(call(world, run=run))
    row = await answered(world)
    assert (await asked).value == "sent"
    assert (await world.row(row)).execution.state == "failed"


async def test_a_function_of_the_program_may_be_blocking(world: KeptWorld) -> None:
    called = await world.gate.call(
        "add", {"a": 1}, session_id="s", run=lambda arguments: (arguments["a"], threading.current_thread().name)
    )
    value, thread = called.value
    assert value == 1
    assert thread != threading.current_thread().name


async def test_the_bound_session_asks(world: KeptWorld) -> None:
    with bind(session_id="job", kind="cron"):
        called = await world.gate.call(MAIL.name, MAIL.arguments)
    assert called.outcome == "staged"
    assert called.record is not None
    assert called.record.session_id == "job"


async def test_the_same_id_is_one_call(world: KeptWorld) -> None:  # G2-28
    first = asyncio.ensure_future(call(world, request_id="mine"))
    await answered(world)
    assert (await first).outcome == "ran"
    with pytest.raises(ClaimRefused):
        await call(world, request_id="mine")
    assert len(world.ran) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"at": float("nan")},
        {"at": float("inf")},
        {"tuple": (1, 2)},
        {"bytes": b"x"},
        {"set": {1}},
        {1: "a key"},
        {"deep": {"er": [{2: 1}]}},
        {"big": 2**60},
        {"half": "\ud800"},
    ],
)
async def test_what_json_does_not_give_back_is_refused(world: KeptWorld, arguments: dict[Any, Any]) -> None:  # 1.4.3
    with pytest.raises(InvalidInput):
        await world.gate.call("send_email", arguments, session_id="job")
    assert await world.staged.actions("default") == []


async def test_nesting_ends_somewhere(world: KeptWorld) -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(InvalidInput):
        await world.gate.call("send_email", {"loop": loop}, session_id="job")


async def test_a_tool_that_nothing_runs_is_refused(world: KeptWorld) -> None:
    with pytest.raises(InvalidInput):
        await world.gate.call("unknown_tool", {}, session_id="s")


async def test_an_unknown_session_is_refused(world: KeptWorld) -> None:
    with pytest.raises(SessionNotFound):
        await world.gate.call(MAIL.name, MAIL.arguments, session_id="nobody")


# --- the second gate -------------------------------------------------------------------------------


async def test_a_second_gate_below_the_first_asks_nobody(world: KeptWorld) -> None:  # 1.4.8
    async def dispatch(arguments: dict[str, Any]) -> Called:
        return await world.gate.call("send_email", arguments, session_id="s")

    asked = asyncio.ensure_future(call(world, run=dispatch))
    await answered(world)
    outer = await asked
    assert isinstance(outer.value, Called)
    assert (outer.outcome, outer.value.outcome, len(world.ran)) == ("ran", "ran", 1)
    assert len(await world.rows("s")) == 1


async def test_the_token_of_a_call_is_used_once(world: KeptWorld) -> None:  # 1.4.1, 1.4.8
    second: list[asyncio.Task[Called]] = []

    async def dispatch(arguments: dict[str, Any]) -> None:
        await world.gate.call("send_email", arguments, session_id="s")
        second.append(asyncio.ensure_future(world.gate.call("send_email", arguments, session_id="s")))
        await answered(world, "deny")

    asked = asyncio.ensure_future(call(world, run=dispatch))
    await answered(world)
    await asked
    assert (await second[0]).outcome == "refused"
    assert len(world.ran) == 1


async def test_other_arguments_are_asked_about_again(world: KeptWorld) -> None:  # 1.4.1: this pending id and this tool
    async def dispatch(arguments: dict[str, Any]) -> Called:
        inner = asyncio.ensure_future(world.gate.call("send_email", {"to": "everybody"}, session_id="s"))
        await answered(world, "deny")
        return await inner

    asked = asyncio.ensure_future(call(world, run=dispatch))
    await answered(world)
    assert (await asked).value.outcome == "refused"


async def test_a_kept_call_goes_through_the_gate_it_came_from(world: KeptWorld) -> None:  # 1.4.6, 1.4.8
    async def dispatcher(given: Any) -> None:
        inner = await world.gate.call(given.tool, given.arguments, session_id="s", run=ran.append)
        assert inner.outcome == "ran"

    ran: list[Any] = []
    world.executors.register("default", "mailer", dispatcher)
    kept = await world.keep()
    await world.staged.approve("default", kept.request_id, BY_ANN)
    assert state_of(await world.staged.replay("default", kept.request_id)) == "succeeded"
    assert ran == [MAIL.arguments]


async def test_a_blocking_dispatcher_takes_the_token_along(world: KeptWorld) -> None:  # 1.4.8
    def dispatcher(_given: Any) -> None:
        held = take("default", MAIL)
        taken.append(held.token if held is not None else None)

    taken: list[str | None] = []
    world.executors.register("default", "mailer", dispatcher)
    kept = await world.keep()
    await world.staged.approve("default", kept.request_id, BY_ANN)
    await world.staged.replay("default", kept.request_id)
    assert taken[0] is not None
    assert read_pass(taken[0]).request_id == kept.request_id


def test_a_held_token_is_of_one_profile_and_call() -> None:
    held = HeldPass("one", MAIL, None, "t")
    assert take("one", MAIL) is None
    with holding(held):
        assert take("two", MAIL) is None
        assert take("one", Tool(name="send_email", arguments={})) is None
        assert take("one", Command(command="send_email")) is None
        assert take("one", MAIL) is held
        assert take("one", MAIL) is None


@pytest.mark.parametrize(("held", "called"), [(1, True), (0, False)])
def test_a_held_token_is_not_for_what_only_python_takes_for_equal(held: Any, called: Any) -> None:
    with holding(HeldPass("one", Tool(name="wipe", arguments={"all": held}), None, "t")):
        assert take("one", Tool(name="wipe", arguments={"all": called})) is None
        assert take("one", Tool(name="wipe", arguments={"all": held})) is not None


async def test_arguments_of_a_call_that_needs_nobody_are_the_programs_own(world: KeptWorld) -> None:
    called = await world.gate.call("read_mail", {"ids": {1, 2}}, session_id="s", run=lambda given: sum(given["ids"]))
    assert (called.outcome, called.value) == ("ran", 3)


async def test_what_is_done_to_the_arguments_later_changes_nothing(world: KeptWorld) -> None:
    """Neither the caller, while a person looks at them, nor the tool, while it runs, changes what is kept."""
    given: dict[str, Any] = {"to": ["ana"], "n": 1}
    ran: list[dict[str, Any]] = []

    def run(arguments: dict[str, Any]) -> None:
        ran.append({"to": list(arguments["to"])})
        arguments.clear()

    asked = asyncio.ensure_future(world.gate.call(MAIL.name, given, session_id="s", run=run))
    async with asyncio.timeout(60):
        while not (rows := await world.broker.pending("default")):
            await asyncio.sleep(0)
            given["to"].append("everybody")
    await world.decide(rows[0], "once")
    assert (await asked).outcome == "ran"
    assert ran == [{"to": ["ana"]}]
    assert (await world.row(rows[0])).action == Tool(name=MAIL.name, arguments={"to": ["ana"], "n": 1})


async def running(world: KeptWorld) -> tuple[ApprovalRequest, str]:
    """A call that runs, and the token that its gate gave."""
    row = await world.ask(MAIL)
    await world.decide(row, "once")
    token, kept = new_pass(row.request_id)
    return await world.claim(row, pass_sha256=kept.sha256), token


async def second(world: KeptWorld, token: str, action: Tool | Command = MAIL, **facts: Any) -> ApprovalRequest:
    """Ask at a second gate with that token."""
    return await world.submit(action, facts.pop("session_id", "s"), gate_token=token, **facts)


async def test_a_token_lets_the_same_call_through_once(world: KeptWorld) -> None:  # 1.4.1
    first, token = await running(world)
    row = await second(world, token)
    assert (row.outcome, row.rung) == ("approved", "tool_gate")
    assert row.decided_by[0].rule == f"tool_gate:{first.request_id}"
    with pytest.raises(GatePassRefused, match="used already"):
        await second(world, token)


async def test_a_token_lets_a_kept_call_through_too(world: KeptWorld) -> None:
    _, token = await running(world)
    assert (await second(world, token, session_id="job")).outcome == "approved"


@pytest.mark.parametrize(
    "token",
    ["", "sgt_", "sgt_x.y", "already gated", "sgt_req_1.AAAAAAAAAAAAAAAAAAAAAA", "sgt_kept_.AAAAAAAAAAAAAAAAAAAAAA"],
)
async def test_what_is_no_token_is_refused(world: KeptWorld, token: str) -> None:
    with pytest.raises(GatePassRefused):
        await second(world, token)
    assert await world.rows("s") == []


async def test_a_token_is_bound_to_the_call(world: KeptWorld) -> None:
    _, token = await running(world)
    for facts in ({"action": Tool(name="send_email", arguments={})}, {"host": "elsewhere"}):
        with pytest.raises(GatePassRefused, match="another call"):
            await second(world, token, **facts)
    assert (await second(world, token)).outcome == "approved"


async def test_a_token_is_bound_to_its_request_and_its_secret(world: KeptWorld) -> None:
    first, token = await running(world)
    other = await world.ask("git push --force")
    forged = token.replace(first.request_id, other.request_id)
    guessed, _ = new_pass(first.request_id)
    for wrong in (forged, guessed, token[:-1] + ("A" if token[-1] != "A" else "B")):
        with pytest.raises(GatePassRefused):
            await second(world, wrong)


@pytest.mark.parametrize("state", ["done", "turn ended"])
async def test_a_token_ends_with_its_run(world: KeptWorld, state: str) -> None:
    await world.turn()
    row = await world.ask(MAIL, turn_id="t")
    await world.decide(row, "once")
    token, kept = new_pass(row.request_id)
    await world.claim(row, pass_sha256=kept.sha256)
    if state == "done":
        await world.broker.result("default", row.request_id, "succeeded")
    else:
        await world.sessions.end_turn("default", "t", "turn_ended", None)
    with pytest.raises(GatePassRefused, match="does not run"):
        await second(world, token)


async def test_a_token_ends_with_a_stop_of_its_session(world: KeptWorld) -> None:
    """Though the run, which has no turn, may go on."""
    await world.session("other")
    _, token = await running(world)
    await world.sessions.stop("default", "s", BY_ANN)
    with pytest.raises(GatePassRefused, match="does not run"):
        await second(world, token, session_id="other")


async def claimed(world: KeptWorld, row: ApprovalRequest) -> str:
    """Start what a token let through; the token of that run."""
    token, kept = new_pass(row.request_id)
    await world.claim(row, pass_sha256=kept.sha256)
    return token


async def test_a_token_of_a_token_ends_with_the_call_that_was_asked_about(world: KeptWorld) -> None:  # G2-06
    """Else one yes would be good for ever: each run hands its token to the next and ends."""
    first, token = await running(world)
    row = await second(world, token)
    token = await claimed(world, row)
    await world.broker.result("default", first.request_id, "succeeded")
    with pytest.raises(GatePassRefused, match="does not run"):
        await second(world, token)


async def test_a_call_goes_through_a_few_gates_and_no_more(world: KeptWorld) -> None:
    _, token = await running(world)
    for _ in range(4):
        token = await claimed(world, await second(world, token))
    with pytest.raises(GatePassRefused, match="4 gates"):
        await second(world, token)


async def test_a_token_lifts_no_floor(world: KeptWorld) -> None:
    row = await world.ask(Command(command="git push --force"))
    await world.decide(row, "once")
    token, kept = new_pass(row.request_id)
    await world.claim(row, pass_sha256=kept.sha256)
    assert (await second(world, token, Command(command="rm -rf /"))).outcome == "blocked"


async def test_an_approval_is_no_token_before_it_is_started(world: KeptWorld) -> None:
    row = await world.ask(MAIL)
    await world.decide(row, "once")
    token, _ = new_pass(row.request_id)
    with pytest.raises(GatePassRefused):
        await second(world, token)


async def test_of_many_gates_with_one_token_one_goes_on(world: KeptWorld) -> None:
    _, token = await running(world)
    ask = Ask(action=MAIL, session_id="s", gate_token=token)
    found = await asyncio.gather(*(world.broker.submit("default", ask) for _ in range(8)), return_exceptions=True)
    assert sum(not isinstance(each, BaseException) for each in found) == 1
    assert sum(isinstance(each, GatePassRefused) for each in found) == 7


async def test_the_store_keeps_no_token(world: KeptWorld) -> None:
    row, token = await running(world)
    assert token.partition(".")[2] not in repr(row)
    assert read_pass(token).sha256 == row.pass_sha256


STATES: tuple[State, ...] = ("waits", "approved")


async def test_a_kept_question_answers_no_gate(world: KeptWorld) -> None:
    kept = await world.keep()
    token, _ = new_pass(kept.request_id)
    with pytest.raises(GatePassRefused):
        await second(world, token)
    assert state_of(await world.row(kept)) in STATES
