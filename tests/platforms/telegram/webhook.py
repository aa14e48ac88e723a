"""Delivers updates to a bot's webhook: again until it is taken, in order within a chat, several chats at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import aiohttp
import msgspec

from .clock import ServerClock
from .faults import WEBHOOK, FaultBook
from .model import JsonObject
from .updates import UpdateQueue, WebhookState

FIRST_RETRY_S = 0.02
LAST_RETRY_S = 0.5
ANSWER_TIMEOUT_S = 10.0


class WebhookSender:
    """Posts one bot's updates as long as a webhook is set; runs until cancelled."""

    def __init__(
        self,
        queue: UpdateQueue,
        session: aiohttp.ClientSession,
        faults: FaultBook,
        clock: ServerClock,
        *,
        is_up: Callable[[], bool],
    ) -> None:
        self._queue = queue
        self._session = session
        self._faults = faults
        self._clock = clock
        self._is_up = is_up
        self._under_way: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Start a delivery for every update whose chat has none under way, up to `max_connections` at once."""
        try:
            while True:
                revision = self._queue.changes.revision
                webhook = self._queue.webhook
                if webhook is not None and self._is_up():
                    self._start_next(webhook)
                await self._queue.changes.after(revision, ANSWER_TIMEOUT_S)
        finally:
            for task in self._under_way.values():
                task.cancel()
            await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    def _start_next(self, webhook: WebhookState) -> None:
        for update in self._queue.pending():
            if len(self._under_way) >= webhook.max_connections:
                return
            place = place_of(update)
            if place not in self._under_way:
                self._under_way[place] = asyncio.create_task(self._deliver(webhook, place, update))

    async def _deliver(self, webhook: WebhookState, place: int, update: JsonObject) -> None:
        """Try until taken, or until another webhook or none is set."""
        pause_s = FIRST_RETRY_S
        try:
            while self._queue.webhook is webhook:
                problem = await self._post(webhook, update) if self._is_up() else "server is down"
                if problem is None:
                    self._queue.confirm(update["update_id"])
                    return
                webhook.last_error, webhook.last_error_at = problem, self._clock.now()
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LAST_RETRY_S)
        finally:
            self._under_way.pop(place, None)
            self._queue.changes.bump()

    async def _post(self, webhook: WebhookState, update: JsonObject) -> str | None:
        """One attempt; what went wrong, or none."""
        fault = self._faults.strike(WEBHOOK, place_of(update))
        if fault is not None and fault.kind == "drop_before":
            return "Connection reset by peer"
        headers = {"Content-Type": "application/json"}
        if webhook.secret_token is not None:
            headers["X-Telegram-Bot-Api-Secret-Token"] = webhook.secret_token
        try:
            async with self._session.post(
                webhook.url,
                data=msgspec.json.encode(update),
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=ANSWER_TIMEOUT_S),
                allow_redirects=False,
            ) as response:
                await response.read()
                status = response.status
        except TimeoutError:
            return "Read timeout expired"
        except (aiohttp.ClientError, OSError) as problem:
            return f"Connection failed: {type(problem).__name__}"
        if fault is not None:
            return "Connection reset by peer"
        return None if 200 <= status < 300 else f"Wrong response from the webhook: {status}"


def place_of(update: JsonObject) -> int:
    """The chat an update belongs to, within which order is kept; 0 for those without one."""
    for kind, content in update.items():
        if kind == "update_id" or not isinstance(content, dict):
            continue
        message = content.get("message") if kind == "callback_query" else content
        chat = message.get("chat") if isinstance(message, dict) else None
        if isinstance(chat, dict) and isinstance(chat.get("id"), int):
            return int(chat["id"])
    return 0
