"""From a delivery to the inbox: messages in order within a chat, each delivery once, a poisoned one parked.

A delivery is settled once the inbox has returned, which it does when the effect is durable. Only then is it
acknowledged, so Slack delivers a message again whose handling a crash interrupts. A press it does not deliver again,
and it waits 3 s for it: a slow one is acknowledged with a neutral word, and the result follows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from signoff.errors import AdapterUnavailable
from signoff.model import Answer, Destination, Message, Person, Reply
from signoff.ports import Clock, Inbox

from ..parking import TRIES, Parking
from ..recent import Recent
from ..tasks import Jobs, drain, logged, sleep, within
from ..words import COMMAND_UNHANDLED, RECEIVED, UNHANDLED, nobody_named
from .answers import Answers
from .config import SlackConfig
from .groups import Groups
from .memory import Threads
from .people import People
from .render import FIELD
from .turns import Turns
from .wire import (
    PLATFORM,
    Callback,
    Event,
    Handle,
    Interaction,
    Kind,
    Me,
    Pressed,
    Slash,
    command_of,
    is_talk,
    key_of,
    left_of,
    message_of,
    pressed_of,
    team_of,
)

NOT_KNOWN = nobody_named("Slack")
Payload = dict[str, Any]
"""What the acknowledgement carries; empty for most."""
_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


class Intake:
    """Handles deliveries for one run of the adapter."""

    def __init__(
        self,
        inbox: Inbox,
        clock: Clock,
        config: SlackConfig,
        people: People,
        groups: Groups,
        answers: Answers,
        threads: Threads,
        me: Callable[[], Me],
        echoed: Callable[[str, str], None],
    ) -> None:
        self._inbox = inbox
        self._clock = clock
        self._config = config
        self._people = people
        self._groups = groups
        self._answers = answers
        self._threads = threads
        self._me = me
        self._echoed = echoed
        self._open: dict[str, asyncio.Task[Payload]] = {}
        self._turns = Turns()
        self._settled: Recent[str, Payload] = Recent()
        self._jobs = Jobs(failed=logged(PLATFORM))
        self._parking = Parking(PLATFORM, inbox, clock, self._jobs, config.stuck_after_s)
        self._closed = False

    async def deliver(self, kind: Kind, raw: bytes | msgspec.Raw) -> Payload:
        """Handle one delivery; a second one of the same shares the first one's fate. What the acknowledgement carries.

        Raises `msgspec.DecodeError` for what cannot be read, and `AdapterUnavailable` when the adapter stopped
        meanwhile.
        """
        if self._closed:
            raise AdapterUnavailable("The adapter is stopping.")
        if kind == "interactive":
            return await self._interaction(msgspec.json.decode(raw, type=Interaction))
        if kind == "slash_commands":
            slash = msgspec.json.decode(raw, type=Slash)
            return await self._once(f"slash:{slash.trigger_id}", lambda: self._slash(slash))
        event = msgspec.json.decode(raw, type=Callback).event
        return await self._event(event) if event is not None else {}

    async def drain(self, limit_s: float) -> None:
        """Take nothing more, wait for what is in hand, at most `limit_s`, then leave nothing running."""
        self._closed = True
        await drain(self._running, limit_s)

    def _running(self) -> set[asyncio.Task[Any]]:
        return {task for task in (*self._open.values(), *self._jobs) if not task.done()}

    # --- each once -------------------------------------------------------------------------------

    async def _once(self, key: str, make: Callable[[], Coroutine[Any, Any, Payload]]) -> Payload:
        settled = self._settled.get(key)
        if settled is not None:
            return settled
        task = self._open.get(key) or self._begin(key, make)
        await asyncio.wait({task})
        if task.cancelled():
            raise AdapterUnavailable("The adapter stopped before this was settled.")
        return task.result()

    def _begin(self, key: str, make: Callable[[], Coroutine[Any, Any, Payload]]) -> asyncio.Task[Payload]:
        task = self._open[key] = asyncio.create_task(make())
        task.add_done_callback(lambda done: self._close(key, done))
        return task

    def _close(self, key: str, task: asyncio.Task[Payload]) -> None:
        self._open.pop(key, None)
        if not task.cancelled() and task.exception() is None:
            self._settled.put(key, task.result())

    async def _tried(self, what: str, work: Callable[[], Awaitable[_Result]]) -> _Result | None:
        """The work's result, tried again a few times; None once it was parked."""
        for tries in range(1, TRIES + 1):
            try:
                return await work()
            except Exception as error:
                # The outermost edge of a delivery: whatever the core raises must not end the adapter.
                _log.warning("slack %s failed, try %d: %s", what, tries, type(error).__name__)
                if tries == TRIES:
                    await self._parking.failed(what, error)
                    return None
            await sleep(self._clock, tries)
        return None

    # --- presses and dialogs ---------------------------------------------------------------------

    async def _interaction(self, interaction: Interaction) -> Payload:
        pressed = pressed_of(interaction)
        if pressed is None:
            return {}
        return await self._once(f"tap:{pressed.tap.tap_id}", lambda: self._tap(pressed))

    async def _tap(self, pressed: Pressed) -> Payload:
        """Nothing but the neutral answer is given before the inbox has returned."""
        job = self._jobs.spawn(self._tried(f"tap {pressed.tap.tap_id}", lambda: self._decide(pressed)))
        if not await within(self._clock, job, self._config.slow_tap_s):
            self._jobs.spawn(self._answers.show(pressed.handle, Answer(RECEIVED)))
            self._jobs.spawn(self._later(pressed, job))
            return {}
        answer = job.result() or Answer(UNHANDLED)
        if pressed.typed and answer.alert:
            # The field stays open with what was typed, so that it can be sent again.
            return {"response_action": "errors", "errors": {FIELD: answer.text}}
        self._jobs.spawn(self._tell(pressed, answer))
        return {}

    async def _later(self, pressed: Pressed, job: asyncio.Task[Answer | None]) -> None:
        await asyncio.wait({job})
        if not job.cancelled():
            await self._tell(pressed, job.result() or Answer(UNHANDLED))

    async def _tell(self, pressed: Pressed, answer: Answer) -> None:
        """Show the answer; where Slack does not take it any more, the inbox is told so."""
        if not await self._answers.show(pressed.handle, answer):
            await self._inbox.unanswered(pressed.tap, answer)

    async def _decide(self, pressed: Pressed) -> Answer:
        tap = pressed.tap
        person = await self._person(tap.person, pressed.team)
        if person is None:
            return Answer(NOT_KNOWN, alert=True)
        return await self._inbox.tap(msgspec.structs.replace(tap, person=person))

    async def _person(self, person: Person, team: str | None) -> Person | None:
        standing = await self._people.about(person.user_id, team)
        if standing is None:
            return None
        named = msgspec.structs.replace(person, name=standing.name or person.name, guest=standing.guest)
        if standing.guest:
            return named
        groups = await self._groups.of(person.user_id, self._inbox.groups())
        return msgspec.structs.replace(named, groups=groups)

    # --- what is typed ---------------------------------------------------------------------------

    async def _slash(self, slash: Slash) -> Payload:
        message = command_of(slash, self._clock.now(), self._threads.newest)
        job = self._jobs.spawn(self._command(message, slash))
        await within(self._clock, job, self._config.slow_tap_s)
        return {}

    async def _command(self, message: Message, slash: Slash) -> None:
        if not await self._say(message, slash.team_id, slash.response_url):
            user = message.person.user_id
            handle = Handle(channel=slash.channel_id, user=user, response_url=slash.response_url)
            await self._answers.show(handle, Answer(COMMAND_UNHANDLED))

    async def _event(self, event: Event) -> Payload:
        me = self._me()
        self._threads.passed(event.ts)
        plain = event.type == "message" and event.subtype is None
        if plain and me.user_id and event.user == me.user_id and isinstance(event.channel, str) and event.ts:
            self._echoed(event.channel, event.ts)
        left = left_of(event)
        if left is not None:
            return await self._once(f"left:{event.type}:{event.channel}:{event.event_ts}", lambda: self._left(*left))
        message = message_of(event, me, self._threads.ours) if is_talk(event) else None
        if message is None:
            return {}
        place = message.destination
        if (root := message.reply_to or place.thread_id) is not None:
            self._threads.said(place.chat_id, message.message_id, root)
        return await self._once(f"said:{key_of(event)}", lambda: self._message(message, team_of(event)))

    async def _left(self, place: Destination, why: str) -> Payload:
        await self._tried(f"channel {place.chat_id} is gone", lambda: self._inbox.left(place, why))
        return {}

    async def _message(self, message: Message, team: str | None) -> Payload:
        """One that is in hand for long no longer holds up its chat."""
        async with self._turns.of(message.destination.chat_id, message.order):
            job = self._jobs.spawn(self._say(message, team, None))
            if not await within(self._clock, job, self._config.stuck_after_s):
                await self._parking.stuck(f"message {message.message_id}")
        return {}

    async def _say(self, message: Message, team: str | None, response_url: str | None) -> bool:
        """Whether it was handled; its reply is shown where that was left to us."""
        what = f"message {message.message_id}"
        done = await self._tried(what, lambda: self._typed(message, team, response_url))
        if done is not None and done[0] is not None:
            await self._answers.reply(message, done[0], response_url)
        return done is not None

    async def _typed(self, message: Message, team: str | None, response_url: str | None) -> tuple[Reply | None]:
        """Only what may be a command is worth the question who wrote it."""
        person: Person | None = message.person
        if message.direct or message.addressed or message.text[:1] in ("/", "!"):
            person = await self._person(message.person, team)
        if person is None:
            place, user = message.destination, message.person.user_id
            thread = place.thread_id or message.reply_to
            handle = Handle(channel=place.chat_id, user=user, thread=thread, response_url=response_url)
            await self._answers.show(handle, Answer(NOT_KNOWN))
            return (None,)
        return (await self._inbox.message(msgspec.structs.replace(message, person=person)),)
