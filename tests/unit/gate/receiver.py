"""A receiver of calls on loopback, as an executor with an address posts to it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from signoff.settings import ExecutorSettings

SECRET = "whsec_" + base64.b64encode(b"a secret of the tests, 32 bytes!").decode()


class Receiver:
    """A receiver of calls on loopback. `answer` says what becomes of each."""

    def __init__(self) -> None:
        self.calls: list[tuple[dict[str, str], bytes]] = []
        self.answer: Callable[[], web.StreamResponse | None] = web.Response
        self.called = asyncio.Event()
        self.hold_s = 0.0
        self.port = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Write the call down and answer."""
        self.calls.append((dict(request.headers), await request.read()))
        self.called.set()
        await asyncio.sleep(self.hold_s)
        answer = self.answer()
        if answer is None:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        return answer

    def is_signed(self, headers: dict[str, str], body: bytes) -> bool:
        """Whether the signature is that of this call."""
        name = headers["webhook-id"]
        signed = f"{name}.{headers['webhook-timestamp']}.".encode() + body
        mac = hmac.new(base64.b64decode(SECRET.removeprefix("whsec_")), signed, hashlib.sha256).digest()
        return (
            name == headers["Idempotency-Key"]
            and headers["webhook-signature"] == "v1," + base64.b64encode(mac).decode()
        )

    def settings(self, **facts: Any) -> ExecutorSettings:
        """An executor that posts here."""
        url = f"http://127.0.0.1:{self.port}/run"
        return ExecutorSettings(**{"tools": ("*",), "url": url, "secret": SECRET, "timeout_s": 30.0, **facts})


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that listens."""
    made = Receiver()
    app = web.Application()
    app.router.add_post("/run", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.port = runner.addresses[0][1]
    yield made
    await runner.cleanup()
