"""From Discord to the inbox: each thing once, typed messages in order within a channel, a poisoned one parked.

Presses do not wait for each other: Discord gives each 3 s, and whose came first is decided where it is stored. What is
settled (the inbox has returned, so the effect is durable) is remembered with the session; after a crash the session is
resumed from there, and Discord delivers the rest again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from signoff.model import Answer, Destination, Reply, Tap
from signoff.ports import Clock, Inbox

from ..parking import TRIES, Parking
from ..recent import Recent
from ..tasks import Jobs, drain, logged, sleep
from ..words import COMMAND_RECEIVED, COMMAND_UNHANDLED, UNHANDLED
from .answering import Conversation, First
from .calls import Calls
from .commands import Mistyped, choices, line_of
from .config import DiscordConfig
from .places import Places
from .wire import (
    AUTOCOMPLETE,
    COMMAND,
    COMPONENT,
    MODAL,
    PLATFORM,
    Incoming,
    Interaction,
    Me,
    channel_id_of,
    channel_of,
    command_message,
    is_talk,
    message_of,
    person_of,
    read_interaction,
    read_message,
    tap_of,
)

_log = logging.getLogger(__name__)


class Intake:
    """Handles what comes in for one run of the adapter."""

    def __init__(
        self,
        inbox: Inbox,
        clock: Clock,
        config: DiscordConfig,
        calls: Calls,
        places: Places,
        me: Callable[[], Me],
        on_settled: Callable[[], None] = lambda: None,
    ) -> None:
        self._inbox = inbox
        self._clock = clock
        self._config = config
        self._calls = calls
        self._places = places
        self._me = me
        self._on_settled = on_settled
        self._seen: Recent[str, None] = Recent()
        """To recognise a second delivery."""
        self._open: dict[asyncio.Task[None], int] = {}
        self._lanes: dict[str, asyncio.Task[None]] = {}
        self._jobs = Jobs(failed=logged(PLATFORM))
        self._parking = Parking(PLATFORM, inbox, clock, self._jobs, config.stuck_after_s)

    def oldest_open(self) -> int | None:
        """The lowest sequence of the gateway that is still in hand; None without any."""
        waiting = [sequence for sequence in self._open.values() if sequence]
        return min(waiting) if waiting else None

    # --- beginning -----------------------------------------------------------------------------

    def interaction(self, data: object, *, sequence: int = 0, first: First | None = None) -> Conversation | None:
        """Begin to handle an interaction; None for one that was delivered before. Raises `msgspec.ValidationError`."""
        interaction = read_interaction(data)
        if not self._new(interaction.id):
            return None
        conversation = Conversation(interaction, self._calls, self._me, first)
        if interaction.type == AUTOCOMPLETE:
            self._jobs.spawn(self._suggest(conversation))
            return conversation
        lane = channel_id_of(interaction) if interaction.type == COMMAND else None
        self._begin(lane, sequence, f"interaction {interaction.id}", lambda: self._handle(conversation), conversation)
        return conversation

    def message(self, data: object, *, sequence: int = 0) -> None:
        """Begin to handle a typed message. Raises `msgspec.ValidationError`."""
        incoming = read_message(data)
        if is_talk(incoming, self._me()) and self._new(f"{incoming.id}:{incoming.edited_timestamp}"):
            self._begin(incoming.channel_id, sequence, f"message {incoming.id}", lambda: self._typed(incoming), None)

    async def drain(self, limit_s: float) -> None:
        """Wait for what is in hand, at most `limit_s`, then leave nothing running."""
        await drain(self._running, limit_s)

    def _running(self) -> set[asyncio.Task[None]]:
        return {task for task in {*self._open, *self._parking, *self._jobs} if not task.done()}

    def _new(self, key: str) -> bool:
        if key in self._seen:
            return False
        self._seen.put(key, None)
        return True

    def _begin(
        self,
        lane: str | None,
        sequence: int,
        what: str,
        handle: Callable[[], Coroutine[Any, Any, None]],
        conversation: Conversation | None,
    ) -> None:
        before = self._lanes.get(lane) if lane is not None else None
        task = asyncio.create_task(self._settle(what, before, handle, conversation))
        self._open[task] = sequence
        if lane is not None:
            self._lanes[lane] = task
        task.add_done_callback(lambda done: self._close(lane, done))
        if conversation is not None:
            alarm = self._jobs.spawn(self._hasten(conversation))
            task.add_done_callback(lambda _: alarm.cancel())

    def _close(self, lane: str | None, task: asyncio.Task[None]) -> None:
        """What was broken off stays open, so that the session is resumed before it."""
        if lane is not None and self._lanes.get(lane) is task:
            del self._lanes[lane]
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            _log.error("discord: handling ended in an error", exc_info=error)
        self._open.pop(task, None)
        self._on_settled()

    async def _settle(
        self,
        what: str,
        before: asyncio.Task[None] | None,
        handle: Callable[[], Coroutine[Any, Any, None]],
        conversation: Conversation | None,
    ) -> None:
        if before is not None:
            await asyncio.wait({before})
        for tries in range(1, TRIES + 1):
            error = await self._parking.attempt(what, handle())
            if error is None:
                return
            if tries < TRIES:
                await sleep(self._clock, tries)
                continue
            await self._parking.failed(what, error)
            if conversation is not None:
                await _excuse(conversation)

    # --- handling ------------------------------------------------------------------------------

    async def _hasten(self, conversation: Conversation) -> None:
        """The neutral answer, while there is still time for one."""
        await sleep(self._clock, self._config.slow_tap_s)
        self._jobs.spawn(conversation.neutral())  # a call of its own: the end of the handling must not break it off

    async def _handle(self, conversation: Conversation) -> None:
        interaction = conversation.interaction
        if interaction.type == COMMAND:
            await self._command(conversation)
        elif interaction.type in (COMPONENT, MODAL):
            await self._tap(conversation)

    async def _tap(self, conversation: Conversation) -> None:
        """Nothing but the neutral answer is given before the inbox has returned."""
        tap = tap_of(conversation.interaction, await self._place(conversation.interaction))
        if tap is None:
            await conversation.tell(Answer(""))
            return
        answer = await self._inbox.tap(tap)
        self._jobs.spawn(self._tell(conversation, tap, answer))

    async def _tell(self, conversation: Conversation, tap: Tap, answer: Answer) -> None:
        if not await conversation.tell(answer):
            await self._inbox.unanswered(tap, answer)

    async def _command(self, conversation: Conversation) -> None:
        interaction = conversation.interaction
        try:
            line = line_of(interaction.data)
        except Mistyped as error:
            await conversation.tell(Answer(str(error)))
            return
        message = command_message(interaction, await self._place(interaction), line)
        if message is None:
            return
        reply = await self._inbox.message(message)
        self._jobs.spawn(self._shown(conversation, reply))

    async def _shown(self, conversation: Conversation, reply: Reply | None) -> None:
        if reply is None:
            await conversation.tell(Answer(COMMAND_RECEIVED))
        elif not await conversation.reply(reply):
            _log.info("discord no longer took the reply to command %s", conversation.interaction.id)

    async def _suggest(self, conversation: Conversation) -> None:
        """What the menu offers. Without an answer it shows none, which is no harm."""
        interaction = conversation.interaction
        person = person_of(interaction)
        if person is not None:
            waiting = await self._inbox.pending(await self._place(interaction), person)
            await conversation.choose(choices(interaction.data, waiting))

    async def _typed(self, incoming: Incoming) -> None:
        channel = await self._places.channel(incoming.channel_id)
        message = message_of(incoming, channel.place, self._me())
        if message is not None:
            await self._inbox.message(message)

    async def _place(self, interaction: Interaction) -> Destination:
        known = channel_of(interaction)
        if known is not None:
            self._places.learn(known)
            return known.place
        return (await self._places.channel(channel_id_of(interaction) or "0")).place


async def _excuse(conversation: Conversation) -> None:
    """A press is always answered, also one that nobody could handle."""
    is_command = conversation.interaction.type == COMMAND
    await conversation.tell(Answer(COMMAND_UNHANDLED if is_command else UNHANDLED))
