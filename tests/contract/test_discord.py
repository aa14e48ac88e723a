"""The adapter contract on Discord, over the gateway and by HTTP interactions, against a loopback Discord."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import Literal

import pytest
from aiohttp import web
from tests.platforms.discord import DiscordPlatform, DiscordServer, FaultKind, SeenMessage
from tests.platforms.discord.markdown import read
from tests.ports import free_port

from signoff.errors import SendAmbiguous
from signoff.model import Answer, Attachment, Destination, Span
from signoff.ports import ChatAdapter, HookRoute
from signoff.testing.adapter_contract import AdapterContract
from signoff.testing.adapter_stage import Call, Seen, SeenButton, Stage, Traits, Trouble, until
from signoff.testing.clock import FakeClock
from signoff_adapters.discord import DiscordAdapter, DiscordConfig

TOKEN = "MTA.TEST.token"
ANA, EVE = 81234567, 666
GUILD, GROUP, OTHER_GROUP, THREAD = 10, 20, 21, 22
CALLS: dict[Call, str] = {
    "post": "create_message",
    "file": "create_message",
    "update": "edit_message",
    "answer": "callback",
}
FAULTS: dict[Trouble, FaultKind] = {"rate_limit": "429", "server_error": "500", "lost_answer": "drop_after"}
READ_AT = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""When a person looks at the messages, in UTC."""
BRACKETS = re.compile(r"⟨(\d+) backticks?⟩")
Trap = Callable[[], AbstractAsyncContextManager[None]]
Mode = Literal["gateway", "http"]


def config_for(mode: Mode, url: str, gateway_url: str, public_key: str, hooks_port: int = 0) -> DiscordConfig:
    """Settings with which a test need not wait, though a busy machine may answer a greeting late."""
    http = mode == "http"
    return DiscordConfig(
        token=TOKEN,
        api_base_url=url,
        gateway_url=gateway_url,
        mode=mode,
        public_key=public_key if http else None,
        hooks_url=f"http://127.0.0.1:{hooks_port}/hooks/ops/discord" if http else None,
        hook_secret="unused" if http else None,
        connect_timeout_s=3.0,
        answer_timeout_s=3.0,
        upload_timeout_s=2.0,
        settle_within_s=3.0,
        drain_s=1.0,
        heartbeat_every_s=0.2,
        silence_s=4.0,
        greeting_timeout_s=3.0,
        identify_gap_s=0.0,
    )


class DiscordStage:
    """One bot in a direct chat, two channels of a server and a thread."""

    group = Destination("discord", str(GROUP))
    other_group = Destination("discord", str(OTHER_GROUP))
    thread: Destination | None = Destination("discord", str(GROUP), str(THREAD))
    person, stranger = str(ANA), str(EVE)
    mention = Span("Ana", "mention", href=str(ANA))

    def __init__(self, discord: DiscordPlatform, urls: tuple[str, str], direct: int, key: str, mode: Mode) -> None:
        self.clock = FakeClock()
        self.discord, self.urls, self.key, self.mode = discord, urls, key, mode
        self.direct = Destination("discord", str(direct))
        self.traits = Traits(
            answer_max=2000,
            server_error_on_post=SendAmbiguous,
            has_files_in_replies=False,
            has_prompts=False,
            has_styles=True,
            has_alerts=False,
            hears_messages=mode == "gateway",
            follows_up=True,
            settles_doubt=True,
            delivers_again=mode == "gateway",
        )
        self.hooks_port = free_port()
        self.adapters: list[ChatAdapter] = []
        gateway: Mapping[str, Trap] = {
            "network_down": self._down,
            "black_hole": self._black_hole,
            "dropped_once": self._dropped,
            "unauthorized_once": lambda: self._refused("401"),
            "not_found_once": lambda: self._refused("404"),
            "server_errors": lambda: self._refused("502"),
            "unreadable_answer": lambda: self._refused("bad_json"),
            "second_client": self._foreign_url,
            "odd_update": self._odd_update,
        }
        http: Mapping[str, Trap] = {
            "network_down": self._down,
            "black_hole": self._black_hole,
            "unauthorized_once": lambda: self._refused("401"),
            "not_found_once": lambda: self._refused("404"),
            "server_errors": lambda: self._refused("502"),
            "unreadable_answer": lambda: self._refused("bad_json"),
            "second_client": self._foreign_url,
            "odd_update": self._odd_post,
        }
        self.traps = gateway if mode == "gateway" else http

    def adapter(self) -> ChatAdapter:
        config = config_for(self.mode, *self.urls, self.key, self.hooks_port)
        adapter = DiscordAdapter(config, clock=self.clock, profile="ops")
        self.adapters.append(adapter)
        return adapter

    @asynccontextmanager
    async def serve(self, route: HookRoute | None) -> AsyncIterator[None]:
        if route is None:
            yield
            return
        app = web.Application()
        app.router.add_route(route.method, "/hooks/ops/discord", route.handler)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.hooks_port, reuse_address=True).start()
        try:
            yield
        finally:
            await runner.cleanup()

    async def seen(self, destination: Destination) -> list[Seen]:
        channel = int(destination.thread_id or destination.chat_id)
        messages = await self.discord.messages(channel)
        return [as_seen(message) for message in messages if message.author_bot and not message.deleted]

    async def press(self, by: str, destination: Destination, message_id: str, token: str) -> str:
        channel = int(destination.thread_id or destination.chat_id)
        return str(await self.discord.press_forged(int(by), channel, int(message_id), token))

    async def press_again(self, press_id: str) -> None:
        await self.discord.redeliver(int(press_id))

    async def answers(self, press_id: str) -> list[Answer]:
        return [Answer(each.text) for each in await self.discord.answers(int(press_id))]

    async def say(self, by: str, destination: Destination, text: str) -> str:
        return str(await self.discord.say(int(by), int(destination.chat_id), text))

    async def spoil(self, trouble: Trouble, call: Call, *, retry_after_s: int = 1) -> None:
        if trouble in FAULTS and not (self.mode == "http" and call == "answer"):
            await self.discord.fault(FAULTS[trouble], call=CALLS[call], retry_after_s=retry_after_s)

    async def remove(self, destination: Destination, message_id: str) -> None:
        await self.discord.delete_message(int(destination.chat_id), int(message_id))

    async def close_thread(self) -> None:
        await self.discord.delete_channel(THREAD)

    async def move_group(self) -> Destination | None:
        return None

    async def network(self, *, up: bool) -> None:
        await (self.discord.up() if up else self.discord.down())

    async def _noticed(self) -> None:
        """With the gateway trouble shows at once; by HTTP at the next look only, when the clock has moved."""
        if self.mode == "gateway":
            await until(lambda: self.adapters[-1].health().state == "degraded", what="the trouble was noticed")

    @asynccontextmanager
    async def _down(self) -> AsyncIterator[None]:
        await self.discord.down()
        await self._noticed()
        yield
        await self.discord.up()

    @asynccontextmanager
    async def _black_hole(self) -> AsyncIterator[None]:
        await self.discord.blackhole()
        yield
        await self._noticed()
        await self.discord.up()

    @asynccontextmanager
    async def _dropped(self) -> AsyncIterator[None]:
        await self.discord.drop_gateway()
        yield

    @asynccontextmanager
    async def _refused(self, kind: FaultKind) -> AsyncIterator[None]:
        """What Discord answers to the next looks at the application, and to the next greeting."""
        await self.discord.fault(kind, call="get_application")
        if self.mode == "gateway":
            await self.discord.fail_handshakes(2)
            await self.discord.drop_gateway()
            await self._noticed()
        yield

    @asynccontextmanager
    async def _foreign_url(self) -> AsyncIterator[None]:
        """Somebody sets an interactions URL elsewhere; beside the gateway that person must take it away again."""
        await self.discord.set_interactions_url("https://other.example/hooks", validate=False)
        await self.clock.advance(31)
        if self.mode == "gateway":
            await self._noticed()
            await self.discord.set_interactions_url(None)
        else:
            await self.discord.until(self.discord.interactions_url, lambda url: url != "https://other.example/hooks")
        yield

    @asynccontextmanager
    async def _odd_update(self) -> AsyncIterator[None]:
        await self.discord.dispatch("INTERACTION_CREATE", {"id": 7, "type": "three", "channel": []})
        await self.discord.dispatch("MESSAGE_CREATE", {"id": None})
        await self.discord.malform_next()
        yield

    @asynccontextmanager
    async def _odd_post(self) -> AsyncIterator[None]:
        url = f"http://127.0.0.1:{self.hooks_port}/hooks/ops/discord"
        assert await self.discord.post_interaction(url, {"id": 7, "type": "three"}) == 400
        yield


def as_seen(message: SeenMessage) -> Seen:
    """What a person reads at `READ_AT`, with backticks that had to be written out put back."""
    reading = read(
        message.content, name_of=lambda mark: "@Ana" if mark == f"user:{ANA}" else None, now=READ_AT.timestamp()
    )
    text = re.sub(r"\b(\d\d:\d\d)\b(?! UTC)", r"\1 UTC", reading.text) if message.timestamps else reading.text
    return Seen(
        message_id=str(message.message_id),
        text=BRACKETS.sub(lambda found: "`" * int(found[1]), text),
        buttons=tuple(SeenButton(each.label, each.custom_id or "", each.style) for each in message.buttons),
        links=tuple(dict.fromkeys((*reading.links, *message.links))),
        reply_to=None if message.reply_to is None else str(message.reply_to),
        silent=message.silent,
        file=Attachment(message.files[0].file_name, message.files[0].content) if message.files else None,
    )


@asynccontextmanager
async def discord_stage(mode: Mode) -> AsyncIterator[DiscordStage]:
    """A fresh Discord with its places, people and bot."""
    async with DiscordServer() as server:
        discord = server.platform
        await discord.add_bot(TOKEN, "ops_signoff_bot")
        await discord.add_user(ANA, "ana", display_name="Ana")
        await discord.add_user(EVE, "eve")
        await discord.add_guild(GUILD, "Ops", members=[ANA, EVE])
        await discord.add_channel(GUILD, GROUP, "deploys")
        await discord.add_channel(GUILD, OTHER_GROUP, "old")
        await discord.add_thread(GROUP, THREAD, "tonight")
        await discord.set_limits(mode="count")
        where = await discord.where()
        urls = (where.url, where.gateway_url)
        yield DiscordStage(discord, urls, await discord.dm(ANA), await discord.public_key(), mode)


class TestDiscordGateway(AdapterContract):
    """Discord over the gateway."""

    @pytest.fixture
    async def stage(self) -> AsyncIterator[Stage]:
        async with discord_stage("gateway") as stage:
            yield stage


class TestDiscordHttp(AdapterContract):
    """Discord by HTTP interactions."""

    @pytest.fixture
    async def stage(self) -> AsyncIterator[Stage]:
        async with discord_stage("http") as stage:
            yield stage
