"""A question that no change can be made of, or that cannot be drawn, holds up no other one's card."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.unit.core.bursts import burst, delivered, listed, message_of, outcomes, standing, waiting, world_of
from tests.unit.core.harness import GROUP, World

from signoff import maker as making
from signoff.changes import digests as listing
from signoff.changes import sending
from signoff.errors import StoreUnavailable
from signoff.model import Action, ApprovalRequest, Command, Copy, Destination
from signoff.outbox import AGAIN_S
from signoff.ports import Tx


@pytest.fixture
async def world(make_world: Callable[..., World]) -> World:
    """A group that takes twenty messages a minute."""
    world = world_of(make_world)
    await world.session(destination=GROUP)
    return world


def broken(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, is_bad: Callable[..., bool]) -> None:
    """Have a function fail for what is bad."""
    works: Callable[..., Any] = getattr(owner, name)

    def call(*args: Any, **words: Any) -> Any:
        if is_bad(*args):
            raise TypeError("a defect")
        return works(*args, **words)

    monkeypatch.setattr(owner, name, call)


def named(text: str) -> Callable[[Action], bool]:
    """Whether an action is the command `text`."""
    return lambda action: isinstance(action, Command) and action.command == text


def parted(rows: list[ApprovalRequest], text: str) -> tuple[ApprovalRequest, list[ApprovalRequest]]:
    """The bad one, and the others."""
    (bad,) = [row for row in rows if named(text)(row.action)]
    return bad, [row for row in rows if row is not bad]


async def test_one_that_cannot_be_listed_goes_by_itself(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "deploy s/7"
    broken(monkeypatch, listing, "plain_text", named(text))
    bad, others = parted(await burst(world, 30), text)
    await world.advance(40)
    assert await delivered(world, [bad, *others])
    assert await listed(world, [bad]) == []
    assert len(await listed(world, others)) > 10
    assert world.defects == [1]


async def test_one_that_cannot_be_drawn_leaves_its_digest(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = await waiting(world)
    text = "deploy s/7"
    bad, others = parted(rows, text)
    broken(monkeypatch, making, "one_line", named(text))
    await world.advance(40)
    assert await delivered(world, rows)
    assert await listed(world, [bad]) == []
    assert await listed(world, others) == [await world.row(row) for row in others]
    assert world.defects == [1, 1], "of the digest, and of the one"


@pytest.mark.parametrize("ended", [True, False])
async def test_an_edit_leaves_out_only_what_has_ended(
    world: World, monkeypatch: pytest.MonkeyPatch, ended: bool
) -> None:
    rows, _ = await standing(world)
    bad, last, others = rows[2], rows[-1], (*rows[:2], *rows[3:-1])
    broken(monkeypatch, making, "one_line", lambda action: action == bad.action)
    for row in (*others, bad) if ended else others:
        await world.cancel(row)
    await world.advance(20)
    text = (await message_of(world, last)).text
    assert (f"{len(others)} cancelled" in text) is ended
    assert text.startswith(f"{len(rows)} wait: ") is not ended, "a button for all answers what nobody sees"
    defects = len(world.defects)
    assert defects
    await world.advance(60)
    assert len(world.defects) == defects, "it is drawn again once something changes, and not before"


@pytest.mark.parametrize("ends", [True, False])
async def test_one_that_cannot_be_leased_ends(world: World, monkeypatch: pytest.MonkeyPatch, ends: bool) -> None:
    bad, others = parted(await burst(world, 4), "deploy s/2")

    def is_bad(*given: Any) -> bool:
        return any(isinstance(each, Copy) and each.request_id == bad.request_id for each in given)

    broken(monkeypatch, sending, "_leased" if ends else "row_of", is_bad)
    await world.advance(20)
    assert await delivered(world, others)
    assert await outcomes(world, others) == {None}
    found = await world.row(bad)
    if ends:
        assert (found.outcome, found.delivery_error) == ("notify_failed", "a defect in the gateway: TypeError")
        assert world.defects == [1]
        return
    # Not even its end can be made. It is left alone for a while, and sent once it can be.
    assert (found.outcome, world.defects) == (None, [1, 1])
    monkeypatch.undo()
    await world.advance(AGAIN_S)
    assert await delivered(world, [bad])


async def test_those_that_are_leased_beside_a_bad_one_are_sent_though_the_store_is_away(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else would send them before their lease is over, and then it would be in doubt whether they were."""
    world = make_world()
    for number in range(3):
        await world.session(f"s{number}", destination=Destination("fake", str(500 + number)))
    rows = [await world.submit(f"deploy {number}", f"s{number}") for number in range(3)]
    last = (await world.copies(rows[-1]))[0].copy_id
    lease, away = sending.lease, True

    def failing(tx: Tx, copy_ids: Sequence[str], **words: Any) -> list[sending.Work]:
        if len(copy_ids) > 1:
            raise TypeError("a defect")
        if away and last in copy_ids:
            raise StoreUnavailable
        return lease(tx, copy_ids, **words)

    monkeypatch.setattr(sending, "lease", failing)
    with pytest.raises(StoreUnavailable):
        await world.flush()
    away = False
    await world.flush()
    assert await delivered(world, rows)
    assert len(world.chat.shown()) == len(rows)
