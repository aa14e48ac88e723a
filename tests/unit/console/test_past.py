"""How quickly people answered: counted right, by place, over a restart, and without reading everything again."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.console.world import Place, place, place_on
from tests.unit.server.world import Client

from signoff.console.past import Past, Row
from signoff.model import Actor, ApprovalRequest, Destination, Event, replace
from signoff.rows import request_key
from signoff.stores.open import open_store
from signoff.testing.clock import FakeClock

ANN = Actor(type="person", principal="ann", via="console")
OPS, DEV = Destination("telegram", "-1001"), Destination("slack", "C1")


async def asked(here: Place, agent: Client, number: int, *places: Destination) -> str:
    action = {"kind": "command", "command": f"git push --force origin b{number}"}
    record = await agent.ask(action=action, timeout_s=3600)

    def moved(tx: Any) -> None:
        row = tx.get(ApprovalRequest, request_key("default", record["request_id"]))
        tx.put(replace(row, destinations=places))

    await here.core.store.transact(moved)
    return str(record["request_id"])


async def ended(here: Place, request_id: str, **facts: Any) -> None:
    """It ends as nobody's answer, now."""

    def change(tx: Any) -> None:
        row = tx.get(ApprovalRequest, request_key("default", request_id))
        tx.put(replace(row, decided_at=tx.now, **facts))
        event = Event(
            profile="default", type="approval.resolved", at=tx.now, session_id=row.session_id, request_id=request_id
        )
        tx.emit(event)

    await here.core.store.transact(change)


def told(rows: list[Row]) -> dict[str, list[tuple[int, str, int]]]:
    """By place, for a day and a week: how many were answered, the median, how many were not."""
    return {row.place: [(each.answered, each.median, each.unanswered) for each in row.spans] for row in rows}


async def a_week(here: Place, clock: FakeClock) -> dict[str, list[tuple[int, str, int]]]:
    """Play it, and what is to be told of it."""
    agent = await here.agent()
    answered = ((600, (OPS,)), (20, (OPS,)), (40, (OPS, DEV)), (90, (DEV,)))
    for number, (took_s, places) in enumerate(answered, 1):
        request_id = await asked(here, agent, number, *places)
        await clock.advance(took_s)
        await here.core.broker.decide("default", request_id, "deny" if number % 2 else "once", ANN)
        if number == 1:
            await clock.advance(timedelta(days=2).total_seconds())
    await ended(here, await asked(here, agent, 5, OPS), outcome="timeout")
    await ended(here, await asked(here, agent, 6, OPS), outcome="notify_failed")
    await ended(here, await asked(here, agent, 7, OPS), outcome="cancelled", cause="withdrawn")
    by_grant = Actor(type="grant", grant_id="4TQ8R")
    await ended(here, await asked(here, agent, 8, OPS), outcome="approved", decided_by=(by_grant,))
    return {
        "": [(3, "40 s", 2), (4, "65 s", 2)],
        "telegram:-1001": [(2, "30 s", 2), (3, "40 s", 2)],
        "slack:C1": [(2, "65 s", 0), (2, "65 s", 0)],
    }


@pytest.mark.parametrize("asked_first", [True, False])
async def test_medians_and_what_nobody_answered(asked_first: bool) -> None:
    clock = FakeClock()
    async with place(clock=clock) as here:
        past = here.console.desk.past
        if asked_first:
            assert await past.figures("default") == []
        expected = await a_week(here, clock)
        rows = await past.figures("default")
        assert told(rows) == expected
        assert [row.spans[0].share for row in rows] == [40, 50, 0]
        assert await past.figures("default") is rows, "what nothing changed is not made again"
        assert await past.figures("second") == []


async def test_they_outlive_a_restart_and_fade(tmp_path: Path) -> None:
    clock = FakeClock()
    url = f"sqlite://{tmp_path}/store.db"
    store = open_store(url, clock)
    async with place_on(store, clock) as here:
        expected = await a_week(here, clock)
    await store.aclose()
    store = open_store(url, clock)
    async with place_on(store, clock) as here:
        past = here.console.desk.past
        assert told(await past.figures("default")) == expected
        await clock.advance(timedelta(days=1, seconds=1).total_seconds())
        assert told(await past.figures("default"))[""] == [(0, "", 0), (4, "65 s", 2)]
        await clock.advance(timedelta(days=6).total_seconds())
        assert await past.figures("default") == []
    await store.aclose()


async def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signoff.console.past.MOST", 10)
    clock = FakeClock()
    async with place(clock=clock) as here:
        agent = await here.agent()
        past = here.console.desk.past
        await past.figures("default")
        for number in range(40):
            request_id = await asked(here, agent, number, OPS)
            await clock.advance(number + 1)
            await here.core.broker.decide("default", request_id, "deny", ANN)
        assert told(await past.figures("default"))[""][0] == (10, "35 s", 0), "the newest 10"
        again = Past(here.core)
        assert (await again.figures("default"))[0].spans[0].answered <= 40


async def test_the_history_shows_them(here: Place) -> None:
    agent = await here.agent()
    person = await here.person()
    assert "How quickly" not in (await person.get("/console/history")).text
    record = await agent.ask()
    await person.decide(record, "deny")
    text = (await person.get("/console/history")).text
    assert "How quickly answers came" in text
    assert re.search(r"median answer [0-9.]+ m?s", text)
    assert "0 % unanswered" in text


async def test_followers_count_with_the_card_they_waited_on(here: Place) -> None:
    agent = await here.agent()
    person = await here.person()
    leader = await agent.ask()
    await agent.ask()
    await person.decide(leader, "deny")
    assert (await here.console.desk.past.figures("default"))[0].spans[0].answered == 1
