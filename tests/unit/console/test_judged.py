"""A story tells how it was judged as a tree, and how far an approval reaches; grants say the same in words."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from tests.unit.console.test_answering import events, row_of
from tests.unit.console.test_looking import HOSTILE
from tests.unit.console.world import Place

from signoff.model import replace

TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
LINE = f"cd /srv && sudo nohup rm -rf ./build && echo {TOKEN}"


def words(page: str) -> str:
    """The text that a person reads."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.partition("<main")[2])).split())


async def test_the_tree_names_commands_wrappers_and_rules(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    record = await agent.ask(action={"kind": "command", "command": LINE})
    page = (await person.get(f"/console/r/{record['short_id']}")).text
    tree = page.partition('<ol class="tree">')[2].partition("</ol>")[0]
    items = [words(f"<main {item}") for item in tree.split("<li ")[1:]]
    assert items[0].endswith("1 cd /srv passes the rule read.shell allows it")
    sudo = next(item for item in items if "privilege.root" in item)
    assert " asks High runs with the administrator's rights privilege.root" in sudo
    rm = next(item for item in items if "delete.recursive" in item)
    assert "rm -rf ./build asks inside sudo › nohup" in rm
    assert "deletes folders and everything in them delete.recursive" in rm
    assert 'class="depth-2 ask"' in tree
    assert TOKEN not in page
    told = words(page)
    assert "a person is asked" in told
    assert "Recursive deletes (by sudo rm" in told
    assert "Running with the administrator's rights (by sudo: sudo nohup rm)" in told
    assert "Always: exactly this text, in any folder and any session of profile default." in told


async def test_it_needs_no_script_and_shows_hostile_text_as_text(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    command = f"rm -rf '{HOSTILE}' && \u202egpj <b>x</b> | sh".replace("\x00", "")
    record = await agent.ask(action={"kind": "command", "command": command})
    page = (await person.get(f"/console/r/{record['short_id']}")).text
    judged = page.partition('<div class="judged">')[2]
    assert judged
    assert not re.search(r"<(img|b>x|script)", judged)
    assert "\u202e" not in judged
    assert "The text cannot be understood" in judged


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"severity": "critical"}, "There is none: each run of something critical is asked for."),
        ({"once_only": True}, "There is none: only one run can be approved."),
        ({"once_only": True, "unread_file": "run.sh"}, "what run.sh contains is not known"),
        ({"coverage": ()}, "Exactly this action, and nothing else"),
        ({"coverage": ("delete.recursive@rm#0f0f",)}, "Recursive deletes (by rm), while its files are as they were"),
        ({"coverage": ("gone.rule@tool",)}, "Whatever rule gone.rule asks about (by tool)"),
    ],
)
async def test_how_far_an_approval_reaches(here: Place, facts: dict[str, Any], says: str) -> None:
    agent, person = await here.agent(), await here.person()
    record = await agent.ask(action={"kind": "command", "command": "rm -rf ./build"})
    row = await row_of(here, record)
    await here.core.store.transact(lambda tx: tx.put(replace(row, **facts)))
    assert says in words((await person.get(f"/console/r/{record['short_id']}")).text)


async def test_code_is_told_line_by_line(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    code = "import shutil\nshutil.rmtree('x')\nprint(1)"
    record = await agent.ask(action={"kind": "code", "language": "python", "code": code})
    told = words((await person.get(f"/console/r/{record['short_id']}")).text)
    assert "1 shutil.rmtree('x') asks High deletes a folder and everything in it python.delete_tree" in told
    assert "Any python code" in told


async def test_what_is_blocked_says_no_reach(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    record = await agent.ask(action={"kind": "command", "command": "rm -rf /"})
    told = words((await person.get(f"/console/r/{record['short_id']}")).text)
    assert "It is a floor: nobody can approve it." in told
    assert "How far a standing approval would reach" not in told


# --- standing approvals ----------------------------------------------------------------------------


async def test_grants_say_what_they_cover_and_what_ends_with_them(stored: Place) -> None:
    agent, person = await stored.agent(), await stored.person()
    command = f"rm -rf ./build --token={TOKEN}"
    record = await agent.ask(action={"kind": "command", "command": command})
    await person.decide(record, "always")
    page = await person.get("/console/grants")
    told = words(page.text)
    assert "exactly this text, in any folder and any session: rm -rf ./build --token=" in told
    assert TOKEN not in page.text
    assert "Recursive deletes (by rm)" in told
    assert "times, last" not in told
    for _ in range(2):
        await agent.ask(action={"kind": "command", "command": command})
    assert "2 times, last " in words((await person.get("/console/grants")).text)
    made = {event.data["scope"]: event.data["grant_id"] for event in await events(stored, "grant.created")}
    assert f"Made with {made['always']}, and ends with it." in told
    answer = await person.script("/console/grants/revoke", page.fields("/console/grants/revoke", made["always"]))
    assert answer["text"].startswith(f"Revoked {made['always']} (always: this exact command).")
    assert answer["lines"] == [f"With it ended {made['session']} (this session: recursive deletes)."]
    assert "Nothing is allowed in advance here." in (await person.get("/console/grants")).text


async def test_ending_the_narrow_one_leaves_the_other(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    record = await agent.ask(action={"kind": "command", "command": "rm -rf ./build"})
    await person.decide(record, "always")
    made = {event.data["scope"]: event.data["grant_id"] for event in await events(here, "grant.created")}
    page = await person.get("/console/grants")
    forms = page.text.split('<form method="post" action="/console/grants/revoke"')[1:]
    assert len(forms) == 2
    form = {**page.fields("/console/grants/revoke"), "id": made["session"]}
    answer = await person.script("/console/grants/revoke", form)
    assert answer["lines"] == []
    assert made["always"] in (await person.get("/console/grants")).text


async def test_the_time_box_stands_in_the_open_after_three_approvals(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    action = {"kind": "command", "command": "git stash clear"}
    severity = ""
    for count in range(4):
        record = await agent.ask(action=action)
        page = await person.get("/console")
        card = page.text.partition(f'id="r-{record["short_id"]}"')[2].partition("</article>")[0]
        severity = record["severity"]
        assert card.count('value="30m"') == 1
        assert ("three times or more" in card) == (count == 3 and severity in ("low", "medium")), count
        await person.decide(record, "once" if count < 3 else "30m")
    assert severity == "medium"
    (grant,) = await here.core.broker.grants("default")
    assert grant.scope == "time_box"
    assert (await agent.ask(action=action))["outcome"] == "approved"
