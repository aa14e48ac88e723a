"""From an update to the inbox: in order within a chat, chats side by side, each update once, a poisoned one parked.

An update is settled once the inbox has returned, which it does when the effect is durable. Only settled updates are
confirmed to Telegram, so whatever a crash interrupts is delivered again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from signoff.errors import AdapterUnavailable
from signoff.model import Answer, Tap
from signoff.ports import Clock, Inbox

from ..parking import TRIES, Parking
from ..recent import Recent
from ..tasks import Jobs, drain, logged, sleep, within
from ..words import RECEIVED, UNHANDLED
from .config import TelegramConfig
from .wire import PLATFORM, Envelope, Me, Query, Update, left_of, message_of, move_of, read_envelope, tap_of

_log = logging.getLogger(__name__)

Reply = Callable[[str, Answer], Coroutine[Any, Any, bool]]
"""Sends the answer to a press, by its query id; whether Telegram took it. Never raises."""


class Intake:
    """Handles updates for one run of the adapter."""

    def __init__(self, inbox: Inbox, clock: Clock, config: TelegramConfig, me: Callable[[], Me], reply: Reply) -> None:
        self._inbox = inbox
        self._clock = clock
        self._config = config
        self._me = me
        self._reply = reply
        self._open: dict[int, asyncio.Task[None]] = {}
        self._lanes: dict[int, asyncio.Task[None]] = {}
        self._settled: Recent[int, None] = Recent()
        """To recognise a second delivery; a poll delivers at most 100."""
        self._tries: dict[int, int] = {}
        self._answered: Recent[str, None] = Recent()
        self._waited = Jobs(failed=None)
        self._jobs = Jobs(failed=logged(PLATFORM))
        self._parking = Parking(PLATFORM, inbox, clock, self._jobs, config.stuck_after_s)
        self._next: int | None = None

    @property
    def offset(self) -> int | None:
        """What the next poll confirms: all ids below the first that is not settled; None when nothing is left to.

        After a quiet week Telegram starts a new row of ids, which may be lower, so a confirmed offset is not repeated.
        """
        return min(self._open) if self._open else self._next

    @property
    def busy(self) -> bool:
        """Updates of this run are still in hand."""
        return bool(self._open)

    def confirmed(self, offset: int | None) -> None:
        """Telegram has taken this offset."""
        if offset is not None and offset == self._next:
            self._next = None

    def take(self, batch: tuple[msgspec.Raw, ...]) -> bool:
        """Begin what is new in a polled batch; returns whether anything was."""
        fresh = False
        for raw in batch:
            try:
                envelope = read_envelope(raw)
            except msgspec.DecodeError:
                _log.error("telegram sent an update without an id; it is left out")
                continue
            if envelope.update_id in self._open or envelope.update_id in self._settled:
                continue
            self._begin(envelope, bytes(raw), retry=True)
            self._next = max(self._next or 0, envelope.update_id + 1)
            fresh = True
        return fresh

    async def wait(self, *, limit_s: float, all_of_them: bool) -> None:
        """Return when updates in hand are settled (all, or the first) or `limit_s` has passed; it only paces polls."""
        if self._open:
            until = asyncio.ALL_COMPLETED if all_of_them else asyncio.FIRST_COMPLETED
            await asyncio.wait(self._open.values(), timeout=limit_s, return_when=until)

    async def deliver(self, envelope: Envelope, raw: bytes) -> None:
        """Handle one posted update; a second delivery shares the first one's fate.

        Raises what the handling raised, or `AdapterUnavailable` when the adapter stopped meanwhile; Telegram then
        delivers it again.
        """
        if envelope.update_id in self._settled:
            return
        task = self._open.get(envelope.update_id) or self._begin(envelope, raw, retry=False)
        await asyncio.wait({task})
        if task.cancelled():
            raise AdapterUnavailable("The adapter stopped before this was settled.")
        task.result()

    async def drain(self, limit_s: float) -> None:
        """Wait for what is in hand, at most `limit_s`, then leave nothing running."""
        await drain(self._running, limit_s)

    def _running(self) -> set[asyncio.Task[Any]]:
        tasks = (*self._open.values(), *self._parking, *self._waited, *self._jobs)
        return {task for task in tasks if not task.done()}

    def _begin(self, envelope: Envelope, raw: bytes, *, retry: bool) -> asyncio.Task[None]:
        before = self._lanes.get(envelope.lane)
        task = asyncio.create_task(self._settle(envelope.update_id, raw, before, retry=retry))
        self._open[envelope.update_id] = self._lanes[envelope.lane] = task
        task.add_done_callback(lambda done: self._close(envelope, done))
        return task

    def _close(self, envelope: Envelope, task: asyncio.Task[None]) -> None:
        """An update whose handling was broken off stays open, so that its id is not confirmed at the stop."""
        if self._lanes.get(envelope.lane) is task:
            del self._lanes[envelope.lane]
        if task.cancelled():
            return
        self._open.pop(envelope.update_id, None)
        if task.exception() is None:
            self._tries.pop(envelope.update_id, None)
            self._settled.put(envelope.update_id, None)

    async def _settle(self, update_id: int, raw: bytes, before: asyncio.Task[None] | None, *, retry: bool) -> None:
        if before is not None:
            await asyncio.wait({before})
        what = f"update {update_id}"
        while (error := await self._parking.attempt(what, self._handle(raw))) is not None:
            tries = self._tries[update_id] = self._tries.get(update_id, 0) + 1
            if tries >= TRIES:
                await self._parking.failed(what, error)
                self._excuse(raw)
                return
            if not retry:
                raise error
            await sleep(self._clock, tries)

    def _excuse(self, raw: bytes) -> None:
        """A tap is always answered, also one that nobody could handle."""
        try:
            query = msgspec.json.decode(raw, type=Update).callback_query
        except msgspec.DecodeError:
            return
        if query is not None:
            self._answer(query.id, Answer(UNHANDLED))

    async def _handle(self, raw: bytes) -> None:
        update = msgspec.json.decode(raw, type=Update)
        if update.callback_query is not None:
            await self._tap(update.callback_query)
        elif (incoming := update.message or update.edited_message) is not None:
            move = move_of(incoming)
            message = message_of(incoming, self._me(), edited=update.message is None)
            if move is not None:
                await self._inbox.moved("telegram", *move)
            elif message is not None:
                await self._inbox.message(message)
        elif update.my_chat_member is not None:
            left = left_of(update.my_chat_member)
            if left is not None:
                await self._inbox.left(*left)

    async def _tap(self, query: Query) -> None:
        """Nothing but the neutral answer is given before the inbox has returned."""
        tap = tap_of(query)
        if tap is None:
            self._answer(query.id, Answer(""))
            return
        job = self._waited.spawn(self._inbox.tap(tap))
        if not await within(self._clock, job, self._config.slow_tap_s):
            self._answer(query.id, Answer(RECEIVED))
        self._jobs.spawn(self._tell(tap, query.id, await asyncio.shield(job)))

    async def _tell(self, tap: Tap, query_id: str, answer: Answer) -> None:
        """The one answer to this press; where it comes too late, the inbox is told so."""
        if not (self._is_first(query_id) and await self._reply(query_id, answer)):
            await self._inbox.unanswered(tap, answer)

    def _answer(self, query_id: str, answer: Answer) -> None:
        """Answer each press once; the call itself holds up nothing."""
        if self._is_first(query_id):
            self._jobs.spawn(self._reply(query_id, answer))

    def _is_first(self, query_id: str) -> bool:
        """Whether this press had no answer; from now on it has."""
        if query_id in self._answered:
            return False
        self._answered.put(query_id, None)
        return True
