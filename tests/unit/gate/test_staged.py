"""A kept action from its keeping to its end: answered by people, run once, refused in words of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.unit.core.harness import ANN, BY_ANN, PLACE
from tests.unit.gate.kept import BY_BEN, GATE, KEPT_PLACE, MAIL, KeptWorld, approved, lost, profile_with, with_executor

from signoff import executing
from signoff.errors import (
    ActionRefused,
    AdapterError,
    AdapterUnavailable,
    ClaimRefused,
    Conflict,
    RequestNotFound,
    SendRefused,
)
from signoff.gating import runs
from signoff.model import ApprovalRequest, Command, Operand, Tool, replace
from signoff.operands import operands_of
from signoff.presence import JOBS
from signoff.replaying import Replay
from signoff.rows import request_key
from signoff.settings import ApprovalSettings, ExecutorSettings, Profile
from signoff.staged import state_of
from signoff.testing.clock import settle

DAY_S = 86400.0


async def test_a_kept_action_is_a_row_of_its_own_beside_the_staged_one(world: KeptWorld) -> None:  # 1.4.3
    row = await world.submit(MAIL, "job", request_id="mine")
    kept = await world.row(row.kept_as or "")
    assert (row.outcome, row.kept_short, row.executor) == ("staged", kept.short_id, "mailer")
    assert (kept.stages, kept.action, kept.digest) == ("mine", MAIL, row.digest)
    assert kept.choices == ("once", "deny")
    assert kept.turn_id is None
    assert await world.message(row) == (
        f"STAGED: kept as {kept.short_id} for a person to decide later. It has not run; it will be run for you if "
        "approved. Do not retry it; go on without its result."
    )


async def test_the_same_submission_again_keeps_it_once(world: KeptWorld) -> None:  # 1.4.3, G2-28
    first = await world.submit(MAIL, "job", request_id="mine")
    again = await world.submit(MAIL, "job", request_id="mine")
    assert again == first
    assert len(await world.staged.actions("default")) == 1


async def test_arguments_are_kept_exactly(world: KeptWorld) -> None:  # 1.4.3
    arguments = {
        "zero": 0,
        "float": 1.0,
        "small": 5e-324,
        "none": None,
        "no": False,
        "text": "a\u0000b\u202e\U0001f600",
        "deep": [[{"": []}], {"k": [1.5, "2"]}],
        "z": 1,
        "a": 2,
    }
    world.start()
    kept = await world.keep(Tool(name="send_email", arguments=arguments))
    await world.staged.approve("default", kept.short_id, BY_ANN)
    await world.until_ended(kept)
    (call,) = world.ran
    assert call.arguments == arguments
    assert [type(value) for value in call.arguments.values()] == [type(value) for value in arguments.values()]
    assert list(call.arguments) == list(arguments)
    assert call.tool == "send_email"


async def test_approved_means_run_once_and_the_end_is_told(world: KeptWorld) -> None:  # 1.4.5, 1.4.6
    world.start()
    kept = await world.keep()
    await world.flush()
    card = await world.card(kept)
    assert card.destination == KEPT_PLACE
    await world.staged.approve("default", kept.short_id.lower(), BY_ANN)
    done = await world.until_ended(kept)
    assert state_of(done) == "succeeded"
    assert [call.id for call in world.ran] == [kept.request_id]
    assert world.ran[0].approved_by == (BY_ANN,)
    kinds = [event.type for event in await world.events() if event.request_id == kept.request_id]
    expected = ["approval.requested", "approval.delivered", "approval.resolved", *["approval.execution"] * 2]
    assert kinds == expected


async def test_a_tap_approves_it_too(world: KeptWorld) -> None:  # 1.4.10: a supported surface, the whole life
    world.start()
    kept = await world.keep()
    await world.flush()
    await world.tap(kept, "once", by=ANN)
    assert state_of(await world.until_ended(kept)) == "succeeded"
    assert len(world.ran) == 1


async def test_what_the_executor_raises_is_a_failure(world: KeptWorld) -> None:  # 1.4.6
    row = await approved(world)
    world.fails = RuntimeError("no such mailbox")
    done = await world.staged.replay("default", row.request_id)
    assert state_of(done) == "failed"


async def test_rejected_is_not_run(world: KeptWorld) -> None:
    world.start()
    kept = await world.keep()
    done = await world.staged.reject("default", kept.request_id, BY_ANN, reason="wrong list")
    assert (done.outcome, done.reason) == ("denied", "wrong list")
    await world.advance(60)
    assert world.ran == []


async def test_each_end_is_refused_in_its_own_words(world: KeptWorld) -> None:  # 1.4.5, 1.4.6
    found: dict[str, tuple[str, str]] = {}

    async def refused(name: str, row: ApprovalRequest) -> None:
        with pytest.raises(ActionRefused) as error:
            await world.staged.replay("default", row.request_id)
        found[name] = (error.value.code, error.value.message)

    await refused("waits", await world.keep())
    denied = await world.keep()
    await world.staged.reject("default", denied.request_id, BY_ANN)
    await refused("denied", denied)
    done = await approved(world)
    await world.staged.replay("default", done.request_id)
    await refused("done", done)
    world.hold = asyncio.Event()
    running = await approved(world)
    task = asyncio.ensure_future(world.staged.replay("default", running.request_id))
    async with asyncio.timeout(60):
        while state_of(await world.row(running)) != "running":  # noqa: ASYNC110  # it is started by another task
            await asyncio.sleep(0)
    await refused("running", running)
    world.hold.set()
    await task
    await refused("unknown", await lost(world))
    gone = await world.keep()
    await world.cancel(gone)
    await refused("gone", gone)
    expired = await world.keep()
    await world.advance(72 * 3600)
    await refused("expired", expired)

    codes = {name: code for name, (code, _) in found.items()}
    assert codes == {
        "waits": "not_approved",
        "denied": "denied",
        "done": "already_run",
        "running": "running",
        "unknown": "unknown",
        "gone": "cancelled",
        "expired": "expired",
    }
    assert len({words for _, words in found.values()}) == len(found)
    assert len(world.ran) == 2


async def test_a_second_answer_changes_nothing(world: KeptWorld) -> None:  # 1.4.5
    row = await approved(world)
    for answer in (world.staged.approve, world.staged.reject):
        with pytest.raises(ActionRefused) as error:
            await answer("default", row.request_id, BY_BEN)
        assert error.value.code == "already_approved"
    assert (await world.row(row)).decided_by == (BY_ANN,)


async def test_it_expires_after_72_hours_by_a_clock_that_stands(world: KeptWorld) -> None:  # 1.4.3
    kept = await world.keep()
    await world.advance(72 * 3600 - 1)
    assert state_of(await world.row(kept)) == "waits"
    await world.advance(1)
    done = await world.row(kept)
    assert (state_of(done), done.outcome) == ("expired", "timeout")
    assert world.ran == []


async def test_how_long_it_waits_is_a_setting(make: Callable[..., KeptWorld]) -> None:
    world = make(profile=profile_with(replace(profile_with().approvals.tool_gate, pending_ttl_hours=0.5)))
    await world.job()
    kept = await world.keep()
    await world.advance(30 * 60)
    assert state_of(await world.row(kept)) == "expired"


async def test_the_sessions_own_chat_is_told_where_it_is_asked(make: Callable[..., KeptWorld]) -> None:
    gate = replace(profile_with().approvals.tool_gate, default_mode="deferred")
    world = make(profile=profile_with(gate))
    await world.session()
    await world.job()
    kept = await world.keep(session_id="s")
    await world.keep(session_id="job")
    await world.flush()
    (word,) = world.chat.shown(PLACE)
    assert kept.short_id in word.text
    assert len(world.chat.shown(KEPT_PLACE)) == 2
    await world.session("here", destination=KEPT_PLACE)
    await world.keep(session_id="here")
    await world.flush()
    assert len(world.chat.shown(KEPT_PLACE)) == 3


async def test_every_session_that_people_follow_is_told_where_it_is_asked(make: Callable[..., KeptWorld]) -> None:
    """A child has its parent's place. A job has none, nor what it starts, whatever it was declared with."""
    world = make(profile=profile_with(replace(GATE, default_mode="deferred")))
    followed = {("chat",), ("api",), ("cli",), ("chat", "child"), ("api", "child", "child")}
    jobs = {(kind, *below) for kind in JOBS for below in ((), ("child",))}
    short = {}
    for kinds in (*followed, *jobs):
        names = [".".join(kinds[: depth + 1]) for depth in range(len(kinds))]
        for kind, name, parent in zip(kinds, names, (None, *names), strict=False):
            await world.session(name, kind=kind, parent=parent)
        short[kinds] = (await world.keep(session_id=names[-1])).short_id
    await world.flush()
    words = [message.text for message in world.chat.shown(PLACE)]
    assert {kinds for kinds, name in short.items() if any(name in word for word in words)} == followed
    assert (len(words), len(world.chat.shown(KEPT_PLACE))) == (len(followed), len(short))


async def test_the_window_runs_whether_a_card_was_sent_or_not(make: Callable[..., KeptWorld]) -> None:
    world = make(profile=profile_with(staged_destination=None))
    await world.job()
    kept = await world.keep()
    assert kept.destinations == ()
    assert kept.expires_at is not None
    await world.staged.approve("default", kept.request_id, BY_ANN)
    assert state_of(await world.row(kept)) == "approved"


@pytest.mark.parametrize("error", [SendRefused("the chat is gone"), AdapterUnavailable("no network")])
async def test_a_place_that_does_not_take_the_card_leaves_it_to_other_doors(
    world: KeptWorld, error: AdapterError
) -> None:
    world.chat.fail(error, times=20)
    kept = await world.keep()
    await world.flush()
    await world.advance(60)
    found = await world.row(kept)
    assert (state_of(found), found.delivered_to) == ("waits", ())
    assert found.delivery_error
    await world.advance(72 * 3600)
    assert state_of(await world.row(kept)) == "expired"


async def test_stop_and_clear_of_the_session_leave_it(world: KeptWorld) -> None:
    turn = await world.turn("t", "job")
    row = await world.submit(MAIL, "job", turn_id=turn.turn_id)
    kept = await world.row(row.kept_as or "")
    await world.sessions.end_turn("default", "t", "turn_ended", None)
    await world.sessions.stop("default", "job", BY_ANN)
    await world.sessions.clear("default", "job", BY_ANN, close=True)
    assert state_of(await world.row(kept)) == "waits"
    await world.staged.approve("default", kept.request_id, BY_ANN)
    done = await world.staged.replay("default", kept.request_id)
    assert state_of(done) == "succeeded"


async def test_what_comes_after_a_stop_is_not_kept(world: KeptWorld) -> None:
    turn = await world.turn("t", "job")
    await world.sessions.end_turn("default", "t", "turn_ended", None)
    row = await world.submit(MAIL, "job", turn_id=turn.turn_id)
    assert (row.outcome, row.kept_as) == ("cancelled", None)
    assert await world.staged.actions("default") == []


async def test_a_restart_keeps_it(make: Callable[..., KeptWorld]) -> None:
    before = make()
    await before.job()
    kept = await before.keep()
    await before.aclose()
    after = make()
    after.start()
    assert [row.request_id for row in await after.staged.actions("default")] == [kept.request_id]
    await after.staged.approve("default", kept.short_id, BY_ANN)
    assert state_of(await after.until_ended(kept)) == "succeeded"
    assert len(after.ran) == 1


async def test_an_approval_waits_for_the_gateway_that_has_the_executor(make: Callable[..., KeptWorld]) -> None:
    without = make(runs=False)
    await without.job()
    kept = await without.keep()
    await without.staged.approve("default", kept.request_id, BY_ANN)
    with pytest.raises(ActionRefused) as error:
        await without.staged.replay("default", kept.request_id)
    assert error.value.code == "no_executor"
    await without.advance(2 * DAY_S)  # an unclaimed approval of something else would have lapsed after five minutes
    assert state_of(await without.row(kept)) == "approved"
    after = make()
    after.start()
    assert state_of(await after.until_ended(kept)) == "succeeded"


async def test_two_replays_at_once_run_it_once(make: Callable[..., KeptWorld]) -> None:  # 1.4.9
    worlds = [make() for _ in range(4)]
    await worlds[0].job()
    row = await approved(worlds[0])
    answers = await asyncio.gather(
        *(world.staged.replay("default", row.request_id) for world in worlds for _ in range(2)), return_exceptions=True
    )
    assert sum(isinstance(answer, ApprovalRequest) for answer in answers) == 1
    codes = [answer.code for answer in answers if isinstance(answer, ActionRefused)]
    assert len(codes) == 7
    assert set(codes) <= {"running", "already_run"}
    assert sum(len(world.ran) for world in worlds) == 1


async def test_an_agent_cannot_start_or_report_what_is_kept(world: KeptWorld) -> None:  # 1.4.7
    row = await approved(world)
    with pytest.raises(ClaimRefused):
        await world.claim(row)
    with pytest.raises(Conflict):
        await world.broker.result("default", row.request_id, "succeeded")
    assert state_of(await world.row(row)) == "approved"


async def test_an_undo_before_the_start_takes_it_back(world: KeptWorld) -> None:
    row = await approved(world)
    await world.broker.undo("default", row.request_id, BY_ANN)
    with pytest.raises(ActionRefused) as error:
        await world.staged.replay("default", row.request_id)
    assert error.value.code == "cancelled"
    assert world.ran == []


@pytest.mark.parametrize("changed", [True, False])
async def test_a_script_that_changed_meanwhile_is_not_run(
    make: Callable[..., KeptWorld], tmp_path: object, changed: bool
) -> None:  # G2-10
    profile = replace(profile_with(), approvals=ApprovalSettings(cron_mode="defer"))
    world = make(profile=with_executor(profile, "shell", ExecutorSettings(kinds=("command",))))
    await world.job()
    script = world_file(tmp_path, "echo one")
    operand = collected(script)
    row = await world.submit(
        Command(command="git push --force; bash run.sh", cwd=str(tmp_path), operands=(operand,)), "job"
    )
    assert row.kept_as is not None
    await world.staged.approve("default", row.kept_as, BY_ANN)
    if changed:
        world_file(tmp_path, "echo two")
        with pytest.raises(ActionRefused) as error:
            await world.staged.replay("default", row.kept_as)
        assert error.value.code == "changed_since_review"
        assert world.ran == []
    else:
        assert state_of(await world.staged.replay("default", row.kept_as)) == "succeeded"


@pytest.mark.parametrize(
    ("change", "code", "told"),
    [
        (
            lambda old: replace(old, approvals=replace(old.approvals, deny=("git push *",))),
            "forbidden_now",
            "a rule forbids it by now",
        ),
        (
            lambda old: replace(old, own_paths=("/srv/signoff",)),
            "forbidden_now",
            "a rule forbids it by now",
        ),
        (
            lambda old: replace(old, executors={"shell": ExecutorSettings(kinds=("code",))}),
            "executor_changed",
            "executor shell does not run this any more",
        ),
        (lambda old: old, None, ""),
    ],
    ids=["deny rule", "floor", "executor", "nothing"],
)
async def test_what_the_settings_of_now_forbid_is_not_run(
    make: Callable[..., KeptWorld], change: Callable[[Profile], Profile], code: str | None, told: str
) -> None:  # 1.4.5
    profile = replace(profile_with(), approvals=ApprovalSettings(cron_mode="defer"))
    world = make(profile=with_executor(profile, "shell", ExecutorSettings(kinds=("command",))))
    await world.job()
    row = await world.submit(Command(command="git push --force; rm -r /srv/signoff"), "job")
    assert row.kept_as is not None, row.why
    await world.staged.approve("default", row.kept_as, BY_ANN)
    world.settings["default"] = change(world.settings["default"])
    if code is None:
        assert state_of(await world.staged.replay("default", row.kept_as)) == "succeeded"
        return
    for _ in range(2):  # also later, when it is settled
        with pytest.raises(ActionRefused) as error:
            await world.staged.replay("default", row.kept_as)
        assert error.value.code == code
    kept = await world.row(row.kept_as)
    assert (kept.outcome, kept.execution.state, kept.execution.cause) == ("approved", "not_run", code)
    assert told in await world.message(kept)
    assert world.ran == []


async def test_runs_that_hang_leave_other_profiles_their_places(
    world: KeptWorld, monkeypatch: pytest.MonkeyPatch
) -> None:  # 1.4.5
    monkeypatch.setattr(executing, "AT_ONCE", 1)
    world.hold = asyncio.Event()
    first, second = [await approved(world) for _ in range(2)]
    others = replace(second, profile="other", request_id="kept_other")
    await world.store.transact(lambda tx: tx.put(others))
    world.settings["other"] = world.settings["default"]
    ran: list[str] = []
    world.executors.register("other", "mailer", lambda call: ran.append(call.id))
    world.start()
    async with asyncio.timeout(60):
        while not ran or not world.ran:
            await settle(1)
    assert (ran, len(world.ran)) == (["kept_other"], 1)
    assert sorted([state_of(await world.row(each)) for each in (first, second)]) == ["approved", "running"]
    world.hold.set()
    for each in (first, second):
        assert state_of(await world.until_ended(each)) == "succeeded"


def world_file(folder: object, text: str) -> str:
    """Write the script."""
    path = f"{folder}/run.sh"
    with open(path, "w") as file:
        file.write(text)
    return path


def collected(path: str) -> Operand:
    """The script as it is now, named as the action names it."""
    (found,) = operands_of([path])
    return replace(found, path="run.sh")


async def test_what_keeps_nothing_is_no_kept_action(world: KeptWorld) -> None:
    asked = await world.ask("git push --force")
    with pytest.raises(RequestNotFound):
        await world.staged.find("default", asked.request_id)
    with pytest.raises(RequestNotFound):
        await world.staged.find("default", "nothing")
    kept = await world.keep()
    for reference in (kept.request_id, kept.short_id, kept.short_id.lower(), kept.stages or ""):
        assert (await world.staged.find("default", reference)).request_id == kept.request_id


async def test_kept_actions_are_listed_oldest_first_with_those_that_ended(world: KeptWorld) -> None:
    rows = []
    for number in range(3):
        rows.append(await world.keep(Tool(name="send_email", arguments={"n": number})))
        await world.clock.advance(1)
    await world.staged.reject("default", rows[0].request_id, BY_ANN)
    listed = await world.staged.actions("default")
    assert [row.request_id for row in listed] == [row.request_id for row in rows]
    rest = await world.staged.actions("default", limit=1, after=request_key("default", rows[0].request_id))
    assert [row.request_id for row in rest] == [rows[1].request_id]
    assert await world.staged.actions("other") == []


async def test_judged_again_a_kept_action_is_one_question(world: KeptWorld) -> None:
    await world.keep()
    denied = await world.keep(Tool(name="send_email", arguments={"n": 2}))
    await world.staged.reject("default", denied.request_id, BY_ANN)
    rows = await world.rows("job")
    replay = Replay(world.profile, world.clock.now())
    replay.add(rows)
    found = replay.report()
    assert (len(rows), found.requests, found.questions, found.kept, found.dangers) == (4, 2, 2, 2, 0)
    off = Replay(replace(world.profile, approvals=ApprovalSettings(mode="off")), world.clock.now())
    off.add(rows)
    assert {each.dangers for each in off.report().dangerous} == {("off",), ("denied", "off")}


def test_an_executor_runs_only_what_it_is_registered_for() -> None:
    assert not runs(ExecutorSettings(tools=("send_*",)), Tool(name="delete_all"))
