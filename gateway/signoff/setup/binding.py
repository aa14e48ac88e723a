"""Binding the first approver: the platform's real adapter listens, and this inbox looks for the code alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from msgspec import Struct

from signoff.cards import text_card
from signoff.errors import AdapterError, AdapterUnavailable, Conflict
from signoff.model import Answer, Destination, Message, Person, Reply, Suggestion, Tap
from signoff.ports import ChatAdapter, Clock
from signoff.setup.code import Code, judged
from signoff.wording import safe_name, t

CONNECT_WITHIN_S = 20.0
"""How long the way in may take to open; Discord begins a session within 10 s."""


class Candidate(Struct, frozen=True, kw_only=True):
    """Who sent the right code, and the direct chat it came from."""

    person: Person
    destination: Destination
    message_id: str


class CodeInbox:
    """An `Inbox` that decides nothing: it answers codes, and keeps no value longer than this process."""

    def __init__(self, adapter: ChatAdapter, code: Code, clock: Clock, profile: str) -> None:
        """`profile` is named to the person."""
        self.code = code
        self.found: asyncio.Future[Candidate] = asyncio.get_running_loop().create_future()
        self._adapter, self._clock, self._profile = adapter, clock, profile
        self._values: dict[str, str] = {}

    async def message(self, message: Message) -> Reply | None:
        """A typed message; only one that has the form of a code is answered."""
        first_hand = not (message.unattributable or message.person.guest)
        verdict, self.code = judged(
            self.code, message.text, self._clock.now(), direct=message.direct, first_hand=first_hand
        )
        if verdict == "none":
            self._give_up()
            return None
        if verdict != "right":
            reply = await self._say(message, t(f"init.code.{verdict}"), private=verdict == "wrong")
            self._give_up()
            return reply
        who = safe_name(message.person.name or message.person.user_id)
        hello = t("init.code.hello", person=who, profile=self._profile, user=message.person.user_id)
        reply = await self._say(message, hello, private=True)
        if not self.found.done():
            self.found.set_result(
                Candidate(person=message.person, destination=message.destination, message_id=message.message_id)
            )
        return reply

    def _give_up(self) -> None:
        """Tell the terminal once the code is void."""
        if self.found.done():
            return
        if self.code.ended == "group":
            self.found.set_exception(Conflict(t("init.code.seen_in_group")))
        elif self.code.ended == "tries":
            self.found.set_exception(Conflict(t("init.code.tries", count=5)))

    async def _say(self, message: Message, text: str, *, private: bool) -> Reply | None:
        """Answer where the message stands, by whichever of us shows such a reply on this platform."""
        card = text_card([text])
        if message.replies == "all" or (message.replies == "private" and private):
            return Reply(card, private)
        await self._adapter.post(message.destination, card, reply_to=message.message_id)
        return None

    async def tap(self, tap: Tap) -> Answer:
        """Buttons decide nothing here."""
        return Answer(t("tap.unknown"))

    async def unanswered(self, tap: Tap, answer: Answer) -> None:
        """There is nothing to tell."""

    async def pending(self, place: Destination, person: Person) -> Sequence[Suggestion]:
        """Nothing waits."""
        return ()

    def approvers(self) -> Sequence[str]:
        """Nobody is to press anything."""
        return ()

    def groups(self) -> Sequence[str]:
        """Whoever has the code is bound, a member of whatever."""
        return ()

    async def moved(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """No card is open that would move."""

    async def left(self, place: Destination, why: str) -> None:
        """No card is open there."""

    async def load(self, name: str) -> str | None:
        """A value of this run."""
        return self._values.get(name)

    async def save(self, name: str, value: str) -> None:
        """Keep it for this run."""
        self._values[name] = value

    async def alarm(self, what: str, detail: str) -> None:
        """The message is left out; its sender may try again."""


async def await_code(
    adapter: ChatAdapter, code: Code, clock: Clock, profile: str, *, on_ready: Callable[[], None]
) -> Candidate:
    """Receive until somebody sends the right code; `on_ready` is called once the way in is open.

    Raises `Conflict`, or `AdapterError` when the platform cannot be listened to. Afterwards nothing is received any
    more, and the adapter can still send.
    """
    inbox = CodeInbox(adapter, code, clock, profile)
    receiving = asyncio.create_task(adapter.run(inbox))
    try:
        await _connected(adapter, receiving)
        on_ready()
        left_s = (code.expires_at - clock.now()).total_seconds()
        either: set[asyncio.Future[object]] = {receiving, inbox.found}  # type: ignore[arg-type]  # only awaited
        await asyncio.wait(either, timeout=max(0.0, left_s), return_when=asyncio.FIRST_COMPLETED)
        if receiving.done():
            receiving.result()
            raise AdapterUnavailable("Receiving ended before the code came.")
        if not inbox.found.done():
            raise Conflict(t("init.code.expired", minutes=10))
        return inbox.found.result()
    finally:
        inbox.found.cancel()
        receiving.cancel()
        await asyncio.gather(receiving, return_exceptions=True)


async def _connected(adapter: ChatAdapter, receiving: asyncio.Task[None]) -> None:
    ready = asyncio.create_task(adapter.ready())
    try:
        await asyncio.wait({ready, receiving}, timeout=CONNECT_WITHIN_S, return_when=asyncio.FIRST_COMPLETED)
        if receiving.done():
            receiving.result()
        if not ready.done():
            raise AdapterUnavailable(f"The platform did not answer within {CONNECT_WITHIN_S:g} s.")
        ready.result()
    finally:
        ready.cancel()
        await asyncio.gather(ready, return_exceptions=True)


async def tell(adapter: ChatAdapter, candidate: Candidate, text: str) -> str | None:
    """Write to the candidate's chat; why it could not be, or None."""
    try:
        await adapter.post(candidate.destination, text_card([text]), reply_to=candidate.message_id)
    except AdapterError as error:
        return error.message
    return None
