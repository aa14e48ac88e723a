"""Try: whoever looks learns what would become of a command, and nothing is left of it."""

from __future__ import annotations

import pytest
from tests.unit.console.test_judged import TOKEN, words
from tests.unit.console.test_looking import HOSTILE
from tests.unit.console.world import Page, Person, Place

from signoff.console.trying import MOST_CHARS

PATH = "/console/try"


async def tried(person: Person, command: str, **more: str) -> Page:
    page = await person.get(PATH)
    return await person.post(PATH, {**page.fields(PATH), "command": command, "cwd": "", "session": "", **more})


@pytest.mark.parametrize(
    ("command", "head", "rung"),
    [
        ("ls -l", "It would run without a question", "Rules that allow: decided"),
        ("rm -rf ./build", "A person would be asked", "A person: decided"),
        ("rm -rf /", "It would not run", "What nobody may approve: decided"),
    ],
)
async def test_what_would_become_of_it(here: Place, command: str, head: str, rung: str) -> None:
    person = await here.person("ops")
    before = await here.core.store.last_seq("default")
    assert '<a href="/console/try">Try</a>' in (await person.get("/console")).text
    page = await tried(person, command)
    assert (page.status, page.headers["Cache-Control"]) == (200, "no-store")
    told = words(page.text)
    assert f"<title>{head}" in page.text
    assert rung in told
    assert command in told
    assert ("How far a standing approval would reach" in told) == ("asked" in head)
    assert await here.core.store.last_seq("default") == before
    assert await here.core.broker.pending("default", limit=10) == []


async def test_a_session_brings_its_grants_and_denials(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    action = {"kind": "command", "command": "rm -rf ./build"}
    record = await agent.ask(action=action)
    await person.decide(record, "deny")
    told = words((await tried(person, "rm -rf ./build", session="s1")).text)
    assert "It would not run" in told
    assert "An earlier denial: decided" in told
    assert f"Denied by ann ({record['short_id']})" in told
    other = await agent.ask(action={"kind": "command", "command": "rm -rf ./dist"})
    await person.decide(other, "session")
    told = words((await tried(person, "rm -rf ./more", session="s1")).text)
    assert "It would run without a question" in told
    assert "Standing approvals: decided" in told
    assert "A person would be asked" in words((await tried(person, "rm -rf ./more")).text)


@pytest.mark.parametrize(
    ("fields", "status", "says"),
    [
        ({"command": " \n"}, 400, "Type a command first."),
        ({"command": "x" * (MOST_CHARS + 1)}, 400, "It is too long: 16,001 characters, at most 16,000."),
        ({"command": "ls", "cwd": "/" + "x" * 1000}, 400, "It is too long: 1,001 characters, at most 1,000."),
        ({"command": "ls", "session": "s9"}, 404, "There is no such open session in this profile."),
        ({"command": "ls", "session": "\U0001f600 \n"}, 404, "There is no such open session in this profile."),
    ],
)
async def test_what_is_wrong_is_said_beside_the_field(
    here: Place, fields: dict[str, str], status: int, says: str
) -> None:
    person = await here.person("ops")
    page = await tried(person, **fields)
    assert page.status == status
    assert f'role="alert" id="try-wrong">{says}</p>' in page.text
    assert 'aria-invalid="true" aria-describedby="try-wrong' in page.text
    assert 'class="result' not in page.text


async def test_as_long_as_may_be_is_judged(here: Place) -> None:
    person = await here.person("ops")
    page = await tried(person, "echo a line\r\n" * (MOST_CHARS // 12))
    assert page.status == 200
    assert "and 1,133 more commands" in words(page.text)


async def test_lines_of_a_text_field_are_lines_of_a_command(here: Place) -> None:
    """A browser ends them with CR and LF; taken as they are, a carriage return would be part of a word."""
    person = await here.person("ops")
    told = words((await tried(person, "ls\r\nls -l\r\n")).text)
    assert "It would run without a question" in told
    assert "cannot be understood" not in told


async def test_a_secret_is_masked_in_the_answer(here: Place) -> None:
    person = await here.person("ops")
    page = await tried(person, f"deploy --token {TOKEN} && rm -rf ./x")
    assert page.text.count(TOKEN) == 1  # in the field it was typed in
    assert TOKEN not in page.text.partition('class="result')[2]


async def test_hostile_text_is_text(here: Place) -> None:
    person = await here.person("ops")
    hostile = f"{HOSTILE}</textarea><script>x</script>"
    page = await tried(person, hostile, cwd=f'"{HOSTILE}', session="")
    body = page.text.partition("<main")[2]
    assert page.status == 200
    assert "<img" not in body
    assert "<script" not in body
    assert body.count("</textarea>") == 1
    assert "\u202e" not in body.partition('class="result')[2]


async def test_only_a_form_of_this_log_in_is_judged(here: Place) -> None:
    person, other = await here.person("ops"), await here.person()
    form = {**(await other.get(PATH)).fields(PATH), "command": "ls"}
    assert (await person.post(PATH, form)).status == 403
    own = {**(await person.get(PATH)).fields(PATH), "command": "ls"}
    assert (await person.post(PATH, own, Origin="https://evil.example")).status == 403
    assert (await here.stranger().get(PATH)).url.partition("?")[0].endswith("/console/login")
