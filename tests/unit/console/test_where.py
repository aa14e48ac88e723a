"""Pages that show the questions of one place or one session only."""

from __future__ import annotations

import html
from typing import Any

import pytest
from tests.unit.console.test_live import watching
from tests.unit.console.world import Person, Place
from tests.unit.server.world import Client

from signoff.model import ApprovalRequest, Destination, replace
from signoff.rows import request_key

OPS, DEV = "telegram:-1001", "slack:C1"


async def asked(here: Place, agent: Client, number: int, place: str, session: str = "s1") -> dict[str, Any]:
    """A question that is shown in that place."""
    action = {"kind": "command", "command": f"git push --force origin b{number}"}
    record = await agent.ask(session, action=action)
    platform, _, chat = place.partition(":")
    chat_id, _, thread = chat.partition("/")

    def moved(tx: Any) -> None:
        row = tx.get(ApprovalRequest, request_key("default", record["request_id"]))
        assert row is not None
        tx.put(replace(row, destinations=(Destination(platform, chat_id, thread or None),)))

    await here.core.store.transact(moved)
    return record


async def three(here: Place) -> list[dict[str, Any]]:
    """Two questions in one place, one of them of another session, and one elsewhere."""
    agent = await here.agent()
    assert (await agent("PUT", "/v1/sessions/s2", {"kind": "api"})).status == 200
    approver = await here.client("approver")
    assert (await approver("PUT", "/v1/sessions/s2/notifiers/desk")).status == 200
    return [
        await asked(here, agent, 0, OPS),
        await asked(here, agent, 1, OPS, "s2"),
        await asked(here, agent, 2, DEV),
    ]


async def numbers(person: Person, path: str) -> list[str]:
    """Which of the questions a page shows."""
    return sorted({part[0] for part in (await person.get(path)).text.split("origin b")[1:]})


QUERIES = [
    ("", ["0", "1", "2"]),
    (f"place={OPS}", ["0", "1"]),
    ("place=telegram:-100", []),
    ("place=telegram", ["0", "1"]),
    (f"place={DEV}", ["2"]),
    ("session=s1", ["0", "2"]),
    ("session=s", []),
    (f"place={OPS}&session=s2", ["1"]),
    (f"place={DEV}&session=s2", []),
    ("place=nowhere%22%3E%3Cscript%3E", []),
]


@pytest.mark.parametrize(("query", "found"), QUERIES)
async def test_what_waits(here: Place, query: str, found: list[str]) -> None:
    await three(here)
    person = await here.person()
    assert await numbers(person, f"/console?{query}") == found
    page = await person.get(f"/console?{query}")
    assert "<script>" not in page.text
    assert (page.text.count('name="listed"'), "3 waiting" in page.text) == (len(found), True)
    if not found:
        assert "Nothing waits here. Elsewhere something may." in page.text


@pytest.mark.parametrize(("query", "found"), QUERIES)
async def test_what_ended(stored: Place, query: str, found: list[str]) -> None:
    records = await three(stored)
    person = await stored.person()
    for record in records:
        await person.decide(record, "deny")
    assert await numbers(person, f"/console/history?{query}") == found
    assert await numbers(person, f"/console/history.csv?{query}") == found


async def test_a_chat_is_not_its_threads(here: Place) -> None:
    agent = await here.agent()
    await asked(here, agent, 0, OPS)
    await asked(here, agent, 1, f"{OPS}/7")
    person = await here.person()
    assert await numbers(person, f"/console?place={OPS}") == ["0"]
    assert await numbers(person, f"/console?place={OPS}/7") == ["1"]


async def test_it_is_chosen_from_what_waits(here: Place) -> None:
    await three(here)
    person = await here.person()
    page = await person.get(f"/console?place={OPS}")
    for value in (OPS, DEV, "s1", "s2"):
        assert f'<option value="{value}"' in page.text
    assert f'<option value="{OPS}" selected>' in page.text
    gone = await person.get("/console?session=gone")
    assert '<option value="gone" selected>gone</option>' in gone.text


async def test_forms_lead_back_to_what_was_chosen(here: Place) -> None:
    records = await three(here)
    person = await here.person()
    page = await person.get(f"/console?place={OPS}&session=s2")
    form = {**page.fields("/console/decide", records[1]["request_id"]), "choice": "deny"}
    answer = await person.post("/console/decide", form)
    assert answer.headers["Location"] == "/console?place=telegram%3A-1001&session=s2"
    assert (await numbers(person, answer.headers["Location"])) == ["1"], "it stays where it stood for a while"
    assert "/console?place" not in (await person.get("/console")).text, (
        "what is drawn is shared, what it leads to is not"
    )


async def test_all_that_are_listed_are_those_that_are_shown(here: Place) -> None:
    records = await three(here)
    person = await here.person()
    page = await person.get(f"/console?place={OPS}")
    listed = [part.partition('"')[0] for part in page.text.split('name="listed" value="')[1:]]
    form = [("csrf", page.fields("/console/all")["csrf"]), ("choice", "deny")]
    answer = await person.script("/console/all", [*form, *(("listed", html.unescape(each)) for each in listed)])
    assert answer["text"].endswith("2 of 2 denied")
    agent = await here.client("agent", agent="builder")
    outcomes = [(await agent("GET", f"/v1/approvals/{each['request_id']}")).body["outcome"] for each in records]
    assert outcomes == ["denied", "denied", None]


async def test_an_open_page_is_told_what_fits(here: Place) -> None:
    agent = await here.agent()
    person = await here.person()
    async with watching(person, "kind=cards&session=s1") as one, watching(person, "kind=cards&session=s2") as two:
        await agent.ask()
        assert (await one.next("card"))["fits"] is True
        assert (await two.next("card"))["fits"] is False
        assert (await two.next("count"))["count"] == 1


async def test_sessions_lead_to_their_questions(here: Place) -> None:
    await three(here)
    person = await here.person()
    page = await person.get("/console/sessions")
    assert 'href="/console?session=s2"' in page.text
    assert 'href="/console/history?session=s2"' in page.text
