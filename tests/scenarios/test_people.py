"""Several people, at once and at random; and those who may not decide."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from signoff.client import ApprovalRecord
from tests.scenarios.stage import OWN_TIME, WINDOW_S, Stage, staged
from tests.scenarios.transport import PEOPLE, Person, Seen, Transport

QUICK_ROUNDS, MANY_ROUNDS = 4, 24
QUICK_SEEDS, MANY_SEEDS = 3, 20
SLOW_S = 8.0
"""How long a send takes that no answer may wait for, on a busy machine either."""
JUST_BEFORE_S = 0.5
"""A race at a deadline begins so long before it, once the cards of all such races are seen."""


def late(chat: Transport, outcome: str | None, who: Person) -> str:
    """What somebody who came too late is told, by the outcome that came before: who or what it was."""
    return {
        ("approved", "ana"): "You already approved this at ",
        ("approved", "bo"): f"Already approved by {chat.named('ana')} at ",
        ("denied", "ana"): f"Already denied by {chat.named('bo')} at ",
        ("denied", "bo"): "You already denied this at ",
        ("timeout", "ana"): "Timeout: it expired at ",
        ("timeout", "bo"): "Timeout: it expired at ",
        ("cancelled", "ana"): f"Stopped by {chat.named('ana')} at ",
        ("cancelled", "bo"): f"Stopped by {chat.named('ana')} at ",
    }[outcome or "", who]


async def test_a_tap_before_the_send_returns_counts(chat: Transport, tmp_path: Path) -> None:
    place = await chat.group()
    async with staged(chat, tmp_path, *chat.slowed("card")) as stage:
        session = await stage.session("early", place)
        await chat.slow(place, SLOW_S)
        asked = stage.work("deploy ./early", session)
        card = await chat.card(place, "./early")
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert await chat.tapped("ana", card, "Approve once") == "Approved once. The agent is told."
        assert (await asked).may_run
        assert loop.time() - began < SLOW_S - 1, "the answer waited for the send"
        await chat.becomes(card, "Succeeded: exit code 0")
        assert len([m for m in await chat.seen(place) if "./early" in m.text]) == 1


async def test_a_reason_typed_before_the_send_of_its_prompt_returns_counts(chat: Transport, tmp_path: Path) -> None:
    place = await chat.group()
    async with staged(chat, tmp_path, *chat.slowed("reason")) as stage:
        asked = stage.work("deploy ./reason", await stage.session("reason", place))
        card = await chat.card(place, "./reason")
        await chat.tapped("ana", card, "Deny, because…")
        panel = await chat.panel("ana", card, chat.reason_panel)
        await chat.slow(place, SLOW_S)
        await chat.give_reason("ana", card, panel, "Not on a Friday.")
        async with asyncio.timeout(SLOW_S - 1):
            record = await asked
        assert (record.outcome, record.reason) == ("denied", "Not on a Friday.")
        await chat.becomes(card, "Not on a Friday.")


# --- races ------------------------------------------------------------------------------------------


class Act(Struct, kw_only=True, eq=False):
    """What somebody does in a race: a press or a message, under way."""

    who: Person
    wants: str
    """The outcome it is after, or `stop`."""
    done: Awaitable[str | Seen]


class Deadline:
    """Of the questions whose races are to come at their deadline: the gateway's clock leaps to shortly before it once
    all are seen, since how long that takes says how busy the machine is."""

    def __init__(self, stage: Stage, races: int) -> None:
        self._stage = stage
        self._seen = asyncio.Barrier(races)
        self._first: list[datetime] = []

    async def nears(self, question: ApprovalRecord, before_s: float) -> None:
        """Return `before_s` before the deadline of the question."""
        gateway, expires_at = self._stage.gateway, question.expires_at
        assert expires_at is not None
        self._first.append(expires_at)
        if await self._seen.wait() == 0 and not OWN_TIME:
            left_s = (min(self._first) - gateway.now()).total_seconds()
            await gateway.leap(max(0.0, left_s - JUST_BEFORE_S))
        await self._seen.wait()
        await asyncio.sleep(max(0.0, (expires_at - gateway.now()).total_seconds() - before_s))


async def press(chat: Transport, who: Person, card: Seen, button: str, token: str) -> str:
    """Press what was on the card a moment ago, though it may just have gone."""
    try:
        return await chat.tap(who, card, button)
    except LookupError:
        return await chat.forge(who, card, token)


async def race(stage: Stage, number: int, deadline: Deadline | None) -> None:
    """Two taps, a command, a stop and perhaps the deadline come together: one of them decides."""
    chat, dice = stage.chat, random.Random(number)
    place = await chat.group()
    session = await stage.session(f"race-{number}", place)
    command = f"deploy ./race-{number}"
    asked = stage.work(command, session, timeout_s=WINDOW_S if deadline else 60)
    card = await chat.card(place, command)
    short_id = card.short_id
    tokens = [await chat.token(card, button) for button in ("Approve once", "Deny")]
    if deadline is not None:
        await deadline.nears(await stage.waiting(command), dice.uniform(0, 0.05))
    acts = [
        Act(who="ana", wants="approved", done=press(chat, "ana", card, "Approve once", tokens[0])),
        Act(who="bo", wants="denied", done=press(chat, "bo", card, "Deny", tokens[1])),
        Act(who="bo", wants="denied", done=chat.type("bo", place, f"/deny {short_id} by command")),
        *([] if number % 2 else [Act(who="ana", wants="stop", done=chat.type("ana", place, "/stop", reply_to=card))]),
    ]
    dice.shuffle(acts)
    done = await asyncio.gather(*(each.done for each in acts))
    async with asyncio.timeout(60):
        record = await asked
    answers = (chat.answer(each) if isinstance(each, str) else the_text(chat.reply(each, "")) for each in done)
    told = await asyncio.gather(*answers)
    check_race(chat, record, list(zip(acts, told, strict=True)))
    resolved = [(e.approval or {})["request_id"] for e in await stage.events("approval.resolved")]
    assert resolved.count(record.request_id) == 1
    assert stage.ran.count(command) == int(record.may_run)
    outcome = {"timeout": "Timeout"}.get(record.outcome or "", (record.outcome or "").capitalize())
    await chat.becomes(card, outcome)


async def the_text(reply: Awaitable[Seen]) -> str:
    return (await reply).text


def check_race(chat: Transport, record: ApprovalRecord, told: list[tuple[Act, str]]) -> None:
    """One was told to have won if a person decided, and wanted what the record says; each of the others is told who
    or what had come before; a stop tells what it found."""
    won = [act for act, text in told if "The agent is told" in text or "The agent reads" in text]
    assert [act.wants for act in won] == [record.outcome] * (record.outcome in ("approved", "denied")), told
    for act, text in told:
        if act.wants == "stop":
            assert stop_found(chat, record) in text, (record.outcome, told)
        elif act not in won:
            assert late(chat, record.outcome, act.who) in text, (record.outcome, told)


def stop_found(chat: Transport, record: ApprovalRecord) -> str:
    """What a stop says of this request: it ended it, took its approval away, or came after it."""
    if record.outcome == "cancelled":
        return f"Cancelled, not run: {record.short_id}"
    if record.outcome == "approved" and not record.may_run:
        return f"Approved but not started, now void: {record.short_id}"
    return chat.stopped(record.session_id)


async def test_one_of_many_decides_and_the_others_are_told(chat: Transport, tmp_path: Path, thorough: bool) -> None:
    rounds = MANY_ROUNDS if thorough else QUICK_ROUNDS
    async with staged(chat, tmp_path, "--fast", "--leaps") as stage:
        for first in range(0, rounds, 8):
            numbers = range(first, min(first + 8, rounds))
            late = [number for number in numbers if number % 4 > 1]
            await asyncio.gather(*(race(stage, number, None) for number in numbers if number not in late))
            deadline = Deadline(stage, len(late))
            await asyncio.gather(*(race(stage, number, deadline) for number in late))


# --- no press touches another request ------------------------------------------------------------------


class Open(Struct, kw_only=True):
    """One of the four cards, and how it must have ended."""

    card: Seen
    tokens: tuple[str, str]
    """Of its buttons to approve and to deny, which somebody may still have on the screen when they are gone."""
    short_id: str
    request_id: str
    asked: asyncio.Task[ApprovalRecord]
    outcome: str | None = None
    by: Person | None = None


async def four_cards(stage: Stage, seed: int) -> list[Open]:
    """Two sessions in two groups, each with two questions."""
    found = []
    for side in range(2):
        place = await stage.chat.group()
        session = await stage.session(f"four-{seed}-{side}", place)
        for number in range(2):
            command = f"deploy ./four-{seed}-{side}-{number}"
            asked = stage.work(command, session)
            card = await stage.chat.card(place, command)
            short_id = card.short_id
            request_id = (await stage.agent.get(short_id)).request_id
            tokens = (await stage.chat.token(card, "Approve once"), await stage.chat.token(card, "Deny"))
            found.append(Open(card=card, tokens=tokens, short_id=short_id, request_id=request_id, asked=asked))
    return found


async def act(stage: Stage, dice: random.Random, one: Open) -> None:
    """Somebody presses or types something about one card."""
    chat, person = stage.chat, dice.choice(PEOPLE)
    approving = dice.random() < 0.5
    if one.outcome is None and person != "eve":
        one.outcome, one.by = ("approved" if approving else "denied"), person
    if dice.random() < 0.5:
        await chat.answer(await chat.forge(person, one.card, one.tokens[0 if approving else 1]))
        return
    verb = "approve" if approving else "deny"
    way = dice.choice((f"/{verb} {one.short_id}", f"/{verb} {one.short_id.lower()}"))
    said = await chat.type(person, one.card.place, way)
    if person == "eve":
        await chat.settled()  # somebody who may not decide is not answered each time
    else:
        await chat.reply(said, "")


async def at_random(stage: Stage, seed: int) -> None:
    dice = random.Random(seed)
    cards = await four_cards(stage, seed)
    order = [one for one in cards for _ in range(3)]
    dice.shuffle(order)
    for one in order:
        await act(stage, dice, one)
        for each in cards:
            assert (await stage.agent.get(each.request_id)).outcome == each.outcome, (one, each)
    for one in cards:
        if one.outcome is None:
            one.outcome, one.by = "denied", "bo"
            await stage.chat.tapped("bo", one.card, "Deny")
        record = await one.asked
        made = stage.chat.made_by(one.by or "bo")
        assert record.outcome == one.outcome
        assert {name: getattr(record.decided_by[0], name) for name in made} == made


async def test_no_press_touches_another_request(chat: Transport, tmp_path: Path, thorough: bool) -> None:
    seeds = MANY_SEEDS if thorough else QUICK_SEEDS
    async with staged(chat, tmp_path, "--fast") as stage:
        for first in range(0, seeds, 5):
            await asyncio.gather(*(at_random(stage, seed) for seed in range(first, min(first + 5, seeds))))


# --- who may not, and what is not genuine ---------------------------------------------------------------


async def test_what_is_not_genuine_is_refused_privately_and_recorded(chat: Transport, tmp_path: Path) -> None:
    place, other = await chat.group(), await chat.group()
    async with staged(chat, tmp_path) as stage:
        session = await stage.session("here", place)
        asked = stage.work("deploy ./here", session)
        beside = stage.work("deploy ./beside", session)
        there = stage.work("deploy ./there", await stage.session("there", other))
        card, near = await chat.card(place, "./here"), await chat.card(place, "./beside")
        far = await chat.card(other, "./there")
        await stage.delivered(3)
        token = await chat.token(card, "Approve once")
        before = len(await chat.seen(place)) + len(await chat.seen(other))

        stranger = await chat.tapped("eve", card, "Approve once")
        assert stranger == chat.nobody_may if chat.draws_rows else chat.user_id("eve") in stranger
        for where, forged in (
            (card, "A" * len(token)),
            (card, token[:-1]),
            (card, token[:-2] + ("AA" if token[-2:] != "AA" else "BB")),
            (card, ""),
            (near, token),
            (far, token),
        ):
            told = await chat.answer(await chat.forge("ana", where, forged or "x"))
            assert chat.is_unknown(told), (where, forged, told)
        assert len(await chat.seen(place)) + len(await chat.seen(other)) == before, "a refusal is private"
        assert [what for what, refused in await chat.impostors(card) if not refused] == []
        assert len(await stage.pending()) == 3
        refused = await stage.events("tap.refused")
        assert len(refused) >= 3

        tap = await chat.tap("ana", card, "Approve once")
        assert await chat.answer(tap) == "Approved once. The agent is told."
        await chat.replay(tap)
        await chat.settled()
        assert (await asked).may_run
        assert stage.ran == ["deploy ./here"]
        await chat.tapped("bo", near, "Deny")
        await chat.tapped("bo", far, "Deny")
        assert [(await each).outcome for each in (beside, there)] == ["denied", "denied"]


async def test_without_approvers_nobody_decides_and_everybody_is_told_why(chat: Transport, tmp_path: Path) -> None:
    place = await chat.group()
    async with staged(chat, tmp_path, "--leaps", approvers=()) as stage:
        asked = stage.work("deploy ./x", await stage.session("nobody", place), timeout_s=WINDOW_S)
        card = await chat.card(place, "./x")
        assert chat.nobody_may in await chat.tapped("ana", card, "Approve once")
        said = await chat.type("ana", place, f"/approve {card.short_id}" if chat.draws_rows else "/approve all")
        assert chat.nobody_may in (await chat.reply(said, "")).text
        refused = await stage.events("tap.refused")
        assert refused
        await stage.runs_out(card)
        assert (await asked).outcome == "timeout"
        await chat.becomes(card, "Timeout")


async def test_a_reply_to_an_unknown_copy_decides_nothing_else(chat: Transport, tmp_path: Path) -> None:
    """The answer to a send was lost and its question ended: a command in reply to it must not fall on another one.

    Where the platform recognises a repeated send the copy is found again, and what is said of it is its own end."""
    place = await chat.group()
    async with staged(chat, tmp_path, "--leaps") as stage:
        session = await stage.session("reply", place)
        await chat.trouble("answer_lost", place)
        first = stage.work("deploy ./first", session, timeout_s=WINDOW_S)
        orphan = await chat.card(place, "./first")
        token = await chat.token(orphan, "Approve once")
        second = stage.work("deploy ./second", session)
        card = await chat.card(place, "./second")
        await stage.waiting("deploy ./second")
        await stage.runs_out(orphan)
        assert (await first).outcome == "timeout"
        said = await chat.type("ana", place, "/approve", reply_to=orphan)
        assert ("Not run" if chat.knows_repeats else "nothing was decided") in (await chat.reply(said, "")).text
        assert not second.done()
        assert "Timeout" in await chat.answer(await chat.forge("ana", orphan, token))
        await chat.becomes(orphan, "Timeout")
        said = await chat.type("ana", place, "/approve", reply_to=card)
        assert "approved once" in (await chat.reply(said, "")).text.lower()
        assert (await second).may_run
