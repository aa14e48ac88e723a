"""The facts of a question, each under its name, on its card and on its page."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.console.world import Place
from tests.unit.explain.test_whys import row

from signoff.console.about import Fact, about
from signoff.console.judged import judged
from signoff.model import Actor, Destination
from signoff.policy.ladder import LADDER
from signoff.settings import Profile

NOW = datetime(2026, 11, 27, 3, 0, tzinfo=UTC)
RUNG = "Signoff asks one step after the other. The first with an answer decides."


def read(page: str) -> dict[str, list[str]]:
    """Every name of the first list of facts with what stands under it."""
    (found,) = re.findall(r'<dl class="about">(.*?)</dl>', page, re.DOTALL)[:1]
    told = {}
    for each in re.findall(r"<div>(.*?)</div>", found, re.DOTALL):
        (name,) = re.findall(r"<dt>(.*?)</dt>", each)
        told[name] = [
            html.unescape(re.sub(r"<[^>]+>", "", line)) for line in re.findall(r"<dd.*?>(.*?)</dd>", each, re.DOTALL)
        ]
    return told


async def test_a_question_tells_who_when_why_which_rule_and_where(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    record = await agent.ask(action={"kind": "command", "command": "rm -rf ./build && make deploy"})
    listed = (await person.get("/console")).text
    alone = (await person.get(f"/console/r/{record['short_id']}")).text
    told = read(alone)
    assert list(told) == ["Who asks", "When", "Why", "Rules", "Step that decided", "Shown in", "Digest"]
    assert read(listed) == {name: lines for name, lines in told.items() if name != "Digest"}
    assert told["Who asks"] == ["builder · session s1"]
    assert told["When"][0].startswith("Asked at ") and told["When"][1].startswith("Expires ")
    assert told["Why"] == ["High: deletes folders and everything in them, and 1 more reason"]
    assert told["Rules"] == ["delete.recursive", "build.outward"]
    assert told["Step that decided"][0] == "A person" and told["Step that decided"][-1] == RUNG
    assert told["Digest"] == [record["digest"]]
    await person.decide(record, "deny")
    after = read((await person.get(f"/console/r/{record['short_id']}")).text)
    assert after["Ended"] == ["Denied by ann, not run."]
    assert re.fullmatch(r"Ended at .+, after .+", after["When"][-1])


async def test_hostile_words_stand_as_text(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    record = await agent.ask(
        session="s1", action={"kind": "rule", "tool": "<b>x", "rule_key": "<i>\u202e", "reason": "r"}
    )
    page = (await person.get(f"/console/r/{record['short_id']}")).text
    assert "<i>" not in page and "\u202e" not in page
    assert read(page)["Rules"]


@pytest.mark.parametrize("rung", [*(each.name for each in LADDER), "mode_off", "reviewer", ""])
def test_every_rung_has_a_name(rung: str) -> None:
    (told,) = [each for each in _facts(rung=rung) if each.note]
    assert told.note == RUNG
    assert all(told.lines)


def test_a_grant_and_an_earlier_denial_decide_before_what_is_stored() -> None:
    granted = _facts(rung="person", outcome="approved", decided_by=(Actor(type="grant", grant_id="G1"),))
    assert _named(granted, "Step that decided")[0] == "Standing approvals"
    denied = _facts(rung="person", outcome="denied", repeat_of="req-1", repeat_short="AAAAA")
    assert _named(denied, "Step that decided")[0] == "An earlier denial"


def test_where_it_was_shown() -> None:
    assert _named(_facts(), "Shown in") == ("no chat",)
    places = (Destination("telegram", "-100"), Destination("console", "main"))
    assert _named(_facts(delivered_to=places), "Shown in") == ("this console", "telegram:-100")


def _facts(**values: Any) -> tuple[Fact, ...]:
    asked = row("rm -rf build", **values)
    return about(asked, judged(asked, Profile()), who="w", until="", now=NOW).facts


def _named(told: tuple[Fact, ...], name: str) -> tuple[str, ...]:
    return next(each.lines for each in told if each.name == name)
