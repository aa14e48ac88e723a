"""What a listener leaves behind when it closes."""

from __future__ import annotations

import asyncio
import os
import socket
from urllib.parse import urlsplit

import pytest
from tests.unit.server.world import FakeCore, profiles

from signoff.clock import SystemClock
from signoff.server import serve
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
