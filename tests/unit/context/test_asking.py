"""A running gateway asks in the name of what is bound around a call, and of nobody where nothing is."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.unit.context.room import ASKED, FLOOR, HARMLESS, Room, place, refused, room

from signoff import BlockingGateway, Code, Elicitation, FileWrite, Rule, Tool
from signoff.authorize import local_actor
from signoff.context import Context, absent, bind, child, fresh, within
from signoff.errors import DestinationNotAllowed, InvalidInput, SessionNotFound, TurnNotFound
from signoff.model import Action, Command, SessionKind
from signoff.placing import checked_no_context
from signoff.presence import JOBS, Flags, presence
from signoff.rows import NO_CONTEXT
from signoff.server.wire import AskBody
from signoff.sessions import Declaration
from signoff.settings import ToolGateSettings

ANA = local_actor(1000)
TALK = "fake:100"
SETTINGS: dict[SessionKind, str] = {
    "single_query": "approvals.single_query_mode",
    "cron": "approvals.cron_mode",
    "webhook": "approvals.unattended_mode",
    "worker": "approvals.unattended_mode",
}
EVERY_KIND: tuple[Action, ...] = (
    ASKED,
    Code(language="python", code="1 + 1"),
    Tool(name="send_email", arguments={}),
    FileWrite(path="/srv/app/x.py"),
    Rule(tool="deploy", rule_key="deploys", reason="it deploys"),
    Elicitation(server="crm", message="Which customer?"),
)


async def approved(world: Room, asking: asyncio.Task[Any], **facts: str) -> Any:
    """The end of the only question that waits, approved by Ana; `facts` are what its row says."""
    (row,) = await world.delivered(1)
    assert {name: getattr(row, name) for name in facts} == facts
    await world.gateway.decide(row.request_id, "once", ANA, profile=row.profile)
    return await asking


# --- no context at all -----------------------------------------------------------------------------


@pytest.mark.parametrize("masked", [False, True], ids=["never set", "set empty"])
async def test_no_context_is_blocked_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, masked: bool
) -> None:  # G2-19, 2.2 no context, #35164
    """Wherever cards could go and whoever listens: absence of a marker is not consent, and nobody is asked."""
    facts: dict[str, Any] = {
        "also_to": (place("fake:1"),),
        "fallback_destination": place("fake:2"),
        "unattended_mode": "approve",
    }
    async with room(tmp_path, **facts) as world:
        await world.console_open()
        with absent() if masked else fresh():
            record = await refused(world.gateway.request(ASKED))
        assert (record.outcome, record.may_run, record.session_id) == ("blocked", False, NO_CONTEXT)
        assert [(by.type, by.setting) for by in record.decided_by] == [("policy", 'no_context = "deny"')]
        assert record.message.startswith('BLOCKED: blocked by setting no_context = "deny": it was asked outside of any')
        assert world.chat.messages == []
    (line,) = [entry for entry in caplog.records if entry.name == "signoff.placing"]
    assert line.levelno == logging.WARNING
    assert 'blocked by no_context = "deny"' in line.getMessage()


@pytest.mark.parametrize("action", EVERY_KIND, ids=lambda action: type(action).__name__)
async def test_no_kind_of_action_runs_without_a_context(tmp_path: Path, action: Action) -> None:  # G2-19
    async with room(tmp_path) as world:
        assert (await refused(world.gateway.request(action))).outcome == "blocked"


@pytest.mark.parametrize("no_context", ["deny", "approve"])
async def test_a_gated_tool_outside_of_any_session_is_logged_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, no_context: Literal["deny", "approve"]
) -> None:  # G2-19
    """Through the gate and through `request`, whatever its mode; a tool that needs nobody just runs."""
    gated = ToolGateSettings(require_approval=("send_email", "kept"), force_deferred=("kept",))
    async with room(tmp_path, no_context=no_context, tool_gate=gated) as world:
        for tool in ("send_email", "kept"):
            for calling in (
                world.gateway.gate.call(tool, {}, run=lambda arguments: pytest.fail("it ran")),
                world.gateway.request(Tool(name=tool, arguments={})),
            ):
                caplog.clear()
                assert (await calling).outcome in ("refused", "blocked")
                (line,) = [entry for entry in caplog.records if entry.name == "signoff.placing"]
                assert "asked outside of any session, and blocked by approvals.tool_gate" in line.getMessage()
        caplog.clear()
        assert (await world.gateway.gate.call("read", {}, run=lambda arguments: 7)).value == 7
        assert caplog.records == []


async def test_a_thread_without_a_context_is_blocked_too(tmp_path: Path) -> None:  # G2-19
    async with room(tmp_path) as world:
        door = BlockingGateway(world.gateway)
        with bind("talk", kind="chat", destination=TALK):
            loop = asyncio.get_running_loop()
            # A plain pool's thread: what is bound here does not reach it.
            record = await loop.run_in_executor(None, door.request, ASKED)
        assert record.decided_by[0].setting == 'no_context = "deny"'
        assert world.chat.messages == []


async def test_who_embeds_the_gateway_may_choose_otherwise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:  # G2-19, 2.6.4
    async with room(tmp_path, no_context="approve", deny=("rm -rf forbidden",)) as world:
        record = await world.gateway.request(ASKED)
        assert (record.outcome, record.may_run) == ("approved", True)
        assert record.decided_by[0].setting == 'no_context = "approve"'
        assert "approved by no_context" in caplog.text
        # What is forbidden stays so (2.6.2).
        assert (await world.gateway.request(FLOOR)).outcome == "blocked"
        assert (await world.gateway.request({"kind": "command", "command": "rm -rf forbidden"})).outcome == "blocked"
        # It says nothing about sessions, which have settings of their own.
        with bind(kind="cron"):
            assert (await world.gateway.request(ASKED)).outcome == "blocked"


async def test_what_rules_allow_runs_anywhere_and_is_not_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:  # 2.6.3
    async with room(tmp_path) as world:
        for binding in (fresh(), bind(kind="cron"), bind(kind="webhook"), bind(kind="single_query")):
            with binding:
                assert (await world.gateway.request(HARMLESS)).may_run
    assert "outside of any session" not in caplog.text


async def test_no_agent_chooses_or_takes_the_place_of_it(tmp_path: Path) -> None:  # G2-19
    assert "no_context" not in AskBody.__struct_fields__
    assert "no_context" not in Context.__struct_fields__
    for word in ("off", "", "Approve", "defer"):
        with pytest.raises(InvalidInput, match="no_context"):
            checked_no_context(word)
    async with room(tmp_path) as world:
        with pytest.raises(InvalidInput, match="own session"):
            await world.gateway.sessions.declare("default", Declaration(session_id=NO_CONTEXT), "builder")
        # Switching off the questions of that session does not open it either.
        await world.gateway.request(ASKED)
        await world.gateway.bypass(NO_CONTEXT, ANA)
        assert (await refused(world.gateway.request(ASKED))).outcome == "blocked"
        await world.gateway.clear(NO_CONTEXT)
        assert (await refused(world.gateway.request(ASKED))).outcome == "blocked"


# --- the table of contexts, through the gateway ----------------------------------------------------


@pytest.mark.usefixtures("stale")
@pytest.mark.parametrize("mode", ["deny", "approve"])
@pytest.mark.parametrize("kind", sorted(JOBS))
async def test_a_job_never_asks_whatever_is_inherited(
    tmp_path: Path, kind: SessionKind, mode: Literal["deny", "approve"]
) -> None:  # 2.2, 2.3.2, 2.3.3, 2.3.4, 2.3.5, 2.6.1, 2.6.2, #21899, #58673, #59179, #110932
    """Every variable is stale, every flag is bound, a place is bound for delivery, a notifier listens to all sessions:
    the setting decides, and it is named."""
    setting = SETTINGS[kind]
    modes: dict[str, Any] = {
        name.rpartition(".")[2]: "approve" if mode == "deny" else "deny" for name in SETTINGS.values()
    }
    modes[setting.rpartition(".")[2]] = mode
    async with room(tmp_path, also_to=(place("fake:1"),), **modes) as world:
        await world.console_open()
        with bind(kind=kind, destination=TALK, interactive=True, ask=True) as bound:
            assert bound.session_id is not None
            for _ in range(2):  # the second time the session is there
                assert (await world.gateway.check(ASKED)).verdict == ("block" if mode == "deny" else "allow")
                record = await refused(world.gateway.request(ASKED))
                assert record.outcome == ("blocked" if mode == "deny" else "approved")
                assert record.decided_by[0].setting == f'{setting} = "{mode}"'
                assert (record.kind, record.session_id) == (kind, bound.session_id)
                await world.gateway.sessions.attach("default", bound.session_id, "desk", None)
            if mode == "deny":
                assert f'{setting} = "deny"' in record.message
            assert (await refused(world.gateway.request(FLOOR))).outcome == "blocked"
        assert world.chat.messages == []


@pytest.mark.parametrize("kind", ["chat", "api", "cli"])
@pytest.mark.parametrize("listened", [False, True], ids=["", "listened"])
@pytest.mark.parametrize("placed", [False, True], ids=["", "placed"])
async def test_the_gateway_agrees_with_the_table(
    tmp_path: Path, kind: SessionKind, placed: bool, listened: bool
) -> None:  # 2.2, 2.4c, 2.4d, 2.4e
    async with room(tmp_path) as world:
        if listened:
            await world.console_open()
        with bind("s", kind=kind, destination=TALK if placed else None):
            found = presence(Flags(kinds=frozenset({kind}), place=placed, notifier=listened))
            assert (await world.gateway.check(ASKED)).verdict == ("ask" if found.gateway else "block")
            assert await world.stored("s") is None, "judging stores nothing"
            asking = asyncio.create_task(world.gateway.request(ASKED))
        if found.gateway:
            assert (await approved(world, asking, session_id="s", kind=kind)).may_run
            assert world.places() == ({TALK: 1} if placed else {})
        else:
            record = await refused(asking)
            assert record.decided_by[0].setting == 'approvals.unattended_mode = "deny"'


async def test_an_api_session_is_answerable_while_a_notifier_is_there(tmp_path: Path) -> None:  # 2.3.4, 2.4c, 2.4d
    async with room(tmp_path) as world:
        with bind("run", kind="api", ask=True):
            assert (await refused(world.gateway.request(ASKED))).outcome == "blocked"
            await world.gateway.sessions.attach("default", "run", "desk", "ana")
            asking = asyncio.create_task(world.gateway.request(ASKED))
            assert (await approved(world, asking, session_id="run")).may_run
            lost = asyncio.create_task(world.gateway.request(ASKED))
            await world.pending()
            await world.gateway.sessions.detach("default", "run", "desk")
            record = await lost
            assert (record.outcome, record.cause) == ("cancelled", "notifier_gone")
            assert (await refused(world.gateway.request(ASKED))).outcome == "blocked"


async def test_cron_deny_precedes_what_was_granted(tmp_path: Path) -> None:  # 1.3.2, #60505, #61064, #60547
    async with room(tmp_path) as world:
        granted = {"session": ASKED, "always": Command(command="git push --force")}
        with bind("talk", kind="chat", destination=TALK):
            for choice, action in granted.items():
                asking = asyncio.create_task(world.gateway.request(action))
                (row,) = await world.pending()
                await world.gateway.decide(row.request_id, choice, ANA)
                assert (await asking).may_run
                assert (await world.gateway.request(action)).may_run, "granted"
        with bind("job", kind="cron", destination=TALK):
            for action in granted.values():
                record = await refused(world.gateway.request(action))
                assert record.decided_by[0].setting == 'approvals.cron_mode = "deny"'
        # Also where the very session that holds the grant turns out to be a job now.
        await world.gateway.session("talk", kind="cron", destination=TALK)
        assert (await refused(world.gateway.request(ASKED, session_id="talk"))).outcome == "blocked"


# --- which session ---------------------------------------------------------------------------------


async def test_the_bound_session_is_declared_with_its_first_question(tmp_path: Path) -> None:
    async with room(tmp_path) as world:
        with bind("talk", kind="chat", destination=TALK, user_id="42", tool_call_id="call-7"):
            asking = asyncio.create_task(world.gateway.request(ASKED))
            record = await approved(world, asking, session_id="talk", tool_call_id="call-7", requested_by="42")
        assert record.may_run
        row = await world.stored("talk")
        assert row is not None
        assert (row.kind, str(row.destination), row.user_id) == ("chat", TALK, "42")


async def test_a_declared_session_is_taken_as_it_is(tmp_path: Path) -> None:
    """What a program says later of the place of a session that an operator or a chat event declared moves nothing."""
    async with room(tmp_path) as world:
        await world.gateway.session("talk", kind="chat", destination=TALK, user_id="42")
        with bind("talk", kind="api", destination="fake:200", user_id="13"):
            asking = asyncio.create_task(world.gateway.request(ASKED))
            await approved(world, asking, session_id="talk", kind="chat", requested_by="42")
        assert world.places() == {TALK: 1}


@pytest.mark.parametrize("kind", sorted(JOBS))
async def test_a_job_under_a_chats_id_does_not_wait_in_the_chat(tmp_path: Path, kind: SessionKind) -> None:  # 2.3.2
    async with room(tmp_path) as world:
        await world.gateway.session("talk", kind="chat", destination=TALK, user_id="42")
        with bind("talk", kind=kind), pytest.raises(InvalidInput, match="id of its own"):
            await world.gateway.request(ASKED)
        with bind(kind=kind):
            assert (await refused(world.gateway.request(ASKED))).outcome == "blocked"
        assert world.chat.messages == []


async def test_a_session_that_was_closed_stays_closed(tmp_path: Path) -> None:
    async with room(tmp_path) as world:
        with bind("talk", kind="chat", destination=TALK):
            asking = asyncio.create_task(world.gateway.request(ASKED))
            await world.pending()
            await world.gateway.clear("talk")
            assert (await asking).cause == "session_ended"
            for call in (world.gateway.request, world.gateway.check):
                with pytest.raises(SessionNotFound):
                    await call(ASKED)
        row = await world.stored("talk")
        assert row is not None
        assert row.closed_at is not None


async def test_a_name_alone_declares_nothing(tmp_path: Path) -> None:
    """Nothing says what kind of session it is, so it has to be there."""
    async with room(tmp_path) as world:
        with bind("talk"), pytest.raises(SessionNotFound):
            await world.gateway.request(ASKED)
        await world.gateway.session("talk", kind="chat", destination=TALK)
        with bind("talk"):
            asking = asyncio.create_task(world.gateway.request(ASKED))
            assert (await approved(world, asking, session_id="talk")).may_run


async def test_what_the_call_names_counts_first(tmp_path: Path) -> None:
    async with room(tmp_path) as world:
        await world.gateway.session("other", kind="chat", destination="fake:200")
        with bind("job", kind="cron", turn_id="t-of-job", tool_call_id="c-of-job"):
            asking = asyncio.create_task(world.gateway.request(ASKED, session_id="other"))
            record = await approved(world, asking, session_id="other")
            assert (record.turn_id, record.tool_call_id) == (None, None), "those are of the bound session"
            with pytest.raises(SessionNotFound):
                await world.gateway.request(ASKED, session_id="unheard")
        with pytest.raises(TurnNotFound):
            await world.gateway.request(ASKED, turn_id="of-nobody")


async def test_a_turn_of_the_bound_session(tmp_path: Path) -> None:
    async with room(tmp_path) as world:
        with pytest.raises(InvalidInput, match="Which session"):
            async with world.gateway.turn():
                pass
        with bind("talk", kind="chat", destination=TALK):
            async with world.gateway.turn() as turn:
                with within(turn_id=turn.turn_id):
                    asking = asyncio.create_task(world.gateway.request(ASKED))
                    record = await approved(world, asking, session_id="talk", turn_id=turn.turn_id)
            assert record.turn_id == turn.turn_id


async def test_only_the_environment_speaks_of_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # 2.1.2
    """A process that was started as a job without a name is one session of that job, whichever call asks."""
    async with room(tmp_path, cron_mode="approve") as world:
        monkeypatch.setenv("SIGNOFF_SESSION_KIND", "cron")
        one, two = [await world.gateway.request(ASKED) for _ in range(2)]
        assert (one.outcome, one.kind) == ("approved", "cron")
        assert one.session_id == two.session_id
        monkeypatch.setenv("SIGNOFF_SESSION_ID", "nightly")
        assert (await world.gateway.request(ASKED)).session_id == "nightly"
        monkeypatch.setenv("SIGNOFF_SESSION_KIND", "corn")
        with pytest.raises(InvalidInput, match="SIGNOFF_SESSION_KIND"):
            await world.gateway.request(ASKED)


async def test_a_place_that_is_not_served(tmp_path: Path) -> None:
    """A chat without its place could not be answered there; a job's is only where somebody delivers what came of it."""
    async with room(tmp_path) as world:
        with bind(kind="chat", destination="elsewhere:1"), pytest.raises(DestinationNotAllowed):
            await world.gateway.request(ASKED)
        with bind(kind="cron", destination="elsewhere:1"):
            assert (await refused(world.gateway.request(ASKED))).outcome == "blocked"


async def test_the_bound_profile_is_that_of_every_verb(tmp_path: Path) -> None:
    async with room(tmp_path, profiles=("team",), unattended_mode="approve") as world:
        with bind("s", kind="api", profile="team"):
            record = await world.gateway.request(ASKED)
            await world.gateway.result(record.request_id, "succeeded", 0)
            assert (await world.gateway.get(record.request_id)).execution.state == "succeeded"
            door = BlockingGateway(world.gateway)
            read = await asyncio.to_thread(door.get, record.request_id)
            assert read.request_id == record.request_id
        assert await world.stored("s") is None
        assert await world.stored("s", "team") is not None
        with bind("s", kind="api", profile="unheard"), pytest.raises(InvalidInput, match="unheard"):
            await world.gateway.request(ASKED)


async def test_a_child_asks_in_its_parents_place(tmp_path: Path) -> None:  # 2.7.1
    async with room(tmp_path) as world:
        with bind("talk", kind="chat", destination=TALK), child("sub"):
            assert (await world.gateway.check(ASKED)).verdict == "ask"
            asking = asyncio.create_task(world.gateway.request(ASKED))
            assert (await approved(world, asking, session_id="sub", kind="child")).may_run
        assert world.places() == {TALK: 1}
        row = await world.stored("sub")
        assert row is not None
        assert row.parent == "talk"
        with bind("job", kind="cron", destination=TALK), child(), child():
            record = await refused(world.gateway.request(ASKED))
            assert record.decided_by[0].setting == 'approvals.cron_mode = "deny"'
