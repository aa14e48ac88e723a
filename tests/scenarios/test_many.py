"""Thousands of questions, answered by one message."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.scenarios.stage import Stage, staged
from tests.scenarios.transport import Seen, Transport

PENDING = 5000
"""As many as one agent may have waiting."""
WRITERS = 16
SHOWN_WITHIN_S = 80.0


def as_agent(stage: Stage) -> aiohttp.ClientSession:
    """The API under the agent's key."""
    return aiohttp.ClientSession(stage.gateway.url, headers={"Authorization": f"Bearer {stage.agent_key}"})


async def submit(stage: Stage, session: str, cards: int) -> None:
    """Ask everything over HTTP, each question as often as it takes, over a few connections and without waiting for
    answers."""
    runs = range(PENDING // cards)
    commands = iter([f"deploy ./part-{number:03}" for number in range(cards) for _ in runs])

    async def write(http: aiohttp.ClientSession) -> None:
        for command in commands:
            body = {"session_id": session, "action": {"kind": "command", "command": command}}
            async with http.post("/v1/approvals", json=body) as answer:
                assert answer.status == 201, await answer.text()

    async with as_agent(stage) as http, asyncio.TaskGroup() as group:
        for _ in range(WRITERS):
            group.create_task(write(http))


def full(seen: list[Seen], runs: int) -> list[Seen]:
    """The cards that count all of their runs."""
    return [each for each in seen if f"{runs} identical requests wait" in each.text]


async def ended(stage: Stage, session: str) -> list[dict[str, Any]]:
    """Every record of the session that has ended, read page by page."""
    found: list[dict[str, Any]] = []
    query = {"session_id": session, "status": "resolved", "limit": "200"}
    async with as_agent(stage) as http:
        while True:
            async with http.get("/v1/approvals", params=query) as answer:
                page = await answer.json()
                assert answer.status == 200, page
            found += page["data"]
            if page["next"] is None:
                return found
            query["after"] = page["next"]


@pytest.mark.heavy
@pytest.mark.timeout(240)
async def test_5000_pending_end_with_one_summary(chat: Transport, tmp_path: Path) -> None:
    """5,000 requests wait, ten alike on each of 500 cards, and one message approves them all. A page of the console
    lists 100 cards, so there each has fifty.

    The message means what stands in the place, so each request must be on a card that was sent. 5,000 cards of their
    own would take hours within a platform's limits for one place; identical ones are counted on a card that several
    share, and what a card counts is decided with it. The launcher lifts the budget for the 500.
    """
    place, runs = await chat.group(), PENDING // chat.at_once
    async with staged(chat, tmp_path, "--fast", settings="[approvals]\ntimeout_s = 600\n") as stage:
        session = await stage.session("many", place)
        await submit(stage, session, chat.at_once)
        await chat.until(place, lambda seen: len(full(seen, runs)) == chat.at_once, SHOWN_WITHIN_S)
        await stage.delivered(chat.at_once)
        before = await chat.seen(place)
        said = await chat.type("ana", place, "/approve all")
        summary = await chat.summary(said, "approve all", SHOWN_WITHIN_S)
        assert f"{PENDING:,} of {PENDING:,} approved once" in summary.text

        records = await ended(stage, session)
        assert len({record["request_id"] for record in records}) == PENDING
        assert {record["outcome"] for record in records} == {"approved"}
        made = chat.made_by("ana", all_at_once=True)
        deciders = [{name: who[name] for name in made} for record in records for who in record["decided_by"]]
        assert deciders == [made] * PENDING
        assert await stage.metric() == {("approved", "none"): PENDING}
        assert await stage.pending() == []

        assert f"Already approved by {chat.called('ana')}" in await chat.tapped("bo", before[0], f"Deny all {runs}")
        after = await chat.seen(place)
        if chat.draws_rows:
            word = f"Approved once for all {runs} by {chat.called('ana')}"
            await chat.until(place, lambda seen: all(word in each.text for each in seen))
            return
        known = {(each.message_id, each.edits) for each in before}
        said_by_bot = [
            each for each in after if each.by_bot and each.text and (each.message_id, each.edits) not in known
        ]
        # The summary is all that was said; the one card that was pressed since is the one that was corrected.
        assert {each.message_id for each in said_by_bot} <= {summary.message_id, before[0].message_id}
