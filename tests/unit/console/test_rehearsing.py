"""Drills that are begun in the console."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.console.test_live import watching
from tests.unit.console.world import Place

from signoff.changes import drilling
from signoff.destinations import parse_destination
from signoff.model import Actor, Copy, Event, Note, replace
from signoff.testing.fake_adapter import FakeAdapter

OPS = "fake:ops"


def name_places(here: Place, *places: str) -> None:
    """The settings name these."""
    profile = here.core.profiles["default"]
    approvals = replace(profile.approvals, also_to=tuple(map(parse_destination, places)))
    here.core.profiles = {**here.core.profiles, "default": replace(profile, approvals=approvals)}
    here.core.adapters[("default", "fake")] = FakeAdapter()


async def events(here: Place, kind: str) -> list[Event]:
    return [event for event in await here.core.store.events("default", 0, limit=1000) if event.type == kind]


async def begun(here: Place, person: Any) -> str:
    """Begin one; its page."""
    first = await person.post("/console/drill", (await person.get("/console/health")).fields("/console/drill"))
    assert "Send 1 card" in first.text
    answer = await person.post("/console/drill", first.fields("/console/drill"))
    assert answer.status == 303
    return str(answer.headers["Location"])


async def test_a_drill_from_the_button_to_the_tap(stored: Place) -> None:
    name_places(stored, OPS, "elsewhere:1")
    person = await stored.person()
    health = await person.get("/console/health")
    assert "There was none within 7 days." in health.text
    page = await begun(stored, person)
    (event,) = await events(stored, "drill.started")
    assert (event.data["by"], event.data["destinations"]) == ("ann", [OPS])
    text = (await person.get(page)).text
    assert "0 of 1 place has seen it" in text
    assert "waits for a tap" in text
    assert 'http-equiv="refresh"' in text
    note = await stored.core.store.get(Note, drilling.note_name("default", event.data["drill_id"]))
    assert note is not None

    def tap(tx: Any) -> None:
        (copy_id,) = msgspec.json.decode(note.value)
        copy = tx.get(Copy, copy_id)
        drilling.press(tx, copy, Actor(type="person", principal="ben", via="button"))

    await stored.core.store.transact(tap)
    text = (await person.get(page)).text
    assert "1 of 1 place saw it." in text
    assert "by ben after" in text
    assert 'http-equiv="refresh"' not in text
    assert f'href="{page}"' in (await person.get("/console/health")).text


async def test_the_script_is_led_there(here: Place) -> None:
    name_places(here, OPS)
    person = await here.person()
    form = (await person.get("/console/health")).fields("/console/drill")
    assert (await person.script("/console/drill", form))["how"] == "confirm"
    told = await person.script("/console/drill", {**form, "confirmed": "1"})
    assert told["how"] == "away"
    assert (await person.get(told["to"])).status == 200


async def test_without_a_place_there_is_no_button(here: Place) -> None:
    name_places(here, "elsewhere:1")
    person = await here.person()
    page = await person.get("/console/health")
    assert "so a drill has nowhere to go" in page.text
    assert "/console/drill" not in page.text
    csrf = page.fields("/console/logout")["csrf"]
    assert (await person.post("/console/drill", {"csrf": csrf, "confirmed": "1"})).status == 400
    assert await events(here, "drill.started") == []


async def test_who_looks_begins_none(here: Place) -> None:
    name_places(here, OPS)
    looker = await here.person("ops")
    page = await looker.get("/console/health")
    assert "/console/drill" not in page.text
    csrf = page.fields("/console/logout")["csrf"]
    assert (await looker.post("/console/drill", {"csrf": csrf, "confirmed": "1"})).status == 403
    assert await events(here, "drill.started") == []


async def test_on_the_console_it_stands_beside_what_waits_until_somebody_saw_it(here: Place) -> None:
    name_places(here, OPS, "console:main", "console:night")
    ann, looker = await here.person(), await here.person("ops")
    assert "Drill: nothing will run" not in (await ann.get("/console")).text
    first = await ann.post("/console/drill", (await ann.get("/console/health")).fields("/console/drill"))
    page = str((await ann.post("/console/drill", first.fields("/console/drill"))).headers["Location"])
    seen = f"{page}/seen"
    looks = await looker.get("/console")
    assert "Drill: nothing will run" in looks.text
    assert seen not in looks.text
    csrf = looks.fields("/console/logout")["csrf"]
    assert (await looker.post(seen, {"csrf": csrf})).status == 403
    told = await ann.script(seen, (await ann.get("/console")).fields(seen))
    assert told["text"].startswith("Drill: seen by ann after ")
    assert "Drill: nothing will run" not in (await ann.get("/console")).text
    text = (await ann.get(page)).text
    assert "2 of 3 places have seen it" in text
    assert "by ann after" in text
    own = (await ann.get("/console")).fields("/console/logout")["csrf"]
    assert (await ann.post("/console/drills/drill_x/seen", {"csrf": own})).status == 404


async def test_an_open_page_shows_it_at_once(here: Place) -> None:
    name_places(here, "console:main")
    ann, ben = await here.person(principal="ann"), await here.person(principal="ben")
    async with watching(ben) as stream:
        page = await begun(here, ann)
        assert await stream.next("reload") == {}
        seen = f"{page}/seen"
        await ben.script(seen, (await ben.get("/console")).fields(seen))
        assert await stream.next("reload") == {}


@pytest.mark.parametrize("name", ["nothing", "drill_x", "%00"])
async def test_an_unknown_drill_is_not_found(here: Place, name: str) -> None:
    person = await here.person()
    assert (await person.get(f"/console/drills/{name}")).status == 404


async def test_another_tenant_s_is_not_found(here: Place) -> None:
    name_places(here, OPS)
    page = await begun(here, await here.person())
    ben = await here.person(principal="ben", profile="second")
    assert (await ben.get(page)).status == 404
