"""`signoff run` as a user types it, and a gateway inside another program."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

from tests.forked import fork_module
from tests.scenarios.gateways import ROOT, GatewayProcess, clean_environment
from tests.scenarios.stage import Stage, staged
from tests.scenarios.transport import WAIT_S, Transport


class Run:
    """One `signoff run` of a script that leaves a trace each time it runs."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage, self.name = stage, name
        self.folder = stage.gateway.folder / "work"
        self.folder.mkdir(exist_ok=True)
        self.trace = self.folder / f"{name}.ran"

    async def start(self, place: str | None, code: int = 0) -> None:
        """Type the command. `rm` in it is what has to be asked about."""
        to = ("--to", place) if place else ()
        script = f"echo ran >> {self.trace}; rm -rf ./{self.name}; exit {code}"
        self.process = await fork_module(
            *("signoff", "run", *to, "--", "sh", "-c", script),
            cwd=self.folder,
            env=clean_environment() | {"SIGNOFF_URL": self.stage.gateway.url, "SIGNOFF_KEY": self.stage.agent_key},
        )

    async def ended(self) -> tuple[int | None, int, str]:
        """Exit code, how often the script ran, and what was said."""
        async with asyncio.timeout(30):
            _, errors = await self.process.communicate()
        ran = len(self.trace.read_text().splitlines()) if self.trace.exists() else 0
        return self.process.returncode, ran, errors.decode()


async def approved(stage: Stage, name: str, code: int, shown: str) -> None:
    chat, run = stage.chat, Run(stage, name)
    place = await chat.group()
    await run.start(place, code)
    card = await chat.card(place, f"./{name}", 2 * WAIT_S)
    await chat.tapped("ana", card, "Approve once")
    assert (await run.ended())[:2] == (code, 1)
    await chat.becomes(card, shown)


async def denied(stage: Stage) -> None:
    chat, run = stage.chat, Run(stage, "denied")
    place = await chat.group()
    await run.start(place)
    card = await chat.card(place, "./denied", 2 * WAIT_S)
    await chat.tapped("bo", card, "Deny")
    code, ran, said = await run.ended()
    assert (code, ran) == (77, 0)
    assert f"Denied by {chat.called('bo')}" in said
    await chat.becomes(card, f"Denied by {chat.called('bo')}")


async def nobody(stage: Stage) -> None:
    chat, run = stage.chat, Run(stage, "nobody")
    way = await chat.nowhere("kicked")
    await run.start(way.place)
    code, ran, said = await run.ended()
    assert (code, ran) == (75, 0)
    assert chat.unasked.outcome.replace("_", " ").capitalize() in said


async def interrupted(stage: Stage) -> None:
    chat, run = stage.chat, Run(stage, "interrupted")
    place = await chat.group()
    await run.start(place)
    card = await chat.card(place, "./interrupted", 2 * WAIT_S)
    run.process.send_signal(signal.SIGINT)
    assert (await run.ended())[:2] == (130, 0)
    assert "Cancelled" in (await chat.becomes(card, "not run")).text


async def test_run_asks_runs_once_and_passes_the_exit_code_on(chat: Transport, tmp_path: Path) -> None:
    async with staged(chat, tmp_path) as stage:
        await nobody(stage)
        await asyncio.gather(
            approved(stage, "good", 0, "Succeeded: exit code 0"),
            approved(stage, "bad", 3, "Failed: exit code 3"),
            denied(stage),
            interrupted(stage),
        )


async def test_run_outlives_a_restart_of_the_gateway(chat: Transport, tmp_path: Path) -> None:
    place = await chat.group()
    async with staged(chat, tmp_path) as stage:
        run = Run(stage, "patient")
        await run.start(place)
        card = await chat.card(place, "./patient", 2 * WAIT_S)
        await stage.delivered(1)
        await stage.gateway.kill()
        await stage.gateway.start()
        await chat.tapped("ana", card, "Approve once")
        assert (await run.ended())[:2] == (0, 1)
        await chat.becomes(card, "Succeeded: exit code 0")


async def test_a_gateway_inside_a_program_leaves_nothing_behind(chat: Transport, tmp_path: Path) -> None:
    """In process there is no hooks listener: whatever can be posted to one is for `signoff serve`."""
    places = [await chat.group() for _ in range(3)]
    gateway = GatewayProcess(tmp_path, chat.config(hooks=False))
    chat.meets(gateway)
    pages = ("--pages",) if chat.serves_pages else ()
    commands = [f"rm -rf ./inside-{number}" for number in range(3)]
    pairs = [word for pair in zip(places, commands, strict=True) for word in pair]
    process = await fork_module(
        *("tests.scenarios.embedded", *pages, str(gateway.config), *pairs),
        cwd=ROOT,
        env=clean_environment(),
        stderr=None,
    )
    try:
        cards = [await chat.card(place, command) for place, command in zip(places, commands, strict=True)]
        for card, button in zip(cards, ("Approve once", "Deny", "Approve once"), strict=True):
            await chat.tapped("ana", card, button)
        async with asyncio.timeout(20):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    *answers, left = [json.loads(line) for line in output.splitlines()]
    assert process.returncode == 0
    assert {a["command"]: (a["outcome"], a["may_run"]) for a in answers} == {
        commands[0]: ("approved", True),
        commands[1]: ("denied", False),
        commands[2]: ("approved", True),
    }
    assert left == {"tasks": [], "threads": [], "files": []}
    for card, word in zip(cards, ("Approved", "Denied", "Approved"), strict=True):
        await chat.becomes(card, f"{word} ")
