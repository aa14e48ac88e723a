"""A tool server's question through every door: in process, over HTTP, in a chat and on the console's pages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.console.world import place
from tests.unit.server.world import TOKEN, world_on

from signoff import context
from signoff.authorize import local_actor
from signoff.changes import claiming
from signoff.client import Client
from signoff.config import load_config
from signoff.elicitation import Elicited
from signoff.errors import ChoiceNotOffered, InvalidInput, SendRefused, StoreError
from signoff.gateway import Gateway
from signoff.model import ApprovalRequest, replace
from signoff.server.serve import serve
from signoff.testing.fake_adapter import FakeAdapter

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "project": {"type": "string", "enum": ["web", "api"]},
        "token": {"type": "string"},
        "urgent": {"type": "boolean"},
        "days": {"type": "integer"},
    },
    "required": ["project"],
}
ASKS = {"kind": "elicitation", "server": "jira", "message": "Which project?"}
FILLED = {"project": "web", "token": TOKEN}
OPERATOR = local_actor(1000)


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    """A gateway that serves a chat, with an open chat session."""
    environ = {"SIGNOFF_GATEWAY__STATE_DIR": str(tmp_path), "SIGNOFF_GATEWAY__STORE": "memory://"}
    config = load_config(None, environ)
    profile = replace(config.profiles["default"], approvers={"fake": ("1",)})
    config = replace(config, profiles={"default": profile})
    async with Gateway(config, adapters={("default", "fake"): FakeAdapter()}) as made:
        await made.session("talk", kind="chat", destination="fake:5")
        yield made


def chat_of(gateway: Gateway) -> FakeAdapter:
    found = gateway.adapters["default", "fake"]
    assert isinstance(found, FakeAdapter)
    return found


async def shown(gateway: Gateway, count: int = 1) -> ApprovalRequest:
    """The newest waiting question, once it stands in its chat."""
    async with asyncio.timeout(30):
        while True:
            rows = await gateway.broker.pending("default")
            if len(chat_of(gateway).messages) >= count and rows and rows[-1].delivered_to:
                return rows[-1]
            await asyncio.sleep(0.01)


async def test_in_process(gateway: Gateway) -> None:  # 1.5.1 1.5.2 1.5.4
    for count, (button, action) in enumerate((("Accept", "accept"), ("Decline", "decline")), start=1):
        asking = asyncio.create_task(gateway.elicit("jira", "May I?", session_id="talk"))
        row = await shown(gateway, count)
        await chat_of(gateway).press(button)
        assert await asking == Elicited(action=action, content={} if action == "accept" else None)  # type: ignore[arg-type]
        assert (await gateway.get(row.request_id)).execution.state == ("succeeded" if action == "accept" else "none")
        said = "Approved: accepted by " if action == "accept" else "Denied: declined by "
        assert (await gateway.get(row.request_id)).user_summary.startswith(said)
        assert said in (await gateway.card(row.request_id)).parts[0].text


async def test_in_process_with_content(gateway: Gateway) -> None:
    asking = asyncio.create_task(gateway.elicit("jira", "Which?", FORM, session_id="talk"))
    row = await shown(gateway)
    assert (await gateway.card(row.request_id)).fields[0].label == "project"
    await gateway.decide(row.request_id, "accept", OPERATOR, content=FILLED)
    assert await asking == Elicited(action="accept", content=FILLED)


async def test_a_store_that_fails_takes_nothing_from_what_was_accepted(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signoff.reports.AGAIN_S", 0.01)
    transact = gateway.store.transact
    tries: list[Any] = []

    async def failing(change: Any, **how: Any) -> Any:
        if getattr(change, "func", None) is claiming.result and len(tries) < 3:
            tries.append(change)
            raise StoreError("the disk is full")
        return await transact(change, **how)

    asking = asyncio.create_task(gateway.elicit("jira", "Which?", FORM, session_id="talk"))
    row = await shown(gateway)
    monkeypatch.setattr(gateway.store, "transact", failing)
    await gateway.decide(row.request_id, "accept", OPERATOR, content=FILLED)
    assert await asking == Elicited(action="accept", content=FILLED)
    async with asyncio.timeout(30):
        while (await gateway.get(row.request_id)).execution.state != "succeeded":  # noqa: ASYNC110  # saved behind it
            await asyncio.sleep(0.01)
    assert len(tries) == 3


async def test_a_form_that_cannot_be_shown_is_refused_at_once(gateway: Gateway) -> None:
    with pytest.raises(InvalidInput, match="cannot be put to a person"):
        await gateway.elicit("jira", "Which?", {"properties": {"a": {"type": "object"}}}, session_id="talk")


async def test_a_cron_job_beside_it_moves_no_question(gateway: Gateway) -> None:  # 1.5.6 #76748
    """A job that ran, and one that runs at the same time, leave a live session's questions in their chat."""

    async def job(name: str) -> str:
        with context.bind(name, kind="cron"):
            return (await gateway.elicit("jira", "From a job?")).action

    assert await job("nightly") == "cancel"
    asking = asyncio.create_task(gateway.elicit("jira", "From a talk?", session_id="talk"))
    beside = asyncio.create_task(job("hourly"))
    row = await shown(gateway)
    assert await beside == "cancel"
    assert (row.session_id, [str(place) for place in row.delivered_to]) == ("talk", ["fake:5"])
    assert len(chat_of(gateway).messages) == 1
    await chat_of(gateway).press("Accept")
    assert (await asking).action == "accept"


async def test_what_cannot_be_delivered_is_a_cancel(gateway: Gateway) -> None:  # 1.5.2 1.5.3 #22992
    chat_of(gateway).fail(SendRefused("bot was kicked"))
    asking = asyncio.create_task(gateway.elicit("jira", "May I?", session_id="talk", request_id="q"))
    assert await asking == Elicited(action="cancel", cause="notify_failed")
    record = await gateway.get("q")
    assert (record.outcome, record.decided_by) == ("notify_failed", ())
    await gateway.session("nowhere", kind="api")
    assert await gateway.elicit("jira", "May I?", session_id="nowhere") == Elicited(action="cancel", cause="blocked")


async def test_over_http(gateway: Gateway) -> None:  # 1.5.1
    async with serve(gateway, host="127.0.0.1", port=0) as bound:
        agent_key = (await gateway.keys.create("default", "agent", agent="builder")).text
        ann_key = (await gateway.keys.create("default", "approver", principal="ann")).text
        async with Client(bound.api, agent_key, environ={}) as agent, Client(bound.api, ann_key, environ={}) as ann:
            await agent.session("mine")
            await ann.attach("mine", "desk")
            asking = asyncio.create_task(agent.elicit("jira", "Which?", FORM, session_id="mine"))
            async with asyncio.timeout(30):
                while not (waiting := await ann.pending()):  # noqa: ASYNC110  # another process would tell nobody
                    await asyncio.sleep(0.01)
            request_id = waiting[0].request_id
            card = await ann.card(request_id)
            assert [way.label for way in card.ways] == ["Accept", "Decline"]
            assert [each.field.name for each in card.fields] == ["project", "token", "urgent", "days"]
            with pytest.raises(InvalidInput, match="must be one of web, api"):
                await ann.decide(request_id, "accept", content={"project": "ops"})
            with pytest.raises(ChoiceNotOffered, match="asks for fields"):
                await ann.decide(request_id, "accept")
            done = await ann.decide(request_id, "accept", content=FILLED)
            assert await asking == Elicited(action="accept", content=FILLED)
            seen = await ann.get(request_id)
            assert TOKEN not in str(done) + str(seen)
            assert seen.elicitation is not None
            assert seen.elicitation.action == "accept"
            again = asyncio.create_task(agent.elicit("jira", "Which?", FORM, session_id="mine"))
            async with asyncio.timeout(30):
                while not (waiting := await ann.pending()):  # noqa: ASYNC110  # the same
                    await asyncio.sleep(0.01)
            await ann.decide(waiting[0].request_id, "decline", "not yours")
            assert await again == Elicited(action="decline")


async def test_no_event_tells_the_content() -> None:
    async with world_on("memory://") as world:
        agent, approver = await world.pair()
        record = await agent.ask(action={**ASKS, "schema": FORM})
        async with approver.events("?after=0") as events:
            answer = await approver(
                "POST", f"/v1/approvals/{record['request_id']}/decision", {"choice": "accept", "content": FILLED}
            )
            assert answer.status == 200
            claim = {"digest": record["digest"], "claim_id": "c"}
            claimed = await agent("POST", f"/v1/approvals/{record['request_id']}/claim", claim)
            assert claimed.body["elicitation"] == {"action": "accept", "content": FILLED, "cause": None}
            told = [await events.next() for _ in range(3)]
        assert [event["type"] for event in told][-1] == "approval.execution"
        assert told[-1]["approval"]["elicitation"]["content"]["project"] == "web"
        assert TOKEN not in str(told)


async def test_on_the_console(tmp_path: Path) -> None:
    async with place() as here:
        agent = await here.agent()
        record = await agent.ask(action={**ASKS, "schema": FORM})
        ann = await here.person()
        page = await ann.get("/console")
        assert "Question from jira (MCP server)" in page.text
        assert "<label><bdi>project</bdi>" in page.text
        assert '<option value="api">api</option>' in page.text
        assert ">Accept</button>" in page.text
        assert ">Decline</button>" in page.text
        told = await ann.decide(record, "once")
        assert (told["how"], told["text"]) == ("refused", f"{record['short_id']}: project is required.")
        told = await ann.decide(record, "once", **{"field-0": "web", "field-3": "soon"})
        assert told["how"] == "refused"
        assert "days must be a whole number" in told["text"]
        told = await ann.decide(record, "once", **{"field-0": "web", "field-1": TOKEN, "field-2": "no", "field-3": "3"})
        assert told["how"] == "done"
        assert TOKEN not in str(told)
        claim = {"digest": record["digest"], "claim_id": "c"}
        claimed = await agent("POST", f"/v1/approvals/{record['request_id']}/claim", claim)
        content = {"project": "web", "token": TOKEN, "urgent": False, "days": 3}
        assert claimed.body["elicitation"] == {"action": "accept", "content": content, "cause": None}
        assert TOKEN not in (await ann.get(f"/console/r/{record['short_id']}")).text


SEVERAL: dict[str, Any] = {
    "type": "object",
    "properties": {
        "tags": {
            "type": "array",
            "title": "Tags",
            "items": {"anyOf": [{"const": "r", "title": "<b>Red"}, {"const": "g", "title": "Green"}]},
            "minItems": 1,
            "default": ["g"],
        },
        "due": {"type": "string", "format": "date"},
        "days": {"type": "integer", "minimum": 0},
        "offset": {"type": "integer"},
    },
    "required": ["tags"],
}


TITLED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "days": {"type": "integer", "minimum": 1, "title": "How many days", "description": "How many days"},
        "project": {"type": "string", "enum": ["web", "api"], "description": "Whose board?"},
    },
    "required": ["days"],
}


async def test_a_form_on_the_console_is_accepted_or_declined_in_one_row() -> None:
    schema = {**TITLED, "properties": {"due_date": {"type": "string", "title": "Due date"}}, "required": ["due_date"]}
    async with place() as here:
        agent, ann = await here.agent(), await here.person()
        record = await agent.ask(action={**ASKS, "schema": schema})
        page = (await ann.get(f"/console/r/{record['short_id']}")).text
        card = page[page.index("<article") : page.index("</article>")]
        (form, *_) = re.findall(r"<form .*?</form>", card, re.DOTALL)
        row = form[form.index('<div class="main-answers">') :]
        assert re.findall(r"<button .*?>([^<]+)</button>", row, re.DOTALL) == ["Accept", "Decline"]
        assert "formnovalidate" in row[row.index("Accept</button>") :], "nothing need be filled in to decline"
        assert "Decline, because…</summary>" in card and "Decline with this reason</button>" in card
        assert "Deny" not in card
        assert "<bdi>text; required</bdi>" in card, "its name says no more than its title"


async def test_each_field_stands_once_on_the_console() -> None:
    async with place() as here:
        agent, ann, looker = await here.agent(), await here.person(), await here.person("ops")
        record = await agent.ask(action={**ASKS, "schema": TITLED})
        for path in ("/console", f"/console/r/{record['short_id']}"):
            page = (await ann.get(path)).text
            card = page[page.index("<article") : page.index("</article>")]
            assert [card.count(each) for each in ("How many days", "Whose board?", ASKS["message"])] == [1, 1, 1]
            assert "<bdi>days (whole number; at least 1; required)</bdi>" in card
            assert "<bdi>may be left out · Whose board?</bdi>" in card
        seen = (await looker.get("/console")).text
        assert "days (whole number; at least 1; required) How many days" in seen, "who has no form reads all of it"


async def test_a_choice_of_several_on_the_console() -> None:
    async with place() as here:
        agent = await here.agent()
        record = await agent.ask(action={**ASKS, "schema": SEVERAL})
        ann = await here.person()
        page = (await ann.get("/console")).text
        assert '<input type="checkbox" name="field-0" value="r"> <bdi>&lt;b&gt;Red</bdi>' in page
        assert '<input type="checkbox" name="field-0" value="g" checked> <bdi>Green</bdi>' in page
        assert '<input type="date" name="field-1"' in page
        assert '<input type="text" inputmode="numeric" name="field-2"' in page
        assert '<input type="text" name="field-3"' in page
        told = await ann.decide(record, "once")
        assert (told["how"], told["text"]) == ("refused", f"{record['short_id']}: tags must have at least 1 chosen.")
        form = (await ann.get("/console")).fields("/console/decide", record["request_id"])
        ticked = [("choice", "once"), ("field-0", "r"), ("field-0", "g"), ("field-1", "2026-02-28")]
        told = await ann.script("/console/decide", [*form.items(), *ticked])
        assert told["how"] == "done"
        claim = {"digest": record["digest"], "claim_id": "c"}
        claimed = await agent("POST", f"/v1/approvals/{record['request_id']}/claim", claim)
        content = {"tags": ["r", "g"], "due": "2026-02-28"}
        assert claimed.body["elicitation"] == {"action": "accept", "content": content, "cause": None}


async def test_on_the_console_without_fields_one_press_answers() -> None:
    async with place() as here:
        agent = await here.agent()
        ann = await here.person()
        record = await agent.ask(action=ASKS)
        assert (await ann.decide(record, "once"))["how"] == "done"
        record = await agent.ask(action=ASKS)
        assert (await ann.decide(record, "deny"))["how"] == "done"
        seen = await agent("GET", f"/v1/approvals/{record['request_id']}")
        assert seen.body["elicitation"] == {"action": "decline", "content": None, "cause": None}
