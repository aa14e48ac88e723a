"""The event stream: order, resuming, tenancy, slow readers and what an open stream keeps alive."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import aiohttp
import pytest
from tests.unit.server.world import COMMAND, Client, FakeCore, World, profiles, until, world_on

from signoff.clock import SystemClock
from signoff.model import Actor, Change, Event, Notifier
from signoff.rows import joined
from signoff.server import events, serve, streams
from signoff.server.caller import Caller
from signoff.server.frames import Telling
from signoff.server.streams import Stream, Streams
from signoff.sessions import Declaration
from signoff.stores.open import open_store


@pytest.fixture
async def brisk() -> AsyncIterator[World]:
    """A server with short intervals, for what depends on them."""
    async with world_on("memory://", keepalive_s=0.05, write_within_s=0.2) as made:
        yield made


async def test_every_step_is_told_in_order(world: World) -> None:
    agent, approver = await world.pair()
    async with approver.events() as reader:
        row = await agent.ask()
        path = f"/v1/approvals/{row['request_id']}"
        await approver("POST", f"{path}/decision", {"choice": "session"})
        await agent("POST", f"{path}/claim", {"digest": row["digest"], "claim_id": "c"})
        seen = [await reader.next() for _ in range(4)]
    assert {event["type"] for event in seen[1:3]} == {"grant.created", "approval.resolved"}
    assert (seen[0]["type"], seen[3]["type"]) == ("approval.requested", "approval.execution")
    assert [event["seq"] for event in seen] == list(range(seen[0]["seq"], seen[0]["seq"] + 4))
    assert set(seen[0]) == {"seq", "type", "at", "session_id", "approval"}
    assert seen[0]["at"].endswith("Z")
    assert seen[3]["approval"]["execution"]["state"] == "claimed"
    assert str(seen[3]["seq"]) == reader.last_id


async def test_an_event_can_be_answered_from_its_own_content(world: World) -> None:
    agent, approver = await world.pair()
    async with approver.events("?session_id=s1&role=answer") as reader:
        await agent.ask()
        told = (await reader.next())["approval"]
        assert told["request_id"]
        assert told["choices"] == ["once", "session", "always", "deny"]
        path = f"/v1/approvals/{told['request_id']}/decision"
        assert (await approver("POST", path, {"choice": told["choices"][0]})).status == 200
        assert (await reader.next())["type"] == "approval.resolved"


async def test_a_stream_begins_now_and_goes_on_from_a_position(world: World) -> None:
    agent, _ = await world.pair()
    for number in range(3):
        await agent.ask(request_id=f"r{number}", action={**COMMAND, "cwd": f"/{number}"})
    async with agent.events() as reader:
        await agent.ask(request_id="r3", action={**COMMAND, "cwd": "/3"})
        now = await reader.next()
    assert now["approval"]["request_id"] == "r3"
    async with agent.events("?after=0") as reader:
        first = [await reader.next() for _ in range(4)]
    assert [event["approval"]["request_id"] for event in first] == ["r0", "r1", "r2", "r3"]
    position = str(first[1]["seq"])
    async with agent.events("?after=0", **{"Last-Event-ID": position}) as reader:
        rest = [await reader.next() for _ in range(2)]
    assert [event["approval"]["request_id"] for event in rest] == ["r2", "r3"]


async def test_a_dropped_reader_misses_nothing(world: World) -> None:
    """Reading is not owning: a lost connection leaves the question as it was, and the log goes on from there."""
    agent, approver = await world.pair()
    async with agent.events() as reader:
        row = await agent.ask()
        await reader.next()
        position = reader.last_id
    await approver("POST", f"/v1/approvals/{row['request_id']}/decision", {"choice": "once"})
    async with agent.events(**{"Last-Event-ID": position}) as reader:
        event = await reader.next()
    assert (event["type"], event["approval"]["outcome"]) == ("approval.resolved", "approved")


async def test_a_reader_dropped_before_any_event_can_go_on(quick: World) -> None:
    agent, _ = await quick.pair()
    async with agent.events() as reader:
        async with asyncio.timeout(15):
            while not reader.last_id:
                await reader._one()
    await agent.ask()
    async with agent.events(**{"Last-Event-ID": reader.last_id}) as again:
        assert (await again.next())["type"] == "approval.requested"


async def test_an_agent_hears_of_its_own_sessions_only(world: World) -> None:
    one, approver = await world.pair()
    two = await world.client("agent", agent="other")
    foreign = await world.client("ops", profile="second")
    await two("PUT", "/v1/sessions/s2")
    await approver("PUT", "/v1/sessions/s2/notifiers/desk")
    async with two.events() as reader, approver.events() as all_of_it, foreign.events() as elsewhere:
        await one.ask()
        await one("POST", "/v1/sessions/s1/stop")
        await two.ask("s2")
        await two("POST", "/v1/sessions/s2/stop")
        heard = [await reader.next() for _ in range(3)]
        assert {event["session_id"] for event in heard} == {"s2"}
        assert "session.stopped" in {event["type"] for event in heard}
        everything = [await all_of_it.next() for _ in range(6)]
        assert {event["session_id"] for event in everything} == {"s1", "s2"}
        with pytest.raises(TimeoutError):
            await elsewhere.next(within_s=0.1)


async def test_a_position_of_another_profile_leaks_nothing(world: World) -> None:
    one, _ = await world.pair()
    for number in range(3):
        await one.ask(action={**COMMAND, "cwd": f"/{number}"})
    two = await world.client("agent", profile="second", agent="other")
    await two("PUT", "/v1/sessions/s2")
    last = await world.core.store.last_seq("default")
    ahead = await two("GET", "/v1/events", headers={"Last-Event-ID": str(last)})
    assert (ahead.status, ahead.code) == (400, "invalid_position")
    for position in ("x", "-1", "1.5", "9" * 30, "²"):
        answer = await two("GET", "/v1/events", headers={"Last-Event-ID": position})
        assert (answer.status, answer.code) == (400, "invalid_position")


async def test_a_session_filter(world: World) -> None:
    agent, approver = await world.pair()
    await agent("PUT", "/v1/sessions/s2")
    await approver("PUT", "/v1/sessions/s2/notifiers/desk")
    async with approver.events("?session_id=s2") as reader:
        await agent.ask("s1")
        await agent.ask("s2")
        assert (await reader.next())["session_id"] == "s2"
    assert (await approver("GET", "/v1/events?session_id=nowhere")).code == "session_not_found"


async def test_masked_for_people_and_exact_for_its_own_agent(quick: World) -> None:
    agent, approver = await quick.pair()
    secret = "hunter2swordfish"
    async with agent.events() as own, approver.events() as other:
        await agent.ask(action={"kind": "tool", "name": "login", "arguments": {"password": secret}})
        assert (await own.next())["approval"]["action"]["arguments"]["password"] == secret
        assert secret not in str(await other.next())


async def test_answer_role_is_for_people(quick: World) -> None:
    agent, approver = await quick.pair()
    assert (await agent("GET", "/v1/events?role=answer&session_id=s1")).code == "insufficient_scope"
    assert (await approver("GET", "/v1/events?role=answer")).body["error"]["param"] == "session_id"
    assert (await approver("GET", "/v1/events?role=boss")).status == 422


async def test_an_answering_stream_makes_a_session_answerable_while_it_is_open(brisk: World) -> None:
    agent, approver = await brisk.client("agent", agent="builder"), await brisk.client("approver")
    await agent("PUT", "/v1/sessions/s1")
    assert (await agent.ask())["outcome"] == "blocked"

    async def gone_at() -> datetime | None:
        (notifier,) = await brisk.core.store.find(Notifier, "session", joined("default", "s1"))
        return notifier.gone_at

    async with approver.events("?session_id=s1&role=answer"):
        first = await gone_at()
        assert first is not None, "its lease lapses by itself if the gateway is killed"
        assert (await agent.ask())["outcome"] is None

        async def renewed() -> bool:
            return await gone_at() != first

        await until(renewed)
    (reading,) = _streams(brisk)
    await until(lambda: len(reading) == 0)
    last = await gone_at()
    assert last is not None
    assert timedelta(seconds=25) < last - brisk.core.clock.now() <= timedelta(seconds=30)


async def test_an_agents_stream_of_a_session_keeps_its_turns(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "RENEW_S", 0.02)
    agent, approver = await quick.pair()
    waiters = quick.core.broker.waiters
    await agent("POST", "/v1/sessions/s1/turns", {"turn_id": "before"})
    async with agent.events("?session_id=s1"), approver.events("?session_id=s1"):
        await agent("POST", "/v1/sessions/s1/turns", {"turn_id": "after"})
        keys = [joined("default", "before"), joined("default", "after")]
        await until(lambda: set(waiters.seen(keys)) == set(keys))


async def test_a_reader_that_takes_nothing_is_cut_and_can_go_on(brisk: World) -> None:
    agent, approver = await brisk.pair()
    parts = urlsplit(brisk.bound.api)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, (parts.hostname, parts.port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=1024)
    writer.write(f"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {approver.key}\r\n\r\n".encode())
    head = await reader.readuntil(b"\n\n")
    assert b"200 OK" in head
    start = int(head.rpartition(b"id: ")[2])
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # every real transport has it
    code = {"kind": "code", "language": "python", "code": "x" * 400_000}
    for number in range(14):
        await agent.ask(request_id=f"r{number}", action={**code, "cwd": f"/{number}"})
    (reading,) = _streams(brisk)
    await until(lambda: len(reading) == 0, within_s=60)
    writer.transport.resume_reading()  # type: ignore[attr-defined]  # the same
    with suppress(ConnectionError):
        async with asyncio.timeout(15):
            while await reader.read(65536):
                pass
    writer.close()
    async with approver.events(f"?after={start}") as again:
        seen = [(await again.next())["approval"]["request_id"] for _ in range(14)]
    assert seen == [f"r{number}" for number in range(14)]


def _streams(world: World) -> list[Streams]:
    feed = world.core.store._feed  # type: ignore[attr-defined]  # the memory store's
    return [listener.__self__ for listener in feed._listeners.values() if isinstance(listener.__self__, Streams)]


async def test_a_queue_that_overflows_is_read_from_the_store(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "QUEUE_CHANGES", 2)
    agent, approver = await quick.pair()
    async with approver.events() as reader:
        for number in range(20):
            await agent.ask(request_id=f"r{number}", action={**COMMAND, "cwd": f"/{number}"})
        await agent("POST", "/v1/sessions/s1/stop")
        seen = [await reader.next() for _ in range(41)]
    assert [event["seq"] for event in seen] == list(range(seen[0]["seq"], seen[0]["seq"] + 41))


def _told(world: World, change: Change) -> Telling:
    return Telling(change.event, change.request, world.core.clock)


async def _drain(stream: Stream) -> list[int]:
    return [int(frame.split(b"\n")[0].removeprefix(b"id: ")) async for frame in stream.frames()]


async def test_numbers_that_the_feed_skips_or_repeats_are_sent_once(quick: World) -> None:
    """Another process's commits reach the feed late: the store has them already, and later numbers came before."""
    who = Caller(profile="default", scope="ops", actor=Actor(type="person"))
    stream = Stream(quick.core, who, None, 0)
    heard: list[Change] = []
    quick.core.store.subscribe(heard.extend)

    async def commit(count: int) -> list[Change]:
        heard.clear()
        for _ in range(count):
            await quick.core.store.transact(
                lambda tx: tx.emit(Event(profile="default", type="session.stopped", at=tx.now, session_id="s"))
            )
        return list(heard)

    assert await _drain(stream) == []
    one, two, three = await commit(3)
    stream.offer(_told(quick, one))
    assert await _drain(stream) == [1]
    stream.offer(_told(quick, three))
    stream.offer(_told(quick, two))
    assert await _drain(stream) == [2, 3]
    (four,) = await commit(1)
    stream.offer(_told(quick, four))
    stream.offer(_told(quick, four))
    assert await _drain(stream) == [4]
    # The store is read while the feed tells the same: what both bring is sent once.
    five, six = await commit(2)
    stream.offer(_told(quick, six))
    frames = stream.frames()
    assert (await anext(frames)).startswith(b"id: 5\n")
    (seven,) = await commit(1)
    for change in (five, six, seven):
        stream.offer(_told(quick, change))
    rest = [frame.split(b"\n")[0] async for frame in frames]
    assert [*rest, *[b"id: %d" % number for number in await _drain(stream)]] == [b"id: 6", b"id: 7"]


async def test_a_session_is_an_agents_own_from_when_it_declares_it(
    quick: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where something was told of that name before, and of however many others."""
    monkeypatch.setattr(streams, "SESSIONS_KNOWN", 2)
    who = Caller(profile="default", scope="agent", actor=Actor(type="agent"), agent="builder")
    stream = Stream(quick.core, who, None, await quick.core.store.last_seq("default"))

    def offer(changes: Sequence[Change]) -> None:
        for change in changes:
            stream.offer(_told(quick, change))

    async def told(session_id: str) -> list[int]:
        event = Event(profile="default", type="session.stopped", at=quick.core.clock.now(), session_id=session_id)
        await quick.core.store.transact(lambda tx: tx.emit(event))
        return await _drain(stream)

    quick.core.store.subscribe(offer)
    assert await told("late") == []
    for name in ("one", "two", "three"):
        await quick.core.sessions.declare("default", Declaration(session_id=name, kind="api"), "other")
        assert await told(name) == []
    await quick.core.sessions.declare("default", Declaration(session_id="late", kind="api"), "builder")
    assert len(await told("late")) == 1


async def test_what_is_committed_while_the_store_is_read_is_sent_once(
    quick: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(quick.core, Caller(profile="default", scope="ops", actor=Actor(type="person")), None, 0)

    def offer(changes: Sequence[Change]) -> None:
        for change in changes:
            stream.offer(_told(quick, change))

    quick.core.store.subscribe(offer)
    read = quick.core.store.events

    async def slow(profile: str, after: int, *, limit: int, session_id: str | None = None) -> list[Event]:
        monkeypatch.undo()
        await quick.core.store.transact(
            lambda tx: tx.emit(Event(profile="default", type="session.stopped", at=tx.now, session_id="s"))
        )
        return await read(profile, after, limit=limit, session_id=session_id)

    monkeypatch.setattr(quick.core.store, "events", slow)
    assert await _drain(stream) == [1]


async def test_many_readers_and_one_that_goes(quick: World) -> None:
    agent, approver = await quick.pair()
    (reading,) = _streams(quick)
    async with approver.events() as one, approver.events() as two:
        async with approver.events():
            assert len(reading) == 3
        await until(lambda: len(reading) == 2)
        row = await agent.ask()
        for reader in (one, two):
            assert (await reader.next())["approval"]["request_id"] == row["request_id"]
    await until(lambda: len(reading) == 0)
    assert (await agent("GET", f"/v1/approvals/{row['request_id']}")).body["status"] == "pending"


async def test_an_idle_stream_is_kept_open_with_comments(brisk: World) -> None:
    ops = await brisk.client("ops")
    async with ops.events() as reader, asyncio.timeout(15):
        while await reader.response.content.readline() != b": alive\n":
            pass


async def test_waits_and_streams_end_at_once_with_the_server() -> None:
    clock = SystemClock()
    store = open_store("memory://", clock)
    core = FakeCore(store, clock, profiles())
    async with aiohttp.ClientSession() as http:
        async with serve(core) as bound:
            world = World(core, bound, http)
            agent, _ = await world.pair()
            row = await agent.ask()
            waiting = asyncio.create_task(agent("GET", f"/v1/approvals/{row['request_id']}?wait=60"))
            other = {"session_id": "s1", "action": {**COMMAND, "cwd": "/2"}}
            asking = asyncio.create_task(agent("POST", "/v1/approvals?wait=60", other))
            reading = asyncio.create_task(_read_to_the_end(agent))
            await until(lambda: len(core.broker.waiters) == 2 and len(_streams(world)[0]) == 1)
            begun = time.monotonic()
        took_s = time.monotonic() - begun
        answers = await asyncio.gather(waiting, asking)
        assert [(answer.status, answer.body["status"]) for answer in answers] == [(200, "pending"), (201, "pending")]
        await reading
    await store.aclose()
    assert took_s < 10, "the waits are for 60 s"


async def _read_to_the_end(client: Client) -> None:
    async with client.events() as reader:
        with pytest.raises(EOFError):
            while True:
                await reader.next(within_s=60)
