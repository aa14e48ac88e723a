"""The small parts: what failed calls mean, budgets of methods, turns of a chat, reports of our own posts, memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaping import leap
from tests.ports import free_port

from signoff.errors import (
    AdapterError,
    AdapterUnavailable,
    MessageGone,
    RateLimited,
    SendAmbiguous,
    SendRefused,
)
from signoff.testing.adapter_stage import RecordingInbox, pass_time
from signoff.testing.clock import FakeClock
from signoff_adapters.failures import AnswerLost, CallFailed, NotSent, ServerTrouble
from signoff_adapters.slack.calls import Refused, Throttled, Web, as_edit_error, as_send_error
from signoff_adapters.slack.config import SlackConfig
from signoff_adapters.slack.echo import KEPT, Echo
from signoff_adapters.slack.limits import PER_MINUTE, MethodLimits
from signoff_adapters.slack.memory import Threads
from signoff_adapters.slack.people import People, Standing
from signoff_adapters.slack.turns import Turns
from signoff_adapters.slack.watch import WEB, Watch
from signoff_adapters.slack.wire import Me

Handler = Callable[[web.Request], web.Response]


@asynccontextmanager
async def answering(handler: Handler) -> AsyncIterator[Web]:
    """Calls to something that stands in Slack's place."""

    async def handle(request: web.Request) -> web.Response:
        return handler(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    calls = Web(SlackConfig(bot_token="xoxb-1", api_base_url=f"http://127.0.0.1:{port}", answer_timeout_s=1.0), 4)
    try:
        yield calls
    finally:
        await calls.aclose()
        await runner.cleanup()


ODD_ANSWERS: list[tuple[Handler, type[CallFailed]]] = [
    (lambda _: web.Response(text="<html>login</html>", content_type="text/html"), AnswerLost),
    (lambda _: web.Response(text="[1]", content_type="application/json"), AnswerLost),
    (lambda _: web.Response(text="{", content_type="application/json"), AnswerLost),
    (lambda _: web.Response(text='"ok"', content_type="application/json"), AnswerLost),
    (lambda _: web.Response(text="fine", content_type="text/plain"), AnswerLost),
    (lambda _: web.json_response({"ok": False}), AnswerLost),
    (lambda _: web.json_response({"ok": False, "error": "internal_error"}), ServerTrouble),
    (lambda _: web.Response(status=502, text="bad gateway"), ServerTrouble),
    (lambda _: web.Response(status=404, text="<html>", content_type="text/html"), Refused),
    (lambda _: web.json_response({"ok": False, "error": "missing_scope", "needed": "users:read"}), Refused),
    (lambda _: web.json_response({"ok": False, "error": "ratelimited"}, headers={"Retry-After": "soon"}), Throttled),
    (lambda _: web.Response(status=429, headers={"Retry-After": "7"}), Throttled),
]


@pytest.mark.parametrize(("handler", "error"), ODD_ANSWERS)
async def test_every_odd_answer_has_a_meaning(handler: Handler, error: type[CallFailed]) -> None:
    async with answering(handler) as calls:
        with pytest.raises(error):
            await calls.call("chat.postMessage", {"channel": "C1"})


async def test_nobody_listening_means_not_sent() -> None:
    calls = Web(SlackConfig(bot_token="xoxb-1", api_base_url=f"http://127.0.0.1:{free_port()}"), 4)
    with pytest.raises(NotSent):
        await calls.call("chat.postMessage", {})
    with pytest.raises(NotSent):
        await calls.respond(f"http://127.0.0.1:{free_port()}/", {})
    await calls.aclose()


async def test_a_socket_that_is_not_answered_is_given_up_after_one_time_to_connect_and_one_to_answer() -> None:
    asked, left = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        asked.set()
        await reader.read()
        writer.close()
        await writer.wait_closed()
        left.set()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    calls = Web(SlackConfig(bot_token="xoxb-1", connect_timeout_s=60.0, answer_timeout_s=20.0), 4)
    opening = asyncio.create_task(calls.connect(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))
    await asked.wait()
    leap(90.0)
    done, _ = await asyncio.wait({opening}, timeout=10.0)
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    await calls.aclose()
    await left.wait()
    server.close()
    await server.wait_closed()
    assert done == {opening}
    assert isinstance(opening.exception(), AnswerLost)


@pytest.mark.parametrize(
    ("status", "text", "error"),
    [(200, "ok", None), (200, '{"ok":true}', None), (200, '{"ok": false, "error":"used_url"}', "used_url"),
     (404, "expired_url", "expired_url"), (404, "", "http_404")],
)  # fmt: skip
async def test_the_answer_to_an_answer(status: int, text: str, error: str | None) -> None:
    async with answering(lambda request: web.Response(status=status, text=text)) as calls:
        url = f"{calls._config.api_base_url}/actions/1"
        if error is None:
            await calls.respond(url, {"text": "x"})
            return
        with pytest.raises(Refused) as refused:
            await calls.respond(url, {"text": "x"})
    assert refused.value.code == error


@pytest.mark.parametrize(
    ("error", "sent", "edited"),
    [
        (NotSent("x"), AdapterUnavailable, AdapterUnavailable),
        (AnswerLost("x"), SendAmbiguous, AdapterUnavailable),
        (ServerTrouble("x"), SendAmbiguous, AdapterUnavailable),
        (Throttled(3), RateLimited, RateLimited),
        (Refused("invalid_auth"), AdapterUnavailable, AdapterUnavailable),
        (Refused("http_403"), AdapterUnavailable, AdapterUnavailable),
        (Refused("message_not_found"), MessageGone, MessageGone),
        (Refused("channel_not_found"), SendRefused, SendRefused),
    ],
)
def test_what_a_failure_means(error: CallFailed, sent: type[AdapterError], edited: type[AdapterError]) -> None:
    assert type(as_send_error(error)) is sent
    assert type(as_edit_error(error)) is edited


def test_a_request_that_never_left_was_not_refused() -> None:
    refused = as_send_error(NotSent("ClientConnectorError"))
    assert refused.message == "Slack could not be reached: ClientConnectorError."


def test_a_method_keeps_to_its_minute() -> None:
    now = [0.0]
    limits = MethodLimits(lambda: now[0])
    for _ in range(PER_MINUTE["chat.update"]):
        limits.take("chat.update")
    now[0] = 20.0
    with pytest.raises(RateLimited) as limited:
        limits.take("chat.update")
    assert limited.value.retry_after_s == 40.0
    limits.take("chat.delete")
    now[0] = 60.0
    limits.take("chat.update")


@given(st.permutations(range(6)))
@settings(deadline=None, max_examples=20)
def test_what_comes_in_together_is_taken_in_the_chats_order(arrival: list[int]) -> None:
    async def run() -> list[int]:
        turns, taken = Turns(), list[int]()

        async def one(order: int) -> None:
            async with turns.of("C1", order):
                await asyncio.sleep(0)
                taken.append(order)

        await asyncio.gather(*(one(order) for order in arrival))
        assert turns._waiting == {} and turns._busy == set()
        return taken

    assert asyncio.run(run()) == sorted(arrival)


async def test_a_turn_that_is_given_up_is_passed_on() -> None:
    turns, inside, go = Turns(), asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with turns.of("C1", 1):
            inside.set()
            await go.wait()

    async def pass_by(order: int) -> int:
        async with turns.of("C1", order):
            return order

    first, second, third = (asyncio.create_task(work) for work in (hold(), pass_by(2), pass_by(3)))
    await inside.wait()
    second.cancel()
    other = asyncio.create_task(pass_by(1))
    async with turns.of("C2", 9):
        assert not third.done()
    go.set()
    await first
    assert (await other, await third) == (1, 3)
    assert turns._waiting == {}
    assert turns._busy == set()


async def test_only_what_should_have_been_reported_counts() -> None:
    clock, deaf = FakeClock(), list[str]()
    echo = Echo(clock, 5.0, deaf.append)
    echo.posted("C1", "1")
    await clock.advance(10)
    echo.look()
    assert deaf == []  # this channel was never heard
    echo.heard("C1", "1")
    echo.heard("C1", "2")
    echo.posted("C1", "2")  # reported before the answer came
    await clock.advance(10)
    echo.look()
    assert deaf == []
    echo.posted("C1", "3")
    await clock.advance(4.9)
    echo.look()
    assert deaf == []
    await clock.advance(0.1)
    echo.look()
    assert len(deaf) == 1
    echo.posted("C1", "4")
    await clock.advance(6)
    echo.look()
    assert len(deaf) == 1  # not again within a minute
    await clock.advance(60)
    echo.posted("C1", "5")
    await clock.advance(6)
    echo.look()
    assert len(deaf) == 2


async def test_a_channel_that_is_reported_no_more_is_forgotten() -> None:
    """An operator may take an event from the app; three alarms without anything heard between are enough."""
    clock, deaf = FakeClock(), list[str]()
    echo = Echo(clock, 5.0, deaf.append)
    echo.heard("C1", "1")
    for number in range(2, 7):
        for part in range(4):
            echo.posted("C1", f"{number}.{part}")
        await clock.advance(90)
        echo.look()
    assert len(deaf) == 3
    echo.heard("C1", "9")
    echo.posted("C1", "10")
    await clock.advance(6)
    echo.look()
    assert len(deaf) == 4


@pytest.mark.parametrize("kept", ["", "{", "7", '["C1", 7]', '{"C1": 1}'])
async def test_what_was_kept_of_heard_channels_may_be_unreadable(kept: str) -> None:
    clock, inbox = FakeClock(), RecordingInbox()
    await inbox.save(KEPT, kept)
    echo = Echo(clock, 5.0, lambda _: None)
    task = asyncio.create_task(echo.run(inbox))
    echo.heard("C2", "1")
    await pass_time(clock, lambda: inbox._kept[KEPT] == '["C2"]', within_s=3, what="the channel is kept")
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_one_of_two_sockets_is_enough_and_the_web_api_is_needed() -> None:
    watch = Watch(FakeClock(), deaf_after_s=30)
    watch.begin()
    watch.works("socket 1")
    assert watch.health().state == "starting"
    watch.works(WEB)
    await watch.proven()
    assert watch.health().state == "ready"
    watch.fails("socket 2", AdapterUnavailable("closed"))
    assert (watch.health().state, watch.health().detail) == ("ready", "socket 2: closed")
    watch.fails("socket 1", AdapterUnavailable("closed"))
    assert watch.health().state == "degraded"
    watch.works("socket 2")
    assert watch.health().state == "ready"
    watch.fails(WEB, AdapterUnavailable("no token"))
    assert watch.health().state == "degraded"
    with pytest.raises(AdapterUnavailable, match="no token"):
        await watch.proven()
    watch.stopped()
    assert watch.health().state == "stopped"
    watch.works(WEB)
    assert watch.health().state == "stopped"


async def test_silence_is_not_readiness() -> None:
    clock = FakeClock()
    watch = Watch(clock, deaf_after_s=30)
    watch.works(WEB)
    watch.works("socket 1")
    await clock.advance(31)
    assert (watch.health().state, watch.health().detail) == ("degraded", "nothing heard from Slack for 31 s")
    watch.heard()
    assert watch.health().state == "ready"


async def test_another_workspace_is_known_without_asking() -> None:
    calls = Web(SlackConfig(bot_token="xoxb-1", api_base_url=f"http://127.0.0.1:{free_port()}"), 4)
    people = People(calls, lambda: Me(user_id="UBOT1", team_id="T1"))
    assert await people.about("U0EVE", "T2") == Standing(None, guest=True)
    assert await people.about("U0EVE", "T1") is None
    await calls.aclose()


def test_threads_are_known_by_channel_and_timestamp() -> None:
    threads = Threads()
    threads.posted("C1", "1.0")
    threads.said("C1", "2.0", "1.0")
    assert threads.ours("C1", "1.0") and not threads.ours("C2", "1.0")
    assert (threads.root_of("C1", "2.0"), threads.root_of("C1", "9.0")) == ("1.0", "9.0")
