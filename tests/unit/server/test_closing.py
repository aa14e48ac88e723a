"""What a listener leaves behind when it closes."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.unit.server.world import FakeCore, profiles

from signoff.clock import SystemClock
from signoff.ports import Store
from signoff.server import serve
from signoff.server.serve import SHUTDOWN_S
from signoff.stores.open import open_store

CALLERS = 5


def sockets() -> set[str]:
    """The sockets this process has open; nothing is collected for it."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            name = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue  # the folder that is being read
        if name.startswith("socket:"):
            found.add(name)
    return found


@pytest.mark.parametrize("steps", range(5))
async def test_a_connection_that_comes_at_the_last_moment_is_not_left_open(steps: int) -> None:
    """Whatever step of the loop the server closes in behind the moment at which the connections stand."""
    clock = SystemClock()
    store = open_store("memory://", clock)
    before = sockets()
    calling: list[socket.socket] = []
    async with serve(FakeCore(store, clock, profiles())) as bound:
        address = urlsplit(bound.api)
        calling += [socket.create_connection((address.hostname, address.port)) for _ in range(CALLERS)]
        for _ in range(steps):
            await asyncio.sleep(0)
    for each in calling:
        each.close()
    await asyncio.sleep(0)
    left = sockets() - before
    await store.aclose()
    assert left == set()


async def test_agents_are_not_asked_after_whether_they_listen_to_a_server_that_closed() -> None:
    store = open_store("memory://", SystemClock())
    core = FakeCore(store, SystemClock(), profiles())
    async with serve(core):
        assert len(core.listening) == 1
    assert core.listening == []
    await store.aclose()


async def test_callers_that_hang_on_several_listeners_hold_up_the_end_once(tmp_path: Path) -> None:
    store = open_store("memory://", SystemClock())
    # The best of three: a machine that stands still for a moment says nothing of the listeners.
    took_s = [await _ending_s(store, tmp_path) for _ in range(3)]
    await store.aclose()
    assert min(took_s) < 2 * SHUTDOWN_S


async def _ending_s(store: Store, folder: Path) -> float:
    """How long it takes to end while one caller hangs on each of two listeners."""
    loop = asyncio.get_running_loop()
    hanging: list[asyncio.StreamWriter] = []
    head = b"POST /v1/approvals HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n"
    try:
        async with serve(FakeCore(store, SystemClock(), profiles()), hooks=("127.0.0.1", 0), state_dir=folder) as bound:
            address = urlsplit(bound.api)
            for calling in (
                asyncio.open_connection(address.hostname, address.port),
                asyncio.open_unix_connection(bound.socket),
            ):
                reader, writer = await calling
                hanging.append(writer)
                writer.write(head)
                await reader.readline()  # "100 Continue": the body is being waited for
                writer.write(b"half")
            began = loop.time()
        return loop.time() - began
    finally:
        for writer in hanging:
            writer.close()
