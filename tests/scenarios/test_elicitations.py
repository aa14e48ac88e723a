"""Questions of tool servers, as people in a chat and the agent that passes them on see them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from signoff.elicitation import Elicited
from tests.scenarios.stage import WINDOW_S, Stage, staged
from tests.scenarios.transport import Seen, Transport

FORM = {"type": "object", "properties": {"project": {"type": "string"}}, "required": ["project"]}


class Asked:
    """One question of a server, waiting in a place of its own."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage, self.name = stage, name
        self.message = f"May I read {name}?"

    async def put(
        self, schema: dict[str, Any] | None = None, *, url: str | None = None, timeout_s: float = 60.0
    ) -> Seen:
        """Ask, and return the card."""
        self.place = await self.stage.chat.group()
        session = await self.stage.session(self.name, self.place)
        asking = self.stage.agent.elicit("jira", self.message, schema, url=url, session_id=session, timeout_s=timeout_s)
        self.task: asyncio.Task[Elicited] = asyncio.create_task(asking)
        return await self.stage.chat.card(self.place, self.message)

    async def answer(self) -> tuple[str, dict[str, Any] | None]:
        """What the server is given."""
        async with asyncio.timeout(100):
            found = await self.task
        return found.action, found.content


async def accepted(stage: Stage) -> None:  # 1.5.1 1.5.4
    asked = Asked(stage, "accepted")
    card = await asked.put()
    assert "Question from jira (MCP server)" in card.text
    assert {"Accept", "Decline"} <= set(card.buttons)
    assert not [label for label in card.buttons if label.startswith(("Approve", "This session", "Always"))]
    await stage.chat.tapped("ana", card, "Accept")
    assert await asked.answer() == ("accept", {})
    await stage.chat.becomes(card, "took the answer")


async def declined(stage: Stage) -> None:  # 1.5.2
    asked = Asked(stage, "declined")
    card = await asked.put()
    await stage.chat.tapped("bo", card, "Decline")
    assert await asked.answer() == ("decline", None)
    await stage.chat.becomes(card, "declined by")


async def unanswered(stage: Stage) -> None:  # 1.5.3 #22992 #112308
    asked = Asked(stage, "unanswered")
    card = await asked.put(timeout_s=WINDOW_S)
    await stage.runs_out(card)
    assert await asked.answer() == ("cancel", None)
    shown = await stage.chat.becomes(card, "Timeout")
    assert "Denied" not in shown.text


async def stopped(stage: Stage) -> None:  # 1.5.3 #112308
    asked = Asked(stage, "stopped")
    card = await asked.put()
    await stage.agent.stop("stopped")
    assert await asked.answer() == ("cancel", None)
    shown = await stage.chat.becomes(card, "Cancelled")
    assert "Denied" not in shown.text


async def filled_in_elsewhere(stage: Stage) -> None:
    """A chat has no fields; there it can be declined, and answered by whoever has the form."""
    asked = Asked(stage, "filled")
    card = await asked.put(FORM)
    if not stage.chat.serves_pages:
        assert "Accept" not in card.buttons
        assert "asks for fields" in card.text
    ann = await stage.person("ann")
    [record] = [each for each in await ann.pending() if each.session_id == "filled"]
    await ann.decide(record.request_id, "accept", content={"project": "web"})
    assert await asked.answer() == ("accept", {"project": "web"})


async def opened(stage: Stage) -> None:
    """A page is linked, and accepted like any other question; its link stays, for whoever accepted first."""
    asked = Asked(stage, "opened")
    card = await asked.put(url="https://auth.example.com/login?next=(a)&b='c'")
    assert "a page on auth.example.com" in card.text
    assert "Open auth.example.com" in card.text
    await stage.chat.tapped("ana", card, "Accept")
    assert await asked.answer() == ("accept", {})
    done = await stage.chat.becomes(card, "took the answer")
    assert "Open auth.example.com" in done.text


async def from_a_job(stage: Stage) -> None:  # 1.5.1 1.5.6
    """A webhook's question is put to nobody, and a chat's afterwards stands in its chat."""
    await stage.session("hook", None, kind="webhook")
    found = await stage.agent.elicit("jira", "From a hook?", session_id="hook")
    assert (found.action, found.content) == ("cancel", None)
    asked = Asked(stage, "after-the-job")
    card = await asked.put()
    await stage.chat.tapped("ana", card, "Accept")
    assert await asked.answer() == ("accept", {})


async def test_accept_decline_and_cancel_are_kept_apart(chat: Transport, tmp_path: Path) -> None:
    async with staged(chat, tmp_path, "--leaps") as stage:
        await from_a_job(stage)
        await asyncio.gather(
            *(accepted(stage), declined(stage), stopped(stage), filled_in_elsewhere(stage), opened(stage)),
        )
        await unanswered(stage)  # alone: where the clock leaps, whatever is being answered is late
