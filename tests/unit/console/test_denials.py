"""A denial that holds: told where it was given, ended there by who may decide, and nothing else happens by it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.console.test_answering import DROP, events, row_of
from tests.unit.console.world import Person, Place
from tests.unit.server.world import Client

from signoff.model import replace

LIFT = "/console/lift"


async def denied(here: Place, agent: Client, person: Person, **facts: Any) -> dict[str, Any]:
    record = await agent.ask(action=DROP, **facts)
    assert record["status"] == "pending", record
    assert (await person.decide(record, "deny"))["how"] == "done"
    return record


async def test_the_page_of_a_denial_lets_it_be_asked_again(stored: Place) -> None:
    agent, person = await stored.agent(), await stored.person()
    record = await denied(stored, agent, person)
    path = f"/console/r/{record['short_id']}"
    form = (await person.get(path)).fields(LIFT)
    again = await agent.ask(action=DROP)
    assert (again["outcome"], again["repeat_of"]) == ("denied", record["request_id"])

    done = await person.post(LIFT, form)
    assert (done.status, done.headers["Location"]) == (303, path)
    page = await person.get(path)
    assert "Nothing is approved. The next time it is asked, a new card comes." in page.text
    assert "ann lets it ask again." in page.text
    assert LIFT not in page.text
    row = await row_of(stored, record)
    assert (row.outcome, row.lifted_by is not None and row.lifted_by.principal) == ("denied", "ann")
    assert (await agent.ask(action=DROP))["status"] == "pending"

    late = await person.script(LIFT, form)
    assert (late["how"], late["text"]) == ("late", f"{record['short_id']}: ann lets it ask again.")
    assert len(await events(stored, "approval.lifted")) == 1


async def test_a_repeat_is_told_on_both_pages_and_lifted_from_either(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    record = await denied(here, agent, person)
    again = await agent.ask(action=DROP)
    told = (await person.get(f"/console/r/{record['short_id']}")).text
    assert "Not asked again: denied by ann, and that still holds." in told
    assert f'<a href="/console/r/{again["short_id"]}">{again["short_id"]}</a>' in told
    page = await person.get(f"/console/r/{again['short_id']}")
    assert f"The answer to {record['short_id']} counted for it, so it was not asked." in page.text
    assert (await person.script(LIFT, page.fields(LIFT)))["how"] == "done"
    row = await row_of(here, record)
    assert row.lifted_by is not None
    assert "ann lets it ask again." in (await person.get(f"/console/r/{again['short_id']}")).text


async def test_the_card_in_the_list_bears_the_button_once_it_was_asked_again(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    record = await denied(here, agent, person)
    assert LIFT not in (await person.get("/console")).text
    await agent.ask(action=DROP)
    page = await person.get("/console")
    assert "The agent asked for it again at" in page.text
    told = await person.script(LIFT, page.fields(LIFT, record["request_id"]))
    assert (told["how"], "ann lets it ask again." in told["html"]) == ("done", True)


async def test_who_looks_lifts_nothing(here: Place) -> None:
    agent, person, looker = await here.agent(), await here.person(), await here.person("ops")
    record = await denied(here, agent, person)
    page = await looker.get(f"/console/r/{record['short_id']}")
    assert LIFT not in page.text
    form = {**page.fields("/console/logout"), "id": record["request_id"]}
    assert (await looker.post(LIFT, form)).status == 403
    assert (await row_of(here, record)).lifted_by is None
    assert [event.data["operation"] for event in await events(here, "tap.refused")] == ["decide"]


@pytest.mark.parametrize("what", ["approved", "cancelled", "blocked"])
async def test_what_nobody_denied_is_not_lifted(here: Place, what: str) -> None:
    agent, person = await here.agent(), await here.person()
    if what == "blocked":
        record = await agent.ask(action={"kind": "command", "command": "rm -rf /"})
    else:
        record = await agent.ask(action=DROP)
    if what == "approved":
        await person.decide(record, "once")
    if what == "cancelled":
        await agent("POST", f"/v1/approvals/{record['request_id']}/cancel", {})
    page = await person.get(f"/console/r/{record['short_id']}")
    assert LIFT not in page.text
    told = await person.script(LIFT, {**page.fields("/console/logout"), "id": record["request_id"]})
    assert told["how"] == "refused"
    assert told["text"].endswith("No person denied this one, so there is nothing to lift. Nothing changed.")


async def test_a_denial_that_holds_no_more_has_no_button(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    record = await denied(here, agent, person)
    row = await row_of(here, record)
    path = f"/console/r/{record['short_id']}"
    assert row.decided_at is not None
    old = replace(row, decided_at=row.decided_at.replace(year=row.decided_at.year - 1))
    await here.core.store.transact(lambda tx: tx.put(old))
    assert LIFT not in (await person.get(path)).text
    await here.core.store.transact(lambda tx: tx.put(replace(row, turn_id="gone")))
    assert LIFT not in (await person.get(path)).text
    await here.core.store.transact(lambda tx: tx.put(row))
    assert LIFT in (await person.get(path)).text


async def test_a_turn_of_one_question_ends_with_it_and_its_denial_goes_on(here: Place) -> None:
    """As `signoff run` asks: in a turn of its own, which has ended when somebody reads of the denial."""
    agent, person = await here.agent(), await here.person()

    async def run() -> dict[str, Any]:
        turn = (await agent("POST", "/v1/sessions/s1/turns", {"turn_id": f"one_{len(turns)}"})).body["turn_id"]
        turns.append(turn)
        return await agent.ask(action=DROP, turn_id=turn)

    turns: list[str] = []
    record = await run()
    await person.decide(record, "deny")
    assert (await agent("DELETE", f"/v1/turns/{turns[0]}")).status < 300
    again = await run()
    assert again["repeat_of"] == record["request_id"]
    path = f"/console/r/{record['short_id']}"
    page = await person.get("/console")
    assert LIFT in page.text, "on its card"
    assert (await person.script(LIFT, (await person.get(path)).fields(LIFT)))["how"] == "done"
    assert (await run())["status"] == "pending"


async def test_a_declined_question_of_a_server_is_put_anew_anyhow(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    record = await agent.ask(action={"kind": "elicitation", "server": "jira", "message": "May I?"})
    await person.decide(record, "deny")
    assert LIFT not in (await person.get(f"/console/r/{record['short_id']}")).text


async def test_an_unknown_one_is_not_found(here: Place) -> None:
    person = await here.person()
    form = {**(await person.get("/console")).fields("/console/logout"), "id": "nothing"}
    assert (await person.post(LIFT, form)).status == 404
