"""What a story needs of a chat platform. A new transport is one subclass, and one line in `conftest.TRANSPORTS`."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import ClassVar, Literal, Self

from msgspec import Struct

WAIT_S = 10.0
"""How long a story waits for what must happen; generous, since the machine may be busy."""

Person = Literal["ana", "bo", "eve"]
"""Ana and Bo may decide; Eve is a member of every group and may not."""
PEOPLE: tuple[Person, ...] = ("ana", "bo", "eve")
APPROVERS: tuple[Person, ...] = ("ana", "bo")

Trouble = Literal["refused", "kicked", "answer_lost", "never_answered", "limited", "edit_refused"]
"""`refused` and `kicked`: for good. `answer_lost`: the message stands and the sender does not learn it.
`never_answered`: nothing stands and no answer comes. `limited`: come back in a few seconds."""


class Seen(Struct, frozen=True, kw_only=True):
    """A message as a person sees it now."""

    place: str
    message_id: str
    text: str
    buttons: tuple[str, ...] = ()
    deleted: bool = False
    edits: int = 0
    reply_to: str | None = None
    clickable: tuple[str, ...] = ()
    """Words outside code that the platform made clickable; a mention among them pings."""
    file: bytes | None = None
    by_bot: bool = True


class Transport(abc.ABC):
    """One platform in one mode, opened for one story. Places are destinations such as `telegram:-1001`."""

    name: ClassVar[str]

    @classmethod
    @abc.abstractmethod
    def opened(cls) -> AbstractAsyncContextManager[Self]:
        """A fresh platform with the bot and everybody."""

    @abc.abstractmethod
    def config(self, approvers: Sequence[Person] = APPROVERS) -> str:
        """The platform's section of `signoff.toml`."""

    @abc.abstractmethod
    def user_id(self, person: Person) -> str:
        """The person's id on the platform."""

    # places

    @abc.abstractmethod
    async def group(self) -> str:
        """A new group of everybody and the bot."""

    @abc.abstractmethod
    async def topics(self, count: int) -> list[str]:
        """A new group with so many threads; their destinations."""

    @abc.abstractmethod
    def direct(self, person: Person) -> str:
        """The person's direct chat with the bot."""

    @abc.abstractmethod
    async def move(self, place: str) -> str:
        """Give a group another id, as the platform does by itself; its new destination."""

    # what people see and do

    @abc.abstractmethod
    async def seen(self, place: str) -> list[Seen]:
        """Everything said in a place, oldest first."""

    @abc.abstractmethod
    async def until(self, place: str, holds: Callable[[list[Seen]], bool], timeout_s: float = WAIT_S) -> list[Seen]:
        """The messages of a place as soon as `holds` is true of them; `TimeoutError` with them otherwise."""

    @abc.abstractmethod
    async def tap(self, person: Person, message: Seen, button: str) -> str:
        """Press a button by its label; a handle for `answer`."""

    @abc.abstractmethod
    async def answer(self, tap: str, timeout_s: float = WAIT_S) -> str:
        """What the person who pressed is told, and nobody else."""

    @abc.abstractmethod
    async def token(self, message: Seen, button: str) -> str:
        """What a button would send."""

    @abc.abstractmethod
    async def forge(self, person: Person, message: Seen, token: str) -> str:
        """A press with any content on a message, also one whose buttons are gone; a handle for `answer`."""

    @abc.abstractmethod
    async def replay(self, tap: str) -> None:
        """The platform delivers the same press once more."""

    @abc.abstractmethod
    async def type(
        self, person: Person, place: str, text: str, *, reply_to: Seen | None = None, forward: bool = False
    ) -> Seen:
        """Write a message; what was written."""

    @abc.abstractmethod
    async def give_reason(self, person: Person, card: Seen, panel: Seen, reason: str) -> None:
        """Choose to type a reason in the open panel of a card, and type it."""

    # troubles

    @abc.abstractmethod
    async def trouble(self, kind: Trouble, place: str, *, times: int = 1) -> None:
        """Spoil the next sends to a place."""

    @abc.abstractmethod
    async def slow(self, place: str, seconds: float) -> None:
        """The next message to a place stands at once, and its sender learns that only so much later."""

    @abc.abstractmethod
    async def down(self) -> None:
        """The platform cannot be reached."""

    @abc.abstractmethod
    async def up(self) -> None:
        """It can again."""

    @abc.abstractmethod
    async def odd_updates(self) -> None:
        """Deliver what no code can have foreseen."""

    @abc.abstractmethod
    async def settled(self) -> None:
        """Return once the gateway has taken every update."""

    @abc.abstractmethod
    async def beyond_limits(self) -> int:
        """How many calls went beyond what the platform documents."""

    # conveniences

    async def tapped(self, person: Person, message: Seen, button: str) -> str:
        """Press, and return what the person is told."""
        return await self.answer(await self.tap(person, message, button))

    async def card(self, place: str, text: str, timeout_s: float = WAIT_S, *, which: int = 0) -> Seen:
        """The card in a place that shows `text` and can be pressed, as soon as it stands."""

        def cards(messages: list[Seen]) -> list[Seen]:
            return [message for message in messages if text in message.text and message.buttons]

        found = await self.until(place, lambda messages: len(cards(messages)) > which, timeout_s)
        return cards(found)[which]

    async def reply(self, message: Seen, text: str, timeout_s: float = WAIT_S) -> Seen:
        """The newest answer of the bot to `message` that contains `text`, as soon as there is one: a panel, a word."""

        def fits(each: Seen) -> bool:
            return each.by_bot and not each.deleted and each.reply_to == message.message_id and text in each.text

        found = await self.until(message.place, lambda messages: any(map(fits, messages)), timeout_s)
        return [each for each in found if fits(each)][-1]

    async def reads(self, place: str, text: str, timeout_s: float = WAIT_S) -> Seen:
        """The newest message by the bot in a place that contains `text`, as soon as there is one."""

        def fits(message: Seen) -> bool:
            return message.by_bot and not message.deleted and text in message.text

        found = await self.until(place, lambda messages: any(map(fits, messages)), timeout_s)
        return [message for message in found if fits(message)][-1]

    async def again(self, message: Seen) -> Seen:
        """The same message as it stands now."""
        return next(each for each in await self.seen(message.place) if each.message_id == message.message_id)

    async def becomes(self, message: Seen, text: str, timeout_s: float = WAIT_S) -> Seen:
        """The message once it reads `text` and has no approving button."""

        def done(each: Seen) -> bool:
            closed = not any(label.startswith(("Approve", "Deny")) for label in each.buttons)
            return each.message_id == message.message_id and text in each.text and closed

        found = await self.until(message.place, lambda messages: any(map(done, messages)), timeout_s)
        return next(each for each in found if each.message_id == message.message_id)
