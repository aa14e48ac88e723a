"""What the tests of the loopback Discord share: a place with people, a plain REST caller and a discord.py client."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import discord
import yarl
from aiohttp import ClientSession, ClientTimeout, FormData, WSMsgType
from discord.gateway import DiscordWebSocket, KeepAliveHandler
from discord.http import Route
from msgspec import Struct, json

from .model import SeenMessage
from .platform import DiscordPlatform

TOKEN = "MTIz.TESTTOKEN.abc"
BOT, ANA, BO, EVE = 999, 111, 222, 333
GUILD, CHANNEL, OTHER, THREAD = 10, 20, 21, 30


class Answered(Struct, frozen=True):
    """An answer of the REST API."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def code(self) -> int:
        """Discord's error code."""
        return int(self.body.get("code", 0))

    def error(self, *path: str | int) -> str:
        """The code of the first fault at a place in the tree of a 50035."""
        node = self.body["errors"]
        for step in path:
            node = node[str(step)]
        return str(node["_errors"][0]["code"])


class Rest:
    """Plain calls with the bot's token, without any client library."""

    def __init__(self, base: str, token: str = TOKEN) -> None:
        self.base = base
        self._headers = {"Authorization": f"Bot {token}"}
        self._session: ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = ClientSession(timeout=ClientTimeout(total=5))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def call(self, method: str, path: str, body: Any = None, files: Sequence[tuple[str, bytes]] = ()) -> Answered:
        """One request; the answer must come exactly as `application/json`."""
        assert self._session is not None
        headers = dict(self._headers)
        data: Any = None
        if files:
            data = FormData(quote_fields=False)
            data.add_field("payload_json", json.encode(body or {}).decode())
            for number, (name, content) in enumerate(files):
                data.add_field(f"files[{number}]", io.BytesIO(content), filename=name)
        elif body is not None:
            data = body if isinstance(body, bytes) else json.encode(body)
            headers["Content-Type"] = "application/json"
        async with self._session.request(method, self.base + path, data=data, headers=headers) as response:
            raw = await response.read()
            if response.status != 204:
                assert response.headers["Content-Type"] == "application/json"
            return Answered(response.status, json.decode(raw) if raw else None, dict(response.headers))

    async def post(self, body: Any, channel_id: int = CHANNEL, files: Sequence[tuple[str, bytes]] = ()) -> Answered:
        """Send a message."""
        return await self.call("POST", f"/channels/{channel_id}/messages", body, files)

    async def card(self, channel_id: int = CHANNEL, **more: Any) -> int:
        """Send a small card with two buttons; the message's id."""
        sent = await self.post({"content": "Low: lists files", "components": rows(), **more}, channel_id)
        assert sent.status == 200, sent.body
        return int(sent.body["id"])

    async def callback(self, platform: DiscordPlatform, interaction_id: int, body: Any) -> Answered:
        """Answer an interaction."""
        token = (await platform.payload(interaction_id))["token"]
        return await self.call("POST", f"/interactions/{interaction_id}/{token}/callback?with_response=1", body)

    async def by_token(
        self, platform: DiscordPlatform, interaction_id: int, method: str, rest: str = "", body: Any = None
    ) -> Answered:
        """A follow-up call: `rest` is empty or `/messages/@original`."""
        token = (await platform.payload(interaction_id))["token"]
        return await self.call(method, f"/webhooks/{BOT}/{token}{rest}", body)


def button(label: str, custom_id: str | None, style: int = 2, **more: Any) -> dict[str, Any]:
    """A button."""
    return {"type": 2, "label": label, "style": style, **({"custom_id": custom_id} if custom_id else {}), **more}


def rows(*given: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Action rows; two buttons by default."""
    wanted = given or ([button("Approve once", "t-approve", 3), button("Deny", "t-deny", 4)],)
    return [{"type": 1, "components": list(row)} for row in wanted]


async def settle(platform: DiscordPlatform) -> None:
    """A bot, three people, a guild with two channels and a thread."""
    await platform.add_bot(TOKEN, "signoff", bot_id=BOT)
    for number, name in ((ANA, "ana"), (BO, "bo"), (EVE, "eve")):
        await platform.add_user(number, name, display_name=name.capitalize())
    await platform.add_guild(GUILD, "Ops", members=[ANA, BO, EVE])
    await platform.add_channel(GUILD, CHANNEL, "deploys")
    await platform.add_channel(GUILD, OTHER, "other")
    await platform.add_thread(CHANNEL, THREAD, "release 7")


class Socket:
    """A gateway client of few words."""

    def __init__(self, url: str, session: ClientSession) -> None:
        self._url = url
        self._session = session

    async def open(self) -> None:
        """Connect and take HELLO."""
        self._socket = await self._session.ws_connect(self._url)
        hello = await self.take()
        assert hello["op"] == 10

    async def send(self, operation: int, data: Any) -> None:
        """Send one operation."""
        await self._socket.send_str(json.encode({"op": operation, "d": data}).decode())

    async def identify(self, intents: int = 1, token: str = TOKEN) -> None:
        """Begin a session."""
        await self.send(2, {"token": token, "intents": intents, "properties": {}})

    async def take(self) -> Any:
        """The next frame, or `{"closed": code}`."""
        message = await asyncio.wait_for(self._socket.receive(), 15)
        if message.type is not WSMsgType.TEXT:
            return {"closed": self._socket.close_code}
        return json.decode(message.data)

    async def until(self, event: str) -> Any:
        """The next dispatch of this name."""
        while True:
            frame = await self.take()
            assert "closed" not in frame, frame
            if frame["t"] == event:
                return frame

    async def close(self, code: int = 4000) -> None:
        """Close; with 4000 the session stays."""
        await self._socket.close(code=code)


class Bot(discord.Client):
    """A discord.py client that keeps its interactions and lets tests answer them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            intents=options.pop("intents", discord.Intents(guilds=True)),
            max_messages=None,
            guild_ready_timeout=0.05,
            allowed_mentions=discord.AllowedMentions.none(),
            **options,
        )
        self.got: asyncio.Queue[discord.Interaction[Any]] = asyncio.Queue()
        self.resumed = asyncio.Event()
        self.loop_task: asyncio.Task[None] | None = None

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """The stock one waits five seconds."""

    async def on_interaction(self, interaction: discord.Interaction[Any]) -> None:
        """Keep it."""
        self.got.put_nowait(interaction)

    async def on_resumed(self) -> None:
        """Remember."""
        self.resumed.set()

    async def next(self) -> discord.Interaction[Any]:
        """The next interaction."""
        return await asyncio.wait_for(self.got.get(), 15)


@asynccontextmanager
async def bot(platform: DiscordPlatform, **options: Any) -> AsyncIterator[Bot]:
    """A connected discord.py client, ready; closed afterwards."""
    where = await platform.where()
    before = Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY
    Route.BASE = where.api_base_url
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(where.gateway_url)
    client = Bot(**options)
    try:
        await client.login(TOKEN)
        client.loop_task = asyncio.create_task(client.connect())
        await asyncio.wait_for(client.wait_until_ready(), 15)
        yield client
    finally:
        await client.close()
        if client.loop_task is not None:
            client.loop_task.cancel()
            await asyncio.gather(client.loop_task, return_exceptions=True)
        await heartbeats_over()
        Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = before


async def heartbeats_over() -> None:
    """The library's heartbeat threads are ended by asking only; one may yet send to a loop that is closed by then."""
    for thread in threading.enumerate():
        if isinstance(thread, KeepAliveHandler):
            thread.stop()
            await asyncio.to_thread(thread.join, 5)


def last(messages: list[SeenMessage]) -> SeenMessage:
    """The newest message."""
    return messages[-1]
