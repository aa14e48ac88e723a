"""A command is done once, wherever the store fails or the gateway stops in the middle of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.commands.world import ANA, ROOM, World, opened, until

from signoff.errors import SaveUnknown, StoreUnavailable
from signoff.inbox import UNDONE, ProfileInbox
from signoff.model import ApprovalRequest, Message, Person, Reply, replace
from signoff.taps import Taps

DOUBT = "This was begun but not finished, so it may be done already."


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


def fail_at(world: World, monkeypatch: pytest.MonkeyPatch, errors: dict[int, type[Exception]]) -> None:
    """The store's `transact` fails at these calls, with nothing saved unless that is not known."""
    transact, calls = world.store.transact, iter(range(1, 10_000))

    async def fails(change: Callable[[Any], Any], *, bulk: bool = False) -> Any:
        error = errors.get(next(calls))
        if error is SaveUnknown:
            await transact(change, bulk=bulk)
        if error is not None:
            raise error
        return await transact(change, bulk=bulk)

    monkeypatch.setattr(world.store, "transact", fails)


@pytest.mark.parametrize(
    "errors",
    [
        pytest.param({2: StoreUnavailable, 3: StoreUnavailable}, id="the note of the failure fails too"),
        pytest.param(dict.fromkeys(range(3, 8), StoreUnavailable), id="it stays away over several tries"),
        pytest.param({1: SaveUnknown}, id="nobody knows whether it was noted"),
        pytest.param({2: KeyError}, id="a defect"),
        pytest.param({2: KeyError, 3: StoreUnavailable}, id="a defect, and no store"),
    ],
)
async def test_what_failed_with_nothing_saved_is_done_when_it_comes_again(
    monkeypatch: pytest.MonkeyPatch, errors: dict[int, type[Exception]]
) -> None:
    async with opened("memory://") as world:
        first, second = await approved(world)
        own = inbox(world)
        fail_at(world, monkeypatch, errors)
        tries = 0
        while (await states(world, second)) == ["none"]:
            tries += 1
            try:
                told = said(await own.message(typed("/undo")))
            except (StoreUnavailable, SaveUnknown, KeyError):
                assert tries <= len(errors)
            else:
                assert DOUBT not in told
        assert tries > 1
        assert await own.message(typed("/undo")) is None
        assert await states(world, first, second) == ["none", "not_run"]


async def test_a_defect_is_logged_at_each_try_and_ends_no_delivery(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An adapter parks what fails each time, with an alarm; what is answered counts as handled."""
    async with opened("memory://") as world:
        await approved(world)
        own = inbox(world)

        async def broken(*_: Any) -> None:
            raise KeyError("defect")

        monkeypatch.setattr(world.commands, "handle", broken)
        for _ in range(3):
            with pytest.raises(KeyError):
                await own.message(typed("/undo"))
        logged = [record for record in caplog.records if record.name == "signoff.inbox"]
        assert [(each.levelname, each.exc_info is not None) for each in logged] == [("ERROR", True)] * 3


async def test_a_defect_after_a_commit_leaves_it_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened("memory://") as world:
        first, second = await approved(world)
        handle = world.commands.handle

        async def broken(*given: Any) -> None:
            await handle(*given)
            raise KeyError("defect")

        monkeypatch.setattr(world.commands, "handle", broken)
        own = inbox(world)
        with pytest.raises(KeyError):
            await own.message(typed("/undo"))
        assert DOUBT in said(await own.message(typed("/undo")))
        assert await own.message(typed("/undo")) is None
        assert await states(world, first, second) == ["none", "not_run"]


async def test_no_more_than_some_failures_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened("memory://") as world:
        own = inbox(world)
        fail_at(world, monkeypatch, dict.fromkeys(range(1, UNDONE + 10), StoreUnavailable))
        for number in range(UNDONE + 5):
            with pytest.raises(StoreUnavailable):
                await own.message(replace(typed("/undo"), message_id=f"m{number}"))
        assert len(own._undone) == UNDONE


async def test_that_it_is_in_doubt_is_told_also_where_the_first_telling_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened("memory://") as world:
        await approved(world)
        failing = Failing(world, monkeypatch, at=3, stands=True)
        handling = asyncio.ensure_future(inbox(world).message(typed("/undo")))
        await failing.reached.wait()
        handling.cancel()
        await asyncio.gather(handling, return_exceptions=True)

        async def told() -> bool:
            return any(DOUBT in str(message.card) for message in world.adapter.shown())

        own, public = inbox(world), replace(typed("/undo"), replies="posted")
        say = world.dispatcher.say

        async def fails(*_: Any, **__: Any) -> None:
            raise StoreUnavailable

        monkeypatch.setattr(world.dispatcher, "say", fails)
        with pytest.raises(StoreUnavailable):
            await own.message(public)
        monkeypatch.setattr(world.dispatcher, "say", say)
        await own.message(public)
        await until(told)
