"""Agents that hand work to others: whose question a card is, and what the end of the one means for the other."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.scenarios.stage import Stage, staged
from tests.scenarios.transport import Transport


async def child(stage: Stage, name: str, parent: str) -> str:
    await stage.agent.session(name, kind="child", parent=parent)
    return name


async def test_a_childs_question_stands_in_its_parents_place_and_ends_with_it(chat: Transport, tmp_path: Path) -> None:
    """#112026, W13. Two children and their parent ask the same: three cards, each naming whose it is."""
    place = await chat.group()
    async with staged(chat, tmp_path, "--fast") as stage:
        boss = await stage.session("boss", place)
        turn = stage.agent.turn(boss)
        await turn.open()
        one, two = await child(stage, "one", boss), await child(stage, "two", boss)
        asked = {name: stage.ask("deploy ./same", name) for name in (boss, one, two)}
        cards = {name: await chat.card(place, f"session {name}") for name in (boss, one, two)}
        assert len({card.message_id for card in cards.values()}) == 3
        assert "child of" not in cards[boss].text
        for name in (one, two):
            assert "child of" in cards[name].text

        # What is answered for one child's session is nobody else's.
        assert "Approved for this session" in await chat.widened("ana", cards[one], "This session")
        assert (await asked[one]).may_run
        assert (await stage.ask("deploy ./same", one)).decided_by[0].type == "grant"
        assert not asked[boss].done()
        assert not asked[two].done()

        await turn.end("turn_ended")
        ended = await asked[two]
        assert (ended.outcome, ended.cause) == ("cancelled", "parent_ended")
        assert ended.message.startswith("BLOCKED: cancelled (parent_ended)")
        shown = await chat.becomes(cards[two], "Cancelled")
        assert "the agent that started this one ended" in shown.text
        assert shown.buttons == ()
        assert not asked[boss].done(), "the parent's own question was not asked in that turn"
        late = await asyncio.wait_for(stage.ask("deploy ./late", one), 30)
        assert (late.outcome, late.cause) == ("cancelled", "parent_ended")
        assert not any("./late" in each.text for each in await chat.seen(place))
        await chat.tapped("bo", cards[boss], "Deny")
        assert (await asked[boss]).outcome == "denied"


async def test_a_stopped_parents_children_are_stopped(chat: Transport, tmp_path: Path) -> None:
    place = await chat.group()
    async with staged(chat, tmp_path, "--fast") as stage:
        boss = await stage.session("boss", place)
        one = await child(stage, "one", boss)
        deep = await child(stage, "deep", one)
        asked = stage.ask("deploy ./deep", deep)
        card = await chat.card(place, "session deep")
        await stage.agent.stop(boss)
        assert (await asked).cause == "stop_requested"
        assert "stopped" in (await chat.becomes(card, "Cancelled")).text
        late = await asyncio.wait_for(stage.ask("deploy ./late", deep), 30)
        assert (late.outcome, late.cause) == ("cancelled", "stop_requested")
        ended = await stage.events("approval.resolved")
        assert {(each.approval or {})["cause"] for each in ended} == {"stop_requested"}
