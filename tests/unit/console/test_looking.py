"""Reading the pages: the story, the history, its file, hostile text in every field, and what else is listed."""

from __future__ import annotations

import asyncio
import csv
import html
import io
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.console.world import Place

from signoff.model import Actor, Destination, Person

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{7*7}}\u202egpj.exe\u2066\x1b[31m\x00${x}"


async def test_the_story_of_a_request(stored: Place) -> None:
    agent = await stored.agent()
    record = await agent.ask(reason="main was rebased", host="ci-3")
    looker = await stored.person("ops")
    form = (await looker.get("/console")).fields("/console/logout")
    await looker.post("/console/decide", {**form, "id": record["request_id"], "choice": "once"})
    person = await stored.person()
    await person.decide(record, "once")
    claim = {"digest": record["digest"], "claim_id": "c1"}
    assert (await agent("POST", f"/v1/approvals/{record['request_id']}/claim", claim)).status == 200
    result = {"status": "failed", "exit_code": 2}
    assert (await agent("POST", f"/v1/approvals/{record['request_id']}/result", result)).status == 200
    text = (await person.get(f"/console/r/{record['short_id'].lower()}")).text
    told = ["asked", "judged", "A person is asked.", "may look, not decide", "approved", "ann, in the console"]
    told += ["claimed by builder", "Failed: exit code 2 after"]
    at = -1
    for word in told:
        assert word in text, word
        at = max(at, text.index(word))
    assert text.index(">asked<") < text.index(">refused<") < text.index(">started<") < text.index(">failed<")


async def test_the_story_of_one_that_nobody_answered(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask()
    assert (await agent("POST", f"/v1/approvals/{record['request_id']}/cancel", {})).status == 200
    person = await here.person()
    text = (await person.get(f"/console/r/{record['short_id']}")).text
    assert "Cancelled, not run: the agent took the question back." in text
    assert "Denied" not in text


async def test_the_record_is_a_file(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask(
        action={"kind": "command", "command": "deploy --token ghp_0123456789abcdefghijABCDEFGHIJ012345"}
    )
    person = await here.person()
    page = await person.get(f"/console/r/{record['short_id']}/record.json")
    assert page.headers["Content-Disposition"] == f'attachment; filename="{record["short_id"]}.json"'
    told = json.loads(page.text)
    assert told["approval"]["request_id"] == record["request_id"]
    assert [event["type"] for event in told["events"]] == ["approval.requested"]
    assert "ghp_0123456789abcdefghij" not in page.text


async def test_the_story_of_a_long_session_leaves_out_nothing(stored: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signoff.console.story.PAGE", 4)
    monkeypatch.setattr("signoff.console.story.MOST_EVENTS", 12)
    monkeypatch.setattr("signoff.console.story.SKEW", timedelta(0))
    agent, person = await stored.agent(), await stored.person()
    records = [await agent.ask(action={"kind": "command", "command": f"rm -rf b{n}"}) for n in range(40)]
    for record in records:
        await person.decide(record, "deny")
    for record in records:
        page = await person.get(f"/console/r/{record['short_id']}/record.json")
        types = [event["type"] for event in json.loads(page.text)["events"]]
        assert types[:1] == ["approval.requested"], record["action"]
    assert types == ["approval.requested", "approval.resolved"]


@pytest.mark.parametrize("reference", ["nothing", "7Q2MK", "%00", "%F0%9F%98%80", "..%2F..%2Fetc", "x" * 300])
async def test_what_does_not_exist_is_not_found(here: Place, reference: str) -> None:
    person = await here.person()
    assert (await person.get(f"/console/r/{reference}")).status == 404


# --- history ---------------------------------------------------------------------------------------


async def many(here: Place, count: int) -> list[dict[str, Any]]:
    agent = await here.agent()
    person = await here.person()
    records = []
    for number in range(count):
        record = await agent.ask(action={"kind": "command", "command": f"git push --force origin b{number:03}"})
        await here.core.broker.decide(
            "default", record["request_id"], "deny" if number % 3 else "once", (await seat(here, person)).actor
        )
        records.append(record)
    return records


async def seat(here: Place, person: Any) -> Any:
    (cookie,) = person.http.cookie_jar
    return await here.console.desk.seats.find(cookie.value)


async def test_history_is_paged_from_the_newest(stored: Place) -> None:
    await many(stored, 120)
    person = await stored.person()
    path, seen = "/console/history", []
    while path:
        page = await person.get(path)
        numbers = [part[:3] for part in page.text.split("origin b")[1:]]
        seen += numbers
        assert len(numbers) <= 50
        older = page.text.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
        path = older
    assert seen == [f"{number:03}" for number in reversed(range(120))]


async def test_history_is_searched(here: Place) -> None:
    await many(here, 9)
    person = await here.person()
    for query, count in (
        ("q=b004", 1), ("outcome=approved", 3), ("outcome=denied", 6), ("outcome=nonsense", 9), ("agent=BUILD", 9),
        ("agent=other", 0), ("person=ann", 9), ("person=ben", 0), ("q=b00&outcome=denied&person=ann", 6),
    ):  # fmt: skip
        page = await person.get(f"/console/history?{query}")
        assert page.text.count("origin b") == count, query
        assert (await person.get(f"/console/history.csv?{query}")).text.count("origin b") == count


@pytest.mark.parametrize(
    ("action", "cells"),
    [
        ({"kind": "tool", "name": "delete_user", "arguments": {"id": 7}}, "tool delete_user id: 7"),
        ({"kind": "tool", "name": "reset_all", "arguments": {}}, "tool reset_all"),
        ({"kind": "code", "language": "python", "code": "import shutil\nshutil.rmtree('/srv')"},
         "python code import shutil shutil.rmtree(&#39;/srv&#39;)"),
        ({"kind": "elicitation", "server": "jira", "message": "Which?"}, "question from jira Which?"),
        ({"kind": "command", "command": "rm -rf build"}, "rm -rf build"),
    ],
)  # fmt: skip
async def test_history_names_what_was_asked_for_and_takes_no_agent_for_a_machine(
    here: Place, action: dict[str, Any], cells: str
) -> None:
    agent, person = await here.agent(), await here.person()
    record = await agent.ask(action=action)
    await person.decide(record, "deny")
    text = (await person.get("/console/history")).text
    row = text[text.rindex("<tr>") : text.index("</tbody>", text.rindex("<tr>"))]
    assert " ".join(re.sub(r"<[^>]+>", " ", row).split()).endswith(f"ann {cells} builder – no"), row
    if "name" in action:
        assert record["short_id"] in (await person.get(f"/console/history?q={action['name']}")).text
        assert f",tool {action['name']}" in (await person.get("/console/history.csv")).text


async def test_a_search_that_stopped_says_so(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    await many(here, 12)
    monkeypatch.setattr("signoff.console.history.WINDOW", 5)
    monkeypatch.setattr("signoff.console.history.MOST_WINDOWS", 2)
    person = await here.person()
    page = await person.get("/console/history?q=b000")
    assert "Nothing among the newest 10 events fits these words. Older ones were not searched yet." in page.text
    while 'rel="next"' in page.text:
        page = await person.get(html.unescape(page.text.partition('rel="next" href="')[2].partition('"')[0]))
        if "origin b000" in page.text:
            break
    assert "origin b000" in page.text
    monkeypatch.setattr("signoff.console.history.MOST_WINDOWS", 20)
    assert "Nothing that ended fits these words." in (await person.get("/console/history?q=nowhere")).text


async def test_a_file_that_is_cut_says_so(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    await many(here, 4)
    person = await here.person()
    cut = "The list is cut here. Older ones are left out."
    assert "CSV of the newest 5,000" in (await person.get("/console/history")).text
    assert cut not in (await person.get("/console/history.csv")).text
    monkeypatch.setattr("signoff.console.history.CSV_ROWS", 3)
    assert (await person.get("/console/history.csv")).text.splitlines()[-1] == cut


async def test_what_rules_answered_can_be_left_out(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    asked = await agent.ask()
    await person.decide(asked, "deny")
    blocked = await agent.ask(action={"kind": "command", "command": "rm -rf /"})
    page = await person.get("/console/history")
    assert asked["short_id"] in page.text and blocked["short_id"] in page.text
    for path in ("/console/history?asked=1", "/console/history.csv?asked=1"):
        page = await person.get(path)
        assert asked["short_id"] in page.text
        assert blocked["short_id"] not in page.text


async def test_the_file_for_spreadsheets_runs_nothing(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask(
        action={"kind": "code", "language": "python", "code": '=HYPERLINK("http://evil.example","x")'},
        host="@evil",
        reason="+1",
    )
    person = await here.person()
    await person.decide(record, "deny", reason="-2, because")
    page = await person.get("/console/history.csv")
    assert page.headers["Content-Type"] == "text/csv; charset=utf-8"
    head, line = csv.reader(io.StringIO(page.text))
    assert head[:5] == ["time", "id", "outcome", "by", "action"]
    for cell in line:
        assert cell[:1] not in ("=", "+", "-", "@"), cell


async def test_by_names_a_person_only_where_one_decided(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask()
    await agent("POST", f"/v1/approvals/{record['request_id']}/cancel", {})
    blocked = await agent.ask(action={"kind": "command", "command": "rm -rf /"})
    assert blocked["outcome"] == "blocked"
    person = await here.person()
    text = (await person.get("/console/history")).text
    assert "(the agent took the question back)" in text
    assert blocked["rule_keys"][0] in text


# --- hostile text ----------------------------------------------------------------------------------


async def test_hostile_text_is_text_on_every_page(here: Place) -> None:
    agent = await here.agent()
    person = await here.person()
    await agent("PUT", "/v1/sessions/%3Cb%3Ehostile%22", {"kind": "api"})
    approver = await here.client("approver")
    await approver("PUT", "/v1/sessions/%3Cb%3Ehostile%22/notifiers/desk")
    actions: list[dict[str, Any]] = [
        {"kind": "command", "command": f"rm -rf {HOSTILE}".replace("\x00", ""), "cwd": HOSTILE},
        {"kind": "code", "language": HOSTILE[:40], "code": HOSTILE},
        {"kind": "tool", "name": HOSTILE, "arguments": {HOSTILE: HOSTILE, "n": {"a": [HOSTILE]}}},
        {"kind": "file_write", "path": HOSTILE, "diff": f"+{HOSTILE}\n-{HOSTILE}"},
        {"kind": "elicitation", "server": HOSTILE, "message": HOSTILE},
        {"kind": "rule", "tool": HOSTILE, "rule_key": HOSTILE, "reason": HOSTILE},
    ]
    records = [
        await agent.ask(
            session='<b>hostile"', action=action, host=HOSTILE, reason=HOSTILE, claimed_for=HOSTILE, tool_call_id="x"
        )
        for action in actions
    ]
    stranger = Person(platform="telegram", user_id=HOSTILE, name=HOSTILE)
    row = await here.core.broker.get("default", records[0]["request_id"])
    await here.console.desk.refusals.record(
        "default", stranger, Destination("telegram", "1"), why="not_listed", operation="decide", row=row
    )
    pages = [await person.get("/console")]
    pages += [await person.get(f"/console/r/{record['short_id']}") for record in records]
    await person.decide(records[0], "deny", reason=HOSTILE.replace("\x00", ""))
    await person.decide(records[1], "session")
    pages += [await person.get(f"/console/{name}") for name in ("", "history", "sessions", "grants", "health")]
    pages += [await person.get(f"/console/r/{record['short_id']}") for record in records[:2]]
    for page in pages:
        assert page.status == 200
        low = page.text.lower()
        assert "<script>" not in low.replace('<script src="', "")
        assert "<img" not in low
        assert "<b>hostile" not in low
        assert "49" not in page.text.partition("{{7*7}}")[0][-5:]
        for char in "\u202e\u2066\x1b\x00":
            assert char not in page.text
    assert "⟨U+202E⟩" in pages[0].text
    assert "{{7*7}}" in pages[0].text


# --- other lists -----------------------------------------------------------------------------------


async def test_sessions_say_where_answers_come_from(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask()
    await agent("PUT", "/v1/sessions/kid", {"kind": "child", "parent": "s1"})
    await agent("PUT", "/v1/sessions/nightly", {"kind": "cron"})
    person = await here.person()
    text = (await person.get("/console/sessions")).text
    assert "an attached app" in text
    assert "as s1" in text
    assert "nobody: what needs a yes does not run (cron_mode)" in text
    assert record["status"] == "pending"
    await agent("DELETE", "/v1/sessions/kid")
    assert "kid" not in (await person.get("/console/sessions")).text


async def test_health_tells_of_platforms_and_the_store(here: Place) -> None:
    person, operator = await here.person(), await here.person("ops")
    text = (await person.get("/console/health")).text
    assert "Everything works." in text
    assert "engine: memory" not in text
    assert "engine: memory" in (await operator.get("/console/health")).text


async def test_health_tells_of_hooks_and_of_executors_that_are_missing(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = here.core.health
    well = {"state": "ok", "seq": 7, "behind": 0, "failing_since": None, "parked": 0, "detail": ""}
    ill = {**well, "state": "failing", "behind": 3, "parked": 1, "detail": "It answered 500."}
    hooks = {"default/audit": well, "default/pager": ill, "second/secret": ill}

    async def health() -> dict[str, Any]:
        return {**await told(), "hooks": hooks, "executors": {"default/mailer": {"waiting": 2}}}

    monkeypatch.setattr(here.core, "health", health)
    person, operator = await here.person(), await here.person("ops")
    text = (await person.get("/console/health")).text
    assert "2 parts have trouble." in text and "secret" not in text
    rows = [
        " ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in re.findall(r"<tr data-key.*?</tr>", text, re.DOTALL)
    ]
    assert "Hook audit ✓ ready – –" in rows
    assert "Hook pager ! failing – – 3 events not told yet · 1 event given up" in rows
    assert "Executor mailer ! missing – – No gateway has it. 2 approved actions wait for it." in rows
    assert "It answered 500." not in text and "It answered 500." in (await operator.get("/console/health")).text


async def test_many_pending_are_paged_with_the_gravest_first(here: Place) -> None:
    agent = await here.agent()
    plain = [
        await agent.ask(action={"kind": "command", "command": f"git push --force origin b{number:03}"})
        for number in range(130)
    ]
    person = await here.person()
    first, second = await person.get("/console"), await person.get("/console?page=2")
    assert (first.text.count("<article"), second.text.count("<article")) == (100, 30)
    assert "130 questions wait in all." in first.text
    assert plain[0]["short_id"] in first.text
    assert plain[129]["short_id"] in second.text


async def test_static_files_are_kept_by_their_hash(here: Place) -> None:
    stranger = here.stranger()
    page = await stranger.get("/console/login")
    address = page.text.partition('href="/console/static/console.css')[2].partition('"')[0]
    assert address.startswith("?v=")
    found = await stranger.get(f"/console/static/console.css{address}")
    assert (found.status, "immutable" in found.headers["Cache-Control"]) == (200, True)
    assert (await stranger.get("/console/static/console.css")).headers["Cache-Control"] == "no-store"
    for name in ("door.py", "console.css.gz", "templates"):
        assert (await stranger.get(f"/console/static/{name}")).status == 404


async def test_pages_that_load_together_all_come(here: Place) -> None:
    agent = await here.agent()
    for number in range(30):
        await agent.ask(action={"kind": "command", "command": f"git push --force origin b{number}"})
    person = await here.person()
    pages = await asyncio.gather(*(person.get("/console") for _ in range(20)))
    assert {page.text.count("<article") for page in pages} == {30}


@pytest.mark.parametrize(
    ("by", "told"),
    [
        (Actor(type="person", platform="telegram", user_id="1", name="Ana", via="button"), "on Telegram"),
        (Actor(type="person", platform="slack", user_id="1", name="Ana", via="approve_all"), "by approve all on Slack"),
        (Actor(type="person", platform="local", user_id="0", via="cli"), "in the terminal,"),
        (Actor(type="person", principal="ann", key_id="k", via="api"), "through the API,"),
    ],
)
async def test_the_story_says_where_it_was_answered(here: Place, by: Actor, told: str) -> None:
    agent = await here.agent()
    record = await agent.ask()
    await here.core.broker.decide("default", record["request_id"], "once", by)
    person = await here.person()
    assert told in (await person.get(f"/console/r/{record['short_id']}")).text
