"""Gateways that are killed and started again: nothing is lost, nothing runs twice."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest
from msgspec import Struct

from tests.scenarios.gateways import soon
from tests.scenarios.stage import Stage, staged
from tests.scenarios.transport import Seen, Transport

LOST_WITHIN_S = 45.0
"""A lease lapses, then 10 s pass without a tap; the rest is leeway for a busy machine."""
LEASE = ("--lease", "6")
"""What a killed gateway had under way is free again after so many seconds, in place of 20."""
WINDOW_S = 12.0
"""Enough of it must be left for what is done before the kill and after the start, on a busy machine as well."""
COMMAND = "deploy ./target"
BESIDE = "deploy ./beside"


class Hop(Struct, frozen=True, kw_only=True):
    """Where a gateway dies while it takes one request from the question to the result."""

    name: str
    at: str
    """The launcher's hop; `{deciding}` is the change that a press makes on this transport."""
    during: Literal["ask", "tap"]
    """What takes the gateway there."""
    hold: bool = False
    """The gateway stands still there, and is killed once the person has read the answer to the tap."""
    quick: bool = False
    """Told in the quick run too: one of each kind of step, a commit, a call of the platform and what has to be told."""

    def on(self, chat: Transport) -> str:
        """The launcher's hop on this transport."""
        return self.at.format(deciding=chat.deciding)


HOPS = (
    Hop(name="before the insert", at="before asking.ask", during="ask"),
    Hop(name="after the insert", at="after asking.ask", during="ask", quick=True),
    Hop(name="before the lease", at="before sending.lease", during="ask"),
    Hop(name="after the post", at="after post", during="ask", quick=True),
    Hop(name="before the decision", at="before {deciding}", during="tap"),
    Hop(name="after the decision", at="after {deciding}", during="tap", quick=True),
    Hop(name="after the answer", at="before update", during="tap", hold=True, quick=True),
    Hop(name="after the edit", at="after update", during="tap"),
    Hop(name="before the claim", at="before claiming.claim", during="tap"),
    Hop(name="after the claim", at="after claiming.claim", during="tap", quick=True),
    Hop(name="before the result", at="before claiming.result", during="tap", quick=True),
    Hop(name="after the result", at="after claiming.result", during="tap"),
)
LEASED = Hop(name="after the lease", at="before post", during="ask")
POSTED = Hop(name="after the post", at="after post", during="ask")


class Killed(Struct, kw_only=True):
    """A story whose gateway has just died."""

    stage: Stage
    place: str
    beside: Seen
    """The card of another request that stood open."""
    tasks: tuple[asyncio.Task[object], asyncio.Task[object]]
    tap: str | None = None


async def killed_at(hop: Hop, stage: Stage) -> Killed:
    """Ask about one command that stands open, then bring another to the hop, where the gateway dies."""
    chat, gateway = stage.chat, stage.gateway
    place = await chat.group()
    session = await stage.session("crash", place)
    beside = stage.work(BESIDE, session)
    beside_card = await chat.card(place, BESIDE)
    await stage.delivered(1)
    tap = None
    if hop.during == "ask":
        gateway.arm()
        target = stage.work(COMMAND, session)
    else:
        target = stage.work(COMMAND, session)
        card = await chat.card(place, COMMAND)
        await stage.delivered(2)
        gateway.arm()
        tap = await chat.tap("ana", card, "Approve once")
    if hop.hold:
        assert tap is not None
        assert await chat.answer(tap) == "Approved once. The agent is told."
        await soon(gateway.stands)
        await gateway.kill()
    assert await gateway.ended() == -9
    assert gateway.reached.read_text() == hop.on(chat)
    return Killed(stage=stage, place=place, beside=beside_card, tasks=(beside, target), tap=tap)


async def finished(killed: Killed) -> None:
    """Both agents are told the end of their requests, and what was approved ran once."""
    stage, chat = killed.stage, killed.stage.chat
    beside, target = killed.tasks
    assert "Denied" in await chat.tapped("bo", killed.beside, "Deny")
    async with asyncio.timeout(40):
        await asyncio.gather(beside, target)
    assert stage.ran == [COMMAND]
    assert f"Denied by {chat.called('bo')}" in (await chat.becomes(killed.beside, "not run")).text
    ended = [e.approval or {} for e in await stage.events("approval.resolved")]
    assert sorted(a["outcome"] for a in ended) == ["approved", "denied"]
    target_id = next(a["request_id"] for a in ended if a["outcome"] == "approved")
    assert await stage.execution_steps(target_id) == 2
    assert await stage.pending() == []


async def shown(card: Seen, chat: Transport) -> None:
    """The card tells the whole story in the end; an edit that was under way waits for its lease to lapse."""
    last = await chat.becomes(card, "Succeeded: exit code 0", LOST_WITHIN_S)
    assert last.text.startswith(f"✅ Approved once by {chat.called('ana')}"), last


async def told(hop: Hop, kind: type[Transport], folder: Path, turns: asyncio.Semaphore, *, to_the_end: bool) -> None:
    """One cell: killed at the hop, started again, and the story goes on as if nothing had been."""
    how = "--hold" if hop.hold else "--kill"
    place = folder / hop.name.replace(" ", "-")
    async with turns, kind.opened() as chat, staged(chat, place, how, hop.on(chat), *LEASE) as stage:
        killed = await killed_at(hop, stage)
        await stage.gateway.start()
        card = await chat.card(killed.place, COMMAND) if killed.tap is None else None
        if card is not None:
            assert "Approved once" in await chat.tapped("ana", card, "Approve once")
        elif killed.tap is not None:
            # The platform delivers it again, or the person presses again: it counts, or is told that it did.
            assert "pproved" in await chat.insist(killed.tap, 30)
            card = next(each for each in await chat.seen(killed.place) if COMMAND in each.text)
        assert card is not None
        await finished(killed)
        if to_the_end or hop.during == "ask":
            await shown(card, chat)
        assert len([m for m in await chat.seen(killed.place) if COMMAND in m.text]) == 1


async def told_at_every_hop(chat: Transport, folder: Path, at_once: int, *, thorough: bool) -> None:
    """All cells, `at_once` of them at a time, each with a gateway and a platform of its own."""
    turns = asyncio.Semaphore(at_once)
    hops = [hop for hop in HOPS if thorough or hop.quick]
    cells = (told(hop, type(chat), folder, turns, to_the_end=thorough) for hop in hops)
    ended = await asyncio.gather(*cells, return_exceptions=True)
    failed = [(hop.name, end) for hop, end in zip(hops, ended, strict=True) if end is not None]
    if failed:
        raise ExceptionGroup("hops", [RuntimeError(f"{name}: {error!r}") for name, error in failed]) from failed[0][1]


@pytest.mark.timeout(300)
@pytest.mark.heavy_on("telegram-webhook", "discord-gateway", "discord-http", "slack-socket", "slack-http", "console")
async def test_killed_at_any_hop_nothing_is_lost_or_run_twice(chat: Transport, tmp_path: Path, thorough: bool) -> None:
    """At length: at all of them, and the card tells the end, too, where an edit of it was under way."""
    await told_at_every_hop(chat, tmp_path, 6, thorough=thorough)


async def reposted_after_the_lease(kind: type[Transport], folder: Path) -> None:
    """Nobody knows whether the leased card was posted, so one is posted after a while, which says so where it may be
    the second."""
    async with kind.opened() as chat, staged(chat, folder / "leased", "--kill", LEASED.at, *LEASE) as stage:
        killed = await killed_at(LEASED, stage)
        await stage.gateway.start()
        card = await chat.card(killed.place, COMMAND, LOST_WITHIN_S)
        assert ("Sent again; the first copy may have been lost." in card.text) is not chat.knows_repeats
        await chat.tapped("ana", card, "Approve once")
        await finished(killed)
        await shown(card, chat)


async def two_copies_after_the_post(kind: type[Transport], folder: Path) -> None:
    """The card stands, its id was lost: a second one comes, both mean the same, the first is corrected by a tap. Where
    the platform recognises what is sent again, it is the same card and its id is found."""
    async with kind.opened() as chat, staged(chat, folder / "posted", "--kill", POSTED.at, *LEASE) as stage:
        killed = await killed_at(POSTED, stage)
        await stage.gateway.start()
        first = second = await chat.card(killed.place, COMMAND)
        if chat.knows_repeats:
            await stage.delivered(2, LOST_WITHIN_S)
        else:
            second = await chat.card(killed.place, COMMAND, LOST_WITHIN_S, which=1)
            assert "Sent again" in second.text
        await chat.tapped("ana", second, "Approve once")
        await finished(killed)
        await shown(second, chat)
        if chat.knows_repeats:
            assert len([m for m in await chat.seen(killed.place) if COMMAND in m.text]) == 1
            return
        assert "Approve once" in (await chat.again(first)).buttons
        assert f"Already approved by {chat.called('ana')}" in await chat.tapped("bo", first, "Deny")
        await chat.becomes(first, f"Approved once by {chat.called('ana')}")


@pytest.mark.heavy
@pytest.mark.timeout(240)
async def test_a_card_whose_sending_is_doubtful_is_sent_again(chat: Transport, tmp_path: Path) -> None:
    await asyncio.gather(
        reposted_after_the_lease(type(chat), tmp_path), two_copies_after_the_post(type(chat), tmp_path)
    )


@pytest.mark.heavy
async def test_deadlines_stand_still_while_no_gateway_is_up(chat: Transport, tmp_path: Path) -> None:
    """A tap made meanwhile counts, although the window would have passed by the clock on the wall."""
    place = await chat.group()
    async with staged(chat, tmp_path) as stage:
        session = await stage.session("away", place)
        asked = stage.work(COMMAND, session, timeout_s=WINDOW_S)
        open_one = stage.work(BESIDE, session, timeout_s=WINDOW_S)
        card, other = await chat.card(place, COMMAND), await chat.card(place, BESIDE)
        await stage.delivered(2)
        expires_at = (await stage.waiting(BESIDE)).expires_at
        assert expires_at is not None
        await stage.gateway.kill()
        tap = await chat.tap("ana", card, "Approve once")
        # Time itself is the story: past the end of the window, and for longer than a heartbeat.
        await asyncio.sleep(max(5.5, (expires_at - datetime.now(UTC)).total_seconds() + 1))
        await stage.gateway.start()
        assert "approved" in (await chat.insist(tap, 30)).lower()
        assert (await asked).may_run
        assert not open_one.done()
        assert "Denied" in await chat.tapped("bo", other, "Deny")
        assert (await open_one).outcome == "denied"
