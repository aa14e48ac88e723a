"""Fifty people press at once on three platforms, and a hundred questions come at once into one place of each."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest
from msgspec import Struct

from tests.platforms.discord import DiscordPlatform
from tests.platforms.slack import SlackPlatform
from tests.platforms.telegram import TelegramPlatform
from tests.scenarios import several
from tests.scenarios.gateways import soon
from tests.scenarios.several import STREAMS, TITLES
from tests.scenarios.stage import Stage
from tests.scenarios.test_many import as_agent, ended
from tests.scenarios.transport import APPROVERS, WAIT_S, Person, Seen, Transport

TAPS, ROUNDS, PARTS = 50, 200, 8
"""The rounds are told in parts, each with a workspace of its own: Slack takes 50 edits of an app in a minute, and each
round needs one or two."""
ANSWERED_WITHIN = {
    "discord": timedelta(seconds=3),
    "slack": timedelta(seconds=3),
    "telegram": timedelta(seconds=10),
}
"""The deadlines of Slack and Discord. Telegram forgets a press after about 15 s; its presses are handled one after the
other within a chat, so the last of so many waits for all."""
WORDS = {
    "Approve once": ("Approved once. The agent is told.", "approved"),
    "Deny": ("Denied. The agent is told.", "denied"),
}
"""What the one who decides is told, and the outcome."""


class Press(Struct, frozen=True, kw_only=True, eq=False):
    """One of many presses."""

    platform: str
    who: Person
    button: str
    tap: str


async def waited(chat: Transport, tap: str) -> timedelta | None:
    """How long the platform waited for the answer to a press, by its own clock; none when it got no answer."""
    if isinstance(chat.server, DiscordPlatform):
        state = await chat.server.press_state(int(tap))
        return state.acknowledged_at - state.created_at if state.acknowledged_at else None
    if isinstance(chat.server, SlackPlatform):
        press = await chat.server.press_state(tap)
        return press.acknowledged_at - press.pressed_at if press.acknowledged_at else None
    assert isinstance(chat.server, TelegramPlatform)
    query = await chat.server.press_state(tap)
    return query.answer.at - query.pressed_at if query.answer else None


async def prompt(chat: Transport, tap: str) -> timedelta:
    """The same, once it is known. The result may be told before Slack is told that the press came."""
    found = await chat.server.until(lambda: waited(chat, tap), lambda found: found is not None, timeout_s=WAIT_S)
    assert isinstance(found, timedelta)
    return found


def truthful(press: Press, answer: str, outcome: str, winner: Press) -> bool:
    """Whether one who came too late is told who decided what and where, or that it was their own."""
    if (press.platform, press.who) == (winner.platform, winner.who):
        return answer.startswith(f"You already {outcome} this at ")
    where = "" if press.platform == winner.platform else f" on {TITLES[winner.platform]}"
    return answer.startswith(f"Already {outcome} by “{winner.who.capitalize()}” [") and answer.endswith(
        f"{where}. Your tap changed nothing."
    )


async def fifty(chats: Mapping[str, Transport], cards: Mapping[str, Seen], dice: random.Random) -> list[Press]:
    """So many presses at once, on each platform by everybody who may decide, on the card as it stood: whoever presses
    may not have seen yet that it has changed."""
    tokens = {(name, button): await chats[name].token(card, button) for name, card in cards.items() for button in WORDS}
    where = [list(chats)[number % len(chats)] for number in range(TAPS)]
    dice.shuffle(where)
    acts = [(name, dice.choice(APPROVERS), dice.choice(list(WORDS))) for name in where]
    taps = await asyncio.gather(
        *(chats[name].forge(who, cards[name], tokens[name, button]) for name, who, button in acts)
    )
    return [
        Press(platform=name, who=who, button=button, tap=tap)
        for (name, who, button), tap in zip(acts, taps, strict=True)
    ]


async def one_round(stage: Stage, chats: Mapping[str, Transport], places: Mapping[str, str], number: int) -> str:
    """One question with all its presses; the outcome."""
    command = f"deploy ./round-{number:03}"
    asked = stage.work(command, "everywhere")
    found = await asyncio.gather(*(chat.card(places[name], command) for name, chat in chats.items()))
    cards = dict(zip(chats, found, strict=True))
    presses = await fifty(chats, cards, random.Random(number))
    record = await asked

    async def of(platform: str) -> list[tuple[Press, str]]:
        chat = chats[platform]
        mine = [press for press in presses if press.platform == platform]
        told = [(press, await chat.answer(press.tap)) for press in mine]
        assert max([await prompt(chat, press.tap) for press in mine]) <= ANSWERED_WITHIN[platform]
        return told

    told = [each for part in await asyncio.gather(*map(of, chats)) for each in part]
    first = dict(WORDS.values())
    winners = [(press, first[answer]) for press, answer in told if answer in first]
    assert len(winners) == 1, winners
    [(winner, outcome)] = winners
    assert (WORDS[winner.button][1], record.outcome) == (outcome, outcome)
    [decider] = record.decided_by
    assert (decider.platform, decider.user_id) == (winner.platform, chats[winner.platform].user_id(winner.who))
    wrong = [(p, a) for p, a in told if p is not winner and not truthful(p, a, outcome, winner)]
    assert wrong == []
    verdict = "Succeeded: exit code 0" if outcome == "approved" else "Denied by “"
    await asyncio.gather(*(chats[name].becomes(card, verdict) for name, card in cards.items()))
    return outcome


@pytest.mark.heavy
@pytest.mark.timeout(200)
@pytest.mark.parametrize("part", range(PARTS))
async def test_fifty_taps_on_three_platforms_decide_once(part: int, tmp_path: Path) -> None:
    """The launcher lifts the budgets: a question each second would be more than a place takes."""
    async with several.opened(STREAMS) as chats:
        places = await several.groups(chats)
        async with several.staged(chats, tmp_path, "--fast", settings=several.also_to(places)) as stage:
            await stage.session("everywhere", places["telegram"])
            rounds = range(part * ROUNDS // PARTS, (part + 1) * ROUNDS // PARTS)
            outcomes = Counter([await one_round(stage, chats, places, number) for number in rounds])
            assert {(outcome, "none"): count for outcome, count in outcomes.items()} == await stage.metric()
            assert sum(outcomes.values()) == len(rounds)
            assert len(stage.ran) == outcomes["approved"]


# --- a hundred questions in one place ---------------------------------------------------------------

QUESTIONS = 100
"""In each of three places, at once."""
ANSWERABLE_WITHIN_S = 60.0
ELSEWHERE_WITHIN = timedelta(seconds=1)
ELSEWHERE_TRIES = 3
"""A machine that stands still for a moment delays one press; a budget that is used up delays them all."""
WRITERS = 8


async def submit(stage: Stage, http: aiohttp.ClientSession, session: str) -> None:
    """Ask everything in one session, over a few connections."""
    commands = iter([f"deploy ./part-{number:03}" for number in range(QUESTIONS)])

    async def write() -> None:
        for command in commands:
            body = {"session_id": session, "action": {"kind": "command", "command": command}}
            async with http.post("/v1/approvals", json=body) as answer:
                assert answer.status == 201, await answer.text()

    await asyncio.gather(*(write() for _ in range(WRITERS)))


async def tap_elsewhere(stage: Stage, chat: Transport, number: int) -> None:
    """A question in somebody's own chat meanwhile: its press is answered at once."""
    session = await stage.session(f"elsewhere-{several.platform_of(chat)}-{number}", chat.direct("bo"))
    taken: list[timedelta] = []
    while not taken or (taken[-1] > ELSEWHERE_WITHIN and len(taken) < ELSEWHERE_TRIES):
        words = f"{session}-{len(taken)}"
        asked = stage.work(f"deploy ./{words}", session)
        tap = await chat.tap("bo", await chat.card(chat.direct("bo"), f"./{words}"), "Approve once")
        assert "Approved once" in await chat.answer(tap)
        taken.append(await prompt(chat, tap))
        assert (await asked).may_run
    assert taken[-1] <= ELSEWHERE_WITHIN, taken


def buttons(seen: Iterable[Seen], label: str) -> list[tuple[Seen, str]]:
    """The messages that have a button with such a label, and its whole label."""
    return [(each, found) for each in seen for found in each.buttons if re.fullmatch(label, found)]


async def answer_all(chat: Transport, place: str) -> None:
    """Approve on each digest and on each card of a place, until nothing can be pressed there any more."""

    def to_do(seen: list[Seen]) -> list[tuple[Seen, str]]:
        return buttons(seen, r"Approve \d+ once…|Approve once")

    while todo := to_do(await chat.seen(place)):
        message, label = todo[0]
        told = await chat.tapped("ana", message, label)
        if label == "Approve once":
            assert "pproved" in told
        else:
            count = label.split()[1]
            panel = await chat.panel("ana", message, f"{count} run")
            told = await chat.tapped("ana", panel, f"Yes, approve these {count}")
            assert told.startswith(f"Approved {count} once.")
        name = message.message_id

        def done(seen: list[Seen], name: str = name) -> bool:
            return not any(each.message_id == name for each, _ in to_do(seen))

        await chat.until(place, done, ANSWERABLE_WITHIN_S)


@pytest.mark.heavy
@pytest.mark.timeout(240)
async def test_a_hundred_questions_in_one_place_of_each_platform(tmp_path: Path) -> None:
    """All are asked, shown and answered within the time. Budgets are kept: `staged` asks the platforms at the end,
    which count every message beyond what they take."""
    async with several.opened(STREAMS) as chats:
        places = await several.groups(chats)
        async with several.staged(chats, tmp_path) as stage, as_agent(stage) as http:
            for name, place in places.items():
                await stage.session(name, place)
            loop = asyncio.get_running_loop()
            began = loop.time()
            await asyncio.gather(*(submit(stage, http, name) for name in chats))
            await asyncio.gather(*(tap_elsewhere(stage, chat, 1) for chat in chats.values()))

            waiting = await stage.admin.pending()
            ids = {name: {each.short_id for each in waiting if each.session_id == name} for name in chats}
            assert {name: len(found) for name, found in ids.items()} == dict.fromkeys(chats, QUESTIONS)

            async def all_shown() -> bool:
                return all(record.delivered_to for record in await stage.admin.pending())

            await soon(all_shown, ANSWERABLE_WITHIN_S)
            for name, chat in chats.items():
                seen = [each for each in await chat.seen(places[name]) if each.by_bot]
                text = "\n".join(each.text + (each.file or b"").decode() for each in seen)
                assert {each for each in ids[name] if each not in text} == set()
            answering = asyncio.gather(*(answer_all(chat, places[name]) for name, chat in chats.items()))
            await asyncio.gather(*(tap_elsewhere(stage, chat, 2) for chat in chats.values()))
            await answering
            assert loop.time() - began <= ANSWERABLE_WITHIN_S

            for name, chat in chats.items():
                records = await ended(stage, name)
                assert len({record["request_id"] for record in records}) == QUESTIONS
                assert {record["outcome"] for record in records} == {"approved"}
                left = buttons(await chat.seen(places[name]), r"(Approve|Deny).*")
                assert left == []
            assert await stage.pending() == []
