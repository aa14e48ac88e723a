"""The pages about a very long text: all of it is masked beside the loop."""

from __future__ import annotations

import pytest
from tests.unit.console.test_live import watching
from tests.unit.console.world import Place
from tests.unit.core.long_texts import LONG, QUESTIONS, Watch, body_of, watch

__all__ = ["watch"]


@pytest.mark.parametrize("name", QUESTIONS)
async def test_every_page_about_a_long_one(here: Place, watch: Watch, name: str) -> None:
    agent = await here.agent()
    person = await here.person()
    async with watching(person) as stream:
        record = await agent.ask(action=body_of(name))
        await stream.next("card")
    short = record["short_id"]
    for path in ("/console", f"/console/card/{record['request_id']}", f"/console/r/{short}", "/console/sessions"):
        assert (await person.get(path)).status == 200
    page = await person.get(f"/console/r/{short}")
    form = {**page.fields("/console/decide"), "choice": "deny"}
    assert (await person.script("/console/decide", form))["how"] == "done"
    for path in ("/console/history", "/console/history.csv", f"/console/r/{short}", f"/console/r/{short}/record.json"):
        assert (await person.get(path)).status == 200
    watch.holds()
    assert watch.longest_beside > 0


async def test_the_exact_text(here: Place, watch: Watch) -> None:
    agent = await here.agent()
    person = await here.person()
    record = await agent.ask(action={"kind": "command", "command": f"deploy --token ghp_{'a1B2' * 9}\n" + LONG})
    page = await person.get(f"/console/r/{record['short_id']}")
    form = {**page.fields("/console/reveal"), "confirmed": "1"}
    assert "a1B2" in (await person.script("/console/reveal", form))["html"]
    watch.holds()


async def test_the_list_of_grants(here: Place, watch: Watch) -> None:
    agent = await here.agent()
    approver = await here.client("approver")
    record = await agent.ask(action={"kind": "command", "command": "rm -rf build\n" + LONG})
    answer = await approver("POST", f"/v1/approvals/{record['request_id']}/decision", {"choice": "always"})
    assert answer.status == 200, answer
    person = await here.person()
    assert (await person.get("/console/grants")).status == 200
    watch.holds()
