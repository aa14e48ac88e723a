"""The ladder of the gate, row by row: what runs, what is asked, what is kept, and what nothing lifts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.core.harness import BY_ANN, PLACE
from tests.unit.gate.kept import GATE, KEPT_PLACE, MAIL, KeptWorld, profile_with, with_executor

from signoff.model import Command, FileWrite, SessionKind, Tool, replace
from signoff.settings import ApprovalSettings, ExecutorSettings, ToolGateSettings
from signoff.staged import state_of

UNATTENDED: tuple[SessionKind, ...] = ("cron", "webhook", "worker", "single_query")
DEFERRED = replace(GATE, default_mode="deferred")


async def test_a_tool_that_is_not_named_runs_and_nothing_is_stored(world: KeptWorld) -> None:  # 1.4.1
    called = await world.gate.call("read_email", {}, session_id="s", run=lambda arguments: "read")
    assert (called.outcome, called.value, called.record) == ("ran", "read", None)
    assert await world.rows("s") == []


async def test_the_settings_are_read_as_they_are(world: KeptWorld) -> None:  # #76194 spfcraze#22
    # Every call of every tool asks the gate, so what it reads is neither copied nor looked up in the store.
    found = world.broker.profile("default")
    assert found is world.profile
    reads: list[str] = []
    world.gate._store = reads  # type: ignore[assignment]  # any use of it would fail
    for _ in range(100):
        await world.gate.call("read_email", {}, session_id="nobody declared it", run=lambda arguments: None)
    assert world.broker.profile("default").approvals.tool_gate is found.approvals.tool_gate


async def test_with_the_gate_off_every_tool_runs(make: Callable[..., KeptWorld]) -> None:  # 1.4
    world = make(profile=profile_with(ToolGateSettings()))
    await world.session()
    assert (await world.gate.call("send_email", {}, session_id="s")).outcome == "ran"
    assert await world.rows("s") == []


@pytest.mark.parametrize("how", ["mode", "bypass"])
@pytest.mark.parametrize("gate", [GATE, DEFERRED])
async def test_mode_off_and_a_bypass_skip_the_question(
    make: Callable[..., KeptWorld], how: str, gate: ToolGateSettings
) -> None:  # 1.4.1
    world = make(profile=profile_with(gate, mode="off" if how == "mode" else "manual"))
    await world.session()
    if how == "bypass":
        await world.sessions.bypass("default", "s", BY_ANN)
    called = await world.gate.call(MAIL.name, MAIL.arguments, session_id="s")
    assert (called.outcome, called.value) == ("ran", "sent 1")
    (row,) = await world.rows("s")
    assert (row.outcome, row.execution.state) == ("approved", "succeeded")


async def test_a_standing_approval_lets_it_run(make: Callable[..., KeptWorld]) -> None:  # 1.4.1
    world = make()
    await world.session()
    asked = await world.ask(MAIL)
    await world.decide(asked, "always")
    # The gate wants a call of this tool kept now, and the person's word of before still counts.
    other = make(profile=profile_with(DEFERRED))
    called = await other.gate.call("send_email", {"to": "ben"}, session_id="s")
    assert called.outcome == "ran"
    assert called.record is not None
    assert [actor.type for actor in called.record.decided_by] == ["grant"]


@pytest.mark.parametrize(("mode", "outcome"), [("deny", "staged"), ("defer", "staged"), ("approve", "ran")])
async def test_a_job_stands_above_what_was_granted_though_the_gate_names_the_tool(  # 1.3.2, #60505
    make: Callable[..., KeptWorld], mode: Any, outcome: str
) -> None:
    profile = profile_with()
    world = make(profile=replace(profile, approvals=replace(profile.approvals, cron_mode=mode)))
    await world.session()
    await world.job()
    asked = await world.ask(MAIL)
    await world.decide(asked, "always")
    called = await world.gate.call("send_email", {"to": "ben"}, session_id="job")
    assert called.outcome == outcome
    assert (await world.gate.call("send_email", {"to": "ben"}, session_id="s")).outcome == "ran"


async def test_it_is_asked_at_once_where_somebody_is_there(world: KeptWorld) -> None:  # 1.4.2
    row = await world.ask(MAIL)
    assert row.outcome is None
    assert row.destinations == (PLACE,)
    await world.decide(row, "deny")
    assert (await world.row(row)).outcome == "denied"


@pytest.mark.parametrize("kind", UNATTENDED)
async def test_it_is_kept_where_nobody_is_there(make: Callable[..., KeptWorld], kind: SessionKind) -> None:  # 1.4.2
    # The session's own setting says deny, which is about what the gate does not name.
    world = make()
    await world.session("x", kind=kind, destination=None)
    kept = await world.keep(session_id="x")
    assert (kept.outcome, kept.executor, kept.destinations) == (None, "mailer", (KEPT_PLACE,))


async def test_a_channel_less_session_is_unattended(world: KeptWorld) -> None:  # 1.4.2
    await world.session("bare", kind="api", destination=None)
    assert (await world.submit(MAIL, "bare")).outcome == "staged"


@pytest.mark.parametrize("gate", [DEFERRED, replace(GATE, force_deferred=("send_*",))])
async def test_it_is_kept_where_the_gate_says_so(
    make: Callable[..., KeptWorld], gate: ToolGateSettings
) -> None:  # 1.4.2
    world = make(profile=profile_with(gate))
    await world.session()
    row = await world.submit(MAIL)
    assert row.outcome == "staged"
    assert row.decided_by[0].setting == "approvals.tool_gate.require_approval"


async def test_without_an_executor_it_is_blocked_and_the_missing_one_named(make: Callable[..., KeptWorld]) -> None:
    world = make(profile=replace(profile_with(), executors={}))
    await world.job()
    row = await world.submit(MAIL, "job")
    assert row.outcome == "blocked"
    assert "executor for tool send_email, and there is none" in row.why[0]
    assert (await world.message(row)).startswith(
        "BLOCKED: blocked by setting approvals.tool_gate.require_approval (no executor is registered for tool "
        "send_email): it could only be kept for a later yes."
    )


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("cron", "cron_mode"),
        ("webhook", "unattended_mode"),
        ("worker", "unattended_mode"),
        ("single_query", "single_query_mode"),
    ],
)
@pytest.mark.parametrize("registered", [True, False])
async def test_defer_keeps_what_an_executor_could_run(
    make: Callable[..., KeptWorld], kind: SessionKind, name: str, registered: bool
) -> None:
    profile = replace(profile_with(ToolGateSettings()), approvals=ApprovalSettings(**{name: "defer"}))  # type: ignore[arg-type]  # the setting's name
    if registered:
        profile = with_executor(profile, "shell", ExecutorSettings(kinds=("command",)))
    world = make(profile=profile)
    await world.session("x", kind=kind, destination=None)
    row = await world.submit("terraform apply -auto-approve", "x")
    if registered:
        assert row.outcome == "staged"
        assert row.executor == "shell"
        assert row.decided_by[0].setting == f'approvals.{name} = "defer"'
    else:
        assert row.outcome == "blocked"
        expected = f'approvals.{name} = "defer" needs a registered executor for command actions, and there is none.'
        assert row.why[0] == expected
        assert f'{name} = "defer" (no executor is registered for command actions)' in await world.message(row)


async def test_defer_lets_harmless_commands_run_and_stands_above_grants(make: Callable[..., KeptWorld]) -> None:
    profile = replace(profile_with(ToolGateSettings()), approvals=ApprovalSettings(cron_mode="defer"))
    world = make(profile=with_executor(profile, "shell", ExecutorSettings(kinds=("command",))))
    await world.session()
    await world.job()
    assert (await world.submit("ls", "job")).outcome == "approved"
    asked = await world.ask("git push --force origin main")
    await world.decide(asked, "always")
    assert (await world.submit("git push --force origin main", "job")).outcome == "staged"


@pytest.mark.parametrize("command", ["rm -rf /", "git push --force x"])
async def test_floors_and_deny_rules_stand_above_it(make: Callable[..., KeptWorld], command: str) -> None:
    settings = ApprovalSettings(cron_mode="defer", deny=("git push --force *",))
    profile = replace(profile_with(), approvals=settings)
    world = make(profile=with_executor(profile, "shell", ExecutorSettings(kinds=("command",))))
    await world.job()
    assert (await world.submit(command, "job")).outcome == "blocked"


async def test_a_protected_file_is_never_kept(make: Callable[..., KeptWorld]) -> None:
    profile = replace(profile_with(), approvals=ApprovalSettings(cron_mode="defer"))
    world = make(profile=with_executor(profile, "editor", ExecutorSettings(kinds=("file_write",))))
    await world.job()
    assert (await world.submit(FileWrite(path="/srv/app/CLAUDE.md", diff=""), "job")).outcome == "blocked"
    assert (await world.submit(FileWrite(path="/srv/app/notes.md", diff=""), "job")).outcome == "staged"


async def test_what_is_denied_may_be_kept_again_and_is_not_denied_by_memory(world: KeptWorld) -> None:
    first = await world.keep()
    await world.staged.reject("default", first.short_id, BY_ANN)
    second = await world.keep()
    assert second.request_id != first.request_id
    assert state_of(second) == "waits"


async def test_two_kept_calls_are_two_questions(world: KeptWorld) -> None:  # G2-32
    one, other = await world.keep(), await world.keep()
    assert one.request_id != other.request_id
    assert one.short_id != other.short_id
    assert (await world.row(one)).waiters == 0
    await world.staged.approve("default", one.request_id, BY_ANN)
    assert state_of(await world.row(other)) == "waits"
    await world.staged.reject("default", other.request_id, BY_ANN)
    await world.staged.replay("default", one.request_id)
    assert [call.id for call in world.ran] == [one.request_id]


async def test_a_grant_of_elsewhere_does_not_settle_a_kept_call(world: KeptWorld) -> None:
    kept = await world.keep()
    asked = await world.ask(Tool(name="send_email", arguments={"to": "x"}))
    await world.decide(asked, "always")
    assert (await world.row(kept)).outcome is None


async def test_the_command_is_kept_exactly(make: Callable[..., KeptWorld]) -> None:
    profile = replace(profile_with(), approvals=ApprovalSettings(cron_mode="defer"))
    world = make(profile=with_executor(profile, "shell", ExecutorSettings(kinds=("command",))))
    await world.job()
    action = Command(command="git push --force", cwd="/srv/app", env={"A": "b"})
    row = await world.submit(action, "job")
    assert row.kept_as is not None
    assert (await world.row(row.kept_as)).action == action
