"""A gateway with one chat platform in memory, and what a test of it looks at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from signoff import context
from signoff.config import load_config
from signoff.gateway import Gateway
from signoff.model import ApprovalRequest, Command, Destination, Notifier, Session, replace
from signoff.record import Approval
from signoff.rows import EVERY_SESSION, session_key
from signoff.testing.fake_adapter import FakeAdapter

WITHIN_S = 30.0
ASKED = Command(command="rm -rf x")
HARMLESS = Command(command="git status")
FLOOR = Command(command="rm -rf /")


class Room:
    """A running gateway and its platform."""

    def __init__(self, gateway: Gateway, chat: FakeAdapter) -> None:
        self.gateway, self.chat = gateway, chat

    async def console_open(self) -> None:
        """Somebody who may decide listens to every session of the profile."""
        now = self.gateway.clock.now()
        row = Notifier(profile="default", session_id=EVERY_SESSION, name="console", attached_at=now)
        await self.gateway.store.transact(lambda tx: tx.put(row))

    async def stored(self, session_id: str, profile: str = "default") -> Session | None:
        """The session's row, if there is one."""
        return await self.gateway.store.get(Session, session_key(profile, session_id))

    async def pending(self, count: int = 1, profile: str = "default") -> list[ApprovalRequest]:
        """So many waiting questions, once there are."""
        found: list[ApprovalRequest] = []

        async def holds() -> bool:
            found[:] = await self.gateway.broker.pending(profile)
            return len(found) >= count

        await until(holds)
        return found

    async def delivered(self, count: int) -> list[ApprovalRequest]:
        """So many waiting questions, once each that goes to a chat is recorded as shown there."""
        found: list[ApprovalRequest] = []

        async def holds() -> bool:
            found[:] = await self.gateway.broker.pending("default")
            return sum(not row.destinations or bool(row.delivered_to) for row in found) >= count

        await until(holds)
        return found

    async def card(self, place: str, words: str) -> str:
        """The message in this place whose card shows these words, once it is there; its id."""
        chat_id = place.partition(":")[2]
        shown = await self.chat.until(
            lambda messages: any(m.destination.chat_id == chat_id and words in m.text for m in messages)
        )
        return next(m.message_id for m in shown if m.destination.chat_id == chat_id and words in m.text)

    def places(self) -> dict[str, int]:
        """How many cards went where."""
        found: dict[str, int] = {}
        for message in self.chat.messages:
            found[str(message.destination)] = found.get(str(message.destination), 0) + 1
        return found


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Return once it holds."""
    # A timer keeps the context that it was made in until its time has come, even if it is cancelled before. Made in the
    # caller's, this one would hold open the session that some wait to see ended, for as long as they wait.
    with context.fresh():
        async with asyncio.timeout(WITHIN_S):
            while not await holds():  # noqa: ASYNC110  # what is waited for may happen on a thread
                await asyncio.sleep(0.01)


@asynccontextmanager
async def room(
    folder: Path, *, no_context: Literal["deny", "approve"] = "deny", profiles: tuple[str, ...] = (), **approvals: Any
) -> AsyncIterator[Room]:
    """A gateway whose only platform is `fake`, with person 1 as its approver. `approvals` are settings of each profile,
    `profiles` further ones beside `default`."""
    environ = {"SIGNOFF_GATEWAY__STATE_DIR": str(folder), "SIGNOFF_GATEWAY__STORE": "memory://"}
    config = load_config(None, environ)
    default = config.profiles["default"]
    default = replace(
        default, approvals=replace(default.approvals, timeout_s=WITHIN_S, **approvals), approvers={"fake": ("1",)}
    )
    names = ("default", *profiles)
    config = replace(config, profiles={name: replace(default, name=name) for name in names})
    chats = {name: FakeAdapter() for name in names}
    adapters = {(name, "fake"): chat for name, chat in chats.items()}
    async with Gateway(config, adapters=adapters, no_context=no_context) as gateway:
        yield Room(gateway, chats["default"])


async def refused(work: Awaitable[Approval]) -> Approval:
    """The record of a question that nobody is asked: it comes at once and was never pending."""
    async with asyncio.timeout(WITHIN_S):
        record = await work
    assert record.decided_at == record.created_at
    assert record.delivered_to == record.destinations == ()
    return record


def place(text: str) -> Destination:
    """`fake:100` as a destination."""
    platform, _, chat_id = text.partition(":")
    return Destination(platform, chat_id)
