"""Heartbeats of the gateway connection, on the loop.

The library sends them from a thread, which can outlive the loop it sends to and complains of delays that are its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import aiohttp
from discord.errors import ConnectionClosed
from discord.gateway import DiscordWebSocket


class Heart:
    """Stands in for the library's keep-alive thread, whose methods its socket calls. Silence is noticed by the link."""

    def __init__(self, socket: DiscordWebSocket, interval_s: float) -> None:
        self.interval = interval_s
        self.latency = float("inf")
        self._socket = socket
        self._task: asyncio.Task[None] | None = None
        self._sent_at_s = time.perf_counter()

    def start(self) -> None:
        """Begin to beat."""
        self._task = asyncio.get_running_loop().create_task(self._beats(), name="discord-heart")

    def stop(self) -> None:
        """Beat no more."""
        if self._task is not None:
            self._task.cancel()

    def get_payload(self) -> dict[str, Any]:
        """A heartbeat: the last dispatch that was seen."""
        return {"op": DiscordWebSocket.HEARTBEAT, "d": self._socket.sequence}

    def beat(self) -> dict[str, Any]:
        """A heartbeat that Discord asked for."""
        self._sent_at_s = time.perf_counter()
        return self.get_payload()

    def tick(self) -> None:
        """Something came."""

    def ack(self) -> None:
        """Discord answered a heartbeat."""
        self.latency = time.perf_counter() - self._sent_at_s

    async def _beats(self) -> None:
        with contextlib.suppress(ConnectionClosed, aiohttp.ClientError, OSError):  # the link sees its end by itself
            while True:
                await asyncio.sleep(self.interval)
                await self._socket.send_heartbeat(self.beat())
