"""The adapter contract, run against the real adapters over loopback sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Literal

import aiohttp
import pytest
from aiohttp import web
from tests.platforms.telegram import FaultKind, SeenMessage, TelegramPlatform, TelegramServer, rules
from tests.ports import free_port

from signoff.errors import SendAmbiguous
from signoff.model import Answer, Attachment, Destination, Span
from signoff.ports import ChatAdapter, HookRoute
from signoff.testing.adapter_contract import AdapterContract
from signoff.testing.adapter_stage import Call, Seen, SeenButton, Stage, Traits, Trouble, until
from signoff.testing.clock import FakeClock
from signoff_adapters.telegram import TelegramAdapter, TelegramConfig

TOKEN = "123456:TEST-token"
ANA, EVE = 81234567, 666
GROUP, OTHER_GROUP, FORUM = -1001000000001, -4002, -1001000000003
METHODS: dict[Call, str] = {
    "post": "sendMessage",
    "file": "sendDocument",
    "update": "editMessageText",
    "answer": "answerCallbackQuery",
    "receive": "getUpdates",
}
FAULTS: dict[Trouble, FaultKind] = {"rate_limit": "429", "server_error": "500", "lost_answer": "drop_after"}
Trap = Callable[[], AbstractAsyncContextManager[None]]


class TelegramStage:
    """One bot in a direct chat, two groups and a topic of a forum."""

    traits = Traits(
        answer_max=200,
        server_error_on_post=SendAmbiguous,
        has_files_in_replies=True,
        has_prompts=True,
        has_styles=True,
    )
    direct = Destination("telegram", str(ANA))
    group = Destination("telegram", str(GROUP))
    other_group = Destination("telegram", str(OTHER_GROUP))
    person, stranger = str(ANA), str(EVE)
    mention = Span("Ana", "mention", href=f"tg://user?id={ANA}")

    def __init__(self, telegram: TelegramPlatform, url: str, topic: int, mode: Literal["polling", "webhook"]) -> None:
        self.clock = FakeClock()
        self.thread: Destination | None = Destination("telegram", str(FORUM), str(topic))
        self.telegram, self.url, self.mode = telegram, url, mode
        self.hooks_port = free_port()
        self.adapters: list[ChatAdapter] = []
        polling: Mapping[str, Trap] = {
            "network_down": self._down,
            "black_hole": self._black_hole,
            "dropped_once": lambda: self._faulty("drop_before", 1),
            "unauthorized_once": lambda: self._faulty("401", 3),
            "not_found_once": lambda: self._faulty("404", 3),
            "server_errors": lambda: self._faulty("502", 3),
            "unreadable_answer": lambda: self._faulty("bad_json", 1),
            "second_client": self._second_poller,
            "odd_update": self._odd_update,
        }
        webhook: Mapping[str, Trap] = {
            "network_down": self._down,
            "black_hole": self._black_hole,
            "dropped_once": self._lost_delivery,
            "second_client": self._foreign_webhook,
            "odd_update": self._odd_update,
        }
        self.traps = polling if mode == "polling" else webhook

    def adapter(self) -> ChatAdapter:
        config = TelegramConfig(
            token=TOKEN,
            api_base_url=self.url,
            mode=self.mode,
            hooks_url=f"http://127.0.0.1:{self.hooks_port}/hooks/ops/telegram",
            hook_secret="hook-secret",
            poll_timeout_s=1,
            answer_timeout_s=3.0,
            connect_timeout_s=3.0,
            drain_s=1.0,
        )
        adapter = TelegramAdapter(config, clock=self.clock, profile="ops")
        self.adapters.append(adapter)
        return adapter

    @asynccontextmanager
    async def serve(self, route: HookRoute | None) -> AsyncIterator[None]:
        if route is None:
            yield
            return
        app = web.Application()
        app.router.add_route(route.method, "/hooks/ops/telegram", route.handler)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.hooks_port, reuse_address=True).start()
        try:
            yield
        finally:
            await runner.cleanup()

    async def seen(self, destination: Destination) -> list[Seen]:
        thread = None if destination.thread_id is None else int(destination.thread_id)
        if thread is None and destination.chat_id == str(FORUM):
            thread = 1
        messages = await self.telegram.messages(int(destination.chat_id), thread)
        return [as_seen(message) for message in messages if message.from_bot and not message.deleted]

    async def press(self, by: str, destination: Destination, message_id: str, token: str) -> str:
        return await self.telegram.press_forged(int(by), int(destination.chat_id), int(message_id), token)

    async def press_again(self, press_id: str) -> None:
        await self.telegram.redeliver((await self.telegram.press_state(press_id)).update_id)

    async def answers(self, press_id: str) -> list[Answer]:
        log = await self.telegram.log(method="answerCallbackQuery")
        calls = [entry.parameters for entry in log if str(entry.parameters.get("callback_query_id")) == press_id]
        return [Answer(call.get("text", ""), str(call.get("show_alert")).lower() == "true") for call in calls]

    async def say(self, by: str, destination: Destination, text: str) -> str:
        return str(await self.telegram.say(int(by), int(destination.chat_id), text))

    async def spoil(self, trouble: Trouble, call: Call, *, retry_after_s: int = 1) -> None:
        if trouble == "refuse_formatting":
            rules.ENTITY_TYPES = rules.ENTITY_TYPES - {"date_time"}
            return
        await self.telegram.fault(FAULTS[trouble], method=METHODS[call], retry_after_s=retry_after_s)

    async def remove(self, destination: Destination, message_id: str) -> None:
        (message,) = [
            each
            for each in await self.telegram.messages(int(destination.chat_id))
            if each.message_id == int(message_id)
        ]
        async with aiohttp.ClientSession() as session:
            place = {"chat_id": message.chat_id, "message_id": message.message_id}
            async with session.post(f"{self.url}/bot{TOKEN}/deleteMessage", json=place) as response:
                assert response.status == 200

    async def close_thread(self) -> None:
        assert self.thread is not None
        await self.telegram.delete_topic(FORUM, int(self.thread.thread_id or 0))

    async def move_group(self) -> Destination | None:
        return Destination("telegram", str(await self.telegram.migrate(OTHER_GROUP)))

    async def network(self, *, up: bool) -> None:
        await (self.telegram.up() if up else self.telegram.down())

    async def _noticed(self) -> None:
        """A poll has failed. Webhook mode sees trouble at its next look only, when the clock has moved."""
        if self.mode == "polling":
            await until(lambda: self.adapters[-1].health().state == "degraded", what="the trouble was noticed")

    @asynccontextmanager
    async def _down(self) -> AsyncIterator[None]:
        await self.telegram.down()
        await self._noticed()
        yield
        await self.telegram.up()

    @asynccontextmanager
    async def _black_hole(self) -> AsyncIterator[None]:
        await self.telegram.blackhole()
        yield
        await self._noticed()
        await self.telegram.up()

    @asynccontextmanager
    async def _faulty(self, kind: FaultKind, times: int) -> AsyncIterator[None]:
        await self.telegram.fault(kind, method="getUpdates", times=times)
        await self._noticed()
        yield

    @asynccontextmanager
    async def _second_poller(self) -> AsyncIterator[None]:
        async with aiohttp.ClientSession() as session:
            while self.adapters[-1].health().state == "ready":
                await session.post(f"{self.url}/bot{TOKEN}/getUpdates", json={"timeout": 0})
            yield

    @asynccontextmanager
    async def _lost_delivery(self) -> AsyncIterator[None]:
        await self.telegram.fault("drop_after", method="webhook")
        yield

    @asynccontextmanager
    async def _foreign_webhook(self) -> AsyncIterator[None]:
        async with aiohttp.ClientSession() as session:
            other = {"url": f"http://127.0.0.1:{free_port()}/other"}
            await session.post(f"{self.url}/bot{TOKEN}/setWebhook", json=other)
            yield

    @asynccontextmanager
    async def _odd_update(self) -> AsyncIterator[None]:
        await self.telegram.raw_update({"message": {"message_id": "seven", "chat": [], "date": None}})
        yield


def as_seen(message: SeenMessage) -> Seen:
    """What a person sees, as the contract puts it."""
    pings = [each["type"] for each in message.entities if each["type"] == "text_mention"]
    document = message.document
    return Seen(
        message_id=str(message.message_id),
        text=message.text,
        buttons=tuple(SeenButton(each.label, each.callback_data or "", each.style) for each in message.buttons),
        links=(*message.links, *pings),
        reply_to=None if message.reply_to is None else str(message.reply_to),
        silent=message.silent,
        file=None if document is None else Attachment(document.file_name, document.content),
        prompt=message.placeholder if message.force_reply else None,
    )


@asynccontextmanager
async def telegram_stage(mode: Literal["polling", "webhook"]) -> AsyncIterator[TelegramStage]:
    """A fresh Telegram with its places, people and bot."""
    known = rules.ENTITY_TYPES
    async with TelegramServer() as server:
        telegram = server.platform
        bot = await telegram.add_bot(TOKEN, "ops_signoff_bot")
        await telegram.add_user(ANA, "Ana", last_name="R", username="ana_ops")
        await telegram.add_user(EVE, "Eve")
        await telegram.add_group(GROUP, "ops", members=[ANA, EVE, bot], supergroup=True)
        await telegram.add_group(OTHER_GROUP, "old", members=[ANA, bot])
        await telegram.add_group(FORUM, "forum", members=[ANA, EVE, bot], forum=True)
        topic = await telegram.add_topic(FORUM, "deploys")
        await telegram.set_limits(mode="count")
        try:
            yield TelegramStage(telegram, (await telegram.where()).url, topic, mode)
        finally:
            rules.ENTITY_TYPES = known
            await asyncio.sleep(0)


class TestTelegramPolling(AdapterContract):
    """Telegram by long polls."""

    @pytest.fixture
    async def stage(self) -> AsyncIterator[Stage]:
        async with telegram_stage("polling") as stage:
            yield stage


class TestTelegramWebhook(AdapterContract):
    """Telegram by webhook."""

    @pytest.fixture
    async def stage(self) -> AsyncIterator[Stage]:
        async with telegram_stage("webhook") as stage:
            yield stage
