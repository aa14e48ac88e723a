"""Jobs, chats and children at the same time in one process: the session travels with the call."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from pathlib import Path

import pytest
from tests.unit.context.room import ASKED, place, refused, room
from tests.unit.server.world import world_on

from signoff import BlockingGateway, Elicitation
from signoff.authorize import local_actor
from signoff.client import Client
from signoff.context import ContextThreadPool, bind, carried, child, current, within
from signoff.gateway import Gateway
from signoff.model import Command, SessionKind
from signoff.record import Approval

ANA = local_actor(1000)


def command(word: str) -> Command:
    """A command that asks and names itself."""
    return Command(command=f"rm -rf {word}")


async def test_two_cron_jobs_and_a_chat_do_not_see_each_other(tmp_path: Path) -> None:
    """Tasks: each job is in the middle of its work while the others ask."""  # #58662, #43370, #77022
    async with room(tmp_path, cron_mode="deny") as world:
        started = {name: asyncio.Event() for name in ("job-1", "job-2", "chat")}

        async def work(name: str, kind: SessionKind, place: str) -> list[Approval]:
            with bind(name, kind=kind, destination=place):
                started[name].set()
                await asyncio.gather(*(each.wait() for each in started.values()))
                answers = [await world.gateway.request(command(f"{name}-{number}")) for number in range(3)]
                assert current().session_id == name
                return answers

        tasks = [
            asyncio.create_task(work("job-1", "cron", "fake:100")),
            asyncio.create_task(work("chat", "chat", "fake:200")),
            asyncio.create_task(work("job-2", "cron", "fake:300")),
        ]
        for number in range(3):
            await world.card("fake:200", f"chat-{number}")
            (row,) = await world.pending()
            await world.gateway.decide(row.request_id, "once", ANA)
        one, chat, two = await asyncio.gather(*tasks)
        assert {(r.outcome, r.session_id, r.kind) for r in one} == {("blocked", "job-1", "cron")}
        assert {(r.outcome, r.session_id, r.kind) for r in two} == {("blocked", "job-2", "cron")}
        assert {(r.may_run, r.session_id, r.kind) for r in chat} == {(True, "chat", "chat")}
        assert set(world.places()) == {"fake:200"}


async def test_the_same_in_threads(tmp_path: Path) -> None:
    """Each of the threads serves jobs and chats by turns; they all ask at once."""
    async with room(tmp_path, cron_mode="deny") as world:
        door = BlockingGateway(world.gateway)
        together = threading.Barrier(6)

        def work(name: str, kind: SessionKind, place: str) -> Approval:
            with bind(name, kind=kind, destination=place):
                together.wait(20)
                return door.request(command(name))

        plans = [("job", "cron", "fake:100"), ("chat", "chat", "fake:200"), ("hook", "webhook", "fake:300")]
        with ContextThreadPool(6) as pool:
            loop = asyncio.get_running_loop()
            for round_no in range(3):
                asked = [
                    loop.run_in_executor(pool, work, f"{name}-{round_no}-{number}", kind, place)  # type: ignore[arg-type]
                    for name, kind, place in plans
                    for number in range(2)
                ]
                for row in await world.delivered(2):
                    await world.gateway.decide(row.request_id, "once", ANA)
                found = Counter(
                    (r.session_id.rpartition("-")[0], r.kind, r.outcome) for r in await asyncio.gather(*asked)
                )
                assert found == {
                    (f"job-{round_no}", "cron", "blocked"): 2,
                    (f"chat-{round_no}", "chat", "approved"): 2,
                    (f"hook-{round_no}", "webhook", "blocked"): 2,
                }
        assert set(world.places()) == {"fake:200"}


@pytest.mark.usefixtures("stale")
async def test_after_a_cron_run_a_live_elicitation_goes_to_its_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # #76748, #69566
    """The job ran in the very task that serves the chat next, and its marker was left in the environment besides."""
    monkeypatch.setenv("SIGNOFF_SESSION_KIND", "cron")
    async with room(tmp_path, fallback_destination=None) as world:
        asked = Elicitation(server="crm", message="Which customer is meant?")
        with bind("talk", kind="chat", destination="fake:100", user_id="1"):
            for name in ("nightly", "hourly"):
                with bind(name, kind="cron", destination="fake:900"):
                    assert (await refused(world.gateway.request(asked))).kind == "cron"
            asking = asyncio.create_task(world.gateway.request(asked))
            await world.card("fake:100", "Which customer is meant?")
            (row,) = await world.pending()
            assert (row.session_id, row.kind) == ("talk", "chat")
            await world.gateway.decide(row.request_id, "once", ANA)
            assert (await asking).outcome == "approved"
        assert set(world.places()) == {"fake:100"}


@pytest.mark.usefixtures("stale")
async def test_what_comes_over_http_is_never_what_the_gateways_process_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # 2.1.5, #76748
    """A gateway that somebody started from a cron job serves chats; its own markers speak of nobody's session."""
    monkeypatch.setenv("SIGNOFF_SESSION_KIND", "cron")
    async with world_on("memory://") as world:
        key = (await world.core.keys.create("default", "agent", agent="builder")).text
        async with Client(world.bound.api, key, environ={}) as agent:
            await agent.session("s", kind="api")
            await world.core.sessions.attach("default", "s", "desk", "ann")
            asking = asyncio.create_task(agent.request(ASKED, session_id="s"))
            async with asyncio.timeout(30):
                while not (rows := await world.core.broker.pending("default")):  # noqa: ASYNC110  # over HTTP
                    await asyncio.sleep(0.01)
            assert (rows[0].session_id, rows[0].kind) == ("s", "api")
            await world.core.broker.decide("default", rows[0].request_id, "once", ANA)
            assert (await asking).may_run


# --- children --------------------------------------------------------------------------------------


async def test_a_childs_question_belongs_to_its_parent(tmp_path: Path) -> None:  # G2-22, #37935, #4699
    """Two users' chats are busy and share one pool, whose threads served the other chat before. Each child's question
    stands in its parent's place alone, and an answer to everything in the other place does not reach it."""
    async with room(tmp_path) as world:
        door = BlockingGateway(world.gateway)
        busy = threading.Barrier(2)

        def warmed() -> str | None:
            busy.wait(20)
            return current().session_id

        def task_of(name: str) -> Approval:
            with child(f"child-of-{name}"):
                return door.request(command(f"by-{name}"))

        async def chat(name: str, place: str, user: str) -> list[Approval]:
            with bind(name, kind="chat", destination=place, user_id=user):
                loop = asyncio.get_running_loop()
                assert await loop.run_in_executor(pool, warmed) == name
                own = asyncio.create_task(world.gateway.request(command(f"own-{name}")))
                return [await loop.run_in_executor(pool, task_of, name), await own]

        with ContextThreadPool(2) as pool:
            chats = [asyncio.create_task(chat("a", "fake:100", "1")), asyncio.create_task(chat("b", "fake:200", "2"))]
            told = {(r.session_id, str(r.destinations[0]), r.requested_by) for r in await world.delivered(4)}
            assert told == {
                ("a", "fake:100", "1"),
                ("child-of-a", "fake:100", "1"),
                ("b", "fake:200", "2"),
                ("child-of-b", "fake:200", "2"),
            }
            for name, here in (("a", "fake:100"), ("b", "fake:200")):
                await world.card(here, f"by-{name}")
                await world.card(here, f"own-{name}")
            await world.chat.say("/approve all", where=place("fake:200"), by="1")
            assert [record.may_run for record in await chats[1]] == [True, True]
            left = await world.pending(2)
            assert {row.session_id for row in left} == {"a", "child-of-a"}
            await world.chat.say("/approve all", where=place("fake:100"), by="1")
            assert [(r.session_id, r.may_run) for r in await chats[0]] == [("child-of-a", True), ("a", True)]
        shown = [(str(m.destination), m.text) for m in world.chat.messages]
        assert not any(
            ("-b" in text and where == "fake:100") or ("-a" in text and where == "fake:200") for where, text in shown
        )


async def test_a_plain_thread_asks_in_nobodys_name(tmp_path: Path) -> None:  # G2-22, 2.1.4
    """Where the context was lost there is no session to fall back to: not the newest, not the only one."""
    async with room(tmp_path) as world:
        door = BlockingGateway(world.gateway)
        found: list[Approval] = []
        with bind("a", kind="chat", destination="fake:100"):
            asking = asyncio.create_task(world.gateway.request(command("own")))
            await world.pending()

            def ask(action: Command) -> None:
                found.append(door.request(action))

            lost = threading.Thread(target=ask, args=(ASKED,))
            kept = threading.Thread(target=carried(ask), args=(command("kept"),))
        lost.start()
        await asyncio.to_thread(lost.join, 20)
        assert [(r.outcome, r.session_id) for r in found] == [("blocked", "no-context")]
        kept.start()
        for row in await world.pending(2):
            assert row.session_id == "a"
            await world.gateway.decide(row.request_id, "once", ANA)
        await asyncio.to_thread(kept.join, 20)
        assert found[1].may_run
        assert (await asking).may_run


@pytest.mark.parametrize(("ending", "cause"), [("turn", "parent_ended"), ("stop", "stop_requested")])
async def test_a_child_that_asks_for_the_first_time_too_late(
    tmp_path: Path, ending: str, cause: str
) -> None:  # 2.7.3, #112026
    """It was made in a turn that is over by now. Nobody had declared it, and it asks nobody."""
    async with room(tmp_path) as world:
        with bind("talk", kind="chat", destination="fake:100"):
            async with world.gateway.turn() as turn:
                with within(turn_id=turn.turn_id), child("sub"):
                    late = carried(current)
                    work = asyncio.Event()
                    asking = asyncio.create_task(_after(work, world.gateway))
                if ending == "stop":
                    await world.gateway.stop("talk", ANA)
            work.set()
            record = await asking
        assert late().parent == "talk"
        assert (record.outcome, record.cause, record.session_id) == ("cancelled", cause, "sub")
        assert world.chat.messages == []
        if ending == "stop":
            assert record.ended_by == ANA


async def test_a_child_of_a_session_that_was_closed_meanwhile(tmp_path: Path) -> None:  # 2.7.3
    async with room(tmp_path) as world:
        with bind("talk", kind="chat", destination="fake:100"):
            await world.gateway.session("talk", kind="chat", destination="fake:100")
            await world.gateway.clear("talk")
            with child("sub"):
                record = await refused(world.gateway.request(ASKED))
        assert (record.outcome, record.cause) == ("cancelled", "session_ended")


async def _after(event: asyncio.Event, gateway: Gateway) -> Approval:
    await event.wait()
    return await gateway.request(ASKED)
