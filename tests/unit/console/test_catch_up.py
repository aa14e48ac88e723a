"""What ended while nobody was there, in the console: the strip, the page, asking again from it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.unit.console.test_answering import events, row_of
from tests.unit.console.world import Person, Place

from signoff.changes import catching_up
from signoff.model import Destination, Session

PAGE, ASK, CLEAR = "/console/catch-up", "/console/catch-up/ask", "/console/catch-up/clear"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shortest absence there is."""
    for module in ("signoff.changes.catching_up", "signoff.console.absences"):
        monkeypatch.setattr(f"{module}.ABSENT_FOR", timedelta(0))


async def blocked(here: Place) -> dict[str, Any]:
    """A cron job's action, which nobody could be asked about; the profile names no place to tell it in."""
    agent = await here.client("agent", agent="mailer")
    await here.core.store.transact(lambda tx: tx.put(cron()))
    record = await agent.ask("nightly", action={"kind": "command", "command": "npm publish"})
    assert record["outcome"] == "blocked", record
    await here.core.catch_ups.gather("default")
    return record


def cron() -> Session:
    return Session(profile="default", session_id="nightly", kind="cron", agent="mailer", created_at=datetime.now(UTC))


async def asked_again(person: Person, record: dict[str, Any]) -> Any:
    page = await person.get(PAGE)
    return await person.script(ASK, page.fields(ASK, record["request_id"]))


async def test_from_the_strip_to_asking_again(stored: Place, short: None) -> None:
    person = await stored.person()
    assert PAGE not in (await person.get("/console")).text
    assert "Nothing ended while nobody was there." in (await person.get(PAGE)).text
    record = await blocked(stored)
    assert "While nobody was there: 1 blocked." in (await person.get("/console")).text
    text = (await person.get(PAGE)).text
    (line,) = re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL)
    words = " ".join(re.sub(r"<[^>]+>", " ", line).split())
    assert f"{record['short_id']} ⛔ blocked npm publish cron_mode is &#34;deny&#34;. mailer" in words
    assert "<h2>Told only here</h2>" in text and "Not told in a chat" not in text, "there is none"
    assert re.search(r"<bdi data-told>No place to ask, since \d\d:\d\d UTC: 1 blocked</bdi>", text)
    told = await asked_again(person, record)
    assert (told["how"], told["text"]) == ("done", "mailer is away; it is told when it returns.")
    (event,) = await events(stored, "approval.ask_again")
    assert event.request_id == record["request_id"]
    page = await person.get(PAGE)
    assert "ann wants to be asked." in page.text and ASK not in page.text
    done = await person.post(CLEAR, page.fields(CLEAR))
    assert (done.status, done.headers["Location"]) == (303, PAGE)
    after = await person.get(PAGE)
    assert "Cleared. It stays in the history." in after.text and record["short_id"] not in after.text
    assert PAGE not in (await person.get("/console")).text


async def test_the_agent_that_reads_is_told_now_and_one_that_comes_back_reads_it_then(
    stored: Place, short: None
) -> None:
    person, record = await stored.person(), await blocked(stored)
    agent = await stored.client("agent", agent="mailer")
    async with agent.events() as reader:
        told = await asked_again(person, record)
        assert told["text"] == "mailer is told that you want to be asked."
        now = await reader.next()
    assert (now["type"], now["session_id"]) == ("approval.ask_again", "nightly")
    assert now["approval"]["request_id"] == record["request_id"]
    async with agent.events(f"?after={now['seq'] - 1}") as later:
        assert (await later.next())["seq"] == now["seq"]
    other = await stored.client("agent", agent="stranger")
    async with other.events("?after=0") as reader:
        with pytest.raises(TimeoutError):
            await reader.next(0.3)


async def test_what_was_told_in_a_chat_stays_on_the_page(stored: Place, short: None) -> None:
    record = await blocked(stored)
    place = Destination("console", "ops")

    def told(tx: Any) -> None:
        missed = catching_up.untold_in(tx, "default", None)
        assert missed is not None
        for entry in missed.entries:
            catching_up._add(tx, "default", catching_up.Gathered(place, entry))
        catching_up.returned(tx, profile="default", place=place, back_at=tx.now, away_since=None)
        catching_up.forget(tx, profile="default", place=None)

    await stored.core.store.transact(told)
    person = await stored.person()
    text = (await person.get(PAGE)).text
    assert "<h2>Told</h2>" in text and "Console ops" in text and record["short_id"] in text
    assert "Nobody was there" not in (await person.get("/console")).text
    assert (await asked_again(person, record))["how"] == "done"


async def test_who_looks_asks_nothing_and_clears_nothing(here: Place, short: None) -> None:
    record, looker = await blocked(here), await here.person("ops")
    page = await looker.get(PAGE)
    assert record["short_id"] in page.text and ASK not in page.text and CLEAR not in page.text
    form = {**page.fields("/console/logout"), "id": record["request_id"], "place": ""}
    assert (await looker.post(ASK, form)).status == 403
    assert (await looker.post(CLEAR, form)).status == 403
    assert await events(here, "approval.ask_again") == []


async def test_what_somebody_answered_is_not_asked_again_from_here(here: Place, short: None) -> None:
    agent, person = await here.agent(), await here.person()
    record = await agent.ask(action={"kind": "command", "command": "npm publish"})
    await person.decide(record, "deny")
    form = {**(await person.get(PAGE)).fields("/console/logout"), "id": record["request_id"], "place": "nowhere"}
    assert "nothing to ask again" in (await person.script(ASK, form))["text"]
    assert (await person.post(CLEAR, form)).status == 400
    assert (await person.post(ASK, {**form, "id": "unknown"})).status == 404
    assert (await row_of(here, record)).wanted_by is None
