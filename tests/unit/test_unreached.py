"""Why an address was not reached is told without the address: it may hold a secret."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
import yarl
from tests.unit.gate.receiver import SECRET
from tests.unit.gate.test_executors import CALL, LIMIT_S, executors
from tests.unit.reviewer.test_reviewer import CASE

from signoff.clock import SystemClock
from signoff.hooks.posting import Poster
from signoff.reviewer import Reviewer
from signoff.settings import ExecutorSettings, HookSettings, SmartSettings
from signoff.unreached import why_unreached

URL = "https://ana:hunter2@audit.example/hunter2?token=hunter2"


@pytest.fixture
async def refusing_proxy(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """The environment's proxy lets nobody through. aiohttp tells that with the whole address that was wanted."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        for name in ("https_proxy", "NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        yield


@pytest.mark.usefixtures("refusing_proxy")
async def test_what_a_proxy_refuses(caplog: pytest.LogCaptureFixture) -> None:
    poster = Poster(HookSettings(url=URL, secret=SECRET), SystemClock(), within_s=LIMIT_S)
    reviewer = Reviewer(SmartSettings(base_url=URL, model="m", timeout_s=LIMIT_S))
    try:
        posted = await poster.post("m1", b"{}")
        review = await reviewer.review(CASE)
    finally:
        await poster.aclose()
        await reviewer.aclose()
    settings = ExecutorSettings(tools=("*",), url=URL, secret=SECRET, timeout_s=LIMIT_S)
    ran = await executors(settings).run(CALL)
    assert posted.detail == "the proxy answered HTTP 407"
    assert review.detail == "the reviewer failed: the proxy answered HTTP 407"
    assert (ran.state, ran.cause) == ("not_run", "executor_unreachable")
    assert caplog.text.count("the proxy answered HTTP 407") == 2
    assert "hunter2" not in caplog.text


def test_no_error_of_the_library_tells_an_address() -> None:
    url = yarl.URL(URL)
    asked = aiohttp.RequestInfo(url, "POST", headers=None, real_url=url)  # type: ignore[arg-type]  # it is not read
    errors = (
        aiohttp.ClientResponseError(asked, (), status=400, message=URL),
        aiohttp.ContentTypeError(asked, (), status=400, message=URL),
        aiohttp.ConnectionTimeoutError(f"Connection timeout to host {URL}"),
        aiohttp.InvalidURL(URL),
        aiohttp.NonHttpUrlClientError(URL),
        ValueError(URL),
    )
    for error in errors:
        assert "hunter2" in str(error)
        assert "hunter2" not in why_unreached(error)
