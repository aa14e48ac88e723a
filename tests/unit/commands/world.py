"""The real use cases over a platform in memory: agents ask, cards are posted, people type."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from signoff.broker import Ask, Broker
from signoff.commands import Commands
from signoff.dispatcher import Dispatcher
from signoff.maker import Maker
from signoff.model import (
    Actor,
    Answer,
    ApprovalRequest,
    Command,
    Copy,
    Destination,
    Event,
    Message,
    Person,
    Reply,
    Session,
    SessionKind,
    Suggestion,
    Tap,
    replace,
)
from signoff.ports import ChatAdapter, Store, Tx
from signoff.rows import request_key
from signoff.sessions import Declaration, Sessions
from signoff.settings import PrincipalSettings, Profile
from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock
from signoff.testing.fake_adapter import FakeAdapter, FakeMessage
from signoff.tokens import Signer

ROOM = Destination("fake", "-1")
THREAD = Destination("fake", "-1", "7")
OTHER = Destination("fake", "-2")
ANA, BEN, EVE = "1", "2", "9"
PROFILE = Profile(
    approvers={"fake": (ANA, BEN)},
    principals={"Ana": PrincipalSettings(accounts=("fake:1",)), "Ben": PrincipalSettings(accounts=("fake:2",))},
)


async def until(holds: Callable[[], Awaitable[bool]], limit_s: float = 20.0) -> None:
    """Return once `holds`; TimeoutError after `limit_s` of real time."""
    async with asyncio.timeout(limit_s):
        while not await holds():  # noqa: ASYNC110  # the store has no event for what is waited for here
            await asyncio.sleep(0.001)


class Inbox:
    """Hands messages to the commands."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def tap(self, tap: Tap) -> Answer:
        """Nobody taps here."""
        return Answer("")

    async def message(self, message: Message) -> Reply | None:
        """A typed message; kept so that it can be delivered again."""
        self._world.last = message
        return await self._world.commands.handle("default", message, self._world.adapter.info)

    async def pending(self, place: Destination, person: Person) -> list[Suggestion]:
        """What a half-typed id may mean."""
        return await self._world.commands.pending("default", place, person)

    def approvers(self) -> tuple[str, ...]:
        """Nobody taps here."""
        return ()

    def groups(self) -> tuple[str, ...]:
        """The fake platform has none."""
        return ()

    async def moved(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """No chat moves here."""

    async def left(self, place: Destination, why: str) -> None:
        """No chat is deleted here."""

    async def unanswered(self, tap: Tap, answer: Answer) -> None:
        """Nobody taps here."""

    async def load(self, name: str) -> str | None:
        """Nothing is kept."""
        return None

    async def save(self, name: str, value: str) -> None:
        """Nothing is kept."""

    async def alarm(self, what: str, detail: str) -> None:
        """Nothing fails here."""
        raise AssertionError(detail)


class World:
    """One gateway's use cases with one platform, `fake`."""

    def __init__(self, store: Store, clock: FakeClock, profile: Profile) -> None:
        self.store = store
        self.clock = clock
        self.adapter = FakeAdapter("fake")
        profiles = {"default": profile}
        self.broker = Broker(store, clock, profiles, lambda _: frozenset({"fake"}))
        self.sessions = Sessions(store, profiles, lambda _: frozenset({"fake"}))
        self.signer = signer = Signer({1: b"k" * 32}, 1)
        self.maker = maker = Maker(store, clock, signer, {"fake": self.adapter.info})
        adapters: dict[tuple[str, str], ChatAdapter] = {("default", "fake"): self.adapter}
        self.dispatcher = Dispatcher(store, clock, adapters, maker, lambda platform, op, result: None)
        self.commands = Commands(self.broker, self.sessions, self.dispatcher, store, clock, maker.title)
        self.last: Message | None = None
        self._asked = 0

    # --- agents ------------------------------------------------------------------------------

    async def session(self, name: str, place: Destination | None = ROOM, **facts: Any) -> Session:
        """Declare a session of the agent `deploy-bot`."""
        kind: SessionKind = "child" if "parent" in facts else "api"
        declaration = Declaration(session_id=name, kind=kind, destination=place, **facts)
        return await self.sessions.declare("default", declaration, "deploy-bot")

    async def submit(self, text: str | None = None, *, session: str = "s1", **facts: Any) -> ApprovalRequest:
        """A question is asked; its card may still be on its way."""
        self._asked += 1
        action = Command(command=text or f"deploy build/{self._asked}")
        return (await self.broker.submit("default", Ask(action=action, session_id=session, **facts))).row

    async def ask(
        self, text: str | None = None, *, session: str = "s1", severity: str = "medium", **facts: Any
    ) -> ApprovalRequest:
        """A question is asked and its card stands in the chat."""
        row = await self.submit(text, session=session, **facts)
        if severity != "medium":
            await self.change(row, severity=severity)
        await self.shown(row)
        return await self.row(row)

    async def shown(self, row: ApprovalRequest) -> None:
        """Wait until every card of the request stands."""

        async def sent() -> bool:
            copies = await self.copies(row)
            return all(copy.state in ("sent", "final") for copy in copies)

        await until(sent)

    async def change(self, row: ApprovalRequest, **facts: Any) -> None:
        """Give a request facts that no rule makes yet."""

        def change(tx: Tx) -> None:
            stored = tx.get(ApprovalRequest, request_key("default", row.request_id))
            assert stored is not None
            tx.put(replace(stored, **facts))

        await self.store.transact(change)

    async def change_copies(self, row: ApprovalRequest, **facts: Any) -> None:
        """Give the copies of a request other facts."""
        for copy in await self.copies(row):
            await self.store.transact(lambda tx, copy=copy: tx.put(replace(copy, **facts)))  # type: ignore[misc]  # bound at once

    async def row(self, row: ApprovalRequest) -> ApprovalRequest:
        """How the request stands."""
        return await self.broker.get("default", row.request_id)

    async def outcomes(self, *rows: ApprovalRequest) -> list[str | None]:
        """How the requests ended."""
        return [(await self.row(row)).outcome for row in rows]

    async def copies(self, row: ApprovalRequest) -> list[Copy]:
        """Its copies."""
        return await self.store.find(Copy, "request", request_key("default", row.leader_id or row.request_id))

    async def card(self, row: ApprovalRequest) -> str:
        """The id of its card's message."""
        return str((await self.copies(row))[0].message_id)

    async def events(self, kind: str) -> list[Event]:
        """The events of a type."""
        return [event for event in await self.store.events("default", 0, limit=10_000) if event.type == kind]

    # --- people ------------------------------------------------------------------------------

    async def type(self, text: str, *, by: str = ANA, where: Destination = ROOM, **facts: Any) -> str:
        """Somebody types; returns the reply's text, or fails when none comes."""
        return (await self.reply(text, by=by, where=where, **facts)).text

    async def reply(self, text: str, *, by: str = ANA, where: Destination = ROOM, **facts: Any) -> FakeMessage:
        """Somebody types; returns the reply."""
        await self.adapter.say(text, where=where, by=by, **facts)
        return await self.answer()

    async def answer(self, count: int = 1) -> FakeMessage:
        """The reply to what was typed last, once there are `count`."""
        assert self.last is not None
        said = self.last.message_id
        shown = await self.adapter.until(lambda all_: sum(_answers(each, said) for each in all_) >= count)
        return [each for each in shown if _answers(each, said)][-1]

    async def silence(self, text: str, *, by: str = ANA, where: Destination = ROOM, **facts: Any) -> None:
        """Somebody types, and nothing is answered."""
        said = await self.adapter.say(text, where=where, by=by, **facts)
        await self.idle()
        assert [each.text for each in self.adapter.messages if _answers(each, said)] == []

    async def again(self) -> str:
        """What was typed last is delivered once more."""
        assert self.last is not None
        before = sum(_answers(each, self.last.message_id) for each in self.adapter.messages)
        await self.commands.handle("default", self.last, self.adapter.info)
        return (await self.answer(before + 1)).text

    async def idle(self) -> None:
        """Wait until nothing is due to be sent, nor under way."""
        async with asyncio.timeout(60.0):
            await self.dispatcher.idle()


def _answers(message: FakeMessage, said: str) -> bool:
    return message.reply_to == said


def person(user_id: str) -> Actor:
    """Who decided by a tap."""
    names = {ANA: "Ana", BEN: "Ben"}
    return Actor(type="person", platform="fake", user_id=user_id, principal=names.get(user_id), via="button")


@asynccontextmanager
async def opened(url: str, profile: Profile = PROFILE) -> AsyncIterator[World]:
    """A running world on that store."""
    clock = FakeClock()
    store = open_store(url, clock)
    world = World(store, clock, profile)
    tasks = [asyncio.create_task(world.dispatcher.run()), asyncio.create_task(world.adapter.run(Inbox(world)))]
    await world.adapter.ready()
    await world.session("s1")
    try:
        yield world
    finally:
        world.commands.close()
        while not all(task.done() for task in tasks):  # a cancellation that meets the end of a wait is lost
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=0.01)
        await store.aclose()
