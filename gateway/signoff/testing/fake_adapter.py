"""A chat platform in memory, for embedding tests and benches: what was shown can be read, and people can act in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Literal

from msgspec import Struct

from signoff.errors import AdapterError, AdapterFatal, MessageGone, SendAmbiguous
from signoff.model import Answer, Card, Destination, Health, Message, Person, Posted, Reply, Tap, replace
from signoff.ports import AdapterInfo, HookRoute, Inbox

Call = Literal["post", "update", "delete"]


class FakeMessage(Struct, frozen=True, kw_only=True):
    """One message as it stands now. `cards` are all its forms, the newest last."""

    destination: Destination
    message_id: str
    order: int
    cards: tuple[Card, ...]
    reply_to: str | None = None
    deleted: bool = False

    @property
    def card(self) -> Card:
        """What is shown."""
        return self.cards[-1]

    @property
    def text(self) -> str:
        """The shown words, a line a block."""
        return "\n".join("".join(span.text for span in block.spans) for block in self.card.blocks)

    def tokens(self, wanted: str) -> list[str]:
        """Tokens of the shown buttons with this label, or with this token."""
        buttons = [button for row in self.card.rows for button in row]
        return [button.token for button in buttons if wanted in (button.label, button.token)]


class FakeAdapter:
    """A `ChatAdapter` without a network. Messages have rising ids over all places."""

    def __init__(self, platform: str = "fake", *, info: AdapterInfo | None = None) -> None:
        """`info` says what the platform can do; by default it has no budgets to speak of."""
        self.info = info or AdapterInfo(
            platform=platform, title=platform.title(), per_second=1e6, per_chat_s=0.0, group_per_minute=10**6
        )
        self.messages: list[FakeMessage] = []
        """Everything posted, in order, also what was deleted."""
        self.calls: list[tuple[Call, Destination]] = []
        """Every attempt of the core, also those that failed."""
        self.answers: list[Answer] = []
        """What people who pressed were told."""
        self.replies: list[Reply] = []
        """What people who typed were told, where that was left to the adapter."""
        self._ids = count(1)
        self._inbox: asyncio.Future[Inbox] | None = None
        self._failures: list[tuple[Call, AdapterError, bool]] = []
        self._gates: dict[Call, asyncio.Event] = {}
        self._changed = asyncio.Event()
        self._state: Literal["starting", "ready", "degraded", "stopped"] = "starting"
        self._stopped = asyncio.Event()
        self._fatal: AdapterFatal | None = None

    # --- told by a test --------------------------------------------------------------------------

    def fail(self, error: AdapterError, *, call: Call = "post", times: int = 1) -> None:
        """Let the next `times` calls raise `error` with nothing done."""
        self._failures += [(call, error, False)] * times

    def lose_answer(self, *, call: Call = "post", times: int = 1) -> None:
        """Let the next `times` calls be done and raise `SendAmbiguous`."""
        self._failures += [(call, SendAmbiguous(), True)] * times

    def stall(self, call: Call = "post") -> None:
        """Let calls wait, with nothing done, until `go_on`."""
        self._gates[call] = asyncio.Event()

    def go_on(self, call: Call = "post") -> None:
        """End a stall."""
        self._gates.pop(call).set()

    def die(self, error: AdapterFatal) -> None:
        """End `run` with this error."""
        self._fatal = error
        self._stopped.set()

    def remove(self, message_id: str) -> None:
        """Let a person delete the message."""
        self._change(message_id, deleted=True)

    async def press(
        self,
        button: str,
        *,
        by: str = "1",
        name: str | None = None,
        message_id: str | None = None,
        destination: Destination | None = None,
        text: str | None = None,
    ) -> Answer:
        """Press the newest button with this label or token and return what the person is told.

        With `destination` the token goes in from there as it is, whether or not it was ever shown (a forgery).
        Raises LookupError when no message has such a button.
        """
        if destination is None:
            shown = self._find(button, message_id)
            message_id, destination, button = shown.message_id, shown.destination, shown.tokens(button)[0]
        tap = Tap(
            destination=destination,
            message_id=message_id,
            person=Person(platform=self.info.platform, user_id=by, name=name),
            token=button,
            tap_id=f"tap{next(self._ids)}",
            order=int(message_id) if message_id and message_id.isdigit() else 0,
            text=text,
        )
        answer = await (await self._open_inbox()).tap(tap)
        self.answers.append(answer)
        return answer

    async def say(
        self,
        text: str,
        *,
        where: Destination,
        by: str = "1",
        name: str | None = None,
        reply_to: str | None = None,
        direct: bool = False,
        addressed: bool = False,
        unattributable: bool = False,
        replies: Literal["posted", "private", "all"] = "posted",
    ) -> str:
        """Write a message; its id. Returns once the inbox has taken it; `replies` has what is left to the adapter."""
        order = next(self._ids)
        message = Message(
            destination=where,
            message_id=str(order),
            order=order,
            person=Person(platform=self.info.platform, user_id=by, name=name),
            text=text,
            reply_to=reply_to,
            direct=direct,
            addressed=addressed,
            unattributable=unattributable,
            replies=replies,
        )
        reply = await (await self._open_inbox()).message(message)
        if reply is not None:
            self.replies.append(reply)
        return str(order)

    def shown(self, destination: Destination | None = None) -> list[FakeMessage]:
        """The messages that stand (in one place)."""
        return [each for each in self.messages if not each.deleted and destination in (None, each.destination)]

    async def until(self, holds: Callable[[list[FakeMessage]], bool], *, limit_s: float = 20.0) -> list[FakeMessage]:
        """The standing messages once `holds` for them; TimeoutError after `limit_s` of real time."""
        async with asyncio.timeout(limit_s):
            while not holds(self.shown()):
                self._changed.clear()
                await self._changed.wait()
        return self.shown()

    # --- ChatAdapter -----------------------------------------------------------------------------

    async def run(self, inbox: Inbox) -> None:
        """Be connected until cancelled, or until `die`."""
        self._stopped.clear()
        self._state = "ready"
        self._future().set_result(inbox)
        try:
            await self._stopped.wait()
            if self._fatal is not None:
                raise self._fatal
        finally:
            self._inbox = None
            self._state = "stopped"

    async def ready(self) -> None:
        """Return once running."""
        await self._open_inbox()

    def hooks(self) -> HookRoute | None:
        """There is no webhook."""
        return None

    def is_group(self, destination: Destination) -> bool:
        """Chats whose id begins with `-` or `#` are groups."""
        return destination.chat_id[:1] in ("-", "#")

    async def post(self, destination: Destination, card: Card, *, reply_to: str | None = None) -> Posted:
        """Keep the card as a new message. Where nothing is to be resent, a card that stands already is recognised by
        the token of its first button."""
        after = await self._attempt("post", destination)
        known = None if self.info.resend_ambiguous else self._recognised(destination, card)
        if known is not None:
            return Posted(known.message_id, known.order)
        order = next(self._ids)
        file_id = None
        if card.attachment is not None:
            file_id, order = str(order), next(self._ids)
        self.messages.append(
            FakeMessage(
                destination=destination, message_id=str(order), order=order, cards=(card,), reply_to=reply_to or file_id
            )
        )
        self._changed.set()
        if after is not None:
            raise after
        return Posted(str(order), order, file_id)

    def _recognised(self, destination: Destination, card: Card) -> FakeMessage | None:
        def key(shown: Card) -> str | None:
            return next((button.token for row in shown.rows for button in row), None)

        fits = (each for each in self.shown(destination) if key(card) is not None and key(each.cards[0]) == key(card))
        return next(fits, None)

    async def update(self, destination: Destination, message_id: str, card: Card) -> None:
        """Give the message a new form."""
        after = await self._attempt("update", destination)
        message = self._standing(message_id)
        if message is None:
            raise MessageGone
        if message.card != card:
            self._change(message_id, cards=(*message.cards, card))
        if after is not None:
            raise after

    async def delete(self, destination: Destination, message_id: str) -> None:
        """Take the message away."""
        after = await self._attempt("delete", destination)
        if self._standing(message_id) is not None:
            self._change(message_id, deleted=True)
        if after is not None:
            raise after

    def health(self) -> Health:
        """Ready while running."""
        return Health(state=self._state)

    async def aclose(self) -> None:
        """End `run`."""
        self._stopped.set()

    # --- inside ----------------------------------------------------------------------------------

    async def _attempt(self, call: Call, destination: Destination) -> AdapterError | None:
        """Wait out a stall and fail as told; returns the error to raise once the call is done."""
        self.calls.append((call, destination))
        if call in self._gates:
            await self._gates[call].wait()
        for number, (which, error, afterwards) in enumerate(self._failures):
            if which == call:
                del self._failures[number]
                if afterwards:
                    return error
                raise error
        return None

    def _future(self) -> asyncio.Future[Inbox]:
        if self._inbox is None:
            self._inbox = asyncio.get_running_loop().create_future()
        return self._inbox

    async def _open_inbox(self) -> Inbox:
        return await asyncio.shield(self._future())

    def _find(self, button: str, message_id: str | None) -> FakeMessage:
        for message in reversed(self.shown()):
            if message_id in (None, message.message_id) and message.tokens(button):
                return message
        raise LookupError(f"no message shows a button {button!r}")

    def _standing(self, message_id: str) -> FakeMessage | None:
        return next((each for each in self.shown() if each.message_id == message_id), None)

    def _change(self, message_id: str, *, cards: tuple[Card, ...] | None = None, deleted: bool = False) -> None:
        for number, each in enumerate(self.messages):
            if each.message_id == message_id:
                self.messages[number] = replace(each, cards=cards or each.cards, deleted=deleted)
        self._changed.set()
