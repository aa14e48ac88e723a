"""Sessions with nobody in front of them, and answer clients over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.scenarios.gateways import soon
from tests.scenarios.stage import Stage, staged
from tests.scenarios.transport import Transport

AT_ONCE_S = 10.0


class Desk:
    """A person's own program that shows questions and answers them, with a key of Ana's."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def attach(self, session: str) -> None:
        async with self._http.put(f"/v1/sessions/{session}/notifiers/desk") as answer:
            assert answer.status == 200, await answer.text()

    async def detach(self, session: str) -> None:
        async with self._http.delete(f"/v1/sessions/{session}/notifiers/desk") as answer:
            assert answer.status == 200, await answer.text()

    @asynccontextmanager
    async def listening(self, session: str) -> AsyncIterator[None]:
        """Attached by an open stream as well."""
        query = {"session_id": session, "role": "answer"}
        async with self._http.get("/v1/events", params=query) as answer:
            assert answer.status == 200
            yield

    async def decide(self, request_id: str, choice: str) -> tuple[int, dict[str, Any]]:
        async with self._http.post(f"/v1/approvals/{request_id}/decision", json={"choice": choice}) as answer:
            return answer.status, await answer.json()


@asynccontextmanager
async def desk_of(stage: Stage) -> AsyncIterator[Desk]:
    key = (await stage.admin.create_key("approver", principal="ana"))["key"]
    async with aiohttp.ClientSession(stage.gateway.url, headers={"Authorization": f"Bearer {key}"}) as http:
        yield Desk(http)


async def submitted(stage: Stage, command: str, session: str) -> dict[str, Any]:
    """The answer to the one call that asks, without any wait."""
    action = {"kind": "command", "command": command}
    return await stage.post("/v1/approvals", {"session_id": session, "action": action})


@pytest.mark.parametrize(("mode", "outcome"), [("deny", "blocked"), ("approve", "approved")])
async def test_a_webhook_session_gets_no_card_and_never_waits_whoever_is_attached(
    chat: Transport, tmp_path: Path, mode: str, outcome: str
) -> None:
    """It has a place, the profile has another one for every card, and a person's program listens: none is asked."""
    place, second = await chat.group(), await chat.group()
    settings = f'[approvals]\nalso_to = ["{second}"]\nunattended_mode = "{mode}"\n'
    async with staged(chat, tmp_path, settings=settings) as stage, desk_of(stage) as desk:
        hook = await stage.session("hook", place, kind="webhook")
        await desk.attach(hook)
        async with desk.listening(hook):
            born = await submitted(stage, "deploy ./born", hook)
            async with asyncio.timeout(AT_ONCE_S):
                worked = await stage.work("deploy ./worked", hook)
        assert (born["status"], born["outcome"]) == ("resolved", outcome)
        assert (worked.outcome, worked.may_run) == (outcome, outcome == "approved")
        for record in (await stage.agent.get(born["request_id"]), worked):
            assert record.decided_at == record.created_at, "it was never pending"
            assert record.delivered_to == record.destinations == ()
            assert [who.type for who in record.decided_by] == ["policy"]
            setting = f'approvals.unattended_mode = "{mode}"'
            assert record.decided_by[0].setting == setting
            assert setting in record.user_summary
        assert setting in born["message"]
        status, refusal = await desk.decide(born["request_id"], "deny")
        assert (status, refusal["error"]["code"]) == (409, "already_resolved")

        # A session with a person in it does get its cards in both places: the ones of before would have come first.
        talk = stage.ask("deploy ./talk", await stage.session("talk", place))
        cards = [await chat.card(each, "./talk") for each in (place, second)]
        assert [len(await chat.seen(each)) for each in (place, second)] == [1, 1]
        shown = {(e.approval or {})["session_id"] for e in await stage.events("approval.delivered")}
        assert shown == {"talk"}
        await chat.tapped("bo", cards[0], "Deny")
        assert (await talk).outcome == "denied"


async def test_a_session_without_a_place_waits_only_while_somebody_is_attached(chat: Transport, tmp_path: Path) -> None:
    async with staged(chat, tmp_path) as stage, desk_of(stage) as desk:
        job = await stage.session("job", None, kind="api")
        assert (await submitted(stage, "deploy ./before", job))["outcome"] == "blocked"
        await desk.attach(job)
        asked = stage.work("deploy ./attached", job)

        async def waits() -> bool:
            return bool(await stage.pending())

        await soon(waits)
        (waiting,) = await stage.pending()
        status, answered = await desk.decide(waiting, "once")
        assert (status, answered["outcome"]) == (200, "approved")
        record = await asked
        assert record.may_run
        assert [(who.type, who.principal) for who in record.decided_by] == [("person", "ana")]
        open_one = await submitted(stage, "deploy ./open", job)
        assert open_one["status"] == "pending"
        await desk.detach(job)
        ended = await stage.agent.get(open_one["request_id"])
        assert (ended.outcome, ended.cause) == ("cancelled", "notifier_gone")
        assert (await submitted(stage, "deploy ./after", job))["outcome"] == "blocked"
