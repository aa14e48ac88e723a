"""The core in a test's hand: its use cases over a store, a clock that stands still and a chat platform in memory.

Nothing runs by itself. `flush` sends what is due, `advance` moves the clock from one due time to the next and lets the
sweeper and the dispatcher act at each, so a test reads like a timetable.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from msgspec import Struct

from signoff.broker import Ask, Broker
from signoff.dispatcher import Dispatcher
from signoff.endings import message as agent_text
from signoff.maker import Maker
from signoff.model import (
    Action,
    Actor,
    Answer,
    ApprovalRequest,
    Cause,
    Command,
    Copy,
    Destination,
    Event,
    Message,
    Notifier,
    Operand,
    Person,
    Session,
    Suggestion,
    Tap,
    Turn,
    replace,
)
from signoff.ports import AdapterInfo, Store, Tx
from signoff.rows import key_of, request_key, session_key
from signoff.sessions import Declaration, Sessions
from signoff.settings import Profile
from signoff.sweeper import Sweeper
from signoff.taps import Taps
from signoff.testing.clock import FakeClock, settle
from signoff.testing.fake_adapter import FakeAdapter, FakeMessage
from signoff.tokens import Signer

PLACE = Destination("fake", "100")
OTHER_PLACE = Destination("fake", "200")
GROUP = Destination("fake", "-300")
ANN, BEN = "1", "2"
SIGNER = Signer({0: b"a secret of the tests"}, 0)
BY_ANN = Actor(type="person", platform="fake", user_id=ANN, name="Ann", via="command")


class HandDispatcher(Dispatcher):
    """A dispatcher that sends when it is told to."""

    async def start_due(self) -> None:
        """Begin every send that is due, without waiting for its end."""
        while await self.round():
            await settle()

    async def flush(self) -> None:
        """Send until nothing is due now and nothing is under way."""
        for _ in range(10_000):
            more = await self.round()
            if self._tasks:
                await asyncio.wait(self._tasks)
            elif not more:
                return
        raise AssertionError("the outbox never empties")

    async def crash(self) -> None:
        """Begin every send that is due and end without hearing what came of it."""
        await self.start_due()
        under_way = list(self._tasks)
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


class _Inbox:
    """What the fake platform hands in goes to the taps; `told` keeps the replies to typed reasons."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.told: list[str | None] = []

    async def tap(self, tap: Tap) -> Answer:
        return await self._world.taps.tap("default", tap, self._world.chat.info)

    async def message(self, message: Message) -> None:
        self.told.append(await self._world.taps.typed_reason("default", message, self._world.chat.info))

    async def pending(self, place: Destination, person: Person) -> list[Suggestion]:
        return []

    async def unanswered(self, tap: Tap, answer: Answer) -> None: ...

    def approvers(self) -> tuple[str, ...]:
        return ()

    def groups(self) -> tuple[str, ...]:
        return ()

    async def moved(self, platform: str, old_chat_id: str, new_chat_id: str) -> None: ...

    async def left(self, place: Destination, why: str) -> None: ...

    async def load(self, name: str) -> str | None:
        return None

    async def save(self, name: str, value: str) -> None: ...

    async def alarm(self, what: str, detail: str) -> None: ...


class World:
    """One gateway's core. `profile` is its only profile, served by the platform `fake`."""

    def __init__(
        self,
        store: Store,
        clock: FakeClock,
        *,
        profile: Profile | None = None,
        info: AdapterInfo | None = None,
        fallbacks: Mapping[str, Destination] | None = None,
        signer: Signer = SIGNER,
        chat: FakeAdapter | None = None,
        alone: bool = False,
    ) -> None:
        """`chat` is the platform that an earlier gateway was connected to; `alone`: no other one can be up."""
        self.store, self.clock, self.signer = store, clock, signer
        self.profile = profile or Profile(approvers={"fake": (ANN, BEN)})
        self.chat = chat or FakeAdapter(info=info)
        profiles = {"default": self.profile}
        served = frozenset({"fake"})
        self.broker = Broker(store, clock, profiles, lambda _: served)
        self.sessions = Sessions(store, profiles, lambda _: served)
        maker = Maker(store, clock, signer, {"fake": self.chat.info})
        self.sent: Counter[tuple[str, str]] = Counter()
        self.defects: list[int] = []
        self.dispatcher = HandDispatcher(
            store,
            clock,
            {("default", "fake"): self.chat},
            maker,
            self._count,
            fallbacks=fallbacks,
            on_defect=lambda: self.defects.append(1),
        )
        self.taps = Taps(self.broker, self.dispatcher, store, clock, signer, maker)
        self.sweeper = Sweeper(store, clock, self.broker.waiters, profiles=profiles, alone=alone)
        self.inbox = _Inbox(self)
        self._receiver = asyncio.ensure_future(self.chat.run(self.inbox))

    def _count(self, platform: str, op: str, result: str) -> None:
        self.sent[op, result] += 1

    async def aclose(self) -> None:
        """End the platform and the waits; the store stays open."""
        self._receiver.cancel()
        await asyncio.gather(self._receiver, return_exceptions=True)
        self.broker.waiters.close()

    # --- time ----------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Send what is due now."""
        await self.dispatcher.flush()

    async def settle(self) -> None:
        """Let everything that is due at this instant happen."""
        for _ in range(100):
            swept = await self.sweeper.sweep()
            await self.flush()
            due = await self._next_due()
            if not swept and (due is None or due > 0):
                return
        raise AssertionError("something stays due")

    async def advance(self, seconds: float) -> None:
        """Move on by `seconds`, stopping at each due time on the way."""
        end = self.clock.now() + timedelta(seconds=seconds)
        await self.settle()
        for _ in range(100_000):
            left = (end - self.clock.now()).total_seconds()
            due = await self._next_due()
            await self.clock.advance(left if due is None else min(due, left))
            await self.settle()
            if self.clock.now() >= end:
                return
        raise AssertionError("the clock never gets there")

    async def _next_due(self) -> float | None:
        """Seconds until the next thing is due."""
        tables: tuple[type[Struct], ...] = (ApprovalRequest, Turn, Notifier, Session, Copy)
        times = [await self.store.next_due(row) for row in tables]
        known = [time for time in times if time is not None]
        return (min(known) - self.clock.now()).total_seconds() if known else None

    # --- asking --------------------------------------------------------------------------------

    async def session(self, session_id: str = "s", **facts: Any) -> Session:
        """Declare a session, by default a chat in `PLACE`."""
        facts = {"kind": "chat", "destination": PLACE, **facts}
        if facts["kind"] == "child":
            facts["destination"] = None
        return await self.sessions.declare("default", Declaration(session_id=session_id, **facts), None)

    async def turn(self, turn_id: str = "t", session_id: str = "s", lease_s: float = 3600.0) -> Turn:
        """Open a turn."""
        return await self.sessions.open_turn("default", session_id, turn_id, lease_s)

    async def submit(
        self, action: str | Action = "deploy build", session_id: str = "s", **facts: Any
    ) -> ApprovalRequest:
        """Ask; nothing is sent yet."""
        if isinstance(action, str):
            action = Command(command=action)
        asked = await self.broker.submit("default", Ask(action=action, session_id=session_id, **facts))
        return asked.row

    async def ask(self, action: str | Action = "deploy build", session_id: str = "s", **facts: Any) -> ApprovalRequest:
        """Ask and have the card sent."""
        row = await self.submit(action, session_id, **facts)
        await self.flush()
        return await self.row(row)

    async def critical(self, action: str | Action = "drop it all", **facts: Any) -> ApprovalRequest:
        """A critical question with its card sent."""
        row = await self.submit(action, **facts)
        await self.put(replace(row, severity="critical"))
        await self.flush()
        return await self.row(row)

    async def put(self, *rows: Struct) -> None:
        """Change rows behind the core's back."""

        def change(tx: Tx) -> None:
            for row in rows:
                tx.put(row)

        await self.store.transact(change)

    # --- answering -----------------------------------------------------------------------------

    async def decide(self, row: ApprovalRequest, choice: str, by: Actor = BY_ANN, reason: str | None = None) -> str:
        """Answer by command or API; how it went."""
        return (await self.broker.decide("default", row.request_id, choice, by, reason=reason)).how

    async def button(self, row: ApprovalRequest, choice: str) -> tuple[FakeMessage, str]:
        """The newest standing message of this request with a button for `choice`, and its token."""
        for message in reversed(self.chat.shown()):
            for token in tokens_of(message):
                parts = self.signer.verify(token, "fake", message.destination.chat_id)
                assert parts is not None
                copy = await self.store.get(Copy, parts.copy_id)
                if parts.choice == choice and copy is not None and copy.request_id == row.request_id:
                    return message, token
        raise LookupError(f"no button {choice!r} for {row.short_id}")

    async def tap(self, row: ApprovalRequest, choice: str, by: str = ANN) -> Answer:
        """Press the button that this request's newest message shows for `choice`."""
        message, token = await self.button(row, choice)
        return await self.press(token, message, by)

    async def press(self, token: str, message: FakeMessage, by: str = ANN) -> Answer:
        """Press a token on a message, whether or not it still shows it."""
        return await self.chat.press(
            token, by=by, name=NAMES.get(by), message_id=message.message_id, destination=message.destination
        )

    async def claim(self, row: ApprovalRequest, claim_id: str = "c1", **facts: Any) -> ApprovalRequest:
        """Start the action."""
        return await self.broker.claim("default", row.request_id, facts.pop("digest", row.digest), claim_id, **facts)

    async def cancel(
        self, row: ApprovalRequest, cause: Cause = "withdrawn", by: Actor | None = None
    ) -> ApprovalRequest:
        """Take the question back."""
        return await self.broker.cancel("default", row.request_id, cause, by)

    # --- looking -------------------------------------------------------------------------------

    async def row(self, row: ApprovalRequest | str) -> ApprovalRequest:
        """The request as it stands."""
        return await self.broker.get("default", row if isinstance(row, str) else row.request_id)

    async def rows(self, session_id: str = "s") -> list[ApprovalRequest]:
        """Every request of a session, oldest first."""
        return await self.store.find(ApprovalRequest, "session", session_key("default", session_id))

    async def copies(self, row: ApprovalRequest) -> list[Copy]:
        """The request's copies."""
        return await self.store.find(Copy, "request", request_key("default", row.request_id))

    async def message(self, row: ApprovalRequest) -> str:
        """What the agent reads now."""
        return agent_text(await self.row(row), self.clock.now())

    async def cards(self, row: ApprovalRequest) -> list[FakeMessage]:
        """The standing card messages of this request, oldest first."""
        ids = {copy.message_id for copy in await self.copies(row) if copy.kind == "card"}
        return [message for message in self.chat.shown() if message.message_id in ids]

    async def card(self, row: ApprovalRequest) -> FakeMessage:
        """The request's only standing card."""
        (card,) = await self.cards(row)
        return card

    async def events(self, kind: str | None = None) -> list[Event]:
        """The log, of one type."""
        found = await self.store.events("default", 0, limit=1_000_000)
        return [event for event in found if kind in (None, event.type)]

    async def copy(self, row: ApprovalRequest) -> Copy:
        """The request's only card copy."""
        (copy,) = [copy for copy in await self.copies(row) if copy.kind == "card"]
        return copy


NAMES = {ANN: "Ann", BEN: "Ben"}


def tokens_of(message: FakeMessage) -> list[str]:
    """The tokens of the shown buttons."""
    return [button.token for line in message.card.rows for button in line]


def choices_of(message: FakeMessage, signer: Signer = SIGNER) -> list[str]:
    """What the shown buttons would do."""
    parts = [signer.verify(token, "fake", message.destination.chat_id) for token in tokens_of(message)]
    return [part.choice for part in parts if part is not None]


def person(user_id: str = ANN) -> Person:
    """Somebody on the fake platform."""
    return Person(platform="fake", user_id=user_id, name=NAMES.get(user_id))


def operand(path: str = "run.sh", sha256: str = "aa") -> Operand:
    """A reviewed file."""
    return Operand(path=path, sha256=sha256, bytes=1)


__all__ = ["ANN", "BEN", "BY_ANN", "GROUP", "OTHER_PLACE", "PLACE", "SIGNER", "World", "key_of"]
