"""A notifier of the whole profile, such as an open console, is a way to a person for every session."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from tests.unit.core.harness import World
from tests.unit.core.test_delivery import REFUSED

from signoff.model import Notifier, replace
from signoff.rows import EVERY_SESSION


async def present(world: World) -> Notifier:
    """Somebody who may decide has the console open."""
    row = Notifier(profile="default", session_id=EVERY_SESSION, name="console", attached_at=world.clock.now())
    await world.store.transact(lambda tx: tx.put(row))
    return row


async def test_a_session_without_a_place_is_asked_there(make_world: Callable[..., World]) -> None:
    world = make_world()
    await world.session(kind="api", destination=None)
    assert (await world.ask()).outcome == "blocked"
    await present(world)
    assert (await world.ask("deploy second")).outcome is None


async def test_a_cron_job_never_waits(make_world: Callable[..., World]) -> None:
    world = make_world()
    await present(world)
    await world.session(kind="cron", destination=None)
    assert (await world.ask()).outcome == "blocked"


async def test_a_refused_card_is_not_the_end(make_world: Callable[..., World]) -> None:
    world = make_world()
    await present(world)
    await world.session()
    world.chat.fail(REFUSED)
    assert (await world.ask()).outcome is None


async def test_once_it_is_gone_what_only_it_could_answer_is_withdrawn(make_world: Callable[..., World]) -> None:
    world = make_world()
    row = await present(world)
    await world.session(kind="api", destination=None)
    await world.session("placed")
    alone = await world.ask()
    other = await world.ask("deploy other", session_id="placed")
    gone = replace(row, gone_at=world.clock.now() + timedelta(seconds=30))
    await world.store.transact(lambda tx: tx.put(gone))
    await world.advance(29)
    assert (await world.row(alone)).outcome is None
    await world.advance(2)
    after = await world.row(alone)
    assert (after.outcome, after.cause) == ("cancelled", "notifier_gone")
    assert (await world.row(other)).outcome is None
