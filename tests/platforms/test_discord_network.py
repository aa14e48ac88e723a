"""The loopback Discord's gateway, HTTP interactions, faults and its life as a process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession, MultipartWriter, web
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec import json

from tests.platforms.discord import DiscordPlatform, DiscordServer, FaultKind, discord_process
from tests.platforms.discord.trying import ANA, BOT, CHANNEL, GUILD, THREAD, TOKEN, Rest, Socket, last, settle

GUILDS, MESSAGES, DIRECT, CONTENT = 1 << 0, 1 << 9, 1 << 12, 1 << 15


@pytest.fixture
async def platform() -> AsyncIterator[DiscordPlatform]:
    async with DiscordServer() as server:
        await settle(server.platform)
        yield server.platform


@pytest.fixture
async def rest(platform: DiscordPlatform) -> AsyncIterator[Rest]:
    async with Rest(await platform.api_base_url()) as caller:
        yield caller


@pytest.fixture
async def socket(platform: DiscordPlatform) -> AsyncIterator[Socket]:
    async with ClientSession() as session:
        opened = Socket(await platform.gateway_url(), session)
        await opened.open()
        yield opened
        await opened.close()


async def another(platform: DiscordPlatform, session: ClientSession) -> Socket:
    opened = Socket(await platform.gateway_url(), session)
    await opened.open()
    return opened


# Gateway


async def test_session_begins_with_ready_and_guilds(platform: DiscordPlatform, socket: Socket) -> None:
    await socket.send(1, None)
    assert (await socket.take())["op"] == 11
    await socket.identify()
    ready = (await socket.take())["d"]
    assert ready["user"]["id"] == str(BOT) and ready["guilds"] == [{"id": str(GUILD), "unavailable": True}]
    assert ready["resume_gateway_url"] == await platform.gateway_url()
    guild = (await socket.until("GUILD_CREATE"))["d"]
    assert [each["id"] for each in guild["threads"]] == [str(THREAD)]
    assert (await platform.limit_report()).identifies == 1


@pytest.mark.parametrize(
    ("operation", "data", "code"),
    [
        (2, {"token": "wrong", "intents": 1}, 4004),
        (2, {"token": TOKEN, "intents": 1 << 30}, 4013),
        (2, {"token": TOKEN, "intents": CONTENT}, 4014),
        (3, {}, 4003),
        (6, {"token": "wrong", "session_id": "x", "seq": 1}, 4004),
    ],
)
async def test_gateway_closes_with_a_code(socket: Socket, operation: int, data: Any, code: int) -> None:
    await socket.send(operation, data)
    assert await socket.take() == {"closed": code}


async def test_too_many_sends_close_the_socket(platform: DiscordPlatform, socket: Socket) -> None:
    await platform.set_limits(gateway_sends_per_minute=2)
    await socket.identify()
    await socket.until("GUILD_CREATE")
    for _ in range(3):
        await socket.send(3, {})
    assert await socket.take() == {"closed": 4008}
    assert (await platform.limit_report()).counts == {"gateway_sends": 1}


async def test_resume_replays_in_order(platform: DiscordPlatform, socket: Socket, rest: Rest) -> None:
    await socket.identify()
    ready = await socket.take()
    await socket.until("GUILD_CREATE")
    number = await rest.card()
    await socket.close()
    await platform.until(platform.sessions, lambda seen: not seen[0].connected)
    presses = [await platform.press(ANA, CHANNEL, number, "Deny") for _ in range(2)]
    assert await platform.pending_count() == 4
    async with ClientSession() as session:
        resumed = await another(platform, session)
        await resumed.send(6, {"token": TOKEN, "session_id": ready["d"]["session_id"], "seq": 2})
        got = [await resumed.take() for _ in range(3)]
        await resumed.close()
    assert [each["t"] for each in got] == ["INTERACTION_CREATE", "INTERACTION_CREATE", "RESUMED"]
    assert [int(each["d"]["id"]) for each in got[:2]] == presses
    assert [each["s"] for each in got] == [3, 4, 5]


async def test_a_resume_may_be_refused(platform: DiscordPlatform, socket: Socket) -> None:
    await socket.identify()
    ready = await socket.take()
    await platform.refuse_resumes()
    async with ClientSession() as session:
        for _ in range(2):
            resumed = await another(platform, session)
            await resumed.send(6, {"token": TOKEN, "session_id": ready["d"]["session_id"], "seq": 1})
            assert (await resumed.take()) == {"op": 9, "d": False, "s": None, "t": None}
            await resumed.close()
    assert not (await platform.sessions())[0].alive


async def test_a_session_closed_by_its_client_is_over(platform: DiscordPlatform, socket: Socket, rest: Rest) -> None:
    await socket.identify()
    await socket.until("GUILD_CREATE")
    await socket.close(1000)
    await platform.until(platform.sessions, lambda seen: not seen[0].alive)
    press = await platform.press(ANA, CHANNEL, await rest.card(), "Deny")
    assert (await platform.press_state(press)).deliveries == 0


async def test_what_is_pending(platform: DiscordPlatform, socket: Socket, rest: Rest) -> None:
    number = await rest.card()
    await platform.press(ANA, CHANNEL, number, "Deny")
    assert await platform.pending_count() == 0  # nobody could get it
    await socket.identify()
    await socket.until("GUILD_CREATE")
    await socket.close()
    await platform.until(platform.sessions, lambda seen: not seen[0].connected)
    await platform.press(ANA, CHANNEL, number, "Deny")
    assert await platform.pending_count() == 2
    async with ClientSession() as session:
        fresh = await another(platform, session)
        await fresh.identify()
        await fresh.until("GUILD_CREATE")
        assert await platform.pending_count() == 1
        await platform.advance_clock(3.1)
        assert await platform.pending_count() == 0
        await fresh.close()


async def test_orders_to_a_socket(platform: DiscordPlatform, socket: Socket) -> None:
    await socket.identify()
    await socket.until("GUILD_CREATE")
    await platform.reconnect()
    assert (await socket.take())["op"] == 7
    await platform.invalidate_session(resumable=True)
    assert (await socket.take())["d"] is True
    await platform.dispatch("ODD_EVENT", {"x": 1})
    assert (await socket.until("ODD_EVENT"))["d"] == {"x": 1}
    await platform.close_gateway(4009)
    assert await socket.take() == {"closed": 4009}


async def test_silent_gateways(platform: DiscordPlatform, socket: Socket, rest: Rest) -> None:
    await socket.identify()
    await socket.until("GUILD_CREATE")
    await platform.mute_heartbeats()
    await socket.send(1, 1)
    await platform.until(platform.sessions, lambda seen: seen[0].heartbeats == 1)
    await platform.freeze_gateway()
    number = await rest.card()
    press = await platform.press(ANA, CHANNEL, number, "Deny")
    assert (await platform.sessions())[0].waiting == 1
    await platform.freeze_gateway(frozen=False)
    frame = await socket.take()
    assert (frame["t"], int(frame["d"]["id"])) == ("INTERACTION_CREATE", press)


async def test_handshakes_fail_or_hang(platform: DiscordPlatform) -> None:
    await platform.fail_handshakes()
    async with ClientSession() as session:
        with pytest.raises(ClientError):
            await another(platform, session)
        await platform.hold_gateway()
        opening = asyncio.create_task(another(platform, session))
        done, _ = await asyncio.wait([opening], timeout=0.05)
        assert not done
        await platform.hold_gateway(held=False)
        await (await opening).close()


async def test_contents_are_hidden_without_the_intent(platform: DiscordPlatform, socket: Socket) -> None:
    await socket.identify(MESSAGES | DIRECT)
    await socket.until("READY")
    await platform.say(ANA, CHANNEL, "approve all")
    await platform.say(ANA, CHANNEL, "approve all", mention_bot=True)
    await platform.say(ANA, await platform.dm(ANA), "approve all")
    contents = [(await socket.until("MESSAGE_CREATE"))["d"]["content"] for _ in range(3)]
    assert contents == ["", f"<@{BOT}> approve all", "approve all"]


async def test_odd_ways_of_writing(platform: DiscordPlatform, socket: Socket) -> None:
    await socket.identify(MESSAGES)
    await socket.until("READY")
    await platform.say(ANA, CHANNEL, "x", mention_bot=True, webhook=True)
    assert (await socket.until("MESSAGE_CREATE"))["d"]["webhook_id"]
    await platform.say(ANA, CHANNEL, "x", mention_bot=True, forward=True)
    assert (await socket.until("MESSAGE_CREATE"))["d"]["message_reference"]["type"] == 1
    await platform.say(ANA, CHANNEL, "x", mention_bot=True, edited=True)
    assert (await socket.until("MESSAGE_UPDATE"))["d"]["edited_timestamp"]


async def test_places_come_and_go(platform: DiscordPlatform, socket: Socket) -> None:
    await socket.identify()
    await socket.until("GUILD_CREATE")
    await platform.set_thread(THREAD, archived=True)
    assert (await socket.until("THREAD_UPDATE"))["d"]["thread_metadata"]["archived"]
    await platform.delete_channel(CHANNEL)
    assert (await socket.until("THREAD_DELETE"))["d"]["id"] == str(THREAD)
    assert (await socket.until("CHANNEL_DELETE"))["d"]["id"] == str(CHANNEL)
    await platform.remove_bot(GUILD)
    assert (await socket.until("GUILD_DELETE"))["d"]["id"] == str(GUILD)


async def test_redelivered_and_forged_presses(platform: DiscordPlatform, socket: Socket, rest: Rest) -> None:
    await socket.identify()
    await socket.until("GUILD_CREATE")
    number = await rest.card()
    press = await platform.press(ANA, CHANNEL, number, "Deny")
    await platform.redeliver(press)
    first, second = [(await socket.until("INTERACTION_CREATE"))["d"] for _ in range(2)]
    assert first == second and first["member"]["user"]["id"] == str(ANA)
    await platform.delete_message(CHANNEL, number)
    with pytest.raises(LookupError):
        await platform.press(ANA, CHANNEL, number, "Deny")
    await platform.press_forged(ANA, CHANNEL, number, "anything")
    assert (await socket.until("INTERACTION_CREATE"))["d"]["data"]["custom_id"] == "anything"


# HTTP interactions


Answer = Callable[[dict[str, Any]], Awaitable[web.Response]]


@asynccontextmanager
async def endpoint(key: str, answer: Answer, *, checks: bool = True) -> AsyncIterator[str]:
    """An interactions endpoint that checks signatures (or does not); its URL."""

    async def handle(request: web.Request) -> web.Response:
        raw = await request.read()
        signed = request.headers.get("X-Signature-Timestamp", "").encode() + raw
        try:
            signature = bytes.fromhex(request.headers["X-Signature-Ed25519"])
            Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(signature, signed)
        except (KeyError, ValueError, InvalidSignature):
            if checks:
                return web.Response(status=401)
        body = json.decode(raw)
        return web.json_response({"type": 1}) if body["type"] == 1 else await answer(body)

    app = web.Application()
    app.router.add_post("/hooks/discord", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/hooks/discord"
    finally:
        await runner.cleanup()


async def denied(_: dict[str, Any]) -> web.Response:
    return web.json_response({"type": 7, "data": {"content": "Denied by Ana", "components": []}})


async def test_presses_go_to_the_interactions_url(platform: DiscordPlatform, socket: Socket, rest: Rest) -> None:
    await socket.identify()
    await socket.until("GUILD_CREATE")
    async with endpoint(await platform.public_key(), denied) as url:
        changed = await rest.call("PATCH", "/applications/@me", {"interactions_endpoint_url": url})
        assert changed.body["interactions_endpoint_url"] == url
        press = await platform.press(ANA, CHANNEL, await rest.card(), "Deny")
        answer = await platform.answer_of(press)
    assert (answer.kind, answer.text, answer.over_http) == ("update", "Denied by Ana", True)
    assert (await platform.press_state(press)).http_status == 200
    assert (await platform.sessions())[0].sequence == 2
    assert last(await platform.messages(CHANNEL)).buttons == []


async def test_an_endpoint_that_checks_nothing_is_not_taken(platform: DiscordPlatform, rest: Rest) -> None:
    async with endpoint(await platform.public_key(), denied, checks=False) as url:
        refused = await rest.call("PATCH", "/applications/@me", {"interactions_endpoint_url": url})
        assert refused.error("interactions_endpoint_url") == "APPLICATION_INTERACTIONS_ENDPOINT_URL_INVALID"
        pings = await platform.ping_interactions(url)
        assert [each.accepted for each in pings] == [True, False, False, False, False]
        assert not await platform.set_interactions_url(url)
    assert not await platform.set_interactions_url(url)
    assert await platform.interactions_url() is None


async def test_bad_signatures_are_sent_as_such(platform: DiscordPlatform) -> None:
    async with endpoint(await platform.public_key(), denied) as url:
        assert all(each.accepted for each in await platform.ping_interactions(url))
        assert await platform.post_interaction(url, {"type": 3}) == 200
        assert await platform.post_interaction(url, {"type": 3}, signing="other_key") == 401
    assert await platform.post_interaction(url, {"type": 1}) == 0


async def test_an_endpoint_may_answer_by_rest_instead(platform: DiscordPlatform, rest: Rest) -> None:
    async def answer(body: dict[str, Any]) -> web.Response:
        path = f"/interactions/{body['id']}/{body['token']}/callback"
        sent = await rest.call("POST", path, {"type": 4, "data": {"content": "Denied.", "flags": 64}})
        assert sent.status == 204
        return web.Response(status=202)

    async with endpoint(await platform.public_key(), answer) as url:
        assert await platform.set_interactions_url(url)
        press = await platform.press(ANA, CHANNEL, await rest.card(), "Deny")
        assert (await platform.private_answer_of(press)).text == "Denied."
        state = await platform.until(lambda: platform.press_state(press), lambda seen: seen.http_status == 202)
    assert [each.refused for each in state.answers] == [None]


async def test_a_late_answer_over_http_is_refused(platform: DiscordPlatform, rest: Rest) -> None:
    async def slow(_: dict[str, Any]) -> web.Response:
        await platform.advance_clock(3.5)
        return web.json_response({"type": 6})

    async with endpoint(await platform.public_key(), slow) as url:
        await platform.set_interactions_url(url)
        press = await platform.press(ANA, CHANNEL, await rest.card(), "Deny")
        state = await platform.until(lambda: platform.press_state(press), lambda seen: bool(seen.answers))
    assert state.failed and state.answers[0].refused == 10062


@pytest.mark.parametrize("kind", ["drop_before", "drop_after"])
async def test_posts_and_their_answers_get_lost(platform: DiscordPlatform, rest: Rest, kind: FaultKind) -> None:
    async with endpoint(await platform.public_key(), denied) as url:
        await platform.set_interactions_url(url)
        number = await rest.card()
        await platform.fault(kind, call="interaction_post")
        press = await platform.press(ANA, CHANNEL, number, "Deny")
        state = await platform.until(lambda: platform.press_state(press), lambda seen: seen.http_status == 0)
        assert state.answers == [] and await platform.pending_count() == 0
        assert last(await platform.messages(CHANNEL)).edits == 0
        assert await platform.faults_left() == 0


async def test_an_answer_over_http_may_bring_a_file(platform: DiscordPlatform, rest: Rest) -> None:
    async def answer(_: dict[str, Any]) -> web.Response:
        form = MultipartWriter("form-data")
        body = form.append_json({"type": 4, "data": {"content": "All in full", "flags": 64}})
        body.set_content_disposition("form-data", name="payload_json")
        form.append("whole").set_content_disposition("form-data", name="files[0]", filename="a.txt")
        return web.Response(body=form, headers=form.headers)

    async with endpoint(await platform.public_key(), answer) as url:
        await platform.set_interactions_url(url)
        press = await platform.press(ANA, CHANNEL, await rest.card(), "Deny")
        assert (await platform.private_answer_of(press)).text == "All in full"
    assert last(await platform.messages(CHANNEL, viewer=ANA)).files[0].content == b"whole"


# Faults


async def test_answers_get_lost(platform: DiscordPlatform, rest: Rest) -> None:
    await platform.fault("drop_before", call="create_message", channel_id=CHANNEL)
    with pytest.raises(ClientError):
        await rest.post({"content": "one"})
    assert await platform.messages(CHANNEL) == []
    kinds: list[tuple[FaultKind, int]] = [("drop_after", 0), ("error_after", 500), ("bad_json", 0)]
    for kind, status in kinds:
        await platform.fault(kind, call="create_message")
        if status:
            assert (await rest.post({"content": kind})).status == status
        else:
            with pytest.raises((ClientError, ValueError)):
                await rest.post({"content": kind})
    assert [each.content for each in await platform.messages(CHANNEL)] == ["drop_after", "error_after", "bad_json"]
    log = await platform.log(call="create_message")
    assert [each.effect for each in log] == [False, True, True, True]
    assert [each.outcome for each in log][:2] == ["fault:drop_before", "fault:drop_after"]
    assert await platform.faults_left() == 0


async def gets_nothing(call: asyncio.Task[Any]) -> None:
    """For a moment nothing comes back; then nobody waits any more."""
    done, _ = await asyncio.wait([call], timeout=0.1)
    call.cancel()
    assert not done
    await asyncio.gather(call, return_exceptions=True)


async def test_stalled_requests(platform: DiscordPlatform, rest: Rest) -> None:
    await platform.fault("stall", call="create_message", after_s=1.0)
    sent = asyncio.create_task(rest.post({"content": "slow"}))
    await platform.wait_for_message(CHANNEL, lambda message: message.text == "slow")
    assert not sent.done()
    assert (await sent).status == 200
    await platform.fault("stall", call="create_message")
    never = asyncio.create_task(rest.post({"content": "never"}))
    await platform.until(platform.faults_left, lambda left: left == 0)
    await gets_nothing(never)
    assert len(await platform.messages(CHANNEL)) == 1


async def test_limited_in_all_ways(platform: DiscordPlatform, rest: Rest) -> None:
    await platform.fault("429", retry_after_s=0.25, is_global=True)
    everywhere = await rest.post({"content": "x"})
    assert (everywhere.body["retry_after"], everywhere.body["global"]) == (0.25, True)
    await platform.fault("429", code=30046)
    assert (await rest.post({"content": "x"})).code == 30046
    await platform.fault("429", via=False)
    with pytest.raises(AssertionError):
        await rest.post({"content": "x"})
    assert (await platform.limit_report()).invalid_requests == 3


async def test_down_and_up_again_on_the_same_port(platform: DiscordPlatform, socket: Socket, rest: Rest) -> None:
    await socket.identify()
    await socket.until("GUILD_CREATE")
    await platform.down()
    with pytest.raises(ClientError):
        await rest.post({"content": "x"})
    await platform.until(platform.sessions, lambda seen: not seen[0].connected)
    await platform.up()
    assert (await rest.post({"content": "x"})).status == 200
    await platform.blackhole()
    await gets_nothing(asyncio.create_task(rest.post({"content": "x"})))
    await platform.up()
    assert (await rest.post({"content": "y"})).status == 200
    assert [each.content for each in await platform.messages(CHANNEL)] == ["x", "y"]


async def test_own_process_works_alike() -> None:
    async with discord_process() as platform, Rest(await platform.api_base_url()) as rest:
        await settle(platform)
        number = await rest.card()
        await platform.freeze_clock()
        press = await platform.press(ANA, CHANNEL, number, "Approve once")
        answer = asyncio.create_task(platform.answer_of(press))
        done = await rest.callback(platform, press, {"type": 7, "data": {"content": "Approved", "components": []}})
        assert done.status == 200 and (await answer).text == "Approved"
        await rest.post({}, files=[("a.txt", b"\x00\xff")])
        assert last(await platform.messages(CHANNEL)).files[0].content == b"\x00\xff"
        await platform.down()
        with pytest.raises(ClientError):
            await rest.post({"content": "x"})
        await platform.up()
        assert (await rest.post({"content": "x"})).status == 200
        with pytest.raises(LookupError):
            await platform.press(ANA, CHANNEL, 1, "Deny")
