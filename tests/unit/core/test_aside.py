"""Long texts are judged beside the event loop, and what they are is judged all the same."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.unit.core.harness import World

from signoff import aside
from signoff.model import Action, Command, FileWrite

LONG = "echo " + "word " * 2000
MANY = "for i in " + "x " * 60_000 + "; do rm -rf build; done"


@pytest.mark.parametrize(
    ("action", "beside"),
    [
        (Command(command="ls"), False),
        (Command(command=LONG), True),
        (Command(command="ls", env={"NOTE": LONG}), True),
        (FileWrite(path="a", diff=LONG), True),
        (FileWrite(path="a", diff=None), False),
    ],
)
async def test_only_long_ones_need_a_thread(action: Action, beside: bool) -> None:
    here = threading.get_ident()
    assert (await aside.judged(action, threading.get_ident) != here) is beside


async def test_the_loop_goes_on_meanwhile() -> None:
    """The work waits for something that only the loop does."""
    done = threading.Event()
    judging = asyncio.create_task(aside.judged(Command(command=LONG), lambda: done.wait(30)))
    await asyncio.sleep(0)
    done.set()
    assert await judging


async def test_a_question_with_a_long_text_is_judged(world: World) -> None:
    assert (await world.submit(Command(command=LONG))).outcome == "approved"
    row = await world.submit(Command(command=MANY))
    assert (row.outcome, row.rung) == (None, "person")
    found = await world.broker.check("default", Command(command=MANY), session_id="s")
    assert found.verdict.verdict == "ask"
    assert (await world.broker.check("default", Command(command=LONG))).verdict.verdict == "allow"


async def test_what_goes_wrong_beside_the_loop_is_told() -> None:
    def fails() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await aside.judged(Command(command=LONG), fails)
