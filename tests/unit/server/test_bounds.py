"""How much callers may take: streams, waiting questions and connections, each with small bounds."""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.unit.server.test_hooks import adapters
from tests.unit.server.world import COMMAND, World, until, world_on

from signoff.model import Actor
from signoff.record import approval_of
from signoff.server import frames, limits, streams
from signoff.server.bounds import Bounds, fitting
from signoff.server.caller import Caller
from signoff.server.frames import Telling
from signoff.server.streams import Stream

LONG = {"kind": "code", "language": "python", "code": "x" * 900_000}


@pytest.fixture
async def tight() -> AsyncIterator[World]:
    """A server that gives little."""
    small = Bounds(streams_per_agent_key=2, streams_per_key=3, streams=4, pending_per_agent=2)
    async with world_on("memory://", bounds=small) as made:
        yield made


@pytest.fixture
async def hasty() -> AsyncIterator[World]:
    """A server that waits for nobody."""
    async with world_on("memory://", bounds=Bounds(head_within_s=0.2, idle_s=0.3)) as made:
        yield made


@pytest.fixture
async def brisk() -> AsyncIterator[World]:
    """A server that waits for requests, and not between them."""
    async with world_on("memory://", bounds=Bounds(idle_s=0.3)) as made:
        yield made


# --- streams ---------------------------------------------------------------------------------------


async def test_a_key_has_so_many_streams_and_gets_them_back(tight: World) -> None:
    agent, approver = await tight.pair()
    async with agent.events():
        async with agent.events("?session_id=s1"):
            refused = await agent("GET", "/v1/events")
            assert (refused.status, refused.code) == (429, "too_many_streams")
            assert "2 event streams open" in refused.body["error"]["message"]
            assert "Close one" in refused.body["error"]["message"]
            assert (refused.body["error"]["type"], refused.headers["Retry-After"]) == ("rate_limit_error", "1")
            async with approver.events():
                pass

        async def freed() -> bool:
            try:
                async with agent.events():
                    return True
            except AssertionError:
                return False

        await until(freed)


async def test_the_gateway_has_so_many_streams(tight: World) -> None:
    agent, approver = await tight.pair()
    ops = await tight.client("ops")
    async with AsyncExitStack() as stack:
        for reader in (agent, agent, approver, approver):
            await stack.enter_async_context(reader.events())
        refused = await ops("GET", "/v1/events")
        assert (refused.status, refused.code) == (429, "too_many_streams")
        assert "gateway has 4" in refused.body["error"]["message"]


async def test_many_readers_share_one_frame_of_each_sort(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []
    encode = approval_of

    def counted(*args: Any, exact: bool) -> Any:
        made.append(exact)
        return encode(*args, exact=exact)

    monkeypatch.setattr(frames, "approval_of", counted)
    agent, approver = await quick.pair()
    async with AsyncExitStack() as stack:
        readers = [await stack.enter_async_context(key.events()) for key in (agent, approver) for _ in range(8)]
        await agent.ask(action={**LONG, "code": "x" * 400_000})
        told = [await reader.next() for reader in readers]
    assert sorted(made) == [False, True]
    assert all(len(event["approval"]["action"]["code"]) == 400_000 for event in told[:8])
    assert len({event["seq"] for event in told}) == 1


async def test_what_waits_for_a_reader_is_bounded_in_bytes(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that has more than that to come reads on from the store, and misses nothing."""
    monkeypatch.setattr(streams, "QUEUE_BYTES", 2_000_000)
    who = Caller(profile="default", scope="ops", actor=Actor(type="person"))
    stream = Stream(quick.core, who, None, 0)
    assert [frame async for frame in stream.frames()] == []
    most = 0

    def heard(changes: Any) -> None:
        nonlocal most
        for change in changes:
            stream.offer(Telling(change.event, change.request, quick.core.clock))
            most = max(most, sum(told.size_bytes for told in stream._queue))

    quick.core.store.subscribe(heard)
    agent, _ = await quick.pair()
    for number in range(5):
        await agent.ask(request_id=f"r{number}", action={**LONG, "cwd": f"/{number}"})
    assert 1_800_000 < most <= 2_000_000
    seen = [json.loads(frame.split(b"data: ")[1]) async for frame in stream.frames()]
    asked = [event["approval"]["request_id"] for event in seen if event["type"] == "approval.requested"]
    assert asked == [f"r{number}" for number in range(5)]
    assert stream._queued_bytes == 0


async def test_one_change_larger_than_the_bound_is_still_told(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "QUEUE_BYTES", 1)
    agent, approver = await quick.pair()
    async with approver.events() as reader:
        for number in range(3):
            await agent.ask(request_id=f"r{number}", action={**COMMAND, "cwd": f"/{number}"})
        assert [(await reader.next())["approval"]["request_id"] for _ in range(3)] == ["r0", "r1", "r2"]


# --- waiting questions -----------------------------------------------------------------------------


async def test_an_agent_has_so_many_questions_waiting(tight: World) -> None:
    agent, approver = await tight.pair()
    facts: list[dict[str, Any]] = [
        {"request_id": f"r{number}", "action": {**COMMAND, "cwd": f"/{number}"}} for number in range(3)
    ]
    one, _ = [await agent.ask(**each) for each in facts[:2]]
    body = {"session_id": "s1", **facts[2]}
    refused = await agent("POST", "/v1/approvals", body)
    assert (refused.status, refused.code) == (429, "too_many_pending")
    assert "2 questions of this agent wait" in refused.body["error"]["message"]
    assert (await agent("GET", "/v1/approvals/r2")).status == 404
    again = await agent("POST", "/v1/approvals", {"session_id": "s1", **facts[0]})
    assert (again.status, again.body["request_id"]) == (200, "r0")
    other = await tight.client("agent", agent="other")
    await other("PUT", "/v1/sessions/s2")
    await approver("PUT", "/v1/sessions/s2/notifiers/desk")
    await other.ask("s2")
    await approver("POST", f"/v1/approvals/{one['request_id']}/decision", {"choice": "deny"})
    assert (await agent("POST", "/v1/approvals", body)).status == 201


async def test_what_waited_before_the_start_counts(tmp_path: Any) -> None:
    url = f"sqlite://{tmp_path}/store.db"
    async with world_on(url) as before:
        agent, _ = await before.pair()
        for number in range(2):
            await agent.ask(action={**COMMAND, "cwd": f"/{number}"})
    async with world_on(url, bounds=Bounds(pending_per_agent=2)) as after:
        agent = await after.client("agent", agent="builder")
        refused = await agent("POST", "/v1/approvals", {"session_id": "s1", "action": COMMAND})
        assert refused.code == "too_many_pending"
        await agent("POST", "/v1/sessions/s1/stop")
        assert (await agent("POST", "/v1/approvals", {"session_id": "s1", "action": COMMAND})).status == 201


# --- connections -----------------------------------------------------------------------------------

Pipe = tuple[asyncio.StreamReader, asyncio.StreamWriter]
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def opened(world: World, sent: bytes = b"") -> Pipe:
    parts = urlsplit(world.bound.api)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(sent)
    return reader, writer


async def closed(pipe: Pipe, within_s: float = 10.0) -> bytes:
    """What still came until the server closed the connection."""
    reader, writer = pipe
    try:
        async with asyncio.timeout(within_s):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def answered(pipe: Pipe) -> bytes:
    async with asyncio.timeout(60):
        return await pipe[0].readuntil(b'{"status":"ok"}')


@pytest.mark.parametrize("sent", [b"", b"GET /hea", GET[:-2]])
async def test_a_connection_that_asks_nothing_is_closed(hasty: World, sent: bytes) -> None:
    begun = time.monotonic()
    assert await closed(await opened(hasty, sent)) == b""
    assert time.monotonic() - begun > 0.15


async def test_a_head_that_drips_is_closed_too(hasty: World) -> None:
    pipe = await opened(hasty, b"GET /health HTTP/1.1\r\nHost: localhost\r\n")

    async def drip() -> None:
        while True:
            pipe[1].write(b"X: y\r\n")
            await asyncio.sleep(0.02)

    dripping = asyncio.create_task(drip())
    assert await closed(pipe) == b""
    dripping.cancel()


async def test_an_answered_connection_may_be_idle_for_its_time(brisk: World) -> None:
    begun = time.monotonic()  # before the answer, which a busy machine may read late
    pipe = await opened(brisk, GET)
    await answered(pipe)
    assert await closed(pipe) == b""
    assert time.monotonic() - begun > 0.25


async def test_what_takes_its_time_is_not_closed(brisk: World) -> None:
    """A poll longer than the bounds for idle connections, and a stream."""
    agent, _ = await brisk.pair()
    row = await agent.ask()
    async with agent.events() as reader:
        assert (await agent("GET", f"/v1/approvals/{row['request_id']}?wait=0.7")).body["status"] == "pending"
        await agent.ask(action={**COMMAND, "cwd": "/2"})
        assert (await reader.next())["type"] == "approval.requested"


async def test_beyond_the_bound_the_oldest_idle_connection_goes() -> None:
    async with world_on("memory://", bounds=Bounds(connections=3)) as world:
        pipes = [await opened(world, GET) for _ in range(3)]
        for pipe in pipes:
            await answered(pipe)
        pipes.append(await opened(world, GET))
        await answered(pipes[3])
        assert await closed(pipes[0]) == b""
        for pipe in pipes[1:]:
            pipe[1].write(GET)
            await answered(pipe)
            pipe[1].close()


async def test_where_all_are_busy_a_new_one_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with world_on("memory://", bounds=Bounds(connections=2), keepalive_s=60) as world:
        ops = await world.client("ops")
        ask = f"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ops.key}\r\n\r\n".encode()
        pipes = [await opened(world, ask) for _ in range(2)]
        for pipe in pipes:
            await pipe[0].readuntil(b"id: 1\n\n")
        for _ in range(3):
            assert await closed(await opened(world, GET)) == b""
        assert [record.message.partition(":")[0] for record in caplog.records] == ["server.full"]
        pipes[0][1].close()

        async def fits() -> bool:
            last = GET.replace(b"localhost", b"localhost\r\nConnection: close")
            return b"200 OK" in await closed(await opened(world, last))

        await until(fits)
        pipes[1][1].close()


def test_the_bound_leaves_descriptors_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 256
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (limit, limit))
    assert (fitting(1024), fitting(100)) == (128, 100)
    limit = resource.RLIM_INFINITY
    assert fitting(1024) == 1024


async def test_a_platforms_call_that_never_arrives_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_WITHIN_S", 0.1)
    async with world_on("memory://", hooks=("127.0.0.1", 0)) as world:
        world.core.adapters = adapters()
        parts = urlsplit(str(world.bound.hooks))
        pipe = await asyncio.open_connection(parts.hostname, parts.port)
        pipe[1].write(b"POST /hooks/default/telegram HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
        assert b"request_timeout" in await closed(pipe)
