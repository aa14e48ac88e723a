"""The exact text of an action: to whom it is shown, what is recorded of that, and where it never stands."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.console.test_live import watching
from tests.unit.console.world import Person, Place
from tests.unit.server.world import TOKEN

from signoff.errors import StoreUnavailable
from signoff.model import Event

SECRET = {"kind": "command", "command": f"deploy --token {TOKEN}", "cwd": "/srv/app"}


async def events(here: Place, kind: str) -> list[Event]:
    return [event for event in await here.core.store.events("default", 0, limit=1000) if event.type == kind]


async def form(person: Person, record: dict[str, Any]) -> dict[str, str]:
    """The form on the request's page."""
    return (await person.get(f"/console/r/{record['short_id']}")).fields("/console/reveal")


async def test_it_is_shown_after_a_second_step_and_recorded(stored: Place) -> None:
    agent = await stored.agent()
    record = await agent.ask(action=SECRET)
    person = await stored.person()
    first = await person.post("/console/reveal", await form(person, record))
    assert first.status == 200
    assert TOKEN not in first.text
    assert "That you saw it is recorded." in first.text
    assert await events(stored, "approval.revealed") == []
    shown = await person.post("/console/reveal", first.fields("/console/reveal"))
    assert f"deploy --token {TOKEN}" in shown.text
    assert shown.headers["Cache-Control"] == "no-store"
    (event,) = await events(stored, "approval.revealed")
    assert event.request_id == record["request_id"]
    assert (event.data["principal"], event.data["via"]) == ("ann", "console")
    assert event.data["key_id"]
    assert TOKEN not in str(event)
    story = await person.get(f"/console/r/{record['short_id']}")
    assert "The exact text was shown to ann." in story.text
    assert story.text.index(">asked<") < story.text.index(">revealed<")


async def test_the_page_s_script_gets_it_in_a_dialog(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask(action=SECRET)
    person = await here.person()
    told = await person.script("/console/reveal", await form(person, record))
    assert (told["how"], TOKEN in told["html"]) == ("confirm", False)
    told = await person.script("/console/reveal", {**await form(person, record), "confirmed": "1"})
    assert (told["how"], TOKEN in told["html"]) == ("shown", True)
    assert len(await events(here, "approval.revealed")) == 1


async def test_it_stands_nowhere_else(here: Place) -> None:
    agent = await here.agent()
    person = await here.person()
    async with watching(person) as stream:
        record = await agent.ask(action=SECRET)
        cards = [await stream.next("card")]
        await person.script("/console/reveal", {**await form(person, record), "confirmed": "1"})
        await person.decide(record, "deny")
        cards.append(await stream.next("card"))
    assert TOKEN not in str(cards)
    name = record["short_id"]
    for path in (
        "",
        "/history",
        "/history.csv",
        f"/r/{name}",
        f"/r/{name}/record.json",
        f"/card/{record['request_id']}",
    ):
        page = await person.get(f"/console{path}")
        assert page.status == 200, path
        assert TOKEN not in page.text, path
    approver = await here.client("approver")
    assert TOKEN not in str((await approver("GET", f"/v1/approvals/{record['request_id']}")).body)


async def test_who_looks_does_not_get_it(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask(action=SECRET)
    looker = await here.person("ops")
    page = await looker.get(f"/console/r/{record['short_id']}")
    assert "Secrets are masked in this text." in page.text
    assert "/console/reveal" not in page.text
    csrf = page.fields("/console/logout")["csrf"]
    answer = await looker.post("/console/reveal", {"csrf": csrf, "id": record["request_id"], "confirmed": "1"})
    assert answer.status == 403
    assert TOKEN not in answer.text
    assert await events(here, "approval.revealed") == []
    (refused,) = await events(here, "tap.refused")
    assert refused.request_id == record["request_id"]


async def test_nor_does_another_tenant_or_a_form_of_another_site(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask(action=SECRET)
    ann, ben = await here.person(), await here.person(principal="ben", profile="second")
    given = {**await form(ann, record), "confirmed": "1"}
    csrf = (await ben.get("/console")).fields("/console/logout")["csrf"]
    assert (await ben.post("/console/reveal", {**given, "csrf": csrf})).status == 404
    assert (await ann.post("/console/reveal", given, Origin="https://evil.example")).status == 403
    assert (await ann.post("/console/reveal", {**given, "csrf": "0"})).status == 403
    assert (await ann.get("/console/reveal")).status == 405
    assert await events(here, "approval.revealed") == []


async def test_what_cannot_be_recorded_is_not_shown(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = await here.agent()
    record = await agent.ask(action=SECRET)
    person = await here.person()
    given = {**await form(person, record), "confirmed": "1"}

    async def full(*_: object, **__: object) -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(here.core.store, "transact", full)
    answer = await person.post("/console/reveal", given)
    assert answer.status == 503
    assert TOKEN not in answer.text


@pytest.mark.parametrize(
    ("action", "masked"),
    [
        ({"kind": "command", "command": "git push origin main"}, False),
        ({"kind": "command", "command": "rm -rf build", "cwd": f"/srv/{TOKEN}"}, True),
        ({"kind": "tool", "name": "post", "arguments": {"token": TOKEN}}, True),
        ({"kind": "code", "language": "python", "code": f"login('{TOKEN}')\n" + "# padding\n" * 2000}, True),
    ],
)
async def test_it_is_offered_where_something_is_masked(here: Place, action: dict[str, Any], masked: bool) -> None:
    agent = await here.agent()
    record = await agent.ask(action=action)
    person = await here.person()
    page = await person.get(f"/console/r/{record['short_id']}")
    assert ("Reveal the exact text…" in page.text) == masked
    assert TOKEN not in page.text
    if masked:
        told = await person.script("/console/reveal", {**page.fields("/console/reveal"), "confirmed": "1"})
        assert TOKEN in told["html"]


async def test_what_nobody_can_see_is_still_written_out(here: Place) -> None:
    agent = await here.agent()
    action = {"kind": "command", "command": f"<b>deploy</b> --token {TOKEN} \u202egpj.exe"}
    record = await agent.ask(action=action)
    person = await here.person()
    told = await person.script("/console/reveal", {**await form(person, record), "confirmed": "1"})
    assert "⟨U+202E⟩gpj.exe" in told["html"]
    assert "&lt;b&gt;deploy&lt;/b&gt;" in told["html"]
    assert "\u202e" not in told["html"]
