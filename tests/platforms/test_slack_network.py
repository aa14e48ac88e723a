"""Sockets, signed requests, faults and outages of the loopback Slack, seen through the real clients."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.platforms.slack import ServerClock, SlackPlatform, SlackServer
from tests.platforms.slack.clients import (
    ANA,
    APP_TOKEN,
    BO,
    CARD,
    OPS,
    TOKEN,
    Json,
    bolt_app,
    by_http,
    by_socket,
    client_of,
    error_of,
    furnish,
    listening,
)


@pytest.fixture
async def slack() -> AsyncIterator[SlackPlatform]:
    async with SlackServer() as server:
        await furnish(server.platform)
        await server.platform.set_limits(mode="off")
        yield server.platform


@pytest.fixture
async def client(slack: SlackPlatform) -> AsyncWebClient:
    return await client_of(slack)


@pytest.fixture(autouse=True)
def _clients_log_what_the_tests_provoke() -> None:
    """slack_sdk logs a stack trace for each failed handshake."""
    logging.getLogger("slack_bolt.AsyncApp").setLevel(logging.CRITICAL)


async def card(client: AsyncWebClient) -> str:
    """A card in the channel; its ts."""
    return str((await client.chat_postMessage(channel=OPS, text="May I?", blocks=CARD))["ts"])


class Socket:
    """A raw Socket Mode client that acknowledges only when told."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self.ws = ws

    async def frame(self) -> Json:
        """The next frame."""
        return dict(await asyncio.wait_for(self.ws.receive_json(), 15))

    async def envelope(self) -> Json:
        """The next envelope that is no event."""
        while True:
            frame = await self.frame()
            if frame["type"] == "events_api":
                await self.ack(frame)
            else:
                return frame

    async def ack(self, frame: Json, payload: Json | None = None) -> None:
        """Acknowledge."""
        answer = {"envelope_id": frame["envelope_id"]}
        await self.ws.send_json(answer if payload is None else answer | {"payload": payload})


@asynccontextmanager
async def raw_socket(client: AsyncWebClient) -> AsyncIterator[Socket]:
    """A raw client past the hello."""
    url = (await client.apps_connections_open(app_token=APP_TOKEN))["url"]
    async with aiohttp.ClientSession() as session, session.ws_connect(url) as ws:
        socket = Socket(ws)
        assert (await socket.frame())["type"] == "hello"
        yield socket


# acknowledging in time


async def test_a_late_acknowledgement_does_not_count(slack: SlackPlatform, client: AsyncWebClient) -> None:
    await slack.freeze_clock()
    async with raw_socket(client) as socket:
        press = await slack.press(ANA, OPS, await card(client), "Run once")
        envelope = await socket.envelope()
        assert envelope["payload"]["actions"][0]["value"] == "once"
        await slack.advance_clock(2.9)
        assert (await slack.press_state(press)).answer is None
        await slack.advance_clock(0.2)
        answer = await slack.answer_of(press)
        await socket.ack(envelope)
        command = await slack.slash(ANA, OPS, "pending")
        await socket.ack(await socket.envelope(), {"text": "Nothing waits here."})
        told = await slack.answer_of(command)
    state = await slack.press_state(press)
    assert (answer.kind, answer.text) == ("error", "operation timed out")
    assert (state.acknowledged_at, state.timed_out) == (None, True)
    assert (told.kind, told.text) == ("ephemeral", "Nothing waits here.")


async def test_an_acknowledgement_that_comes_before_anybody_noticed_the_deadline_is_late_too() -> None:
    now = 1_000_000.0
    clock = ServerClock(lambda: now)
    async with SlackServer(clock=clock) as server:
        await furnish(server.platform)
        client = await client_of(server.platform)
        async with raw_socket(client) as socket:
            command = await server.platform.slash(ANA, OPS, "x")
            envelope = await socket.envelope()
            now += 3.5
            await socket.ack(envelope, {"text": "late"})
            answer = await server.platform.answer_of(command)
    assert (answer.kind, "operation timed out" in answer.text) == ("error", True)


async def test_a_press_with_nobody_connected_fails_at_once(slack: SlackPlatform, client: AsyncWebClient) -> None:
    await slack.freeze_clock()
    press = await slack.press(ANA, OPS, await card(client), "Run once")
    assert (await slack.answer_of(press)).text == "dispatch failed"
    async with raw_socket(client) as socket:
        await slack.slash(ANA, OPS, "x")
        assert (await socket.envelope())["type"] == "slash_commands", "the press is not delivered later"


async def test_events_are_retried_after_zero_one_and_five_minutes(slack: SlackPlatform) -> None:
    await slack.freeze_clock()
    seen: list[tuple[str | None, str | None]] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append((request.headers.get("X-Slack-Retry-Num"), request.headers.get("X-Slack-Retry-Reason")))
        return web.Response(status=500)

    async def waits() -> tuple[int, str, float]:
        (event,) = await slack.envelopes()
        pause_s = (event.next_at or event.made_at) - event.made_at
        return event.attempts, event.state, pause_s.total_seconds()

    async with listening(handle) as url:
        await slack.set_request_url(url)
        await slack.say(ANA, OPS, "hello")
        await slack.until(waits, lambda it: it == (2, "waiting", 60))
        assert (await slack.pending_count(), await slack.pending_count(waiting=True)) == (0, 1)
        await slack.advance_clock(59)
        assert await waits() == (2, "waiting", 60)
        await slack.advance_clock(1)
        await slack.until(waits, lambda it: it == (3, "waiting", 360))
        await slack.advance_clock(300)
        await slack.until(waits, lambda it: it[:2] == (4, "given_up"))
    assert seen == [(None, None), ("1", "http_error"), ("2", "http_error"), ("3", "http_error")]


async def test_an_event_whose_acknowledgement_is_lost_comes_again(slack: SlackPlatform, client: AsyncWebClient) -> None:
    await slack.freeze_clock()
    await slack.fault("lose_ack", method="events_api")
    async with raw_socket(client) as socket:
        await slack.say(ANA, OPS, "hello")
        first = await socket.frame()
        await socket.ack(first)
        await slack.advance_clock(3)
        second = await socket.frame()
        await socket.ack(second)
        await slack.until(lambda: slack.pending_count(waiting=True), lambda count: count == 0)
    assert (first["retry_attempt"], second["retry_attempt"]) == (0, 1)
    assert first["payload"] == second["payload"]
    assert first["envelope_id"] == second["envelope_id"]


# Socket Mode


async def test_a_ticket_opens_one_socket_once(slack: SlackPlatform, client: AsyncWebClient) -> None:
    url = (await client.apps_connections_open(app_token=APP_TOKEN))["url"]
    old = (await client.apps_connections_open(app_token=APP_TOKEN))["url"]
    async with aiohttp.ClientSession() as session:
        async with session.ws_connect(url):
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await session.ws_connect(url)
        await slack.advance_clock(31)
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(old)


async def test_an_envelope_goes_to_one_socket_and_to_another_when_that_one_closes(
    slack: SlackPlatform, client: AsyncWebClient
) -> None:
    ts = await card(client)
    async with raw_socket(client) as first, raw_socket(client) as second:
        press = await slack.press(ANA, OPS, ts, "Run once")
        waiting = {asyncio.create_task(each.envelope()): each for each in (first, second)}
        done, other = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        (got,), (idle,) = done, other
        assert not idle.done()
        await waiting[got].ws.close()
        again = await asyncio.wait_for(idle, 15)
        assert again["envelope_id"] == got.result()["envelope_id"]
        await waiting[idle].ack(again)
        await slack.until(lambda: slack.press_state(press), lambda state: state.acknowledged_at is not None)
    (envelope,) = await slack.envelopes(kind="interactive")
    assert (envelope.state, len(envelope.sockets)) == ("acknowledged", 2)


async def test_the_eleventh_socket_is_told_to_go(slack: SlackPlatform, client: AsyncWebClient) -> None:
    async with aiohttp.ClientSession() as session:
        opened = []
        for _ in range(11):
            url = (await client.apps_connections_open(app_token=APP_TOKEN))["url"]
            opened.append(await session.ws_connect(url))
        frames = [await each.receive_json() for each in opened]
        assert [frame["type"] for frame in frames] == ["hello"] * 10 + ["disconnect"]
        assert (frames[9]["num_connections"], frames[10]["reason"]) == (10, "too_many_websockets")
        for each in opened:
            await each.close()


async def test_bolt_follows_a_disconnect_to_a_new_socket(slack: SlackPlatform, client: AsyncWebClient) -> None:
    async with by_socket(await bolt_app(slack)):
        assert await slack.disconnect("refresh_requested") == 1
        await slack.until(
            slack.sockets, lambda sockets: [socket.number for socket in sockets if not socket.draining] == [2]
        )
        press = await slack.press(ANA, OPS, await card(client), "Run once")
        assert (await slack.answer_of(press)).text == "You chose once."
        await slack.until(slack.pending_count, lambda count: count == 0)


async def test_a_disabled_link_is_closed_at_once(slack: SlackPlatform, client: AsyncWebClient) -> None:
    async with raw_socket(client) as socket:
        await slack.disconnect("link_disabled")
        assert (await socket.frame())["reason"] == "link_disabled"
        assert (await asyncio.wait_for(socket.ws.receive(), 15)).type is aiohttp.WSMsgType.CLOSE


async def test_a_warning_changes_nothing_and_a_draining_socket_gets_nothing(
    slack: SlackPlatform, client: AsyncWebClient
) -> None:
    async with raw_socket(client) as socket:
        await slack.disconnect("warning")
        assert (await socket.frame())["reason"] == "warning"
        await slack.slash(ANA, OPS, "x")
        await socket.ack(await socket.envelope())
        await slack.disconnect("refresh_requested")
        assert (await socket.frame())["reason"] == "refresh_requested"
        failed = await slack.slash(ANA, OPS, "x")
        assert "dispatch failed" in (await slack.answer_of(failed)).text
        await slack.advance_clock(10)
        assert (await asyncio.wait_for(socket.ws.receive(), 15)).type is aiohttp.WSMsgType.CLOSE


async def test_a_single_use_address_is_retried_for_ever_until_it_is_forgotten(slack: SlackPlatform) -> None:
    """slackapi/python-slack-sdk#1446, and the cure."""
    await slack.fault("handshake")
    handler = AsyncSocketModeHandler(await bolt_app(slack), APP_TOKEN, ping_interval=0.02)
    connecting = asyncio.create_task(handler.connect_async())  # type: ignore[no-untyped-call]
    refused = await slack.wait_for_log(lambda log: len(log) >= 4, method="socket")
    assert [entry.outcome for entry in refused[:4]] == ["fault:handshake"] + ["refused"] * 3
    assert len(await slack.log(method="apps.connections.open")) == 1
    handler.client.wss_uri = None
    await asyncio.wait_for(connecting, 15)
    assert len(await slack.sockets()) == 1
    await handler.close_async()  # type: ignore[no-untyped-call]


async def test_a_deaf_socket_looks_healthy(slack: SlackPlatform, client: AsyncWebClient) -> None:
    await slack.freeze_clock()
    await slack.fault("deaf")
    app = await bolt_app(slack)
    async with by_socket(app) as handler:
        press = await slack.press(ANA, OPS, await card(client), "Run once")
        await slack.advance_clock(3)
        assert (await slack.answer_of(press)).text == "operation timed out"
        assert await handler.client.is_connected()
        await slack.deafen(deaf=False)
        again = await slack.press(ANA, OPS, await card(client), "Run once")
        assert (await slack.answer_of(again)).text == "You chose once."
        await slack.until(slack.pending_count, lambda count: count <= 1)


async def test_unanswered_pings_and_resets_make_the_client_come_back(slack: SlackPlatform) -> None:
    app = await bolt_app(slack)
    async with by_socket(app, ping_interval_s=0.05):
        await slack.mute_pongs()
        await slack.until(slack.sockets, lambda sockets: [each.number for each in sockets] == [2])
        assert await slack.abort_sockets() == 1
        await slack.until(slack.sockets, lambda sockets: [each.number for each in sockets] == [3])


async def test_the_server_pings_an_idle_socket_again_and_again(
    client: AsyncWebClient, slack: SlackPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.platforms.slack.sockets.PING_EVERY_S", 0.02)
    url = (await client.apps_connections_open(app_token=APP_TOKEN))["url"]
    async with aiohttp.ClientSession() as session, session.ws_connect(url, autoping=False) as ws:
        kinds = [(await asyncio.wait_for(ws.receive(), 15)).type for _ in range(3)]
        await slack.slash(ANA, OPS, "x")
        while (last := await asyncio.wait_for(ws.receive(), 15)).type is aiohttp.WSMsgType.PING:
            pass
    assert kinds == [aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.PING, aiohttp.WSMsgType.PING]
    assert last.json()["type"] == "slash_commands"


async def test_duplicates_repeat_and_odd_frames_arrive(slack: SlackPlatform, client: AsyncWebClient) -> None:
    await slack.fault("duplicate", method="slash_commands")
    async with raw_socket(client) as socket:
        command = await slack.slash(ANA, OPS, "x")
        first, second = await socket.envelope(), await socket.envelope()
        assert first == second
        for each in (first, second):
            await socket.ack(each, {"text": "once"})
        assert (await slack.answer_of(command)).text == "once"
        await slack.redeliver(command)
        third = await socket.envelope()
        assert third["envelope_id"] == first["envelope_id"]
        await socket.ack(third, {"text": "ignored"})
        await slack.until(slack.pending_count, lambda count: count == 0)
        assert len((await slack.press_state(command)).answers) == 1
        assert await slack.raw_frame('{"type": 7}') == 1
        assert await socket.frame() == {"type": 7}
        await slack.raw_interaction(payload={"type": "of tomorrow"})
        odd = await socket.frame()
        assert (odd["type"], odd["payload"]) == ("interactive", {"type": "of tomorrow"})
        await slack.raw_event(event={"type": "message", "ts": None}, retry_num=1)
        event = await socket.frame()
        assert (event["payload"]["event"], event["retry_attempt"]) == ({"type": "message", "ts": None}, 1)


# HTTP


async def test_bolt_refuses_forged_requests(slack: SlackPlatform) -> None:
    app = await bolt_app(slack)
    async with by_http(slack, app):
        event = {"type": "event_callback", "event": {"type": "message", "text": "x"}, "team_id": "T1"}
        assert await slack.post_forged(event) == 200
        assert await slack.post_forged(event, secret="wrong") == 401
        assert await slack.post_forged(event, secret="") == 401
        assert await slack.post_forged(event, age_s=301) == 401
        assert await slack.post_forged(event, age_s=290) == 200
        assert await slack.post_forged({"type": "view_closed"}, form=True, secret="wrong") == 401


async def test_an_address_that_does_not_know_the_challenge_is_not_taken(slack: SlackPlatform) -> None:
    async def handle(_request: web.Request) -> web.Response:
        return web.Response(text="hello")

    async with listening(handle) as url:
        with pytest.raises(ValueError, match="not verified"):
            await slack.set_request_url(url, verify=True)
    with pytest.raises(ValueError, match="no request URL"):
        await slack.post_forged({})


async def test_an_unmatched_press_fails_in_both_modes(slack: SlackPlatform, client: AsyncWebClient) -> None:
    app = AsyncApp(client=client, signing_secret="signing-secret")
    ts = await card(client)
    async with by_http(slack, app):
        answer = await slack.answer_of(await slack.press(ANA, OPS, ts, "Run once"))
        assert answer.text == "dispatch failed"
    async with by_socket(app):
        press = await slack.press(ANA, OPS, ts, "Run once")
        await slack.advance_clock(3)
        assert (await slack.answer_of(press)).text == "operation timed out"


async def test_a_slow_request_url_is_given_up_after_three_seconds(slack: SlackPlatform, client: AsyncWebClient) -> None:
    await slack.freeze_clock()
    reached, release = asyncio.Event(), asyncio.Event()

    async def handle(_request: web.Request) -> web.Response:
        reached.set()
        await release.wait()
        return web.Response()

    ts = await card(client)
    async with listening(handle) as url:
        await slack.set_request_url(url)
        press = await slack.press(ANA, OPS, ts, "Run once")
        await asyncio.wait_for(reached.wait(), 15)
        await slack.advance_clock(3)
        answer = await slack.answer_of(press)
        release.set()
    assert (answer.kind, answer.text) == ("error", "operation timed out")


# faults of the Web API


async def test_the_default_retry_handler_posts_twice_when_an_answer_is_lost(slack: SlackPlatform) -> None:
    await slack.fault("drop_after", method="chat.postMessage")
    default = AsyncWebClient(token=TOKEN, base_url=await slack.base_url())
    await default.chat_postMessage(channel=OPS, text="card")
    assert [message.text for message in await slack.messages(OPS)] == ["card", "card"]
    await slack.fault("drop_after", method="chat.postMessage")
    with pytest.raises(aiohttp.ClientError):
        await (await client_of(slack)).chat_postMessage(channel=OPS, text="single")
    assert [message.text for message in await slack.messages(OPS)].count("single") == 1
    entry = (await slack.log(method="chat.postMessage"))[-1]
    assert (entry.outcome, entry.effect, entry.status) == ("fault:drop_after", True, 0)


@pytest.mark.parametrize(("kind", "status", "stands"), [("500", 500, 0), ("503", 503, 0), ("error_after", 500, 1)])
async def test_server_errors(slack: SlackPlatform, client: AsyncWebClient, kind: Any, status: int, stands: int) -> None:
    await slack.fault(kind, method="chat.postMessage", channel=OPS)
    with pytest.raises(SlackApiError) as problem:
        await client.chat_postMessage(channel=OPS, text="x")
    assert problem.value.response.status_code == status
    assert len(await slack.messages(OPS)) == stands
    assert await slack.faults_left() == 0


async def test_codes_limits_and_broken_answers_on_demand(slack: SlackPlatform, client: AsyncWebClient) -> None:
    ts = await card(client)
    await slack.fault("error", error="edit_window_closed", method="chat.update")
    assert await error_of(client.chat_update(channel=OPS, ts=ts, text="x")) == "edit_window_closed"
    await slack.fault("429", method="chat.update", retry_after_s=7)
    with pytest.raises(SlackApiError) as limited:
        await client.chat_update(channel=OPS, ts=ts, text="x")
    assert (limited.value.response.status_code, limited.value.response.headers["Retry-After"]) == (429, "7")
    await slack.fault("bad_json", method="chat.update")
    with pytest.raises(SlackApiError):
        await client.chat_update(channel=OPS, ts=ts, text="changed")
    assert (await slack.messages(OPS))[0].text == "changed"
    await slack.fault("drop_before", method="chat.update")
    with pytest.raises(aiohttp.ClientError):
        await client.chat_update(channel=OPS, ts=ts, text="again")
    await slack.fault("error", error="x", method="chat.delete", channel="C9")
    assert (await client.chat_delete(channel=OPS, ts=ts))["ok"], "the fault is for another channel"


async def gets_nothing(call: asyncio.Task[Any]) -> None:
    """For a moment nothing comes back; then nobody waits any more."""
    done, _ = await asyncio.wait([call], timeout=0.05)
    call.cancel()
    assert not done
    await asyncio.gather(call, return_exceptions=True)


async def test_a_stalled_call_stands_at_once_or_never(slack: SlackPlatform, client: AsyncWebClient) -> None:
    await slack.fault("stall", method="chat.postMessage", after_s=1.0)
    posting = asyncio.create_task(client.chat_postMessage(channel=OPS, text="slow"))
    await slack.wait_for_message(OPS, lambda message: message.text == "slow")
    assert not posting.done()
    assert (await posting)["ok"]
    await slack.fault("stall", method="chat.postMessage")
    never = asyncio.create_task(client.chat_postMessage(channel=OPS, text="never"))
    await slack.until(slack.faults_left, lambda left: left == 0)
    await gets_nothing(never)
    assert [message.text for message in await slack.messages(OPS)] == ["slow"]


async def test_a_removed_bot_is_told_and_may_not_write(slack: SlackPlatform) -> None:
    await slack.add_bot("xoxb-2", "xapp-2", scopes=["chat:write"], events=["channel_left"])
    await slack.join(OPS, "UBOT2")
    small = await client_of(slack, "xoxb-2")
    ts = (await small.chat_postMessage(channel=OPS, text="x"))["ts"]
    await slack.leave(OPS, "UBOT2")
    assert await error_of(small.chat_postMessage(channel=OPS, text="x")) == "not_in_channel"
    assert [each.about for each in await slack.envelopes(bot="UBOT2")] == ["channel_left"]
    await slack.delete_message(OPS, ts)
    assert await error_of(small.chat_update(channel=OPS, ts=ts, text="y")) == "message_not_found"
    root = await slack.start_thread(OPS, ANA)
    await slack.delete_message(OPS, root)
    await slack.join(OPS, "UBOT2")
    assert await error_of(small.chat_postMessage(channel=OPS, text="x", thread_ts=root)) == "thread_not_found"
    await slack.remove_channel(OPS)
    assert await error_of(small.chat_update(channel=OPS, ts=ts, text="y")) == "channel_not_found"


async def test_down_up_and_black_hole(slack: SlackPlatform, client: AsyncWebClient) -> None:
    async with by_socket(await bolt_app(slack), ping_interval_s=0.05):
        await slack.down()
        await slack.until(slack.sockets, lambda sockets: not sockets)
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.auth_test()
        await slack.up()
        await slack.until(slack.sockets, lambda sockets: len(sockets) == 1)
        assert (await client.auth_test())["ok"]
    await slack.blackhole()
    await gets_nothing(asyncio.create_task(client.auth_test()))
    await slack.up()
    press = await slack.press(BO, OPS, await card(client), "Run once")
    assert (await slack.answer_of(press)).text == "dispatch failed"
