"""Stop and new, and undo: whose work ends, what is void, what goes on."""

from __future__ import annotations

from tests.unit.commands.world import ANA, BEN, EVE, OTHER, ROOM, THREAD, World

from signoff.changes.answering_all import QUIET_OVER
from signoff.model import Session, replace
from signoff.rows import session_key


async def test_stop_names_what_it_ended(world: World) -> None:
    leader = await world.ask("deploy all")
    follower = await world.submit("deploy all")
    void, running = await world.ask(), await world.ask(host="prod-db-1")
    await world.type(f"/approve {void.short_id} session")
    await world.type(f"/approve {running.short_id}")
    await world.broker.claim("default", running.request_id, running.digest, "c1")
    assert await world.type("/stop", by=BEN) == (
        "Ben stopped session s1 · 09:00 UTC\n"
        f"Cancelled, not run: {leader.short_id} (2 runs)\n"
        f"Approved but not started, now void: {void.short_id}\n"
        f"Still running, Signoff cannot end it: {running.short_id} deploy build/4, since 09:00 UTC on prod-db-1\n"
        "Grants kept: 1. /new drops it too."
    )
    assert await world.outcomes(leader, follower) == ["cancelled", "cancelled"]
    assert (await world.row(leader)).cause == "stop_requested"
    assert (await world.row(void)).execution.cause == "stop_requested"


async def test_stop_ends_every_session_of_exactly_this_place(world: World) -> None:
    await world.session("s2")
    await world.session("inside", THREAD)
    await world.session("there", OTHER)
    rows = [await world.ask(session=name) for name in ("s1", "s2", "inside", "there")]
    text = await world.type("/stop")
    assert "Ana stopped session s1" in text
    assert "Ana stopped session s2" in text
    assert await world.outcomes(*rows) == ["cancelled", "cancelled", None, None]


async def test_stop_as_a_reply_ends_that_card_s_session(world: World) -> None:
    await world.session("s2")
    first, second = await world.ask(), await world.ask(session="s2")
    assert "session s2" in await world.type("stop", reply_to=await world.card(second), addressed=True)
    assert await world.outcomes(first, second) == [None, "cancelled"]
    await world.silence("stop by the office", addressed=True)


async def test_a_session_s_own_user_may_stop_it_and_no_other(world: World) -> None:
    await world.session("hers", user_id=EVE)
    mine, hers = await world.ask(), await world.ask(session="hers")
    text = await world.type("/stop", by=EVE)
    assert "session hers" in text
    assert "s1" not in text
    assert await world.outcomes(mine, hers) == [None, "cancelled"]
    assert await world.type("/stop", by=EVE, reply_to=await world.card(mine)) == (
        "You may not stop this session; nothing changed. Your id is 9."
    )
    (event,) = await world.events("tap.refused")
    assert (event.session_id, event.data["operation"]) == ("s1", "stop")
    assert await world.outcomes(mine) == [None]


async def test_a_parent_s_user_may_stop_its_child(world: World) -> None:
    await world.session("hers", user_id=EVE)
    await world.session("child", None, parent="hers")
    row = await world.ask(session="child")
    assert "session child" in await world.type("/stop", by=EVE, reply_to=await world.card(row))
    assert await world.outcomes(row) == ["cancelled"]


async def test_stop_where_nothing_works(world: World) -> None:
    assert await world.type("/stop", where=OTHER) == "No session works here. Nothing changed."
    assert await world.type("/stop") == (
        "Ana stopped session s1 · 09:00 UTC\nNothing waited and nothing was left to start."
    )


async def test_stop_delivered_again_is_harmless(world: World) -> None:
    row = await world.ask()
    await world.type("/stop")
    before = await world.row(row)
    assert "Nothing waited" in await world.again()
    assert await world.row(row) == before


async def test_new_drops_grants_and_bypass(world: World) -> None:
    granted, waiting = await world.ask(), await world.ask()
    await world.type(f"/approve {granted.short_id} session")
    session = await world.sessions.get("default", "s1")
    later = world.clock.now().replace(hour=23)
    await world.store.transact(lambda tx: tx.put(replace(session, bypass_until=later)))
    text = await world.type("/reset")
    assert text.splitlines()[0] == (
        f"Session ended. Cancelled, not run: {waiting.short_id}. Dropped: 1 grant, bypass off."
    )
    assert await world.broker.grants("default") == []
    assert (await world.row(waiting)).cause == "session_ended"
    stored = await world.store.get(Session, session_key("default", "s1"))
    assert stored is not None
    assert (stored.closed_at, stored.bypass_until) == (None, None)
    assert await world.type("/new") == "Session ended. Nothing waited. Dropped: 0 grants."


async def test_new_names_several_sessions(world: World) -> None:
    await world.session("s2")
    text = await world.type("/new")
    assert text.count("Session ended.") == 2
    assert "session s1" in text
    assert "session s2" in text


async def test_undo_takes_back_one_s_own_approval_before_its_start(world: World) -> None:
    first, second = await world.ask(), await world.ask()
    await world.type(f"/approve {first.short_id}")
    await world.clock.advance(1)
    await world.type(f"/approve {second.short_id} session")
    assert await world.type("/undo", by=BEN) == "Nothing here can be undone: no approval waits to start."
    assert await world.type(f"/undo {first.short_id}", by=BEN) == f"{first.short_id}: Only Ana can undo this."
    told = "Undone. It will not run; the agent must ask again."
    assert await world.type("/undo") == f"{second.short_id}: {told}"
    assert await world.broker.grants("default") == []
    assert await world.type("/undo", reply_to=await world.card(first)) == f"{first.short_id}: {told}"
    assert await world.type("/undo") == "Nothing here can be undone: no approval waits to start."
    assert await world.type("/undo 7Q2MK") == "7Q2MK is not waiting here; nothing was decided. Nothing else waits."


async def test_undo_comes_too_late_after_the_start(world: World) -> None:
    before, row = await world.ask(), await world.ask()
    await world.type(f"/approve {before.short_id}")
    await world.clock.advance(1)
    await world.type(f"/approve {row.short_id}")
    await world.broker.claim("default", row.request_id, row.digest, "c1")
    assert (await world.type("/undo")).startswith(f"{before.short_id}: Undone.")
    assert await world.type(f"/undo {row.short_id}") == (
        f"{row.short_id}: Too late: deploy-bot started it at 09:00 UTC. /stop ends the session."
    )


async def test_undo_reaches_what_a_summary_spoke_for(world: World) -> None:
    rows = [await world.submit() for _ in range(QUIET_OVER + 1)]
    for row in rows:
        await world.shown(row)
    await world.type("/approve all")
    assert "Undone." in await world.type("/undo", by=ANA, where=ROOM)


async def test_strangers_undo_nothing(world: World) -> None:
    row = await world.ask()
    await world.type("/approve")
    assert "You may not do this here" in await world.type("/undo", by=EVE)
    assert (await world.row(row)).execution.state == "none"
