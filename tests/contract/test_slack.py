"""The adapter contract, run against the Slack adapter over loopback sockets and signed requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal

import pytest
from aiohttp import web
from tests.platforms.slack import FaultKind, SeenMessage, SlackPlatform, SlackServer
from tests.ports import free_port

from signoff.errors import SendAmbiguous
from signoff.model import Answer, Attachment, Destination, Span
from signoff.ports import ChatAdapter, HookRoute
from signoff.testing.adapter_contract import AdapterContract
from signoff.testing.adapter_stage import Call, Seen, SeenButton, Stage, Traits, Trouble, pass_time, until_shown
from signoff.testing.clock import FakeClock
from signoff_adapters.slack import SlackAdapter, SlackConfig

BOT_TOKEN, APP_TOKEN, SECRET = "xoxb-TEST-token", "xapp-TEST-token", "signing-secret"
ANA, EVE = "U0ANA", "U0EVE"
GROUP, OTHER_GROUP, FORUM = "C0OPS", "C0OLD", "C0FORUM"
METHODS: dict[Call, str] = {
    "post": "chat.postMessage",
    "file": "files.completeUploadExternal",
    "update": "chat.update",
    "answer": "response_url",
    "receive": "apps.connections.open",
}
FAULTS: dict[Trouble, FaultKind] = {"rate_limit": "429", "server_error": "500", "lost_answer": "drop_after"}
STYLES = {"primary": "success", "danger": "danger"}
TOLD = ("ephemeral", "message", "replaced")
Mode = Literal["socket", "http"]
Trap = Callable[[], AbstractAsyncContextManager[None]]


class SlackStage:
    """One app in a direct chat, two channels and a thread of a third."""

    traits = Traits(
        answer_max=3000,
        server_error_on_post=SendAmbiguous,
        has_files_in_replies=False,
        has_prompts=False,
        has_styles=True,
        has_alerts=False,
        has_silence=False,
        keeps_presses=False,
        follows_up=True,
        delivers_again=False,
        clock_shown="9:05 AM",
    )
    group = Destination("slack", GROUP)
    other_group = Destination("slack", OTHER_GROUP)
    person, stranger = ANA, EVE
    mention = Span("Ana", "mention", href=ANA)

    def __init__(self, slack: SlackPlatform, url: str, bot: str, direct: str, root: str, mode: Mode) -> None:
        self.clock = FakeClock()
        self.slack, self.url, self.bot, self.mode = slack, url, bot, mode
        self.direct = Destination("slack", direct)
        self.thread: Destination | None = Destination("slack", FORUM, root)
        self.hooks_port = free_port()
        self.adapters: list[ChatAdapter] = []
        socket: Mapping[str, Trap] = {
            "network_down": self._down,
            "black_hole": self._black_hole,
            "dropped_once": lambda: self._reopening(None),
            "unauthorized_once": lambda: self._reopening("error", error="invalid_auth"),
            "not_found_once": lambda: self._reopening("handshake", method="socket"),
            "server_errors": lambda: self._reopening("503", times=3),
            "unreadable_answer": lambda: self._reopening("bad_json"),
            "odd_update": self._odd_update,
        }
        http: Mapping[str, Trap] = {
            "network_down": self._down,
            "black_hole": self._black_hole,
            "unauthorized_once": lambda: self._asking("error", error="invalid_auth"),
            "server_errors": lambda: self._asking("500", times=3),
            "unreadable_answer": lambda: self._asking("bad_json"),
            "odd_update": self._odd_update,
        }
        self.traps = socket if mode == "socket" else http

    def config(self, **changes: Any) -> SlackConfig:
        """Settings with short limits."""
        given: dict[str, Any] = {
            "bot_token": BOT_TOKEN,
            "app_token": APP_TOKEN,
            "signing_secret": SECRET,
            "api_base_url": self.url,
            "mode": self.mode,
            "hooks_url": self.hooks_url if self.mode == "http" else None,
            "answer_timeout_s": 3.0,
            "connect_timeout_s": 3.0,
            "drain_s": 1.0,
            "file_shown_s": 1.0,
        }
        return SlackConfig(**(given | changes))

    def adapter(self, **changes: Any) -> ChatAdapter:
        adapter = SlackAdapter(self.config(**changes), clock=self.clock, profile="ops")
        self.adapters.append(adapter)
        return adapter

    @property
    def hooks_url(self) -> str:
        """Where the app's request URL points to."""
        return f"http://127.0.0.1:{self.hooks_port}/hooks/ops/slack"

    @asynccontextmanager
    async def serve(self, route: HookRoute | None) -> AsyncIterator[None]:
        if route is None:
            yield
            return
        app = web.Application()
        app.router.add_route(route.method, "/hooks/ops/slack", route.handler)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.hooks_port, reuse_address=True).start()
        await self.slack.set_request_url(self.hooks_url)
        try:
            yield
        finally:
            await runner.cleanup()

    async def seen(self, destination: Destination) -> list[Seen]:
        messages = await self.slack.messages(destination.chat_id)
        ours = {message.ts for message in messages if message.user == self.bot}
        if destination.thread_id is not None:
            here = [each for each in messages if each.thread_ts == destination.thread_id]
        else:
            here = [each for each in messages if each.thread_ts is None or each.thread_ts in ours]
        return [as_seen(each) for each in here if each.user == self.bot and not each.deleted]

    async def press(self, by: str, destination: Destination, message_id: str, token: str) -> str:
        return await self.slack.press_forged(by, destination.chat_id, message_id, token)

    async def press_again(self, press_id: str) -> None:
        await self.slack.redeliver(press_id)

    async def answers(self, press_id: str) -> list[Answer]:
        return [Answer(each.text) for each in (await self.slack.press_state(press_id)).answers if each.kind in TOLD]

    async def say(self, by: str, destination: Destination, text: str) -> str:
        return await self.slack.say(by, destination.chat_id, text, thread_ts=destination.thread_id)

    async def spoil(self, trouble: Trouble, call: Call, *, retry_after_s: int = 1) -> None:
        if trouble != "refuse_formatting":
            await self.slack.fault(FAULTS[trouble], method=METHODS[call], retry_after_s=retry_after_s)

    async def remove(self, destination: Destination, message_id: str) -> None:
        await self.slack.delete_message(destination.chat_id, message_id)

    async def close_thread(self) -> None:
        await self.slack.fault("error", method="chat.postMessage", channel=FORUM, error="thread_not_found")

    async def move_group(self) -> Destination | None:
        return None

    async def network(self, *, up: bool) -> None:
        await (self.slack.up() if up else self.slack.down())

    async def noticed(self) -> None:
        """The adapter knows that something is wrong."""
        adapter = self.adapters[-1]
        await pass_time(
            self.clock, lambda: adapter.health().state == "degraded", within_s=90, what="the trouble was noticed"
        )

    @asynccontextmanager
    async def _down(self) -> AsyncIterator[None]:
        await self.slack.down()
        await self.noticed()
        yield
        await self.slack.up()

    @asynccontextmanager
    async def _black_hole(self) -> AsyncIterator[None]:
        await self.slack.blackhole()
        yield
        await self.noticed()
        await self.slack.up()

    @asynccontextmanager
    async def _reopening(
        self, kind: FaultKind | None, *, times: int = 1, error: str | None = None, method: str = METHODS["receive"]
    ) -> AsyncIterator[None]:
        """All sockets break, and opening new ones goes wrong at first."""
        before = {each.number for each in await self.slack.sockets()}
        if kind is not None:
            await self.slack.fault(kind, method=method, times=times, error=error)
        await self.slack.abort_sockets()
        await until_shown(lambda: self._others_than(before, 0), what="the sockets are gone")
        yield
        # The adapter may not have noticed yet that its sockets broke, so being ready says nothing before they are new.
        opened = asyncio.create_task(until_shown(lambda: self._others_than(before, 1), what="a socket is open"))
        await pass_time(self.clock, opened.done, within_s=60, what="a socket is open")
        await opened
        await pass_time(
            self.clock, lambda: self.adapters[-1].health().state == "ready", within_s=60, what="it is healed"
        )

    async def _others_than(self, before: set[int], least: int) -> bool:
        now = {each.number for each in await self.slack.sockets()}
        return not now & before and len(now) >= least

    @asynccontextmanager
    async def _asking(self, kind: FaultKind, *, times: int = 1, error: str | None = None) -> AsyncIterator[None]:
        """Slack does not say who we are at first."""
        await self.slack.fault(kind, method="auth.test", times=times, error=error)
        await self.noticed()
        yield

    @asynccontextmanager
    async def _odd_update(self) -> AsyncIterator[None]:
        await self.slack.raw_event({"type": "message", "channel": ["C"], "ts": 7, "user": {"id": None}})
        await self.slack.raw_interaction({"type": "block_actions", "user": "Ana", "actions": {}})
        await self.slack.raw_frame("{not json")
        await self.slack.raw_frame('["neither", "this"]')
        yield


def as_seen(message: SeenMessage) -> Seen:
    """What a person sees, as the contract puts it."""
    file = message.files[0] if message.files else None
    return Seen(
        message_id=message.ts,
        text=message.text,
        buttons=tuple(
            SeenButton(each.label, each.value or "", STYLES.get(each.style or "")) for each in message.buttons
        ),
        links=tuple(dict.fromkeys((*message.links, *(f"@{each}" for each in message.pings if not message.links)))),
        reply_to=message.thread_ts,
        file=None if file is None else Attachment(file.name, file.content),
    )


@asynccontextmanager
async def slack_stage(mode: Mode, *, control: bool = False) -> AsyncIterator[SlackStage]:
    """A fresh workspace with its places, people and app."""
    async with SlackServer(control=control) as server:
        slack = server.platform
        bot = await slack.add_bot(BOT_TOKEN, APP_TOKEN, signing_secret=SECRET)
        await slack.add_user(ANA, "Ana R", display_name="Ana")
        await slack.add_user(EVE, "Eve")
        await slack.add_channel(GROUP, "ops", members=[ANA, EVE])
        await slack.add_channel(OTHER_GROUP, "old", members=[ANA])
        await slack.add_channel(FORUM, "deploys", members=[ANA, EVE])
        direct = await slack.add_dm(ANA)
        root = await slack.start_thread(FORUM, ANA)
        await slack.set_limits(mode="count")
        yield SlackStage(slack, (await slack.where()).url, bot, direct, root, mode)


class TestSlackSocket(AdapterContract):
    """Slack by Socket Mode."""

    @pytest.fixture
    async def stage(self) -> AsyncIterator[Stage]:
        async with slack_stage("socket") as stage:
            yield stage


class TestSlackHttp(AdapterContract):
    """Slack by signed requests."""

    @pytest.fixture
    async def stage(self) -> AsyncIterator[Stage]:
        async with slack_stage("http") as stage:
            yield stage
