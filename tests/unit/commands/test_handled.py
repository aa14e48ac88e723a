"""A command is done once, wherever the store fails or the gateway stops in the middle of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.commands.world import ANA, ROOM, World, opened

from signoff.errors import StoreUnavailable
from signoff.inbox import ProfileInbox
from signoff.model import ApprovalRequest, Message, Person, Reply
from signoff.taps import Taps

DOUBT = "Signoff stopped while it did this, so it may be done already."


def inbox(world: World) -> ProfileInbox:
    """As after a restart: it remembers nothing but what the store has."""
    taps = Taps(world.broker, world.dispatcher, world.store, world.clock, world.signer, world.maker)
    return ProfileInbox(
        "default",
        world.adapter.info,
        store=world.store,
        taps=taps,
        commands=world.commands,
        dispatcher=world.dispatcher,
    )


def typed(text: str) -> Message:
    person = Person(platform="fake", user_id=ANA, name="Ana")
    return Message(
        destination=ROOM, message_id="777", order=777, person=person, text=text, addressed=True, replies="all"
    )


def said(reply: Reply | None) -> str:
    return "" if reply is None else str(reply.card)


async def approved(world: World) -> tuple[ApprovalRequest, ApprovalRequest]:
    """Two approvals of one person: `undo` takes the newer one back, and done twice the other too."""
    await world.session("s1")
    first = await world.ask("deploy a")
    await world.type("/approve")
    await world.clock.advance(5)
    second = await world.ask("deploy b")
    await world.type("/approve")
    return first, second


async def states(world: World, *rows: ApprovalRequest) -> list[str]:
    return [(await world.row(row)).execution.state for row in rows]


class Failing:
    """The store's `transact`, which fails at the given call before it saves, or stands still after it saved."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch, *, at: int, stands: bool = False) -> None:
        self._transact, self._at, self._stands = world.store.transact, at, stands
        self.reached = asyncio.Event()
        monkeypatch.setattr(world.store, "transact", self)

    async def __call__(self, change: Callable[[Any], Any], *, bulk: bool = False) -> Any:
        self._at -= 1
        if self._at == 0:
            self.reached.set()
            if not self._stands:
                raise StoreUnavailable
            await self._transact(change, bulk=bulk)
            await asyncio.Future()
        return await self._transact(change, bulk=bulk)


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
async def test_where_the_store_fails_it_is_done_once(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    async with opened("memory://") as world:
        first, second = await approved(world)
        failing = Failing(world, monkeypatch, at=at)
        try:
            await inbox(world).message(typed("/undo"))
        except StoreUnavailable:
            assert await states(world, first, second) == ["none", "none"]
        else:
            assert await states(world, first, second) == ["none", "not_run"]
        assert failing.reached.is_set()
        done = (await states(world, second)) == ["not_run"]
        assert (DOUBT in said(await inbox(world).message(typed("/undo")))) is done
        assert await states(world, first, second) == ["none", "not_run"]
        assert await inbox(world).message(typed("/undo")) is None


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
async def test_where_the_gateway_stops_it_is_not_done_twice(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    async with opened("memory://") as world:
        first, second = await approved(world)
        failing = Failing(world, monkeypatch, at=at, stands=True)
        handling = asyncio.ensure_future(inbox(world).message(typed("/undo")))
        await failing.reached.wait()
        handling.cancel()
        await asyncio.gather(handling, return_exceptions=True)
        before = await states(world, first, second)
        told = said(await inbox(world).message(typed("/undo")))
        assert (DOUBT in told) is (at < 5), "what was noted as done is not answered again"
        assert await inbox(world).message(typed("/undo")) is None
        assert await states(world, first, second) == before


async def test_what_only_reads_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened("memory://") as world:
        await world.session("s1")
        row = await world.ask("deploy a")
        failing = Failing(world, monkeypatch, at=1, stands=True)
        handling = asyncio.ensure_future(inbox(world).message(typed("/pending")))
        await failing.reached.wait()
        handling.cancel()
        await asyncio.gather(handling, return_exceptions=True)
        assert row.short_id in said(await inbox(world).message(typed("/pending")))
