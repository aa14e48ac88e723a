"""Lists of grants and keys go on from `next`, and hold what is in force alone."""

from __future__ import annotations

import itertools
from datetime import timedelta

from tests.unit.server.world import Client, World

from signoff.authorize import local_actor
from signoff.client import Client as Remote
from signoff.console import lists
from signoff.model import Grant
from signoff.ports import Tx
from signoff.testing.rows import at

OPERATOR = local_actor(1000)
ORDER = itertools.count()


async def give(world: World, *names: str, profile: str = "default", minutes: int | None = None) -> None:
    """Grants of these ids, in this order; `minutes` from now they expire."""
    now = world.core.clock.now()

    def change(tx: Tx) -> None:
        for name in names:
            tx.put(
                Grant(
                    profile=profile,
                    grant_id=name,
                    scope="session" if minutes is None else "time_box",
                    session_id="s1",
                    action_kind="command",
                    digest=name,
                    by=OPERATOR,
                    request_id=f"r-{name}",
                    created_at=at(next(ORDER) / 1000),
                    expires_at=None if minutes is None else now + timedelta(minutes=minutes),
                )
            )

    await world.core.store.transact(change)


async def walked(client: Client, path: str, name: str, limit: int) -> list[list[str]]:
    """The ids on each page until there is no `next`."""
    pages, query = [], f"?limit={limit}"
    while True:
        answer = await client("GET", path + query)
        assert answer.status == 200, answer.body
        assert answer.body.keys() == {"object", "data", "next"}
        pages.append([row[name] for row in answer.body["data"]])
        if answer.body["next"] is None:
            return pages
        query = f"?limit={limit}&after={answer.body['next']}"


async def test_grants_go_on_from_next_and_those_that_expired_take_no_place(world: World) -> None:
    approver = await world.client("approver")
    await give(world, "GONE1", "GONE2", "GONE3", minutes=-1)
    await give(world, "LIVE1")
    await give(world, "GONE4", minutes=-1)
    await give(world, "LIVE2", minutes=1)
    await give(world, "THEIR", profile="second")
    await give(world, "LIVE3")
    assert await walked(approver, "/v1/grants", "grant_id", 1) == [["LIVE1"], ["LIVE2"], ["LIVE3"]]
    assert await walked(approver, "/v1/grants", "grant_id", 2) == [["LIVE1", "LIVE2"], ["LIVE3"]]
    assert await walked(approver, "/v1/grants", "grant_id", 500) == [["LIVE1", "LIVE2", "LIVE3"]]


async def test_a_list_of_grants_goes_on_after_one_that_was_revoked_meanwhile(quick: World) -> None:
    approver = await quick.client("approver")
    await give(quick, "LIVE1", "LIVE2", "LIVE3")
    first = (await approver("GET", "/v1/grants?limit=2")).body
    assert (await approver("DELETE", f"/v1/grants/{first['next']}")).status == 200
    rest = (await approver("GET", f"/v1/grants?limit=2&after={first['next']}")).body
    assert [row["grant_id"] for row in rest["data"]] == ["LIVE3"]
    lost = await approver("GET", "/v1/grants?after=nowhere")
    assert (lost.status, lost.body["error"]["param"]) == (422, "after")


async def test_keys_go_on_from_next(world: World) -> None:
    admin = await world.client("admin")
    for name in ("a", "b", "c"):
        await world.client("agent", agent=name)
    await world.client("agent", agent="theirs", profile="second")
    pages = await walked(admin, "/v1/keys", "agent", 2)
    assert pages == [[None, "a"], ["b", "c"]]


async def test_no_page_begins_after_a_key_of_another_profile(quick: World) -> None:
    admin, other = await quick.client("admin"), await quick.client("admin", profile="second")
    (theirs,) = (await other("GET", "/v1/keys")).body["data"]
    for after in (theirs["id"], "nowhere"):
        lost = await admin("GET", f"/v1/keys?after={after}")
        assert (lost.status, lost.body["error"]["param"]) == (422, "after")


async def test_whoever_asks_for_all_of_them_gets_all(quick: World) -> None:
    """As `/grants`, the console's page and `signoff grants` do."""
    names = [f"G{number:04}" for number in range(1_001)]
    await give(quick, *names)
    assert [grant.grant_id for grant in await quick.core.broker.grants("default")] == names
    assert [line.id for line in await lists.grants(quick.core, "default")] == names[::-1]
    async with Remote(quick.bound.api, (await quick.client("approver")).key) as remote:
        assert [grant.grant_id for grant in await remote.grants()] == names


async def test_the_console_counts_no_grant_of_a_session_that_expired(quick: World) -> None:
    await quick.pair()
    await give(quick, "LIVE1")
    await give(quick, "GONE1", minutes=-1)
    core = quick.core
    (line,), _ = await lists.sessions(core, core.profiles["default"], core.clock.now())
    assert line.grants == 1
