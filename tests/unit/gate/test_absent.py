"""That no gateway has an executor is said by `signoff actions`, by the health and by `signoff doctor`."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.cli.conftest import front
from tests.unit.cli.front import Front
from tests.unit.gate.test_http import Kept, local

from signoff.changes import having
from signoff.config import load_config
from signoff.doctoring.absent import absent_findings
from signoff.gateway import Gateway
from signoff.model import Actor, Note
from signoff.staged import MOST_WAITING

__all__ = ["front", "local"]


async def test_the_list_says_that_no_gateway_has_it(front: Front, local: Kept) -> None:
    agent, approver = await local.callers()
    kept = await local.keep(agent)
    await approver("POST", f"/v1/actions/{kept['kept_as']}/approve")
    core = local.core
    await core.store.transact(lambda tx: having.tell(tx, [("default", "mailer")]))
    text = await asyncio.to_thread(lambda: front("actions"))
    assert "approved, waits for its executor" in text
    long_ago = core.clock.now() - having.HOLDS_FOR - timedelta(seconds=1)
    value = f'{{"mailer":"{long_ago.isoformat()}"}}'
    await core.store.transact(lambda tx: tx.put(Note(name=having.note_name("default"), value=value)))
    text = await asyncio.to_thread(lambda: front("actions"))
    assert "approved, but no gateway has executor mailer now" in " ".join(text.split())
    listed = await asyncio.to_thread(lambda: front.json("actions", "list"))
    assert listed["data"][0]["executor_missing"] is True


def settings_in(folder: Path) -> dict[str, str]:
    """A gateway that keeps mails, with a store that outlives it."""
    return {
        "SIGNOFF_GATEWAY__STATE_DIR": str(folder),
        "SIGNOFF_GATEWAY__CONSOLE": "false",
        "SIGNOFF_APPROVALS__TOOL_GATE__REQUIRE_APPROVAL": "send_email",
        "SIGNOFF_APPROVALS__TOOL_GATE__DEFAULT_MODE": "deferred",
    }


async def test_the_health_tells_of_an_executor_that_is_gone(tmp_path: Path) -> None:
    config = load_config(environ=settings_in(tmp_path))
    first = Gateway(config)
    first.executor("mailer", tools=("send_email",), run=lambda call: None)
    async with first:
        await first.session("job", kind="cron")
        async with asyncio.timeout(60):
            while not (await first.staged.had("default")).get("mailer"):  # noqa: ASYNC110  # the note tells nobody
                await asyncio.sleep(0.01)
        first._executing._closed = True
        kept = await first.gate.call("send_email", {}, session_id="job")
        assert kept.outcome == "staged"
        (action,) = await first.actions()
        await first.approve_action(action.id, by=Actor(type="person", name="Ana"))
        assert (await first.health())["executors"] == {}
    async with Gateway(config) as later:
        assert not (await later.actions())[0].executor_missing, "it may come back in a moment"
        long_ago = later.clock.now() - having.HOLDS_FOR - timedelta(seconds=1)
        value = f'{{"mailer":"{long_ago.isoformat()}"}}'
        await later.store.transact(lambda tx: tx.put(Note(name=having.note_name("default"), value=value)))
        assert (await later.health())["executors"] == {"default/mailer": {"waiting": 1}}
        assert (await later.actions())[0].executor_missing


@pytest.mark.parametrize(
    ("waiting", "words"),
    [
        (1, "1 approved action waits for it"),
        (7, "7 approved actions wait for it"),
        (MOST_WAITING, "1000 or more approved actions wait for it"),
    ],
)
def test_the_doctor_names_it(waiting: int, words: str) -> None:
    (found,) = absent_findings({"default/mailer": {"waiting": waiting}})
    assert (found.level, found.about) == ("problem", "executor default/mailer")
    assert found.text == f"No gateway has it now, and {words}."
    assert list(absent_findings({})) == []
