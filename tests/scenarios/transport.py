"""What a story needs of a chat platform. A new transport is one subclass, and one line in `conftest.TRANSPORTS`."""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

from msgspec import Struct

if TYPE_CHECKING:
    from tests.scenarios.gateways import GatewayProcess

WAIT_S = 20.0
"""How long a story waits for what must happen; generous, since the machine may be busy."""

Person = Literal["ana", "bo", "eve"]
"""Ana and Bo may decide; Eve is a member of every group and may not."""
PEOPLE: tuple[Person, ...] = ("ana", "bo", "eve")
APPROVERS: tuple[Person, ...] = ("ana", "bo")

Slow = Literal["card", "reason"]
"""What takes its time: the send of a card, or what is sent to somebody who types a reason."""
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
    said_by: Person | None = None
    """Who wrote it, where one of our people did: some answers are for that person alone."""
    command: bool = False
    """It was sent as a slash command, which is no message: `message_id` is its handle."""

    @property
    def short_id(self) -> str:
        """The request's id on a card: what its last line begins with."""
        return self.text.splitlines()[-1].split(" ")[0]


class Way(Struct, frozen=True, kw_only=True):
    """How people are asked: in a place, or without one by whoever looks."""

    place: str | None
    """The session's destination."""
    kind: str = "chat"
    seen_in: str
    """Where the question is seen."""


class Gone(Struct, frozen=True, kw_only=True):
    """How a question ends that nobody can be asked, or can be asked any more."""

    outcome: str
    cause: str | None = None
    told: str
    """What the agent's user reads of it, among other words."""
    at_least: timedelta = timedelta(0)
    at_most: timedelta = timedelta(0)
    """How long after it was asked."""


class Whole(Struct, frozen=True, kw_only=True):
    """The whole text of what a card shows only in part, and the card beside which that can be approved."""

    text: str
    card: Seen


class Server(Protocol):
    """What all loopback platforms have in common."""

    async def until(
        self, look: Callable[[], Awaitable[Any]], predicate: Callable[[Any], bool], *, timeout_s: float
    ) -> Any:
        """What `look` gives once `predicate` holds for it; `TimeoutError` otherwise."""

    async def down(self) -> None:
        """Cannot be reached any more."""

    async def up(self) -> None:
        """Can be reached again."""

    async def limit_report(self) -> Any:
        """What went beyond the documented limits; `total` is how many calls."""


class Transport(abc.ABC):
    """One platform in one mode, opened for one story. Places are destinations such as `telegram:-1001`."""

    name: ClassVar[str]
    short: ClassVar[str]
    """What verdicts call the platform beside a person's id."""
    hears_messages: ClassVar[bool] = True
    """Otherwise buttons, dialogs and slash commands are all that people have."""
    knows_repeats: ClassVar[bool] = False
    """The platform recognises a send that is repeated, so no second copy can come of a doubtful one."""
    groups_move: ClassVar[bool] = False
    """The platform gives a group another id by itself; otherwise only a person's id stands for a chat with one."""
    draws_rows: ClassVar[bool] = False
    """People look at what the gateway knows, so each card is right at once; elsewhere a card is a message, which has to
    be sent and edited."""
    serves_pages: ClassVar[bool] = False
    """A program that holds a gateway itself must serve its pages, or nobody can answer."""
    hands_cards_over: ClassVar[bool] = True
    """The card of a question that another takes over becomes the other's; else it says its own end, and a new card
    stands beside it."""
    counts_later_ones: ClassVar[bool] = True
    """An answer to all names what came after it, as left; else it knows only what had been listed."""
    denies_all_with_a_reason: ClassVar[bool] = True
    at_once: ClassVar[int] = 500
    """How many cards one answer to all may mean."""
    deciding: ClassVar[str] = "tapping.press"
    """The store's change that a press makes."""
    answering_all: ClassVar[str] = "answering_all.answer_all"
    """The one that an answer to all makes."""
    alarm: ClassVar[str | None] = "adapter.alarm"
    """The event that tells of an update that could not be handled; None where the log does."""
    replaced: ClassVar[str] = "nothing was decided"
    """What is told to somebody who presses what a card offered before another question took it over."""
    rest_is: ClassVar[str] = "in "
    """Where a card says that the rest of a long text is: in the file beside it, or on a page of its own."""
    reason_panel: ClassVar[str] = "the agent reads the reason"
    """What somebody reads who is about to give a reason."""
    nobody_may: ClassVar[str] = "No approver is set up"
    """What everybody is told where nobody may decide."""
    unasked: ClassVar[Gone] = Gone(outcome="notify_failed", told="refused the message")
    """A question whose way turned out to lead nowhere."""
    refusal: ClassVar[Gone] = Gone(outcome="notify_failed", told="refused the message")
    """One whose way is taken away before anybody could see it, or while it waits."""
    silence: ClassVar[Gone] = Gone(
        outcome="notify_failed", told="nobody was asked", at_least=timedelta(seconds=15), at_most=timedelta(seconds=15)
    )
    """One that is asked when the platform has just vanished."""
    server: Server

    def __init__(self) -> None:
        self._pressed: dict[str, tuple[Person, Seen, str]] = {}

    @classmethod
    @abc.abstractmethod
    def opened(cls) -> AbstractAsyncContextManager[Self]:
        """A fresh platform with the bot and everybody."""

    @abc.abstractmethod
    def config(self, approvers: Sequence[Person] = APPROVERS, *, hooks: bool = True) -> str:
        """The platform's section of `signoff.toml`; without `hooks` for a gateway that nothing can be posted to."""

    async def serves(self, hooks_url: str) -> None:  # noqa: B027  # most platforms learn it from the gateway
        """An operator tells the platform under which address the gateway's hooks listener is reached."""

    def meets(self, gateway: GatewayProcess) -> None:  # noqa: B027  # platforms are called by the gateway
        """People learn where the gateway is that they will look at."""

    def slowed(self, what: Slow) -> tuple[str, ...]:
        """How the gateway is launched of which `slow` will delay that."""
        return ()

    @abc.abstractmethod
    def user_id(self, person: Person) -> str:
        """The person's id on the platform."""

    def called(self, person: Person) -> str:
        """The person's name in sentences."""
        return f"“{person.capitalize()}”"

    def named(self, person: Person) -> str:
        """The person as verdicts name them."""
        return f"{self.called(person)} [{self.short} {self.user_id(person)}]"

    def made_by(self, person: Person, *, all_at_once: bool = False) -> dict[str, str]:
        """What the record says of the person who decided, by a button or by an answer to all."""
        return {"user_id": self.user_id(person), **({"via": "approve_all"} if all_at_once else {})}

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
    async def moving(self) -> str:
        """A place whose id is not its last one: a group that is about to move, or a person instead of a chat."""

    @abc.abstractmethod
    async def move(self, place: str) -> str:
        """The destination under which such a place goes on: a group gets another id, a person stands for a chat."""

    async def way(self) -> Way:
        """A way to people that ends when the platform vanishes."""
        place = await self.group()
        return Way(place=place, seen_in=place)

    async def nowhere(self, kind: Trouble) -> Way:
        """A way on which nobody can be asked, for a question that ends as `unasked` says."""
        way = await self.way()
        await self.block(way, kind)
        return way

    async def block(self, way: Way, kind: Trouble = "kicked") -> None:
        """From now on nobody can be asked on this way; a question ends there as `refusal` says."""
        await self.trouble(kind, way.seen_in, times=5)

    # what people see and do

    @abc.abstractmethod
    async def seen(self, place: str, viewer: Person | None = None) -> list[Seen]:
        """Everything said in a place, oldest first; with a `viewer` also what is shown to that person alone."""

    async def until(
        self,
        place: str,
        holds: Callable[[list[Seen]], bool],
        timeout_s: float = WAIT_S,
        *,
        viewer: Person | None = None,
    ) -> list[Seen]:
        """The messages of a place as soon as `holds` is true of them; `TimeoutError` with them otherwise."""
        try:
            found: list[Seen] = await self.server.until(lambda: self.seen(place, viewer), holds, timeout_s=timeout_s)
        except TimeoutError:
            last = "\n".join(f"{each.message_id}: {each}" for each in (await self.seen(place, viewer))[-8:])
            raise TimeoutError(f"not so within {timeout_s:g} s; the last messages of {place} are\n{last}") from None
        return found

    async def tap(self, person: Person, message: Seen, button: str) -> str:
        """Press a button by its label; a handle for `answer`."""
        tap = await self.press(person, message, button)
        self._pressed[tap] = (person, message, button)
        return tap

    @abc.abstractmethod
    async def press(self, person: Person, message: Seen, button: str) -> str:
        """The platform's part of `tap`."""

    @abc.abstractmethod
    async def answer(self, tap: str, timeout_s: float = WAIT_S) -> str:
        """What the person who pressed is told, and nobody else."""

    async def given_up(self, tap: str, timeout_s: float = WAIT_S) -> bool:
        """Whether the platform tells the person that the press failed, and forgets it; returns once that is known."""
        return False

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
        """Write a message; what was written. A text that begins with `/` is a command, given in the way in which a
        person would give it there."""

    @abc.abstractmethod
    async def panel(self, person: Person, card: Seen, text: str) -> Seen:
        """What a person opened from a card and reads there, as soon as it contains `text`."""

    @abc.abstractmethod
    async def give_reason(self, person: Person, card: Seen, panel: Seen, reason: str) -> None:
        """Choose to type a reason in the open panel of a card, and type it."""

    async def whole(self, card: Seen) -> Whole:
        """What a card shows only in part, in the one file that stands beside it."""
        files = [message for message in await self.seen(card.place) if message.file is not None]
        assert len(files) == 1
        return Whole(text=(files[0].file or b"").decode(), card=card)

    def is_open(self, message: Seen) -> bool:
        """Whether it is a card that can be answered."""
        return bool(message.buttons)

    def is_unknown(self, told: str) -> bool:
        """Whether that is what somebody is told who presses what we never made for that message."""
        return told == "This button is not known here. Nothing was decided."

    async def impostors(self, card: Seen) -> list[tuple[str, bool]]:
        """What else looks like a deed of Ana's and is none: each, and whether it was refused."""
        said = await self.type("ana", self.direct("ana"), f"/approve {card.short_id}", forward=True)
        if self.hears_messages:
            await self.reply(said, "Forwarded, edited or anonymous messages decide nothing.")
        return []

    # troubles

    @abc.abstractmethod
    async def trouble(self, kind: Trouble, place: str, *, times: int = 1) -> None:
        """Spoil the next sends to a place."""

    @abc.abstractmethod
    async def slow(self, place: str, seconds: float) -> None:
        """The next message to a place stands at once, and its sender learns that only so much later."""

    async def down(self) -> None:
        """The platform cannot be reached."""
        await self.server.down()

    async def up(self) -> None:
        """It can again."""
        await self.server.up()

    @abc.abstractmethod
    async def odd_updates(self) -> None:
        """Deliver what no code can have foreseen."""

    async def poison(self, card: Seen, text: str) -> None:
        """Somebody sends, beside a card, what the launcher was told that the gateway cannot handle."""
        await self.type("eve", card.place, f"/deny all {text}")

    @abc.abstractmethod
    async def settled(self) -> None:
        """Return once the gateway has taken every update."""

    async def lift_limits(self) -> None:  # noqa: B027  # most platforms announce no budgets that a sender would keep to
        """From now on the platform speaks of no budgets, for a story whose gateway sends as fast as it can."""

    async def beyond_limits(self) -> int:
        """How many calls went beyond what the platform documents."""
        total: int = (await self.server.limit_report()).total
        return total

    # conveniences

    async def tapped(self, person: Person, message: Seen, button: str) -> str:
        """Press, and return what the person is told."""
        return await self.answer(await self.tap(person, message, button))

    async def insist(self, tap: str, timeout_s: float = WAIT_S) -> str:
        """What the person who pressed is told in the end. Where the platform gave the press up, the person presses
        again, or reads the card when that has nothing to press any more."""
        async with asyncio.timeout(timeout_s):
            while await self.given_up(tap, timeout_s):
                person, message, button = self._pressed[tap]
                await asyncio.sleep(0.2)  # a person is no faster
                try:
                    tap = await self.tap(person, message, button)
                except LookupError:
                    return (await self.again(message)).text
            return await self.answer(tap, timeout_s)

    async def card(self, place: str, text: str, timeout_s: float = WAIT_S, *, which: int = 0) -> Seen:
        """The card in a place that shows `text` and can be pressed, as soon as it stands."""

        def cards(messages: list[Seen]) -> list[Seen]:
            return [message for message in messages if text in message.text and self.is_open(message)]

        found = await self.until(place, lambda messages: len(cards(messages)) > which, timeout_s)
        return cards(found)[which]

    async def reply(self, message: Seen, text: str, timeout_s: float = WAIT_S) -> Seen:
        """The newest answer of the bot to `message` that contains `text`, as soon as its writer sees one."""

        def fits(each: Seen) -> bool:
            return each.by_bot and not each.deleted and self.answers(each, message) and text in each.text

        found = await self.until(
            message.place, lambda messages: any(map(fits, messages)), timeout_s, viewer=message.said_by
        )
        return [each for each in found if fits(each)][-1]

    async def summary(self, command: Seen, text: str, timeout_s: float = WAIT_S) -> Seen:
        """What is said once of all that a command answered."""
        return await self.reads(command.place, text, timeout_s)

    def stopped(self, session: str) -> str:
        """What somebody is told who stopped a session."""
        return f"stopped session {session}"

    def runs_named(self, told: str) -> int:
        """Of how many runs on one card somebody is told that they were stopped."""
        return int(told.partition(" runs)")[0].rpartition("(")[2])

    async def widened(self, person: Person, card: Seen, label: str) -> str:
        """Give a wider answer whose label begins so: on the card, or behind More…; what is told."""
        if not any(each.startswith(label) for each in card.buttons):
            await self.tapped(person, card, "More…")
            card = await self.panel(person, card, "until it ends")
        return await self.tapped(person, card, next(each for each in card.buttons if each.startswith(label)))

    def answers(self, reply: Seen, message: Seen) -> bool:
        """Whether the one was said in answer to the other."""
        return reply.reply_to == message.message_id

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
