"""Interactions that Discord posts: signatures, the address, the key, and requests that are none."""

from __future__ import annotations

import asyncio
import contextlib
import io
import time
from collections.abc import AsyncIterator

import aiohttp
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from tests.contract.test_discord import DiscordStage, config_for, discord_stage

from signoff.errors import AdapterError, AdapterFatal
from signoff.testing.adapter_stage import RecordingInbox, card, pass_time, running, until, until_shown
from signoff.testing.clock import FakeClock
from signoff_adapters.discord import DiscordAdapter, DiscordConfig
from signoff_adapters.discord.calls import Calls
from signoff_adapters.discord.hook import Hook
from signoff_adapters.discord.intake import Intake
from signoff_adapters.discord.places import Places
from signoff_adapters.discord.wire import Me

KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
"""RFC 8032, 7.1, test 1: the secret key's public half."""
SECRET = Ed25519PrivateKey.from_private_bytes(
    bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
)


@pytest.fixture
async def stage() -> AsyncIterator[DiscordStage]:
    async with discord_stage("http") as stage:
        yield stage


def url_of(stage: DiscordStage) -> str:
    return f"http://127.0.0.1:{stage.hooks_port}/hooks/ops/discord"


def hook() -> Hook:
    return Hook(KEY, lambda: None, lambda: None)


def headers_for(body: bytes, stamp: str, key: Ed25519PrivateKey = SECRET) -> dict[str, str]:
    """A true signature of this stamp and body."""
    return {"X-Signature-Ed25519": key.sign(stamp.encode() + body).hex(), "X-Signature-Timestamp": stamp}


def now_s() -> int:
    return int(time.time())


def test_a_known_signature_is_good_and_any_change_makes_it_bad() -> None:
    good = headers_for(b"", str(now_s()))
    signature = good["X-Signature-Ed25519"]
    assert hook().signed(good, b"")
    assert not hook().signed(good, b"{}")
    assert not hook().signed({**good, "X-Signature-Timestamp": str(now_s() - 1)}, b"")
    other = ("0" if signature[0] != "0" else "1") + signature[1:]
    assert not hook().signed({**good, "X-Signature-Ed25519": other}, b"")
    assert not hook().signed({}, b"")


@pytest.mark.parametrize(
    ("age_s", "good"), [(290, True), (-290, True), (310, False), (-310, False), (180_000_000, False)]
)
def test_what_was_signed_long_ago_is_refused(age_s: int, good: bool) -> None:
    assert hook().signed(headers_for(b"{}", str(now_s() - age_s)), b"{}") == good


@pytest.mark.parametrize("stamp", ["", "soon", " 1", "-1", "+1", "٣", "1.0", "9" * 5000])
def test_a_stamp_that_is_no_time_is_refused_though_signed(stamp: str) -> None:
    assert not hook().signed(headers_for(b"{}", stamp), b"{}")


@given(st.text(), st.text(), st.binary(max_size=50))
def test_odd_headers_are_wrong_signatures(signature: str, at: str, body: bytes) -> None:
    assert not hook().signed({"X-Signature-Ed25519": signature, "X-Signature-Timestamp": at}, body)


async def test_our_address_is_set_and_pings_are_answered_by_signature(stage: DiscordStage) -> None:
    async with running(stage, RecordingInbox()):
        assert await stage.discord.interactions_url() == url_of(stage)
        pings = await stage.discord.ping_interactions()
    assert {ping.signature: ping.status for ping in pings} == {
        "good": 200,
        "bad": 401,
        "other_key": 401,
        "missing": 401,
        "stale_body": 401,
    }


async def test_a_badly_signed_press_does_nothing(stage: DiscordStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        press = await stage.press(stage.person, stage.group, posted.message_id, "t-approve")
        await until(lambda: len(inbox.taps) == 1, what="the real one is in")
        payload = await stage.discord.payload(int(press))
        forged = {**payload, "id": "42"}
        for signing in ("bad", "other_key", "missing", "stale_body"):
            assert await stage.discord.post_interaction(url_of(stage), forged, signing=signing) == 401
        assert await stage.discord.post_interaction(url_of(stage), payload) == 409
    assert len(inbox.taps) == 1


@pytest.mark.parametrize("body", [{}, {"type": 3}, {"id": 5, "type": 3}, {"id": "5", "type": "3", "channel": []}])
async def test_what_is_no_interaction_is_refused(stage: DiscordStage, body: dict[str, object]) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        assert await stage.discord.post_interaction(url_of(stage), body) == 400
        assert adapter.health().state == "ready"


async def test_a_large_body_is_refused_before_it_is_looked_at(stage: DiscordStage) -> None:
    large = io.BytesIO(b"x" * (1024 * 1024 + 1))
    async with (
        running(stage, RecordingInbox()),
        aiohttp.ClientSession() as session,
        session.post(url_of(stage), data=large) as response,
    ):
        assert response.status == 413


async def test_before_the_start_only_pings_are_answered(stage: DiscordStage) -> None:
    adapter = stage.adapter()
    async with stage.serve(adapter.hooks()):
        press = {"id": "5", "type": 3, "channel_id": "20", "data": {"custom_id": "t"}}
        assert await stage.discord.post_interaction(url_of(stage), press) == 503
        assert await stage.discord.post_interaction(url_of(stage), {"type": 1}) == 200
    await adapter.aclose()


async def test_the_key_of_another_application_ends_the_run(stage: DiscordStage) -> None:
    config = msgspec.structs.replace(config_for("http", *stage.urls, stage.key, stage.hooks_port), public_key=KEY)
    adapter = DiscordAdapter(config, clock=stage.clock, profile="ops")
    with pytest.raises(AdapterFatal, match=r"platforms\.discord\.public_key"):
        await adapter.run(RecordingInbox())
    await adapter.aclose()


async def test_an_address_that_discord_cannot_reach_is_told_and_tried_again(stage: DiscordStage) -> None:
    adapter = stage.adapter()
    task = asyncio.create_task(adapter.run(RecordingInbox()))
    with pytest.raises(AdapterError, match=r"gateway\.hooks_url"):
        await adapter.ready()
    async with stage.serve(adapter.hooks()):
        await pass_time(stage.clock, lambda: adapter.health().state == "ready", within_s=60, what="it is ready")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await adapter.aclose()


async def looked(stage: DiscordStage) -> None:
    """Let the next look at the application come, and be done."""
    health, before = stage.adapters[-1].health, stage.clock.now()
    await stage.clock.advance(31)
    await until(lambda: (health().last_heard_at or before) > before, what="it looked", limit_s=10)


async def tries(stage: DiscordStage) -> int:
    """How often Discord was given the address, which makes it ping."""
    return len(await stage.discord.log(call="edit_application"))


async def test_an_address_that_leads_here_no_more_is_noticed_though_nobody_presses(stage: DiscordStage) -> None:
    adapter = stage.adapter()
    task = asyncio.create_task(adapter.run(RecordingInbox()))
    try:
        async with stage.serve(adapter.hooks()):
            await pass_time(stage.clock, lambda: adapter.health().state == "ready", within_s=60, what="it is ready")
        for _ in range(3):
            await looked(stage)
        await stage.clock.advance(31)
        await until(lambda: "gateway.hooks_url" in adapter.health().detail, what="it is told")
        assert adapter.health().state == "degraded"
        async with stage.serve(adapter.hooks()):
            await pass_time(stage.clock, lambda: adapter.health().state == "ready", within_s=30, what="it is ready")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await adapter.aclose()


async def test_a_press_shows_that_the_address_leads_here(stage: DiscordStage) -> None:
    inbox = RecordingInbox()
    async with running(stage, inbox) as adapter:
        assert await tries(stage) == 1
        posted = await adapter.post(stage.group, card())
        for _ in range(2):
            await looked(stage)
        await stage.press(stage.person, stage.group, posted.message_id, "t-approve")
        await until(lambda: bool(inbox.taps), what="the tap is in")
        for _ in range(3):
            await looked(stage)
        assert await tries(stage) == 1
        for _ in range(2):
            await looked(stage)
        assert await tries(stage) == 2


async def test_a_wait_puts_off_the_ping_and_is_no_trouble(stage: DiscordStage) -> None:
    async with running(stage, RecordingInbox()) as adapter:
        await stage.discord.fault("429", call="edit_application", retry_after_s=5)
        for _ in range(5):
            await looked(stage)
            assert adapter.health().state == "ready"


async def test_a_press_that_was_answered_too_late_reaches_the_core(stage: DiscordStage) -> None:
    """The clock stands still, so no neutral answer comes, and our time is over before Discord's."""
    inbox = RecordingInbox()
    inbox.held.add(stage.group.chat_id)
    async with running(stage, inbox) as adapter:
        posted = await adapter.post(stage.group, card())
        press = int(await stage.press(stage.person, stage.group, posted.message_id, "t-approve"))
        await until_shown(lambda: _failed(stage, press), what="the person read that it failed")
        inbox.release()
        await until(lambda: bool(inbox.untold), what="the core was told")


class Held:
    """A hook whose inbox holds each press until it is released, and one signed press of it."""

    def __init__(self, within_s: float) -> None:
        self.inbox, self.gone = RecordingInbox(), asyncio.Event()
        self.inbox.held.add("20")
        config = DiscordConfig(token="t")
        self._calls = Calls(config)
        self._intake = Intake(self.inbox, FakeClock(), config, self._calls, Places(self._calls), lambda: Me("1", "2"))
        self._hook = Hook(KEY, lambda: self._intake, lambda: None, within_s=within_s)

    @contextlib.asynccontextmanager
    async def posted(self) -> AsyncIterator[asyncio.Future[aiohttp.ClientResponse]]:
        """The request under way, once its press is in; at the end the core was told that it was not answered."""
        app = web.Application()
        app.router.add_post("/", self._respond)
        press = {"id": "43", "type": 3, "channel": {"id": "20"}, "user": {"id": "81"}, "data": {"custom_id": "t"}}
        body = msgspec.json.encode(press)
        async with TestServer(app, handler_cancellation=True) as server, aiohttp.ClientSession() as session:
            headers = headers_for(body, str(now_s()))
            request = asyncio.ensure_future(session.post(server.make_url("/"), data=body, headers=headers))
            await until(lambda: bool(self.inbox.taps), what="the press is in")
            yield request
            self.inbox.release()
            await until(lambda: len(self.inbox.untold) == 1, what="the core was told")
        await self._intake.drain(1.0)
        await self._calls.aclose()

    async def _respond(self, request: web.Request) -> web.Response:
        try:
            return await self._hook.respond(request)
        finally:
            self.gone.set()


async def test_a_request_that_discord_breaks_off_ends() -> None:
    held = Held(within_s=60)
    async with held.posted() as request:
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        await until(held.gone.is_set, what="the end of the connection was seen")


async def test_a_proxy_that_still_waits_is_told_so() -> None:
    """Behind a proxy nobody hangs up on us, so the seconds are counted here."""
    held = Held(within_s=0.1)
    async with held.posted() as request:
        assert (await request).status == 504


async def _failed(stage: DiscordStage, press: int) -> bool:
    return (await stage.discord.press_state(press)).http_status is not None
