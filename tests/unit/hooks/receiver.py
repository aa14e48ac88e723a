"""A receiver of webhooks on loopback that checks every signature, and does with each message what it is told to."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

from aiohttp import web
from msgspec import Struct

KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()
WITHIN_S = 60.0

Behaviour = int | Literal["hang", "late", "drop", "redirect"]
"""`hang` ends without an answer once calls are let go; `late` takes the message then."""


async def eventually(holds: Callable[[], bool]) -> None:
    """Return once it holds; other tasks and threads run meanwhile."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            if holds():
                return
            await asyncio.sleep(0.002)


class Heard(Struct, frozen=True):
    """One message that was taken."""

    id: str
    at_s: int
    body: dict[str, Any]

    @property
    def seq(self) -> int:
        return int(self.body["seq"])

    @property
    def hook(self) -> str:
        return str(self.body["type"])


class Receiver:
    """`plan` says what is done with the next messages; after it, 200."""

    def __init__(self) -> None:
        self.url = ""
        self.plan: deque[Behaviour] = deque()
        self.always: Behaviour | None = None
        self.choose: Callable[[Heard], Behaviour] | None = None
        self.tried: list[Heard] = []
        self.taken: list[Heard] = []
        self.answer = b""
        self.headers: dict[str, str] = {}
        """Of each answer that does not take the message."""
        self._news = asyncio.Event()
        self._released = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        heard = Heard(checked(request, raw), int(request.headers["webhook-timestamp"]), json.loads(raw))
        self.tried.append(heard)
        self._news.set()
        behaviour = self.always or (self.plan.popleft() if self.plan else 200)
        if self.choose is not None:
            behaviour = self.choose(heard)
        if behaviour in ("hang", "late"):
            await self._released.wait()
        if behaviour == "late":
            behaviour = 200
        if behaviour == "redirect":
            return web.Response(status=307, headers={"Location": self.url})
        if isinstance(behaviour, str):
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if 200 <= behaviour < 300:
            self.taken.append(heard)
            self._news.set()
        else:
            return web.Response(status=behaviour, body=self.answer, headers=self.headers)
        return web.Response(status=behaviour, body=self.answer)

    def release(self) -> None:
        """Let hanging calls go."""
        self._released.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return once it holds."""
        async with asyncio.timeout(WITHIN_S):
            while not holds():
                self._news.clear()
                await self._news.wait()

    async def took(self, count: int) -> list[Heard]:
        """The messages that were taken, once they are so many."""
        await self.until(lambda: len(self.taken) >= count)
        return self.taken

    def each_once_in_order(self) -> None:
        """What was taken is in order, and what was taken twice has the same id."""
        seqs = [heard.seq for heard in self.taken]
        assert seqs == sorted(seqs), seqs
        ids = Counter((heard.seq, heard.id) for heard in self.tried)
        assert len({seq for seq, _ in ids}) == len(ids), "another id for the same event"


def checked(request: web.Request, raw: bytes) -> str:
    """The message's id, once its signature is found to be right."""
    message_id, at = request.headers["webhook-id"], request.headers["webhook-timestamp"]
    mac = hmac.new(KEY, f"{message_id}.{at}.".encode() + raw, hashlib.sha256).digest()
    assert request.headers["webhook-signature"] == "v1," + base64.b64encode(mac).decode()
    assert request.headers["content-type"] == "application/json"
    return message_id


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A receiver that listens."""
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/{tail:.*}", receiver.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/told?by=signoff"
        yield receiver
    finally:
        receiver.release()
        await runner.cleanup()
