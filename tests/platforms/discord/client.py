"""The common base of the control client: calls by name, and waiting without polling."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Self, TypeVar

import msgspec

from tests.platforms.telegram.control import ControlChannel, RemoteControl

from .model import WhereAt

T = TypeVar("T")
WAIT_S = 15.0


class ControlClient:
    """Works alike on a server in this process and in another."""

    def __init__(self, channel: ControlChannel) -> None:
        self._channel = channel

    @classmethod
    async def connect(cls, url: str) -> Self:
        """Control a server started with its control API; `url` is Discord's or the control API's own."""
        first = cls(RemoteControl(url))
        try:
            where = await first.where()
        finally:
            await first.aclose()
        return cls(RemoteControl(where.control_url or url))

    async def aclose(self) -> None:
        """Let go of a server in another process; it goes on running."""
        await self._channel.aclose()

    async def _call(self, result: type[T], name: str, /, **arguments: object) -> T:
        answer = await self._channel.call(name, msgspec.to_builtins(arguments))
        return msgspec.convert(answer, result)

    async def _do(self, name: str, /, **arguments: object) -> None:
        await self._channel.call(name, msgspec.to_builtins(arguments))

    async def where(self) -> WhereAt:
        """Addresses of the REST API, the gateway and the control API."""
        return await self._call(WhereAt, "where")

    async def until(
        self, look: Callable[[], Awaitable[T]], predicate: Callable[[T], bool], *, timeout_s: float = WAIT_S
    ) -> T:
        """What `look` gives once `predicate` holds for it; asked again after each change of the server's state."""
        deadline = time.monotonic() + timeout_s
        revision = await self._changed(-1, 0.0)
        while True:
            seen = await look()
            if predicate(seen):
                return seen
            if time.monotonic() > deadline:
                raise TimeoutError(f"not so within {timeout_s} s; there is {seen!r}")
            revision = await self._changed(revision, max(0.0, deadline - time.monotonic()))

    async def _changed(self, since: int, timeout_s: float) -> int:
        return await self._call(int, "changed", since=since, timeout_s=timeout_s)
