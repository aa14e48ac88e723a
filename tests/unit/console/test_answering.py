"""Deciding on the pages: by form and by script, one winner of a race, forms that have grown old, roles, tenants."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from tests.unit.console.world import Person, Place
from tests.unit.server.world import Client

from signoff.model import ApprovalRequest, Event, replace
from signoff.rows import request_key

DROP = {"kind": "command", "command": "git push --force origin release"}
LONG = {"kind": "command", "command": "rm -rf /srv/build\n" + "echo a very long line\n" * 1000}
CODE = {"kind": "code", "language": "python", "code": "import shutil\nshutil.rmtree('x')"}


async def row_of(here: Place, record: dict[str, Any]) -> ApprovalRequest:
    row = await here.core.store.get(ApprovalRequest, request_key("default", record["request_id"]))
    assert row is not None
    return row


async def critical(here: Place, agent: Client) -> dict[str, Any]:
    """A question of the gravest kind."""
    record = await agent.ask(action=DROP)
    assert record["status"] == "pending", record
    row = replace(await row_of(here, record), severity="critical")
    await here.core.store.transact(lambda tx: tx.put(row))
    return record


async def events(here: Place, kind: str) -> list[Event]:
    return [event for event in await here.core.store.events("default", 0, limit=1000) if event.type == kind]


# --- the plain way, without a script ---------------------------------------------------------------


async def test_two_answers_before_the_next_page_are_both_told(here: Place) -> None:
    agent = await here.agent()
    records = [await agent.ask(), await agent.ask(action=DROP)]
    person = await here.person()
    page = await person.get("/console")
    for record in records:
        form = {**page.fields("/console/decide", record["request_id"]), "choice": "deny"}
        assert (await person.post("/console/decide", form)).status == 303
    after = await person.get("/console")
    for record in records:
        assert f"{record['short_id']}: Denied" in after.text


async def test_a_form_decides_and_the_next_page_says_so(stored: Place) -> None:
    agent = await stored.agent()
    record = await agent.ask(reason="main was rebased")
    person = await stored.person()
    page = await person.get("/console")
    assert "git push origin main" in page.text
    assert "Agent says (not checked): main was rebased" in page.text
    form = {**page.fields("/console/decide", record["request_id"]), "choice": "once"}
    answer = await person.post("/console/decide", form)
    assert (answer.status, answer.headers["Location"]) == (303, "/console")
    after = await person.get("/console")
    assert f"{record['short_id']}: Approved once. The agent is told." in after.text
    assert "Approved once by ann in the console" in after.text
    row = await row_of(stored, record)
    (by,) = row.decided_by
    assert (by.type, by.principal, by.via, by.key_id is not None) == ("person", "ann", "console", True)
    assert "Approved once. The agent is told." not in (await person.get("/console")).text


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"choice": "deny"}, None),
        ({"reason_choice": "wrong_target"}, "wrong target"),
        ({"choice": "deny", "reason": "not on a Friday"}, "not on a Friday"),
        ({"choice": "deny", "reason": "x" * 300}, "x" * 280),
    ],
)
async def test_denying(here: Place, fields: dict[str, str], reason: str | None) -> None:
    agent = await here.agent()
    record = await agent.ask()
    person = await here.person()
    page = await person.get("/console")
    told = await person.script("/console/decide", {**page.fields("/console/decide"), **fields})
    assert told["how"] == "done"
    assert "Denied" in told["text"]
    assert ("cut" in told["text"]) == (len(fields.get("reason", "")) > 280)
    row = await row_of(here, record)
    assert (row.outcome, row.reason) == ("denied", reason)


async def test_a_reason_never_approves(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask()
    person = await here.person()
    told = await person.decide(record, "once", reason_choice="too_risky")
    assert (told["how"], (await row_of(here, record)).outcome) == ("done", "denied")


@pytest.mark.parametrize("choice", ["", "approve", "yes", "0m", "25h", "once_all"])
async def test_what_is_not_on_offer_decides_nothing(here: Place, choice: str) -> None:
    agent = await here.agent()
    record = await agent.ask()
    told = await (await here.person()).decide(record, choice)
    assert told["how"] == "refused"
    assert (await row_of(here, record)).outcome is None


# --- grants and second steps -----------------------------------------------------------------------


async def test_a_grant_says_how_wide_it_is_and_is_revoked(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask()
    person = await here.person()
    page = await person.get("/console")
    assert "in this session, until it ends." in page.text
    assert "in this session, for 30 min from the answer." in page.text
    assert "in any folder and any session of profile default, until revoked." in page.text
    assert f">Always: this exact command, and {record['label']} in this session</button>" in page.text
    told = await person.decide(record, "session")
    assert told["how"] == "done"
    listed = await person.get("/console/grants")
    form = listed.fields("/console/grants/revoke")
    assert (await row_of(here, record)).grant_id == form["id"]
    told = await person.script("/console/grants/revoke", form)
    assert "Revoked" in told["text"]
    assert "Nothing is allowed in advance here." in (await person.get("/console/grants")).text
    assert (await person.script("/console/grants/revoke", form))["how"] == "refused"


async def test_critical_takes_a_second_step(here: Place) -> None:
    agent = await here.agent()
    record = await critical(here, agent)
    person = await here.person()
    told = await person.decide(record, "once")
    assert told["how"] == "confirm"
    assert "Run it once?" in told["html"]
    assert (await row_of(here, record)).outcome is None
    assert (await person.decide(record, "session", confirmed="1"))["how"] == "refused"
    assert (await person.decide(record, "once", confirmed="1"))["how"] == "done"
    assert (await row_of(here, record)).outcome == "approved"


async def test_the_second_step_without_a_script_is_a_page(here: Place) -> None:
    agent = await here.agent()
    record = await critical(here, agent)
    person = await here.person()
    page = await person.get("/console")
    form = {**page.fields("/console/decide", record["request_id"]), "choice": "once"}
    step = await person.post("/console/decide", form)
    assert step.status == 200
    assert "git push --force origin release" in step.text
    await person.post("/console/decide", step.fields("/console/decide"))
    assert (await row_of(here, record)).outcome == "approved"


async def test_critical_is_denied_at_once(here: Place) -> None:
    agent = await here.agent()
    record = await critical(here, agent)
    assert (await (await here.person()).decide(record, "deny"))["how"] == "done"
    assert (await row_of(here, record)).outcome == "denied"


async def test_always_for_code_takes_a_second_step(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask(action=CODE)
    person = await here.person()
    assert "always" in record["choices"]
    assert (await person.decide(record, "always"))["how"] == "confirm"
    assert (await row_of(here, record)).outcome is None
    assert (await person.decide(record, "always", confirmed="1"))["how"] == "done"


# --- races and old forms ---------------------------------------------------------------------------


async def test_two_browsers_one_winner(stored: Place) -> None:
    agent = await stored.agent()
    ann, ben = await stored.person(principal="ann"), await stored.person(principal="ben")
    for _ in range(10):
        record = await agent.ask(action={"kind": "command", "command": f"git push --force origin b{_}"})
        forms = [
            {**(await person.get("/console")).fields("/console/decide", record["request_id"]), "choice": choice}
            for person, choice in ((ann, "once"), (ben, "deny"))
        ]
        told = await asyncio.gather(ann.script("/console/decide", forms[0]), ben.script("/console/decide", forms[1]))
        assert sorted(each["how"] for each in told) == ["done", "late"]
        row = await row_of(stored, record)
        winner = "ann" if told[0]["how"] == "done" else "ben"
        late = next(each for each in told if each["how"] == "late")
        assert row.decided_by[0].principal == winner
        assert winner in late["text"]
        assert "changed nothing" in late["text"]


async def test_the_same_person_twice_is_told_so(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask()
    person = await here.person()
    form = {**(await person.get("/console")).fields("/console/decide"), "choice": "once"}
    assert (await person.script("/console/decide", form))["how"] == "done"
    told = await person.script("/console/decide", form)
    assert (told["how"], "You already approved this" in told["text"]) == ("late", True)
    assert (await row_of(here, record)).outcome == "approved"


async def test_a_form_beside_another_action_decides_nothing(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask()
    told = await (await here.person()).decide(record, "once", digest="0" * 64)
    assert told["how"] == "late"
    assert "nothing was decided" in told["text"]
    assert (await row_of(here, record)).outcome is None


async def test_a_question_that_waits_on_another_card_is_answered_there(here: Place) -> None:
    agent = await here.agent()
    leader, follower = await agent.ask(), await agent.ask()
    assert follower["leader_id"] == leader["request_id"]
    person = await here.person()
    page = await person.get("/console")
    assert page.text.count("<article") == 1
    form = {**page.fields("/console/decide"), "id": follower["request_id"], "choice": "once"}
    told = await person.script("/console/decide", form)
    assert told["how"] == "late"
    assert f"Use the newer card of {leader['short_id']}" in told["text"]
    assert (await row_of(here, follower)).outcome is None


async def test_once_for_all_means_those_that_were_counted(here: Place) -> None:
    agent = await here.agent()
    leader, second = await agent.ask(), await agent.ask()
    person = await here.person()
    page = await person.get("/console")
    assert "Once for all 2" in page.text
    third = await agent.ask()
    told = await person.script("/console/decide", {**page.fields("/console/decide"), "choice": "once_all"})
    assert told["how"] == "done"
    found = [(await row_of(here, record)).outcome for record in (leader, second, third)]
    assert found == ["approved", "approved", None]


# --- too long for a list ---------------------------------------------------------------------------


async def test_a_long_action_is_approved_beside_its_whole_text_only(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask(action=LONG)
    assert record["status"] == "pending", record
    person = await here.person()
    page = await person.get("/console")
    assert 'value="once"' not in page.text.partition("<article")[2]
    assert 'value="deny"' in page.text.partition("<article")[2]
    assert "Read it whole to approve it" in page.text
    story = await person.get(f"/console/r/{record['short_id']}")
    assert story.text.count("echo a very long line") >= 1000
    form = {**story.fields("/console/decide"), "choice": "once"}
    assert (await person.script("/console/decide", form))["how"] == "done"


# --- undo and waiting longer -----------------------------------------------------------------------


async def test_undo_until_it_starts_and_by_who_approved(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask()
    ann, ben = await here.person(principal="ann"), await here.person(principal="ben")
    await ann.decide(record, "once")
    assert "/console/undo" not in (await ben.get("/console")).text
    page = await ann.get("/console")
    form = page.fields("/console/undo", record["request_id"])
    refused = await ben.script(
        "/console/undo", {**form, "csrf": (await ben.get("/console")).fields("/console/logout")["csrf"]}
    )
    assert (refused["how"], "Only ann can undo this." in refused["text"]) == ("refused", True)
    assert (await ann.script("/console/undo", form))["how"] == "done"
    assert (await row_of(here, record)).execution.state == "not_run"
    assert (await ann.script("/console/undo", form))["how"] == "late"


async def test_undo_comes_too_late_for_what_has_started(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask()
    person = await here.person()
    await person.decide(record, "once")
    form = (await person.get("/console")).fields("/console/undo", record["request_id"])
    claim = {"digest": record["digest"], "claim_id": "c1"}
    assert (await agent("POST", f"/v1/approvals/{record['request_id']}/claim", claim)).status == 200
    told = await person.script("/console/undo", form)
    assert (told["how"], "Too late: builder started it" in told["text"]) == ("late", True)


async def test_waiting_longer(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask()
    person = await here.person()
    before = (await row_of(here, record)).expires_at
    told = await person.script("/console/wait", (await person.get("/console")).fields("/console/wait"))
    after = (await row_of(here, record)).expires_at
    assert before is not None
    assert after is not None
    assert (after - before).total_seconds() == pytest.approx(900, abs=1)
    assert "It now waits until" in told["text"]


# --- all -------------------------------------------------------------------------------------------


async def listed(person: Person) -> list[tuple[str, str]]:
    page = await person.get("/console")
    values = re.findall(r'name="listed" value="([^"]*)"', page.text)
    return [("csrf", page.fields("/console/logout")["csrf"]), *(("listed", value) for value in values)]


async def test_approving_all_leaves_critical_ones_and_those_that_came_later(here: Place) -> None:
    agent = await here.agent()
    one = await agent.ask(action={"kind": "command", "command": "git push --force origin a"})
    two = await agent.ask(action={"kind": "command", "command": "git push --force origin b"})
    grave = await critical(here, agent)
    person = await here.person()
    form = await listed(person)
    late = await agent.ask(action={"kind": "command", "command": "git push --force origin c"})
    sure = await person.script("/console/all", [*form, ("choice", "once")])
    assert sure["how"] == "confirm"
    assert "2 runs are approved once" in sure["html"]
    assert (await row_of(here, one)).outcome is None
    told = await person.script("/console/all", [*form, ("choice", "once"), ("confirmed", "1")])
    assert "2 of 3 approved once, no grant made" in told["text"]
    assert any("critical" in line for line in told["lines"])
    found = [(await row_of(here, record)).outcome for record in (one, two, grave, late)]
    assert found == ["approved", "approved", None, None]


FIELDS = {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}


async def test_approving_all_neither_counts_nor_lists_what_a_person_accepts_for_itself(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    question = {"kind": "elicitation", "server": "jira", "message": "Which days?"}
    form = await agent.ask(action={**question, "schema": FIELDS})
    page = await agent.ask(action={**question, "url": "https://auth.example.com/in"})
    grave = await critical(here, agent)
    shown = await person.get("/console")
    assert re.search(r'<button name="choice" value="once" hidden>', shown.text), "nothing of it is approved together"
    assert len(re.findall(r"<article [^>]*data-singly", shown.text)) == 3
    sure = await person.script("/console/all", [*await listed(person), ("choice", "once")])
    assert (sure["how"], sure["text"]) == ("refused", "Each of these needs an answer of its own. Nothing was decided.")

    plain = [await agent.ask(action={"kind": "command", "command": f"git push --force origin {n}"}) for n in "ab"]
    assert "Approve 2 once…" in (await person.get("/console")).text
    sent = [*await listed(person), ("choice", "once")]
    sure = await person.script("/console/all", sent)
    approved, _, left = sure["html"].partition("These stay:")
    assert "2 runs are approved once, no grant is made." in approved
    assert all(each["short_id"] in approved and each["short_id"] not in left for each in plain)
    assert all(each["short_id"] in left and each["short_id"] not in approved for each in (form, page, grave))
    assert f"{form['short_id']} · needs an answer of its own" in left
    told = await person.script("/console/all", [*sent, ("confirmed", "1")])
    assert "2 of 5 approved once" in told["text"]
    for each in (form, page):
        assert f"Left {each['short_id']} · it needs an answer of its own" in told["lines"]


async def test_denying_all_takes_critical_ones_along(here: Place) -> None:
    agent = await here.agent()
    one, grave = await agent.ask(), await critical(here, agent)
    person = await here.person()
    told = await person.script("/console/all", [*await listed(person), ("choice", "deny")])
    assert "2 of 2 denied" in told["text"]
    assert [(await row_of(here, record)).outcome for record in (one, grave)] == ["denied", "denied"]


async def test_all_of_nothing(here: Place) -> None:
    person = await here.person()
    form = await listed(person)
    assert (await person.script("/console/all", [*form, ("choice", "deny")]))["how"] == "refused"
    broken = [*form, ("choice", "deny"), ("listed", "x"), ("listed", "a b c")]
    assert (await person.script("/console/all", broken))["how"] == "refused"


# --- sessions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("what", "cause"), [("stop", "stop_requested"), ("clear", "session_ended")])
async def test_ending_a_session_takes_a_second_step(here: Place, what: str, cause: str) -> None:
    agent = await here.agent()
    record = await agent.ask()
    person = await here.person()
    form = (await person.get("/console/sessions")).fields(f"/console/sessions/{what}")
    assert (await person.script(f"/console/sessions/{what}", form))["how"] == "confirm"
    assert (await row_of(here, record)).outcome is None
    told = await person.script(f"/console/sessions/{what}", {**form, "confirmed": "1"})
    assert record["short_id"] in " ".join(told["lines"])
    row = await row_of(here, record)
    assert (row.outcome, row.cause) == ("cancelled", cause)
    assert row.ended_by is not None
    assert row.ended_by.principal == "ann"


# --- who may ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/console/decide", {"choice": "once"}),
        ("/console/decide", {"choice": "deny"}),
        ("/console/undo", {}),
        ("/console/wait", {}),
        ("/console/all", {"choice": "deny", "listed": "x y 0 0"}),
        ("/console/sessions/stop", {"confirmed": "1"}),
        ("/console/sessions/clear", {"confirmed": "1"}),
        ("/console/sessions/bypass", {"off": "1"}),
        ("/console/grants/revoke", {}),
    ],
)
async def test_who_looks_decides_nothing(here: Place, path: str, more: dict[str, str]) -> None:
    agent = await here.agent()
    record = await agent.ask()
    person = await here.person("ops")
    page = await person.get("/console")
    assert "You can look, not decide." in page.text
    assert "/console/decide" not in page.text
    assert "/console/sessions/stop" not in (await person.get("/console/sessions")).text
    form = {**page.fields("/console/logout"), "id": record["request_id"], "digest": record["digest"], **more}
    answer = await person.post(path, form)
    assert answer.status == 403
    assert (await row_of(here, record)).outcome is None
    (refused,) = await events(here, "tap.refused")
    assert refused.data["why"] == "scope"
    assert refused.data["platform"] == "console"


async def test_an_administrator_decides(here: Place) -> None:
    agent = await here.agent()
    record = await agent.ask()
    assert (await (await here.person("admin")).decide(record, "once"))["how"] == "done"


async def test_a_profile_shows_nothing_of_another(here: Place) -> None:
    agent, other = await here.agent(), await here.agent("second")
    record, foreign = await agent.ask(), await other.ask(action={"kind": "command", "command": "rm -rf secret-plans"})
    person = await here.person()
    stranger = await here.person(profile="second")
    for path in ("", "/history", "/sessions", "/grants"):
        assert "secret-plans" not in (await person.get(f"/console{path}")).text
    for path in (f"/r/{foreign['short_id']}", f"/card/{foreign['request_id']}"):
        assert (await person.get(f"/console{path}")).status == 404
        assert (await stranger.get(f"/console{path}")).status == 200
    page = await person.get("/console")
    form = {**page.fields("/console/decide", record["request_id"]), "id": foreign["request_id"], "choice": "once"}
    form["digest"] = foreign["digest"]
    assert (await person.post("/console/decide", form)).status == 404
    assert (await other("GET", f"/v1/approvals/{foreign['request_id']}")).body["status"] == "pending"
