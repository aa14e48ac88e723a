"""A place that takes few messages, a burst in it, and the digest that comes of that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.core.harness import GROUP, World, person

from signoff.commands import Commands
from signoff.model import ApprovalRequest, Copy, Message, replace
from signoff.ports import AdapterInfo
from signoff.testing.fake_adapter import FakeMessage

INFO = AdapterInfo(platform="fake", title="Fake", per_second=30.0, per_chat_s=1.0, group_per_minute=20)
PRIVATE = replace(INFO, private_panels=True, dialogs=True)
NO_KEY = replace(INFO, resend_ambiguous=False)


async def burst(world: World, count: int, session_id: str = "s", **facts: Any) -> list[ApprovalRequest]:
    """So many questions within the same second, all on one host."""
    rows = []
    for number in range(count):
        await world.clock.advance(0.001)
        text = f"deploy {session_id}/{number}" if number % 10 else f"git push origin {session_id}{number}"
        rows.append(await world.submit(text, session_id, **{"host": "ci-3", **facts}))
    return rows


async def listed(world: World, rows: list[ApprovalRequest]) -> list[ApprovalRequest]:
    """Those that a digest lists, as they stand."""
    return [
        await world.row(row)
        for row in rows
        if any(copy.digest is not None for copy in await world.copies(row) if copy.kind == "card")
    ]


async def digest_of(world: World, row: ApprovalRequest) -> Copy:
    """The digest that lists this question."""
    (name,) = {copy.digest for copy in await world.copies(row) if copy.digest is not None}
    found = await world.store.get(Copy, name)
    assert found is not None
    return found


async def message_of(world: World, row: ApprovalRequest) -> FakeMessage:
    """The digest's message as it stands."""
    digest = await digest_of(world, row)
    (message,) = [each for each in world.chat.shown() if each.message_id == digest.message_id]
    return message


def labels(message: FakeMessage) -> list[str]:
    return [button.label for row in message.card.rows for button in row]


def token(message: FakeMessage, label: str) -> str:
    """The token of the button whose label begins so."""
    (found,) = [button.token for row in message.card.rows for button in row if button.label.startswith(label)]
    return found


def world_of(make_world: Callable[..., World], **facts: Any) -> World:
    return make_world(**{"info": INFO, **facts})


async def standing(world: World, count: int = 30) -> tuple[list[ApprovalRequest], FakeMessage]:
    """A burst whose digest stands in the chat: what it lists, and its message."""
    rows = await burst(world, count)
    await world.advance(20)
    found = await listed(world, rows)
    assert len(found) > 10
    return found, await message_of(world, found[0])


async def outcomes(world: World, rows: list[ApprovalRequest]) -> set[str | None]:
    return {(await world.row(row)).outcome for row in rows}


async def own_card(world: World, row: ApprovalRequest) -> FakeMessage:
    """The message of the card that was opened."""
    (message_id,) = [copy.message_id for copy in await world.copies(row) if copy.digest is None]
    (message,) = [each for each in world.chat.shown() if each.message_id == message_id]
    return message


async def delivered(world: World, rows: list[ApprovalRequest]) -> bool:
    """Whether each was sent somewhere."""
    return all([(await world.row(row)).delivered_to for row in rows])


async def copied(world: World, rows: list[ApprovalRequest]) -> set[int]:
    """How many copies they have."""
    return {len(await world.copies(row)) for row in rows}


async def typed(world: World, text: str, reply_to: str | None = None) -> str:
    """A typed command in the group and its answer."""
    commands = Commands(world.broker, world.sessions, world.dispatcher, world.store, world.clock, lambda key: key)
    order = await world.chat.say("hello", where=GROUP)  # takes the next place in the chat's order
    message = Message(
        destination=GROUP,
        message_id=order,
        order=int(order),
        person=person(),
        text=text,
        reply_to=reply_to,
        replies="all",
    )
    reply = await commands.handle("default", message, world.chat.info)
    commands.close()
    assert reply is not None
    return "\n".join("".join(span.text for span in block.spans) for block in reply.card.blocks)


async def waiting(world: World, count: int = 30) -> list[ApprovalRequest]:
    """A burst whose first cards stand and whose digest waits for its room; what the digest lists."""
    rows = await burst(world, count)
    await world.flush()
    found = await listed(world, rows)
    assert (await digest_of(world, found[0])).state == "queued"
    return found
