"""The reviewer against a local endpoint that stalls, lies, never ends, and answers with nothing."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from signoff.reviewer import FAILURES, MAX_CHARS, REST_S, Case, Review, Reviewer, _data, _word
from signoff.settings import SmartSettings

CASE = Case(kind="command", action="rm -rf build", found=("deletes a folder",))
KEY = "sk-test-0123456789"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Endpoint:
    """An OpenAI-compatible server; `answer` may be replaced by anything."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, Any]] = []
        self.headers: list[str | None] = []
        self.connections: set[object] = set()
        self.answer: Handler = self.says("APPROVE")

    @staticmethod
    def says(text: str | None) -> Handler:
        async def handler(_request: web.Request) -> web.StreamResponse:
            return web.json_response({"choices": [{"message": {"role": "assistant", "content": text}}]})

        return handler

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(await request.json())
        self.connections.add(request.transport)
        self.headers.append(request.headers.get("Authorization"))
        return await self.answer(request)


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    made = Endpoint()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    yield made
    await runner.cleanup()


class Watch:
    """A clock that stands until it is moved."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def reviewer(endpoint: Endpoint) -> AsyncIterator[Reviewer]:
    made = Reviewer(SmartSettings(base_url=endpoint.url, model="m1", api_key=KEY, timeout_s=60.0))
    yield made
    await made.aclose()


@pytest.mark.parametrize(
    ("text", "word"), [("APPROVE", "approve"), ("DENY", "deny"), (" APPROVE\n", "approve"), ("ESCALATE", "escalate")]
)
async def test_its_words_count(endpoint: Endpoint, reviewer: Reviewer, text: str, word: str) -> None:
    endpoint.answer = endpoint.says(text)
    assert (await reviewer.review(CASE)).word == word


async def test_what_is_asked(endpoint: Endpoint, reviewer: Reviewer) -> None:
    await reviewer.review(CASE)
    asked = endpoint.asked[0]
    assert (asked["model"], asked["temperature"], asked["max_tokens"]) == ("m1", 0, 16)
    assert [message["role"] for message in asked["messages"]] == ["system", "user"]
    assert json.loads(asked["messages"][1]["content"]) == {
        "kind": "command",
        "action": "rm -rf build",
        "found": ["deletes a folder"],
    }
    assert endpoint.headers == [f"Bearer {KEY}"]


@pytest.mark.parametrize(
    "text", ["approve", "Approve.", "APPROVE DENY", "I would say APPROVE", "APPROVED", "", "  ", None, "ＡＰＰＲＯＶＥ"]
)
async def test_nothing_else_counts(
    endpoint: Endpoint, reviewer: Reviewer, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.answer = endpoint.says(text)
    with caplog.at_level(logging.WARNING):
        assert (await reviewer.review(CASE)).word == "escalate"
    assert " s; a person is asked" in caplog.text


async def _nothing(_request: web.Request) -> web.StreamResponse:
    return web.json_response({"choices": []})


async def _other(_request: web.Request) -> web.StreamResponse:
    return web.Response(text="<html>APPROVE</html>")


async def _failing(_request: web.Request) -> web.StreamResponse:
    return web.json_response({"choices": [{"message": {"content": "APPROVE"}}]}, status=500)


async def _elsewhere(_request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("/v1/other")


async def _hanging_up(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    try:
        while True:
            await response.write(b" " * 65536)
    except (ConnectionError, OSError):
        return response


@pytest.mark.parametrize("handler", [_nothing, _other, _failing, _elsewhere, _hanging_up, _endless])
async def test_whatever_else_it_does_a_person_is_asked(
    endpoint: Endpoint, reviewer: Reviewer, handler: Handler, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.answer = handler
    with caplog.at_level(logging.WARNING):
        found = await reviewer.review(CASE)
    assert found.word == "escalate"
    assert found.detail.startswith("the reviewer failed: ")
    assert KEY not in caplog.text


@pytest.mark.parametrize("drips", [False, True])
async def test_its_time_is_up_whether_it_says_nothing_or_little(endpoint: Endpoint, *, drips: bool) -> None:
    let_go = asyncio.Event()

    async def stalling(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while not let_go.is_set():
            if drips:
                await response.write(b" ")
            try:
                await asyncio.wait_for(let_go.wait(), 0.01)
            except TimeoutError:
                continue
        return response

    endpoint.answer = stalling
    reviewer = Reviewer(SmartSettings(base_url=endpoint.url, model="m", timeout_s=0.2))
    found = await reviewer.review(CASE)
    let_go.set()
    await reviewer.aclose()
    assert found == Review(word="escalate", detail="the reviewer failed: no answer in time", failed=True)


async def test_nobody_listens_there() -> None:
    reviewer = Reviewer(SmartSettings(base_url="http://127.0.0.1:9/v1", model="m", timeout_s=5.0))
    assert (await reviewer.review(CASE)).word == "escalate"
    await reviewer.aclose()


@pytest.mark.parametrize("text", ["a" * (MAX_CHARS + 1), "rm \x1b[2K x", "a\x00b", "a\rb"])
async def test_some_texts_are_not_shown_to_it(endpoint: Endpoint, reviewer: Reviewer, text: str) -> None:
    assert (await reviewer.review(Case(kind="command", action=text))).word == "escalate"
    assert endpoint.asked == []


async def test_what_stands_around_counts_into_the_length(endpoint: Endpoint, reviewer: Reviewer) -> None:
    case = Case(kind="command", action="ls", env=("A=" + "x" * MAX_CHARS,))
    assert (await reviewer.review(case)).word == "escalate"
    assert endpoint.asked == []


async def test_it_rests_after_failures_and_comes_back(endpoint: Endpoint, caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch()
    reviewer = Reviewer(SmartSettings(base_url=endpoint.url, model="m"), seconds=watch)
    endpoint.answer = _failing
    for _ in range(FAILURES):
        await reviewer.review(CASE)
    assert (await reviewer.review(CASE)).detail == "the reviewer rests after failures"
    assert len(endpoint.asked) == FAILURES
    watch.now = REST_S + 1
    assert (await reviewer.review(CASE)).detail == "the reviewer failed: HTTP 500"
    assert (await reviewer.review(CASE)).detail == "the reviewer rests after failures", "one failure is enough"
    watch.now += REST_S + 1
    endpoint.answer = endpoint.says("APPROVE")
    with caplog.at_level(logging.WARNING):
        assert (await reviewer.review(CASE)).word == "approve"
    assert "it answers again" in caplog.text
    endpoint.answer = _failing
    assert (await reviewer.review(CASE)).detail == "the reviewer failed: HTTP 500"
    assert len(endpoint.asked) == FAILURES + 3
    await reviewer.aclose()


async def test_the_connection_is_kept_and_calls_are_told_to_the_log(
    endpoint: Endpoint, reviewer: Reviewer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "signoff.reviewer"):
        await reviewer.review(CASE)
        await reviewer.review(CASE)
        endpoint.answer = _failing
        await reviewer.review(CASE)
    assert len(endpoint.connections) == 1
    told = [record.getMessage() for record in caplog.records]
    assert told[0] == "reviewer: asking m1"
    assert re.fullmatch(r"reviewer: approve after \d+\.\d\d s", told[1])
    assert re.fullmatch(r"reviewer: Unusable: HTTP 500 after \d+\.\d\d s; a person is asked", told[-1])


async def test_many_are_asked_side_by_side(endpoint: Endpoint, reviewer: Reviewer) -> None:
    together = asyncio.Barrier(8)

    async def waiting(request: web.Request) -> web.StreamResponse:
        await together.wait()
        return await endpoint.says("APPROVE")(request)

    endpoint.answer = waiting
    found = await asyncio.gather(*(reviewer.review(CASE) for _ in range(8)))
    assert {each.word for each in found} == {"approve"}


@given(st.text())
def test_the_data_is_one_line_of_plain_ascii(text: str) -> None:
    shown = _data(Case(kind="command", action=text))
    assert shown.isascii()
    assert "\n" not in shown
    assert json.loads(shown).get("action", "") == text


@given(st.text())
def test_only_the_exact_words(text: str) -> None:
    if text not in {"APPROVE", "DENY", "ESCALATE"}:
        with pytest.raises(Exception, match="none of the words"):
            _word(text)
