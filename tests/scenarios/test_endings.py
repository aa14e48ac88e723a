"""How questions end, as people, agents and operators see it from outside."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import Struct

from signoff.client import ApprovalRecord
from tests.scenarios.stage import WINDOW_S, Stage, staged
from tests.scenarios.transport import Person, Seen, Transport

CLOCK = re.compile(r"· \d{1,2}:\d\d( UTC| AM| PM)?\b")
"""In UTC, or where the platform can do that in the reader's own time and form."""
RUN_OUT = 2
"""So many questions run out: one's own time, and the lease of another one's turn."""
REASON = "Wait until the backup has run."


class Told(Struct, kw_only=True):
    """One ending to be told: how it is brought about and what everybody must read then."""

    name: str
    act: Callable[[Stage, Told, Seen], Awaitable[None]]
    outcome: str
    cause: str | None = None
    who: Person | None = None
    reason: str | None = None
    timeout_s: float = 60.0

    @property
    def command(self) -> str:
        return f"deploy ./{self.name}"


async def approve(stage: Stage, told: Told, card: Seen) -> None:
    assert await stage.chat.tapped("ana", card, "Approve once") == "Approved once. The agent is told."


async def deny_with_a_tap(stage: Stage, told: Told, card: Seen) -> None:
    await stage.chat.tapped("ana", card, "Deny, because…")
    panel = await stage.chat.panel("ana", card, stage.chat.reason_panel)
    assert "too risky" in await stage.chat.tapped("ana", panel, "Too risky")


async def deny_with_words(stage: Stage, told: Told, card: Seen) -> None:
    await stage.chat.tapped("bo", card, "Deny, because…")
    panel = await stage.chat.panel("bo", card, stage.chat.reason_panel)
    await stage.chat.give_reason("bo", card, panel, REASON)


async def wait(stage: Stage, told: Told, card: Seen) -> None:
    """Nobody does anything."""


async def run_out(stage: Stage, told: Told, card: Seen) -> None:
    await stage.runs_out(card, RUN_OUT)


async def stop(stage: Stage, told: Told, card: Seen) -> None:
    said = await stage.chat.type("ana", card.place, "/stop", reply_to=card)
    await stage.chat.reply(said, stage.chat.stopped(told.name))


ENDINGS = (
    Told(name="approved", act=approve, outcome="approved", who="ana"),
    Told(name="denied", act=deny_with_a_tap, outcome="denied", who="ana", reason="too risky"),
    Told(name="typed", act=deny_with_words, outcome="denied", who="bo", reason=REASON),
    Told(name="stopped", act=stop, outcome="cancelled", cause="stop_requested", who="ana"),
)
EXPIRED = Told(name="expired", act=run_out, outcome="timeout", timeout_s=WINDOW_S)


def check_card(card: Seen, record: ApprovalRecord, who: str | None) -> None:
    """The outcome's own word, who and when stand on top, and nothing is left to press."""
    verdict = card.text.splitlines()[0]
    word = (record.outcome or "").replace("_", " ")
    assert word in verdict.lower(), card
    assert CLOCK.search(verdict), card
    assert who is None or who in verdict, card
    assert card.buttons == (), card


async def check_told(stage: Stage, record: ApprovalRecord, told: Told) -> None:
    """The same word for the agent, in the log and in the metric."""
    assert (record.outcome, record.cause, record.reason) == (told.outcome, told.cause, told.reason)
    assert record.may_run is (told.outcome == "approved")
    assert record.message.startswith("Approved" if told.outcome == "approved" else f"BLOCKED: {told.outcome}"), record
    assert ("A person denied" in record.message) is (told.outcome == "denied")
    assert told.reason is None or told.reason in record.message
    deciders = [who.name for who in record.decided_by]
    assert bool(deciders) is (told.outcome in ("approved", "denied", "blocked")), record
    resolved = [e.approval or {} for e in await stage.events("approval.resolved")]
    logged = [(a["outcome"], a["cause"]) for a in resolved if a["request_id"] == record.request_id]
    assert logged == [(told.outcome, told.cause)]


async def closed(stage: Stage, card: Seen) -> Seen:
    """The card once nothing is left to press: an approval can be undone until it is claimed."""

    def found(messages: list[Seen]) -> list[Seen]:
        return [each for each in messages if each.message_id == card.message_id and not each.buttons]

    return found(await stage.chat.until(card.place, lambda messages: bool(found(messages))))[0]


async def tell(stage: Stage, told: Told, second_place: str) -> ApprovalRecord:
    """One question to its end."""
    place = await stage.chat.group()
    session = await stage.session(told.name, place)
    asked = stage.ask(told.command, session, timeout_s=told.timeout_s)
    card, copy = await stage.chat.card(place, told.command), await stage.chat.card(second_place, told.command)
    await told.act(stage, told, card)
    record = await asked
    for each in (card, copy):
        shown = await closed(stage, each)
        check_card(shown, record, stage.chat.named(told.who) if told.who else None)
        assert told.reason is None or told.reason in shown.text
    await check_told(stage, record, told)
    return record


async def turn_ends(stage: Stage, second_place: str) -> ApprovalRecord:
    """The agent ends its turn while it still asks."""
    told = Told(name="turn", act=wait, outcome="cancelled", cause="turn_ended")
    place = await stage.chat.group()
    session = await stage.session(told.name, place)
    async with stage.agent.turn(session) as turn:
        asked = stage.ask(told.command, session, turn_id=turn.turn_id)
        cards = [await stage.chat.card(each, told.command) for each in (place, second_place)]
    record = await asked
    for card in cards:
        check_card(await stage.chat.becomes(card, record.short_id), record, None)
    await check_told(stage, record, told)
    return record


async def lease_lapses(stage: Stage, second_place: str) -> ApprovalRecord:
    """The agent vanishes: nobody renews the lease of its turn."""
    told = Told(name="lease", act=wait, outcome="cancelled", cause="requester_gone")
    place = await stage.chat.group()
    session = await stage.session(told.name, place)
    turn = await stage.post(f"/v1/sessions/{session}/turns", {"lease_s": WINDOW_S})
    action = {"kind": "command", "command": told.command}
    asked = await stage.post("/v1/approvals", {"session_id": session, "turn_id": turn["turn_id"], "action": action})
    cards = [await stage.chat.card(each, told.command) for each in (place, second_place)]
    await stage.runs_out(cards[0], RUN_OUT)
    shown = [await stage.chat.becomes(card, "Cancelled") for card in cards]
    record = await stage.agent.get(asked["request_id"])
    for each in shown:
        check_card(each, record, None)
    await check_told(stage, record, told)
    return record


async def hook_is_blocked(stage: Stage) -> ApprovalRecord:
    """A webhook session has nobody in front of it: no card, no wait."""
    session = await stage.session("hook", None, kind="webhook")
    async with asyncio.timeout(60):
        record = await stage.ask("deploy ./hook", session)
    assert "approvals.unattended_mode" in record.message
    await check_told(stage, record, Told(name="hook", act=wait, outcome="blocked"))
    return record


async def test_every_ending_is_told_alike_everywhere(chat: Transport, tmp_path: Path) -> None:
    second = await chat.group()
    async with staged(chat, tmp_path, "--fast", "--leaps", settings=f'[approvals]\nalso_to = ["{second}"]\n') as stage:
        records = await asyncio.gather(
            *(tell(stage, told, second) for told in ENDINGS),
            turn_ends(stage, second),
            hook_is_blocked(stage),
        )
        # By themselves: where the clock leaps, whatever is being answered is late.
        records += await asyncio.gather(tell(stage, EXPIRED, second), lease_lapses(stage, second))
        counted = await stage.metric()
        expected: dict[tuple[str, str], int] = {}
        for record in records:
            key = (record.outcome or "", record.cause or "none")
            expected[key] = expected.get(key, 0) + 1
        assert counted == expected
        assert not any("./hook" in message.text for message in await chat.seen(second))
        assert await stage.pending() == []
