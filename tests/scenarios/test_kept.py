"""Actions that agents go on without, answered in the place that the profile names for them."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import Struct

from signoff.changes.catching_up import ABSENT_FOR
from signoff.client import ApprovalRecord
from tests.scenarios.gateways import soon
from tests.scenarios.markup import form_of, words
from tests.scenarios.on_console import Console
from tests.scenarios.stage import WINDOW_S, Stage, staged
from tests.scenarios.transport import Seen, Transport

MAIL = {"kind": "tool", "name": "send_email", "arguments": {"to": "214 addresses"}}
RUNS = """import sys, time
file = open({ran!r}, "a+")
file.write(sys.stdin.read() + chr(10))
file.seek(0)
time.sleep({hangs} if len(file.readlines()) == 1 else 0)
"""
"""Writes down what it is handed; its first run may hang."""
LOST_WITHIN_S = 45.0
"""A claim of a killed gateway lapses, and what it had under way in chats is free again; the rest is leeway."""
Staging = AbstractAsyncContextManager[Stage]


def story(
    chat: Transport, folder: Path, place: str, *launch: str, hangs: bool = False, timeout_s: float | None = None
) -> Staging:
    """A gateway whose executor writes each call that it runs into a file. If it `hangs`, its first run is ended after
    a second (`timeout_s`), so that nobody knows what it had done by then. `launch` goes to the launcher."""
    script = RUNS.format(ran=str(folder / "ran"), hangs=15 if hangs else 0)
    timeout_s = timeout_s or (1.0 if hangs else 60.0)
    settings = (
        f'[approvals]\nunattended_mode = "defer"\nstaged_destination = "{place}"\n'
        f'[executors.mailer]\ntools = ["send_email"]\ntimeout_s = {timeout_s}\n'
        f"command = {json.dumps([sys.executable, '-c', script])}\n"
    )
    return staged(chat, folder, *launch, settings=settings)


def ran(folder: Path) -> list[str]:
    """What the executor was handed, a line for each run."""
    file = folder / "ran"
    return file.read_text().splitlines() if file.exists() else []


async def kept(stage: Stage) -> ApprovalRecord:
    """A job without anybody in front of it asks, and is answered at once."""
    job = await stage.session("weekly-mail", None, kind="webhook")
    async with asyncio.timeout(60):
        record = await stage.agent.request(MAIL, session_id=job)
    assert record.outcome == "staged" and not record.may_run
    assert record.message.startswith("STAGED: kept as ")
    return record


async def test_a_kept_action_is_approved_and_run_once(chat: Transport, tmp_path: Path) -> None:
    place = await chat.group()
    async with story(chat, tmp_path, place) as stage:
        record = await kept(stage)
        card = await chat.card(place, "by executor mailer")
        assert "calls tool send_email" in card.text and "to: 214 addresses" in card.text
        assert "by webhook weekly-mail, which went on without it. Approving runs it now, as shown," in card.text
        assert f"kept as {card.short_id} " in record.message
        assert card.buttons[:2] == ("Approve and run", "Deny")
        token = await chat.token(card, "Approve and run")
        assert await chat.tapped("ana", card, "Approve and run") == "Approved. Executor mailer runs it now."
        done = await chat.becomes(card, "Succeeded")
        assert f"Approved by {chat.called('ana')}" in done.text
        late = await chat.answer(await chat.forge("bo", card, token))
        assert "Already run at " in late
        (call,) = ran(tmp_path)
        assert json.loads(call)["action"]["arguments"] == {"to": "214 addresses"}
        assert (await stage.agent.get(record.request_id)).outcome == "staged"


async def test_a_kept_action_is_denied_and_never_run(chat: Transport, tmp_path: Path) -> None:
    place = await chat.group()
    async with story(chat, tmp_path, place) as stage:
        await kept(stage)
        card = await chat.card(place, "by executor mailer")
        assert await chat.tapped("bo", card, "Deny") == "Denied. It is not run."
        done = await chat.becomes(card, f"Denied by {chat.called('bo')}")
        assert "not run" in done.text
        assert ran(tmp_path) == []


async def unsure(chat: Transport, stage: Stage, place: str) -> Seen:
    """The card of one that was approved and did not end in time: it may have done its work."""
    await kept(stage)
    card = await chat.card(place, "by executor mailer")
    await chat.tapped("ana", card, "Approve and run")
    seen = await chat.until(place, lambda seen: any("It did run" in each.buttons for each in seen), timeout_s=30)
    (lost,) = (each for each in seen if "It did run" in each.buttons)
    assert "Unknown: " in lost.text and "It may have run." in lost.text
    assert lost.buttons == ("It did run", "Run it again…")
    return lost


async def test_nobody_knows_whether_it_ran_until_somebody_says_so(chat: Transport, tmp_path: Path) -> None:
    place = await chat.group()
    async with story(chat, tmp_path, place, hangs=True) as stage:
        lost = await unsure(chat, stage, place)
        assert await chat.tapped("bo", lost, "It did run") == "Noted: it did run."
        done = await chat.becomes(lost, "says that it did run")
        assert not done.buttons
        assert len(ran(tmp_path)) == 1


async def test_what_may_have_run_is_run_again_after_a_second_tap(chat: Transport, tmp_path: Path) -> None:
    place = await chat.group()
    async with story(chat, tmp_path, place, hangs=True) as stage:
        lost = await unsure(chat, stage, place)
        told = await chat.tapped("bo", lost, "Run it again…")
        if not isinstance(chat, Console):  # there the second step is part of the form
            panel = await chat.panel("bo", lost, "may have run already. Run it once more?")
            assert len(ran(tmp_path)) == 1
            told = await chat.tapped("bo", panel, "Yes, run it once more")
        assert told.startswith("It runs once more now, as ")
        await chat.until(place, lambda seen: any("Succeeded" in each.text for each in seen))
        first, second = map(json.loads, ran(tmp_path))
        assert first["id"] != second["id"] and first["action"] == second["action"]


# --- killed while it runs ------------------------------------------------------------------------


class Step(Struct, frozen=True, kw_only=True):
    """A step of a run at which the gateway is killed."""

    at: str
    """The launcher's hop."""
    ran: int
    """How often it was run before."""
    ends: Literal["lost", "succeeded"]
    """What the card says once a gateway is up again: nobody knows, or it went on as if nothing had been."""


STEPS = (
    Step(at="before staging.start", ran=0, ends="succeeded"),  # nothing was started, so it is started now
    Step(at="after staging.start", ran=0, ends="lost"),
    Step(at="before staging.renew", ran=1, ends="lost"),  # in the middle of the run
    Step(at="before staging.settle", ran=1, ends="lost"),
    Step(at="after staging.settle", ran=1, ends="succeeded"),
)


async def killed_at(step: Step, kind: type[Transport], folder: Path) -> None:
    """Approved, killed at the step, started again: it is never run a second time, unless a person wants it."""
    place = folder / step.at.replace(" ", "-")
    launch = ("--kill", step.at, "--lease", "6", "--claim", "3")
    hangs = step.at == "before staging.renew"
    async with kind.opened() as chat:
        room = await chat.group()
        async with story(chat, place, room, *launch, hangs=hangs, timeout_s=60.0) as stage:
            await kept(stage)
            card = await chat.card(room, "by executor mailer")
            await stage.delivered(1)
            stage.gateway.arm()
            await chat.tap("ana", card, "Approve and run")
            assert await stage.gateway.ended() == -9
            assert len(ran(place)) == step.ran
            await stage.gateway.start()
            if step.ends == "succeeded":
                await chat.becomes(card, "Succeeded", LOST_WITHIN_S)
                assert len(ran(place)) == 1
                return
            lost = await _lost_card(chat, room)
            assert len(ran(place)) == step.ran
            await _settled(chat, lost, room, again=not step.ran)
            assert len(ran(place)) == 1


async def _lost_card(chat: Transport, room: str) -> Seen:
    """The card once it asks what became of the run."""
    seen = await chat.until(room, lambda all_: any("It did run" in each.buttons for each in all_), LOST_WITHIN_S)
    (lost,) = (each for each in seen if "It did run" in each.buttons)
    assert "It may have run." in lost.text
    assert lost.buttons == ("It did run", "Run it again…")
    return lost


async def _settled(chat: Transport, lost: Seen, room: str, *, again: bool) -> None:
    """A person says that it did run, or has it run once more."""
    if not again:
        assert await chat.tapped("bo", lost, "It did run") == "Noted: it did run."
        await chat.becomes(lost, "says that it did run")
        return
    told = await chat.tapped("bo", lost, "Run it again…")
    if not isinstance(chat, Console):
        panel = await chat.panel("bo", lost, "may have run already. Run it once more?")
        told = await chat.tapped("bo", panel, "Yes, run it once more")
    assert told.startswith("It runs once more now, as ")
    await chat.until(room, lambda seen: any("Succeeded" in each.text for each in seen))


@pytest.mark.heavy
@pytest.mark.timeout(240)
async def test_killed_at_any_step_of_a_run_it_never_runs_twice(chat: Transport, tmp_path: Path) -> None:  # 1.4.9
    ended = await asyncio.gather(*(killed_at(step, type(chat), tmp_path) for step in STEPS), return_exceptions=True)
    failed = [(step.at, end) for step, end in zip(STEPS, ended, strict=True) if end is not None]
    assert not failed, failed


# --- after an absence ----------------------------------------------------------------------------


async def test_who_comes_back_reads_once_what_ended_and_asks_again(chat: Transport, tmp_path: Path) -> None:
    place = await chat.group()
    async with staged(chat, tmp_path, "--leaps") as stage:
        session = await stage.session("night", place)
        asked = stage.ask("deploy ./build", session, timeout_s=WINDOW_S)
        await stage.runs_out(await chat.card(place, "./build"))
        record = await asked
        assert record.outcome == "timeout"
        await stage.gateway.leap(ABSENT_FOR.total_seconds())
        later = stage.ask("deploy ./later", session)
        card = await chat.card(place, "./later")
        await chat.tapped("ana", card, "Deny")
        assert (await later).outcome == "denied"
        told = await _told(chat, place, record.short_id)
        line = told["line"] if isinstance(chat, Console) else told["line"].replace(" · ", " ")
        assert f"{record.short_id} timeout " in line.replace("⌛ ", "") and "deploy ./build builder" in line
        answer = await _asked_again(chat, told, record.short_id)
        assert answer in (
            "builder is away; it is told when it returns.",
            "builder is told that you want to be asked.",
        )
        (event,) = await stage.events("approval.ask_again")
        assert (event.approval or {})["request_id"] == record.request_id
        another = stage.ask("deploy ./another", session)
        await chat.tapped("bo", await chat.card(place, "./another"), "Deny")
        await another
        if not isinstance(chat, Console):
            assert sum("Nobody answered here" in each.text for each in await chat.seen(place)) == 1


async def _told(chat: Transport, place: str, short_id: str) -> dict[str, Any]:
    """What somebody reads who is back: a message in the place, or the console's page."""
    if not isinstance(chat, Console):
        message = await chat.reads(place, "Nobody answered here")
        assert "1 timeout" in message.text
        return {"line": next(line for line in message.text.splitlines() if short_id in line), "message": message}
    page: dict[str, Any] = {}

    async def holds() -> bool:
        tree = await chat.browser("ana").look("/console/catch-up")
        page["tree"] = tree
        return any(short_id in words(row) for row in tree.all("tr"))

    await soon(holds)
    line = next(words(row) for row in page["tree"].all("tr") if short_id in words(row))
    return {"line": line, "tree": page["tree"]}


async def _asked_again(chat: Transport, told: dict[str, Any], short_id: str) -> str:
    if not isinstance(chat, Console):
        return await chat.tapped("ana", told["message"], f"Ask again: {short_id}")
    form = form_of(told["tree"].one("form", "action", "/console/catch-up/ask"))
    return await chat.browser("ana").deed(form.action, form.pressed("Ask again"))
