"""A session that `bind` gave an id of its own is ended once nothing can ask in it any more, and no sooner."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.context.room import ASKED, HARMLESS, Room, room, until

from signoff.blocking import BlockingGateway
from signoff.context import ContextThreadPool, bind, child, child_environment, current


async def closed(room: Room, session_id: str) -> None:
    """Return once the session is ended."""

    async def holds() -> bool:
        session = await room.stored(session_id)
        return session is not None and session.closed_at is not None

    await until(holds)


async def is_open(room: Room, session_id: str) -> bool:
    """Whether the session stands, after everything that could end it had its turn."""
    for _ in range(20):
        await asyncio.sleep(0)
    session = await room.stored(session_id)
    return session is not None and session.closed_at is None


async def run(room: Room) -> str:
    """One run of a job; its session."""
    with bind(kind="cron"):
        await room.gateway.request(HARMLESS)
        await room.gateway.request(ASKED)
        session_id = current().session_id or ""
        assert await is_open(room, session_id)
    return session_id


async def test_a_run_ends_its_session(tmp_path: Path) -> None:
    async with room(tmp_path) as there:
        ids = [await run(there) for _ in range(3)]
        assert len(set(ids)) == 3
        for session_id in ids:
            await closed(there, session_id)


async def test_a_run_that_fails_ends_its_session(tmp_path: Path) -> None:
    async with room(tmp_path) as there:
        session_id = ""
        try:
            with bind(kind="cron"):
                session_id = current().session_id or ""
                await there.gateway.request(HARMLESS)
                raise RuntimeError("the job")
        except RuntimeError:
            pass
        await closed(there, session_id)


async def test_a_named_session_stays(tmp_path: Path) -> None:
    async with room(tmp_path) as there:
        with bind("nightly", kind="cron"):
            await there.gateway.request(HARMLESS)
        assert await is_open(there, "nightly")


async def test_what_goes_on_in_a_task_holds_it_open(tmp_path: Path) -> None:
    async with room(tmp_path) as there:
        go_on = asyncio.Event()

        async def work() -> str:
            await go_on.wait()
            return (await there.gateway.request(HARMLESS)).outcome or ""

        with bind(kind="chat", destination="fake:100"):
            session_id = current().session_id or ""
            await there.gateway.request(HARMLESS)
            task = asyncio.create_task(work())
        assert await is_open(there, session_id)
        go_on.set()
        assert await task == "approved"
        del task, work
        await closed(there, session_id)


async def test_what_goes_on_in_a_thread_holds_it_open(tmp_path: Path) -> None:
    async with room(tmp_path) as there:
        with ContextThreadPool(1) as pool:
            with bind(kind="chat", destination="fake:100"):
                session_id = current().session_id or ""
                await there.gateway.request(HARMLESS)
                running = asyncio.get_running_loop().run_in_executor(pool, current)
            assert (await running).session_id == session_id
        del running, pool
        await closed(there, session_id)


async def test_a_child_is_ended_and_its_parent_is_not_over_before_it(tmp_path: Path) -> None:
    async with room(tmp_path) as there:
        with bind(kind="chat", destination="fake:100"):
            parent = current().session_id or ""
            with child():
                below = current().session_id or ""
                await there.gateway.request(HARMLESS)
            await closed(there, below)
            assert await is_open(there, parent)
        await closed(there, parent)


async def test_one_that_another_process_knows_is_left(tmp_path: Path) -> None:
    async with room(tmp_path) as there:
        with bind(kind="cron"):
            session_id = current().session_id or ""
            await there.gateway.request(HARMLESS)
            assert child_environment({})["SIGNOFF_SESSION_ID"] == session_id
        assert await is_open(there, session_id)


async def test_somebody_ended_it_before(tmp_path: Path) -> None:
    async with room(tmp_path) as there:
        with bind(kind="cron"):
            session_id = current().session_id or ""
            await there.gateway.request(HARMLESS)
            await there.gateway.clear(session_id)
        await closed(there, session_id)


async def test_a_gateway_that_is_closed_right_after_has_ended_it(tmp_path: Path) -> None:
    async with room(tmp_path) as there:
        store = there.gateway.store
        session_id = await run(there)
        feed = await store.events("default", 0, limit=100)
        assert "session.cleared" not in [event.type for event in feed]
        await there.gateway.sessions.aclose()
        feed = await store.events("default", 0, limit=100)
        assert [event.session_id for event in feed if event.type == "session.cleared"] == [session_id]


async def test_a_job_on_a_thread(tmp_path: Path) -> None:
    async with room(tmp_path) as there:
        blocking = BlockingGateway(there.gateway)

        def job() -> str:
            with bind(kind="cron"):
                blocking.request(HARMLESS)
                return current().session_id or ""

        await closed(there, await asyncio.to_thread(job))
