"""What the adapter contract needs of a platform (`Stage`), and the tools its tests share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Literal, Protocol

from msgspec import Struct

from signoff.errors import AdapterError
from signoff.model import (
    Answer,
    Attachment,
    Block,
    Button,
    Card,
    Destination,
    Message,
    Person,
    Reply,
    Span,
    Suggestion,
    Tap,
)
from signoff.ports import ChatAdapter, HookRoute
from signoff.testing.clock import FakeClock

WAIT_S = 60.0
"""Real seconds within which anything over loopback has happened."""
POISON = "poison"
"""A message with this text fails in the suite's inbox each time."""
Call = Literal["post", "file", "update", "answer", "receive"]
Trouble = Literal["rate_limit", "server_error", "lost_answer", "refuse_formatting"]


class SeenButton(Struct, frozen=True):
    """A button as a person sees it, and the token that a press of it sends."""

    label: str
    token: str
    style: str | None = None


class Seen(Struct, frozen=True, kw_only=True):
    """A message as a person sees it. `links` are the words that the client makes clickable or that ping somebody."""

    message_id: str
    text: str
    buttons: tuple[SeenButton, ...] = ()
    links: tuple[str, ...] = ()
    reply_to: str | None = None
    silent: bool = False
    file: Attachment | None = None
    prompt: str | None = None


class Traits(Struct, frozen=True, kw_only=True):
    """What differs between platforms."""

    answer_max: int
    """Characters of the answer to a press."""
    server_error_on_post: type[AdapterError]
    """Whether an answer of 500 proves that nothing was posted."""
    has_files_in_replies: bool
    """A file is a message of its own, which the card replies to."""
    has_prompts: bool
    has_styles: bool
    has_silence: bool = True
    """A message may come without a sound."""
    keeps_presses: bool = True
    """A press is delivered later when nobody listens at first."""
    clock_shown: str = "09:05 UTC"
    """How a clock of that time reads to somebody in UTC."""
    has_alerts: bool = True
    """An answer that asks for a box is told from one that does not."""
    hears_messages: bool = True
    """What people write comes in; otherwise only what they press and order."""
    follows_up: bool = False
    """After a neutral answer the verdict is told as well."""
    settles_doubt: bool = False
    """A post whose answer was lost is settled by trying it again under its idempotency key."""
    delivers_again: bool = True
    """What was not settled at a stop is delivered to the next run."""


class Stage(Protocol):
    """One loopback platform with a bot on it, fresh for each test."""

    clock: FakeClock
    traits: Traits
    direct: Destination
    """The direct chat of `person`."""
    group: Destination
    other_group: Destination
    thread: Destination | None
    """A thread of a place that also has a main part, which `thread` without its thread id names."""
    person: str
    """User id of somebody who can be seen in all places."""
    stranger: str
    """User id of somebody in the groups whom nobody knows."""
    mention: Span
    """A live mention of `person`."""
    traps: Mapping[str, Callable[[], AbstractAsyncContextManager[None]]]
    """By name (`adapter_contract.TRAPS`): the trouble lasts as long as the context, which begins once it has struck."""

    def adapter(self) -> ChatAdapter:
        """A new adapter for the same bot, as after a restart."""
        ...

    def serve(self, route: HookRoute | None) -> AbstractAsyncContextManager[None]:
        """Serve the adapter's webhook, if it has one, under the address it was configured with."""
        ...

    async def seen(self, destination: Destination) -> list[Seen]:
        """What stands in exactly this place, oldest first."""
        ...

    async def press(self, by: str, destination: Destination, message_id: str, token: str) -> str:
        """Press, with any token, whether shown or not; the press's id at the platform."""
        ...

    async def press_again(self, press_id: str) -> None:
        """Let the platform deliver the same press once more."""
        ...

    async def answers(self, press_id: str) -> list[Answer]:
        """What was answered to it, every attempt, also what the platform refused."""
        ...

    async def say(self, by: str, destination: Destination, text: str) -> str:
        """Write; the message's id."""
        ...

    async def spoil(self, trouble: Trouble, call: Call, *, retry_after_s: int = 1) -> None:
        """Let the next call of this kind go wrong."""
        ...

    async def remove(self, destination: Destination, message_id: str) -> None:
        """Delete a message of the bot by hand."""
        ...

    async def close_thread(self) -> None:
        """Delete `thread`."""
        ...

    async def move_group(self) -> Destination | None:
        """Give `other_group` a new id; None where ids last."""
        ...

    async def network(self, *, up: bool) -> None:
        """Refuse connections, or serve again."""
        ...


class RecordingInbox:
    """An inbox that keeps what comes in and answers as told."""

    def __init__(self, before: RecordingInbox | None = None) -> None:
        """`before`: the inbox of the run before, whose kept values are found again."""
        self.taps: list[Tap] = []
        self.messages: list[Message] = []
        self.moves: list[tuple[str, str, str]] = []
        self.places_left: list[tuple[Destination, str]] = []
        self.alarms: list[tuple[str, str]] = []
        self.untold: list[tuple[Tap, Answer]] = []
        """Taps whose answer the platform no longer took."""
        self.answer = Answer("Approved once. The agent is told.")
        self.reply: Reply | None = None
        """What a typed message is answered with, where the adapter shows it."""
        self.suggestions: tuple[Suggestion, ...] = ()
        self.named: tuple[str, ...] = ()
        """The users who may decide."""
        self.member_of: tuple[str, ...] = ()
        """The roles and groups whose members may decide."""
        self.tries = 0
        """How often the poisoned message was handed in."""
        self.held: set[str] = set()
        """Chats whose taps and messages are not returned from before `release`."""
        self._released = asyncio.Event()
        self._kept: dict[str, str] = before._kept if before is not None else {}

    async def tap(self, tap: Tap) -> Answer:
        """Keep it, wait while held, answer."""
        self.taps.append(tap)
        await self._wait(tap.destination)
        return self.answer

    async def unanswered(self, tap: Tap, answer: Answer) -> None:
        """Keep it."""
        self.untold.append((tap, answer))

    async def message(self, message: Message) -> Reply | None:
        """Keep it, wait while held, answer; fail for the poisoned one."""
        if message.text == POISON:
            self.tries += 1
            raise RuntimeError("this message always fails")
        self.messages.append(message)
        await self._wait(message.destination)
        return self.reply

    async def pending(self, place: Destination, person: Person) -> tuple[Suggestion, ...]:
        """As told."""
        return self.suggestions

    def approvers(self) -> tuple[str, ...]:
        """As told."""
        return self.named

    def groups(self) -> tuple[str, ...]:
        """As told."""
        return self.member_of

    async def moved(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """Keep it."""
        self.moves.append((platform, old_chat_id, new_chat_id))

    async def left(self, place: Destination, why: str) -> None:
        """Keep it."""
        self.places_left.append((place, why))

    async def load(self, name: str) -> str | None:
        """A kept value."""
        return self._kept.get(name)

    async def save(self, name: str, value: str) -> None:
        """Keep a value."""
        self._kept[name] = value

    async def alarm(self, what: str, detail: str) -> None:
        """Keep it."""
        self.alarms.append((what, detail))

    def release(self) -> None:
        """Let go of what is held, and hold no more."""
        self.held.clear()
        self._released.set()

    async def _wait(self, destination: Destination) -> None:
        if destination.chat_id in self.held:
            await self._released.wait()


async def until(holds: Callable[[], bool], *, what: str, limit_s: float = WAIT_S) -> None:
    """Return as soon as `holds`; fails after `limit_s` real seconds."""
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {limit_s} s: {what}"
        await asyncio.sleep(0.005)


async def until_shown(look: Callable[[], Awaitable[bool]], *, what: str, limit_s: float = WAIT_S) -> None:
    """The same for a condition that must be asked for."""
    deadline = time.monotonic() + limit_s
    while not await look():
        assert time.monotonic() < deadline, f"not within {limit_s} s: {what}"
        await asyncio.sleep(0.005)


async def pass_time(clock: FakeClock, holds: Callable[[], bool], *, within_s: float, what: str) -> None:
    """Move the clock a second at a time until `holds`; fails once `within_s` clock seconds have passed.

    Between the steps what runs over sockets gets real time: up to 50 ms, or until the condition holds. A slow machine
    needs more for the last step, so the clock stands then, and what has begun may end.
    """
    deadline = clock.now().timestamp() + within_s
    while not holds():
        if clock.now().timestamp() >= deadline:
            await until(holds, what=f"within {within_s} clock seconds {what}")
            return
        await clock.advance(1.0)
        for _ in range(10):
            if not holds():
                await asyncio.sleep(0.005)


@asynccontextmanager
async def running(stage: Stage, inbox: RecordingInbox) -> AsyncIterator[ChatAdapter]:
    """A new adapter, connected; stopped and closed afterwards as at a gateway's stop."""
    adapter = stage.adapter()
    async with stage.serve(adapter.hooks()):
        task = asyncio.create_task(adapter.run(inbox))
        try:
            async with asyncio.timeout(WAIT_S):
                await adapter.ready()
            yield adapter
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await adapter.aclose()


def card(text: str = "Low: lists files", *, rows: tuple[tuple[Button, ...], ...] | None = None) -> Card:
    """A small card with two buttons."""
    given = rows if rows is not None else ((approve(), deny()),)
    return Card(blocks=(Block("text", (Span(text, "bold"),)), Block("code", (Span("ls -la"),))), rows=given)


def approve() -> Button:
    """A green button."""
    return Button("Approve once", "t-approve", "success")


def deny() -> Button:
    """A red one."""
    return Button("Deny", "t-deny", "danger")
