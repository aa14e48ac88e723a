"""Interactions over HTTP: signed posts to an application's interactions URL, and the pings that try it."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import msgspec
from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, MultipartReader, hdrs
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from .callbacks import Callbacks
from .faults import INTERACTION_POST, FaultBook
from .interactions import ACKNOWLEDGE_WITHIN_S, Interaction
from .messaging import NewFile
from .model import JsonObject, Ping
from .refusal import Refused
from .wire import decode, read_form
from .world import BotAccount, World

SIGNATURE, TIMESTAMP = "X-Signature-Ed25519", "X-Signature-Timestamp"
Signing = Literal["good", "bad", "other_key", "missing", "stale_body"]
PONG = 1


class HookSender:
    """Posts with one session; each delivery is a task of its own."""

    def __init__(self, world: World, callbacks: Callbacks, faults: FaultBook) -> None:
        self._world = world
        self._faults = faults
        self._callbacks = callbacks
        self._session: ClientSession | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, session: ClientSession) -> None:
        """Use this session."""
        self._session = session

    async def stop(self) -> None:
        """End what is on its way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._session = None

    def deliver(self, bot: BotAccount, interaction: Interaction) -> None:
        """Post an interaction in the background and apply its answer. There is no second try, as at Discord."""
        task = asyncio.create_task(self._deliver(bot, interaction), name=f"interaction-{interaction.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, bot: BotAccount, interaction: Interaction) -> None:
        url = bot.interactions_url
        if url is None:
            return
        body = msgspec.json.encode(interaction.payload)
        fault = self._faults.strike(INTERACTION_POST, "POST", interaction.channel_id)
        if fault is not None and not fault.done_first:
            interaction.http_status = 0
            self._world.changes.bump()
            return
        try:
            async with asyncio.timeout(ACKNOWLEDGE_WITHIN_S):
                status, answer, files = await self._post(url, body, self.signed(bot, body, "good"))
        except (ClientError, OSError):
            status, answer, files = 0, None, []
        interaction.http_status = status
        if fault is not None:
            interaction.http_status = 0
        elif status == 200 and isinstance(answer, dict):
            try:
                self._callbacks.callback(interaction.id, interaction.token, answer, files, over_http=True)
            except Refused as refused:
                interaction.http_status = refused.status
        self._world.changes.bump()

    def signed(self, bot: BotAccount, body: bytes, how: Signing) -> dict[str, str]:
        """Headers with a signature made well or in one of the wrong ways."""
        if how == "missing":
            return {}
        timestamp = str(int(self._world.clock.now()))
        own = Ed25519PrivateKey.from_private_bytes(bot.private_key)
        key = Ed25519PrivateKey.generate() if how == "other_key" else own
        about = timestamp.encode() + (b"{}" if how == "stale_body" else body)
        signature = key.sign(about).hex()
        if how == "bad":
            signature = signature[:-4] + ("0000" if signature[-4:] != "0000" else "1111")
        return {SIGNATURE: signature, TIMESTAMP: timestamp}

    async def post_raw(self, url: str, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
        """Any post; status and body, status 0 when nobody answers."""
        try:
            async with asyncio.timeout(ACKNOWLEDGE_WITHIN_S):
                status, answer, _ = await self._post(url, body, headers)
        except (ClientError, OSError):
            return 0, None
        return status, answer

    async def _post(self, url: str, body: bytes, headers: dict[str, str]) -> tuple[int, Any, list[NewFile]]:
        if self._session is None:
            raise ValueError("the server is not running")
        async with self._session.post(
            url,
            data=body,
            headers=headers | {hdrs.CONTENT_TYPE: "application/json", hdrs.USER_AGENT: "Discord-Interactions/1.0"},
            timeout=ClientTimeout(total=None),  # the callers' own
        ) as response:
            answer, files = await _read(response)
            return response.status, answer, files

    async def ping(self, bot: BotAccount, url: str) -> list[Ping]:
        """One good ping, which must be answered 200 with type 1, and forged ones, which must be answered 401."""
        results = []
        ways: tuple[Signing, ...] = ("good", "bad", "other_key", "missing", "stale_body")
        for how in ways:
            ping: JsonObject = {
                "id": str(self._world.new_id()),
                "application_id": str(bot.id),
                "type": 1,
                "token": "ping",
                "version": 1,
                "entitlements": [],
            }
            body = msgspec.json.encode(ping)
            status, answer = await self.post_raw(url, body, self.signed(bot, body, how))
            pong = isinstance(answer, dict) and answer.get("type") == PONG
            accepted = (status == 200 and pong) if how == "good" else status == 401
            results.append(Ping(signature=how, status=status, accepted=accepted))
        return results

    async def verify(self, bot: BotAccount, url: str) -> bool:
        """Whether Discord would take this URL."""
        return all(each.accepted for each in await self.ping(bot, url))


async def _read(response: ClientResponse) -> tuple[Any, list[NewFile]]:
    if response.content_type.startswith("multipart/"):
        return await read_form(MultipartReader(response.headers, response.content))
    raw = await response.read()
    try:
        return (decode(raw) if raw else None), []
    except Refused:
        return None, []
