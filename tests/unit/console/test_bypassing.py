"""The sessions page shows a bypass, ends it at once, and begins one after a second step."""

from __future__ import annotations

import re

import pytest
from tests.unit.console.world import Place

from signoff.model import Session, replace
from signoff.rows import session_key

PATH = "/console/sessions/bypass"


async def stored(here: Place, name: str = "s1") -> Session:
    session = await here.core.store.get(Session, session_key("default", name))
    assert session is not None
    return session


async def test_it_begins_after_a_second_step_and_ends_at_once(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    page = await person.get("/console/sessions")
    assert "Ask nothing…" in page.text
    form = page.fields(PATH)
    told = await person.script(PATH, form)
    assert told["how"] == "confirm"
    assert "Ask nothing in session s1 for a while?" in told["html"]
    assert re.findall(r'<option value="(\d+)"( selected)?>', told["html"])[1] == ("30", " selected")
    assert (await stored(here)).bypass_until is None
    told = await person.script(PATH, {**form, "confirmed": "1", "minutes": "60"})
    assert told["text"].startswith("Nothing is asked in this session until ")
    assert (await stored(here)).bypass_by is not None
    assert (await agent.ask())["outcome"] == "approved"

    page = await person.get("/console/sessions")
    assert re.search(r'"asks"><span data-told>nothing until [^<]+</span> <span [^>]+><bdi>ann</bdi>', page.text)
    assert "Ask nothing…" not in page.text
    told = await person.script(PATH, page.fields(PATH))
    assert told["text"] == "Asking again (ann)."
    assert (await stored(here)).bypass_until is None
    again = await person.script(PATH, page.fields(PATH))
    assert again["text"] == "Nothing is bypassed here; questions are asked. Nothing changed."


async def test_without_a_script_the_second_step_is_a_page(here: Place) -> None:
    await here.agent()
    person = await here.person()
    step = await person.post(PATH, (await person.get("/console/sessions")).fields(PATH))
    assert '<select name="minutes">' in step.text
    done = await person.post(PATH, {**step.fields(PATH), "minutes": "15"})
    assert (done.status, done.headers["Location"]) == (303, "/console/sessions")
    assert "Nothing is asked in this session until" in (await person.get("/console/sessions")).text


@pytest.mark.parametrize("minutes", ["", "7", "1441", "0", "-5", "nan", "30 "])
async def test_only_what_is_offered_is_chosen(here: Place, minutes: str) -> None:
    await here.agent()
    person = await here.person()
    form = {**(await person.get("/console/sessions")).fields(PATH), "confirmed": "1", "minutes": minutes}
    assert (await person.post(PATH, form)).status == 400
    assert (await stored(here)).bypass_until is None


async def test_who_looks_switches_nothing(here: Place) -> None:
    await here.agent()
    person = await here.person("ops")
    page = await person.get("/console/sessions")
    assert PATH not in page.text
    form = {**page.fields("/console/logout"), "id": "s1", "confirmed": "1", "minutes": "30"}
    assert (await person.post(PATH, form)).status == 403
    assert (await stored(here)).bypass_until is None
    events = await here.core.store.events("default", 0, limit=100)
    assert [each.data["operation"] for each in events if each.type == "tap.refused"] == ["yolo"]


async def test_a_job_has_no_such_button(here: Place) -> None:
    await here.agent()
    session = await stored(here)
    await here.core.store.transact(lambda tx: tx.put(replace(session, kind="cron")))
    person = await here.person()
    page = await person.get("/console/sessions")
    assert PATH not in page.text
    assert 'data-label="asks">–</td>' in page.text
    form = {**page.fields("/console/sessions/stop"), "confirmed": "1", "minutes": "30"}
    refused = await person.post(PATH, form)
    assert (refused.status, "may not be switched off here" in refused.text) == (403, True)
