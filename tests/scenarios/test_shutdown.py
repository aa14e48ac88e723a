"""A gateway that is told to end while people press and agents ask."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from signoff.client import ApprovalRecord
from tests.scenarios.gateways import GatewayProcess, soon
from tests.scenarios.stage import Stage, staged
from tests.scenarios.transport import Seen, Transport

OPEN, PRESSED = 60, 40
SUBMITTERS = 4
ENDED_WITHIN_S = 20.0
"""A stop waits for 4 s at most; the rest is for a busy machine, on which ending itself takes its time."""
PROMISED_S, TRIES = 5.0, 3
"""What a service manager may wait, which one of so many stops must keep to: others run on this machine as well."""
NOTHING: dict[str, list[str]] = {"tasks": [], "threads": [], "files": []}


async def open_cards(stage: Stage) -> tuple[list[Seen], list[asyncio.Task[ApprovalRecord]]]:
    """Cards in as many places, so that no tap waits for another one of its chat; an agent waits behind each."""
    places = [await stage.chat.group() for _ in range(OPEN)]
    commands = [f"deploy ./part-{number:02}" for number in range(OPEN)]
    asked: list[asyncio.Task[ApprovalRecord]] = []
    for place, command in zip(places, commands, strict=True):
        asked.append(stage.work(command, await stage.session(place, place)))
    pairs = zip(places, commands, strict=True)
    cards = await asyncio.gather(*(stage.chat.card(place, command, 30) for place, command in pairs))
    await stage.delivered(OPEN)
    return list(cards), asked


async def submit(stage: Stage, session: str, name: str) -> int:
    """An agent asks one thing after the other, and waits for none, until nobody listens any more; how many.

    It keeps its connection, since asyncio itself drops a socket, open, that it accepted in the very step of its loop
    in which the listener is closed; that one is nobody's until it is collected."""
    headers = {"Authorization": f"Bearer {stage.agent_key}"}
    async with aiohttp.ClientSession(stage.gateway.url, headers=headers) as http:
        for number in count():
            action = {"kind": "command", "command": f"deploy ./{name}-{number}"}
            try:
                async with http.post("/v1/approvals", json={"session_id": session, "action": action}) as answer:
                    if answer.status != 201:
                        return number
            except aiohttp.ClientError:
                return number
    raise AssertionError("unreachable")


async def read_events(stage: Stage) -> None:
    """An operator's stream, open until the end."""
    async for _ in stage.admin.events(after=0):
        pass


async def not_ready(stage: Stage) -> bool:
    """Whether the gateway has begun to end: it is no longer ready, or does not listen any more."""
    try:
        async with aiohttp.ClientSession(stage.gateway.url) as http, http.get("/health/ready") as answer:
            return answer.status != 200
    except aiohttp.ClientError:
        return True


async def test_every_tap_taken_before_sigterm_is_answered_and_nothing_is_left(chat: Transport, tmp_path: Path) -> None:
    """The taps stand before their commit when the signal comes, and are let go only once the gateway is ending."""
    async with staged(chat, tmp_path, "--fast", "--hold", f"before {chat.deciding}") as stage:
        gateway = stage.gateway
        cards, asked = await open_cards(stage)
        busy = await stage.session("busy", await chat.group())
        load = [asyncio.create_task(submit(stage, busy, f"busy-{number}")) for number in range(SUBMITTERS)]
        reading = asyncio.create_task(read_events(stage))
        gateway.arm()
        taps = await asyncio.gather(*(chat.tap("ana", card, "Approve once") for card in cards[:PRESSED]))

        async def all_taken() -> bool:
            return gateway.arrivals() == PRESSED

        await soon(all_taken)
        loop = asyncio.get_running_loop()
        assert not any(task.done() for task in (*load, reading))
        began = loop.time()
        gateway.terminate()
        await soon(lambda: not_ready(stage))
        gateway.disarm()
        assert await gateway.ended() == 0
        assert loop.time() - began < ENDED_WITHIN_S
        told = await asyncio.gather(*(chat.answer(tap) for tap in taps), return_exceptions=True)
        # For a machine so slow that the taps stood for longer than a person is kept waiting, or that the answers to
        # all of them took longer than a stop may: then the log says so, and what was decided still stands.
        slow = gateway.logged("cut off at the stop")
        wrong = [each for each in map(str, told) if "Approved once" not in each and "Received" not in each]
        assert wrong == [] or (slow and len(wrong) < PRESSED), told
        assert gateway.left() == NOTHING
        assert min(await asyncio.gather(*load)) > 0
        reading.cancel()
        await asyncio.wait({reading})

        # What the people were told is what happened: exactly those agents may go on with the next gateway.
        await gateway.launch("--fast")
        for tap, said in zip(taps, told, strict=True):
            if isinstance(said, TimeoutError) and await chat.given_up(tap):
                await chat.insist(tap)
        await only_these_ran(stage, asked)


# Slack gets about four cards a second over all places, so there the scene alone takes a quarter of a minute.
@pytest.mark.heavy_on("slack-socket", "slack-http")
async def test_no_tap_around_sigterm_is_lost(chat: Transport, tmp_path: Path) -> None:
    """`signoff serve` itself, as a service manager ends it: taps that it did not take wait for the next one, or are
    made again where the platform says that they failed."""
    async with staged(chat, tmp_path) as stage:
        cards, asked = await open_cards(stage)
        taps = list(await asyncio.gather(*(chat.tap("ana", card, "Approve once") for card in cards[: PRESSED // 2])))
        loop = asyncio.get_running_loop()
        began = loop.time()
        stopping = asyncio.create_task(stage.gateway.stop())
        more = (chat.tap("bo", card, "Approve once") for card in cards[PRESSED // 2 : PRESSED])
        taps += await asyncio.gather(*more)
        assert await stopping == 0
        assert loop.time() - began < ENDED_WITHIN_S
        await stage.gateway.start()
        told = await asyncio.gather(*(chat.insist(tap, 30) for tap in taps))
        assert all("pproved" in text for text in told), told
        await only_these_ran(stage, asked)


async def hanging(address: str | Path) -> asyncio.StreamWriter:
    """A caller that sends half of a body and no more."""
    if isinstance(address, Path):
        reader, writer = await asyncio.open_unix_connection(address)
    else:
        url = urlsplit(address)
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
    head = b"POST /v1/approvals HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n"
    writer.write(head)
    await reader.readline()  # "100 Continue": the rest is being waited for
    writer.write(b"half")
    return writer


@pytest.mark.heavy
async def test_whatever_hangs_a_stop_takes_5_s(chat: Transport, tmp_path: Path) -> None:
    """Presses whose commit stands, a send that is not answered, and callers with half a body on every listener."""
    taken: list[float] = []
    loop = asyncio.get_running_loop()
    while len(taken) < TRIES and min(taken, default=PROMISED_S) >= PROMISED_S:
        folder = tmp_path / str(len(taken))
        folder.mkdir()
        async with staged(chat, folder, "--fast", "--hold", f"before {chat.deciding}") as stage:
            gateway = stage.gateway
            place, slow = await chat.group(), await chat.group()
            stage.work("deploy ./held", await stage.session("held", place))
            card = await chat.card(place, "./held")
            await chat.slow(slow, 60)
            stage.work("deploy ./slow", await stage.session("slow", slow))
            callers = [await hanging(gateway.url), await hanging(gateway.socket)]
            gateway.arm()
            await chat.tap("ana", card, "Approve once")

            async def standing(gateway: GatewayProcess = gateway) -> bool:
                return gateway.arrivals() > 0

            await soon(standing)
            began = loop.time()
            gateway.terminate()
            assert await gateway.ended() == 0
            taken.append(loop.time() - began)
            for each in callers:
                each.close()
    assert min(taken) < PROMISED_S, taken


async def only_these_ran(stage: Stage, asked: list[asyncio.Task[ApprovalRecord]]) -> None:
    """What was pressed ran once, and the others still wait."""
    async with asyncio.timeout(30):
        await asyncio.gather(*asked[:PRESSED])
    assert sorted(stage.ran) == [f"deploy ./part-{number:02}" for number in range(PRESSED)]
    assert not any(task.done() for task in asked[PRESSED:])
