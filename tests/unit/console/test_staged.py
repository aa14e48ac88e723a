"""Kept actions on the console's pages: what their cards say and do, the list, the count in sessions."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import msgspec
import pytest
from tests.unit.console.test_answering import events
from tests.unit.console.world import Page, Person, Place, place

from signoff.changes import having, staging
from signoff.changes.common import emit
from signoff.changes.staging import Ran
from signoff.console import actions
from signoff.console.story import Step, copies_of, events_of, steps
from signoff.model import ApprovalRequest, Copy, Destination, Note, Session, Tool, replace
from signoff.ports import Tx
from signoff.rows import request_key
from signoff.testing.clock import FakeClock

PAGE, DID, AGAIN = "/console/staged", "/console/staged/did-run", "/console/staged/run-again"


async def kept(here: Place, name: str = "send_email", **facts: Any) -> ApprovalRequest:
    """The question about a kept action of the cron session `weekly`."""
    now = here.core.clock.now()
    values: dict[str, Any] = {
        "request_id": f"req-{name}",
        "profile": "default",
        "short_id": "R1R1R",
        "session_id": "weekly",
        "agent": "mailer",
        "kind": "cron",
        "action": Tool(name=name, arguments={"to": "214 addresses"}),
        "digest": "d" * 64,
        "timeout_s": 72 * 3600.0,
        "created_at": now,
        "decided_at": now,
        "executor": "mailer",
        "outcome": "staged",
        **facts,
    }

    def change(tx: Tx) -> ApprovalRequest:
        tx.put(Session(profile="default", session_id="weekly", kind="cron", agent="mailer", created_at=now))
        row = staging.stage(tx, ApprovalRequest(**values))
        tx.put(row)
        emit(tx, "approval.resolved", row, outcome="staged")
        return row

    row = await here.core.store.transact(change)
    return await here.core.broker.get("default", row.kept_as or "")


async def ran(here: Place, row: ApprovalRequest, state: Any) -> ApprovalRequest:
    """An executor starts it and says how it ended."""
    start = partial(staging.start, profile="default", request_id=row.request_id, claim_id="run")
    await here.core.store.transact(start)
    settle = partial(staging.settle, profile="default", request_id=row.request_id, claim_id="run", ran=Ran(state=state))
    return await here.core.store.transact(settle)


async def decided(person: Person, row: ApprovalRequest, choice: str, **more: str) -> Any:
    return await person.decide({"request_id": row.request_id}, choice, **more)


async def test_pending_shows_it_with_its_executor_and_approving_runs_it(here: Place) -> None:
    person, row = await here.person(), await kept(here)
    page = await person.get("/console")
    assert "Approving runs it now, as shown, by executor mailer." in page.text
    # The time alone is told in the reader's zone: the rest may name what an agent named.
    assert re.search(r">Staged <span data-told>\d\d:\d\d UTC</span> by cron job weekly, which went on", page.text)
    assert ">Approve and run</button>" in page.text
    assert "Staged: 1 waits, kept for later" in page.text
    told = await decided(person, row, "once")
    assert (told["how"], told["text"]) == ("done", f"{row.short_id}: Approved. Executor mailer runs it now.")
    assert "Waiting for executor mailer to start it." in told["html"]
    assert "Approved by ann" in told["html"]
    await ran(here, row, "succeeded")
    late = await person.script(
        "/console/decide",
        {**(await person.get("/console")).fields("/console/logout"), "id": row.request_id, "choice": "once"}
        | {"digest": row.digest},
    )
    assert late["how"] == "late" and f"{row.short_id}: Already run at " in late["text"]


async def test_approving_all_that_is_listed_leaves_it(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    plain, row = await agent.ask(), await kept(here)
    page = await person.get("/console")
    assert "Approve 1 once…" in page.text and "Deny all 2" in page.text
    listed = [(name, value) for name, value in _all(page)]
    told = await person.script("/console/all", [*listed, ("choice", "once"), ("confirmed", "1")])
    assert f"Left {row.short_id} · staged: needs its own answer" in told["lines"]
    assert f"Approved {plain['short_id']}" in " ".join(told["lines"])
    assert (await here.core.broker.get("default", row.request_id)).outcome is None


def _all(page: Page) -> list[tuple[str, str]]:
    form = re.search(r'<form [^>]*action="/console/all".*?</form>', page.text, re.DOTALL)
    assert form is not None
    return re.findall(r'name="(csrf|listed|next)" value="([^"]*)"', form[0])


async def test_the_page_of_staged_ones_and_the_count_in_sessions(here: Place) -> None:
    person = await here.person()
    assert "No staged action needs anybody." in (await person.get(PAGE)).text
    waits, lost, over = await kept(here, "one"), await kept(here, "two"), await kept(here, "three")
    for row in (lost, over):
        await decided(person, row, "once")
    await ran(here, lost, "unknown")
    await ran(here, over, "succeeded")
    page = (await person.get(PAGE)).text
    at = [page.index(f'id="r-{row.short_id}"') for row in (lost, waits, over)]
    assert at == sorted(at) and page.index("<h2>Ended</h2>") < at[2]
    assert "It did run" in page and "Run it again…" in page
    sessions = (await person.get("/console/sessions")).text
    assert '<a href="/console/staged">1 staged</a>' in sessions


async def told_of(here: Place, at: Any) -> None:
    """The gateways told last at that time that they have the executor."""
    value = msgspec.json.encode({"mailer": at}).decode()
    await here.core.store.transact(lambda tx: tx.put(Note(name=having.note_name("default"), value=value)))


async def test_an_approved_one_whose_executor_no_gateway_has_says_so_and_what_to_do(here: Place) -> None:
    person, row = await here.person(), await kept(here)
    now = here.core.clock.now()
    await told_of(here, now - having.HOLDS_FOR)
    waits = "No gateway has executor mailer now, so it runs only once one has it."
    assert waits in (await person.get("/console")).text
    await told_of(here, now)
    assert waits not in (await person.get("/console")).text
    await decided(person, row, "once")
    paths = ("/console", PAGE, f"/console/r/{row.short_id}")
    for path in paths:
        text = (await person.get(path)).text
        assert "Waiting for executor mailer to start it." in text and "No gateway has executor" not in text, path
    await told_of(here, now - having.HOLDS_FOR)
    for path in paths:
        text = (await person.get(path)).text
        assert "No gateway has executor mailer now, so nothing starts it." in text, path
        assert "Start the gateway that has it, and it runs. After " in text
        assert "it lapses and must be asked again." in text and "Waiting for executor" not in text
    for path in paths[:2]:
        assert "1 approved action cannot start: no gateway has executor mailer now." in (await person.get(path)).text
    await told_of(here, now)
    for path in paths:
        assert "No gateway has executor" not in (await person.get(path)).text, path
    await here.core.store.transact(partial(_endless, row.request_id))
    await told_of(here, now - having.HOLDS_FOR)
    text = (await person.get(paths[2])).text
    assert "Start the gateway that has it, and it runs.</p>" in text


def _endless(request_id: str, tx: Tx) -> None:
    row = tx.get(ApprovalRequest, request_key("default", request_id))
    assert row is not None
    tx.put(replace(row, claim_by=None))


async def test_what_needs_somebody_is_seen_however_many_there_were(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "PAGE", 2)
    monkeypatch.setattr(actions, "ENDED", 3)
    person, lost = await here.person(), await kept(here, "lost")
    await decided(person, lost, "once")
    await ran(here, lost, "unknown")
    ended = [await kept(here, f"old-{number}") for number in range(9)]
    for row in ended:
        await decided(person, row, "deny")
    waits = await kept(here, "waits")
    page = (await person.get(PAGE)).text
    shown = {row.short_id for row in (lost, waits, *ended) if f'id="r-{row.short_id}"' in page}
    assert shown == {lost.short_id, waits.short_id, *(row.short_id for row in ended[-3:])}


async def test_somebody_says_that_it_did_run(here: Place) -> None:
    person, row = await here.person(), await kept(here)
    await decided(person, row, "once")
    await ran(here, row, "unknown")
    page = await person.get(f"/console/r/{row.short_id}")
    assert "Unknown: the executor stopped while it ran. It may have run." in page.text
    form = page.fields(DID)
    told = await person.script(DID, form)
    assert (told["how"], told["text"]) == ("done", f"{row.short_id}: Noted: it did run.")
    assert "ann says that it did run." in told["html"] and DID not in told["html"]
    for path in (DID, AGAIN):
        late = await person.script(path, form)
        assert late["how"] == "late" and "Already run at " in late["text"]


async def test_it_runs_again_after_a_second_step_and_only_once(stored: Place) -> None:
    person, row = await stored.person(), await kept(stored)
    await decided(person, row, "once")
    await ran(stored, row, "unknown")
    form = (await person.get(PAGE)).fields(AGAIN)
    first = await person.script(AGAIN, form)
    assert first["how"] == "confirm"
    assert f"{row.short_id} may have run already. Run it once more?" in first["html"]
    assert len(await stored.core.staged.actions("default")) == 1
    told = await person.script(AGAIN, {**form, "confirmed": "1"})
    _, again = await stored.core.staged.actions("default")
    assert told["how"] == "done" and f"It runs once more now, as {again.short_id}." in told["text"]
    assert (again.outcome, again.execution.state) == ("approved", "none")
    late = await person.script(AGAIN, {**form, "confirmed": "1"})
    assert late["how"] == "late"
    assert len(await stored.core.staged.actions("default")) == 2


async def test_who_looks_settles_nothing(here: Place) -> None:
    person, looker, row = await here.person(), await here.person("ops"), await kept(here)
    await decided(person, row, "once")
    row = await ran(here, row, "unknown")
    page = await looker.get(PAGE)
    assert row.short_id in page.text and DID not in page.text and AGAIN not in page.text
    form = {**page.fields("/console/logout"), "id": row.request_id, "confirmed": "1"}
    for path in (DID, AGAIN):
        assert (await looker.post(path, form)).status == 403
    assert await here.core.broker.get("default", row.request_id) == row
    assert len(await events(here, "tap.refused")) >= 1


async def test_what_waits_or_is_none_is_not_settled(here: Place) -> None:
    agent, person, row = await here.agent(), await here.person(), await kept(here)
    form = {**(await person.get(PAGE)).fields("/console/logout"), "confirmed": "1"}
    for path in (DID, AGAIN):
        told = await person.script(path, {**form, "id": row.request_id})
        assert told["how"] == "refused" and "still waits" in told["text"]
        assert (await person.post(path, {**form, "id": "unknown"})).status == 404
    plain = await agent.ask()
    await person.decide(plain, "deny")
    assert (await person.post(DID, {**form, "id": plain["request_id"]})).status == 404


async def test_the_story_keeps_when_nobody_knew_and_when_somebody_said_that_it_ran() -> None:
    clock = FakeClock()
    async with place(clock=clock) as here:
        person, row = await here.person(), await kept(here)
        await decided(person, row, "once")
        await clock.advance(60)
        lost = (await ran(here, row, "unknown")).execution
        await clock.advance(600)
        await person.script(DID, (await person.get(PAGE)).fields(DID))
        done = await here.core.broker.get("default", row.request_id)
        assert (done.execution.ended_at, done.execution.cause) == (clock.now(), None)
        told = (await story(here, done))[-2:]
        assert [(step.word, step.at) for step in told] == [("unknown", lost.ended_at), ("succeeded", clock.now())]
        assert "executor stopped while it ran" in told[0].text and "ann says that it did run" in told[1].text


async def story(here: Place, row: ApprovalRequest) -> list[Step]:
    """What happened, as its page tells it."""
    store, profile = here.core.store, here.core.profiles["default"]
    copies, found = await copies_of(store, row), await events_of(store, row)
    return steps(row, copies, found, here.core.clock.now(), profile)


def posted(tx: Tx, row: ApprovalRequest) -> None:
    """Its card was taken by the place."""
    for copy in tx.find(Copy, "request", request_key(row.profile, row.request_id)):
        tx.put(replace(copy, state="sent", sent_at=tx.now, message_id="1"))


async def test_both_stories_of_one_that_ran_again_name_each_other(here: Place) -> None:
    person, row = await here.person(), await kept(here, destinations=(Destination("console", "ops"),))
    await here.core.store.transact(partial(posted, row=row))
    asked = await story(here, row)
    assert [step.word for step in asked] == ["asked", "judged", "shown"]
    assert "A person is asked whether it may run later." in asked[1].text
    await decided(person, row, "once")
    await ran(here, row, "unknown")
    await person.script(AGAIN, {**(await person.get(PAGE)).fields(AGAIN), "confirmed": "1"})
    _, again = await here.core.staged.actions("default")
    told = await story(here, await here.core.broker.get("default", row.request_id))
    old = told[-1]
    assert "shown" in [step.word for step in told]
    assert f"A person wanted it run once more, as {again.short_id}." in old.text and old.link == again.short_id
    first, second = (await story(here, again))[:2]
    assert (second.word, second.text) == ("shown", f"console:ops, on the card of {row.short_id}")
    assert (first.word, first.link) == ("run again", row.short_id)
    assert first.text == f"ann had {row.short_id} run once more: nobody knew whether it had run."


async def test_what_runs_stands_under_its_own_heading(here: Place) -> None:
    person, row = await here.person(), await kept(here)
    await decided(person, row, "once")
    start = partial(staging.start, profile="default", request_id=row.request_id, claim_id="run")
    await here.core.store.transact(start)
    page = (await person.get(PAGE)).text
    assert page.index("<h2>Under way</h2>") < page.index(f'id="r-{row.short_id}"') and "<h2>Ended</h2>" not in page
