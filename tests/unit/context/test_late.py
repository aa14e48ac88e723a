"""Children of a gateway's own process that ask after their parent's turn or session has ended, and those that are made
again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.context.room import ASKED, HARMLESS, Room, refused, room

from signoff import BlockingGateway
from signoff.authorize import local_actor
from signoff.context import Binding, ContextThreadPool, bind, child, current, within
from signoff.errors import InvalidInput, TurnEnded
from signoff.gateway import Gateway
from signoff.model import Cause
from signoff.record import Approval

ANA = local_actor(1000)
TALK: dict[str, Any] = {"kind": "chat", "destination": "fake:100"}
ENDS: dict[Cause, Callable[[Gateway], Awaitable[object]]] = {
    "stop_requested": lambda gateway: gateway.stop("talk", ANA),
    "session_ended": lambda gateway: gateway.reset("talk", ANA),
}


async def late(here: Room, made: Binding) -> Approval:
    """What a child asks that is over: nobody sees it."""
    with made:
        record = await refused(here.gateway.request(ASKED))
        assert (await here.gateway.request(HARMLESS)).cause == record.cause, "even what needs nobody"
    assert record.outcome == "cancelled"
    assert here.chat.messages == []
    return record


async def waits(here: Room, made: Binding) -> None:
    """What a child asks that goes on: a person answers it."""
    with made:
        asking = asyncio.create_task(here.gateway.request(ASKED))
    (row,) = await here.pending()
    await here.gateway.decide(row.request_id, "once", ANA)
    assert (await asking).may_run


# --- a child that nobody declared before its parent's end ----------------------------------------------


@pytest.mark.parametrize("cause", sorted(ENDS))
@pytest.mark.parametrize("how", ["no turn", "a turn that is not bound", "a bound turn", "bind", "below it", "named"])
async def test_a_child_that_was_made_before_the_end_of_its_parent(tmp_path: Path, how: str, cause: Cause) -> None:
    """However it was made, it ends with its parent's own cause. 2.7.3, #112026"""
    async with room(tmp_path) as here:
        await here.gateway.session("talk", **TALK)
        turn = await here.gateway.sessions.open_turn("default", "talk") if "turn" in how else None
        with bind("talk", **TALK), within(turn_id=(turn and how == "a bound turn" and turn.turn_id) or None):
            if how == "bind":
                made = bind("sub", parent="talk")
            elif how == "below it":
                with child():
                    made = child()
            else:
                made = child("sub" if how == "named" else None)
        await ENDS[cause](here.gateway)
        record = await late(here, made)
        assert (record.cause, record.ended_by) == (cause, ANA)


async def test_the_session_is_declared_anew_meanwhile(tmp_path: Path) -> None:
    """It was cleared, and a new talk goes on in its place: the old one's child is none of that."""
    async with room(tmp_path) as here:
        await here.gateway.session("talk", **TALK)
        with bind("talk", **TALK):
            made = child()
        await here.gateway.clear("talk", ANA)
        await here.gateway.session("talk", **TALK)
        assert (await late(here, made)).cause == "session_ended"


async def test_a_child_that_is_made_after_a_stop_asks(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        await here.gateway.session("talk", **TALK)
        for end in ENDS.values():
            await end(here.gateway)
            await here.gateway.session("talk", **TALK)
            with bind("talk", **TALK):
                await waits(here, child())
            with bind("talk", **TALK):
                async with here.gateway.turn():
                    await waits(here, child())


# --- a turn is bound in its block ----------------------------------------------------------------------


async def test_what_is_asked_in_a_turn_of_the_bound_session_is_asked_in_it(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        with bind("talk", **TALK) as mine:
            async with here.gateway.turn() as outer:
                assert (await here.gateway.request(HARMLESS)).turn_id == outer.turn_id
                async with here.gateway.turn("talk") as inner:
                    assert (await here.gateway.request(HARMLESS)).turn_id == inner.turn_id
                await here.gateway.session("other", **TALK)
                async with here.gateway.turn("other"):
                    assert current().turn_id == outer.turn_id, "that one is no turn of what is bound"
                    other = await here.gateway.request(HARMLESS, session_id="other")
                    assert other.turn_id is None
            assert current() == mine


async def test_on_a_thread(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        door = BlockingGateway(here.gateway)

        def work() -> tuple[str | None, str, str | None, Binding]:
            with bind("talk", **TALK), door.turn() as turn:
                return door.request(HARMLESS).turn_id, turn.turn_id, current().turn_id, child()

        asked_in, opened, bound, made = await asyncio.to_thread(work)
        assert asked_in == opened == bound
        assert (await late(here, made)).cause == "parent_ended"


async def test_a_turn_that_is_left_in_another_task(tmp_path: Path) -> None:
    """As a test's fixture or a framework's callbacks may: it ends all the same."""
    async with room(tmp_path) as here:
        with bind("talk", **TALK):
            turn = here.gateway.turn()
            opened = await asyncio.create_task(turn.__aenter__())
            await asyncio.create_task(turn.__aexit__(None, None, None))
            with pytest.raises(TurnEnded):
                await here.gateway.sessions.heartbeat("default", opened.turn_id)


async def test_a_child_of_a_turn_that_nobody_bound_by_hand(tmp_path: Path) -> None:  # 2.7.3
    async with room(tmp_path) as here:
        with bind("talk", **TALK), ContextThreadPool(1) as pool:
            async with here.gateway.turn():
                made = [child(), await asyncio.get_running_loop().run_in_executor(pool, child)]
        for each in made:
            assert (await late(here, each)).cause == "parent_ended"


# --- a child that is made again ------------------------------------------------------------------------


async def test_a_child_with_a_name_is_made_again_in_every_turn(tmp_path: Path) -> None:
    """What it was given in the one is over in the next, and whoever is still at work in the old one asks nobody."""
    async with room(tmp_path) as here:
        olds: list[Binding] = []
        for _ in range(3):
            with bind("talk", **TALK):
                async with here.gateway.turn():
                    with child("researcher"):
                        assert (await here.gateway.request(HARMLESS)).outcome == "approved"
                        deep = child("deep")
                    await waits(here, child("researcher"))
                    await waits(here, deep)
                    shown = len(here.chat.messages)
                    for old in olds:
                        with old:
                            record = await refused(here.gateway.request(ASKED))
                            with child(), child("deep"):
                                below = await refused(here.gateway.request(ASKED))
                        assert {record.cause, below.cause} == {"parent_ended"}
                        assert {record.session_id, below.session_id}.isdisjoint({"researcher", "deep"})
                    assert len(here.chat.messages) == shown
                    olds += [child("researcher"), deep]
        for old in olds:
            with old:
                record = await refused(here.gateway.request(ASKED))
                assert record.cause == "parent_ended"


async def test_a_child_with_a_name_is_made_again_after_a_stop(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        await here.gateway.session("talk", **TALK)
        with bind("talk", **TALK):
            old = child("researcher")
            await waits(here, old)
            await here.gateway.stop("talk", ANA)
            shown = len(here.chat.messages)
            with old:
                assert (await refused(here.gateway.request(ASKED))).cause == "stop_requested"
            await waits(here, child("researcher"))
            with old:
                asked = [await refused(here.gateway.request(action)) for action in (HARMLESS, ASKED)]
                assert {record.cause for record in asked} == {"stop_requested"}
                assert len({record.session_id for record in asked} - {"researcher"}) == 1
                with pytest.raises(TurnEnded, match="stop_requested"):
                    async with here.gateway.turn():
                        pass
            assert len(here.chat.messages) == shown + 1


async def test_a_child_with_a_name_is_made_again_outside_of_a_turn(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        with bind("talk", **TALK):
            async with here.gateway.turn():
                with child("researcher"):
                    async with here.gateway.turn() as own:
                        old = within()
                        assert (await here.gateway.request(HARMLESS)).turn_id == own.turn_id
            await waits(here, child("researcher"))
        with old:
            record = await refused(here.gateway.request(ASKED))
        assert (record.cause, record.turn_id) == ("parent_ended", own.turn_id)


async def test_two_turns_at_once_that_share_a_child(tmp_path: Path) -> None:
    """With the one it ends, and the other makes it again."""
    async with room(tmp_path) as here:
        await here.gateway.session("talk", **TALK)
        one, two = [await here.gateway.sessions.open_turn("default", "talk") for _ in range(2)]
        mades = []
        for turn in (one, two):
            with bind("talk", **TALK), within(turn_id=turn.turn_id):
                mades.append(child("researcher"))
        await waits(here, mades[0])
        await here.gateway.sessions.end_turn("default", one.turn_id, "turn_ended", None)
        await waits(here, mades[1])
        with mades[0]:
            assert (await refused(here.gateway.request(ASKED))).cause == "parent_ended"


async def test_a_child_that_was_stopped_itself_goes_on(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        with bind("talk", **TALK):
            made = child("researcher")
            await waits(here, made)
            await here.gateway.stop("researcher", ANA)
            await waits(here, made)


async def test_two_chats_that_give_a_child_the_same_name(tmp_path: Path) -> None:  # G2-22
    """One's question is never asked in the other's place; once the one's is over, the name is free."""
    async with room(tmp_path) as here:
        for chat in ("a", "b"):
            await here.gateway.session(chat, kind="chat", destination=f"fake:{chat}")
        with bind("a", kind="chat"), child("researcher"):
            assert (await here.gateway.request(HARMLESS)).outcome == "approved"
        with bind("b", kind="chat"):
            with child("researcher"), pytest.raises(InvalidInput, match="child of a, and one of b is bound here"):
                await here.gateway.request(ASKED)
            assert await here.gateway.pending() == []
            await here.gateway.stop("a", ANA)
            await waits(here, child("researcher"))
        assert here.places() == {"fake:b": 1}
