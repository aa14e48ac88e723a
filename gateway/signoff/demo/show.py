"""The performance: the agent asks through a real gateway, reacts to what became of it, and runs nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from rich.text import Text

from signoff.config import Config, GatewaySettings, Secret
from signoff.demo.screen import Screen
from signoff.demo.script import AGENT, HOST, Scene
from signoff.demo.terminal import PLACE, YOU, TerminalAdapter
from signoff.errors import RequestNotFound
from signoff.gateway import Gateway
from signoff.ids import new_id
from signoff.model import Copy, Destination
from signoff.record import Approval
from signoff.rows import request_key
from signoff.sessions import Declaration
from signoff.settings import AgentSettings, PrincipalSettings, Profile

SESSION = "demo"
CARD_WITHIN_S = 3.0


class Stage(Struct, frozen=True, kw_only=True):
    """Where cards go and who may decide. `settings`: a real platform's own, None for the terminal and the console."""

    destination: Destination
    approver: str
    settings: dict[str, Any] | None = None
    title: str

    @property
    def in_terminal(self) -> bool:
        """Whether the cards are drawn in this terminal."""
        return self.destination == TERMINAL.destination

    @property
    def in_console(self) -> bool:
        """Whether the cards stand in the web console."""
        return self.destination == CONSOLE.destination


TERMINAL = Stage(destination=PLACE, approver=YOU.user_id, title="this terminal")
CONSOLE = Stage(destination=Destination("console", "main"), approver=YOU.user_id, title="the console")


def stage_config(stage: Stage, folder: Path) -> Config:
    """A configuration that leaves nothing behind outside `folder`."""
    platform = stage.destination.platform
    account = f"{platform}:{stage.approver}"
    profile = Profile(
        agents={AGENT: AgentSettings(kinds=("chat",))},
        principals={"you": PrincipalSettings(accounts=(account,))},
        platforms={platform: stage.settings} if stage.settings is not None else {},
        approvers={platform: (stage.approver,)},
    )
    gateway = GatewaySettings(
        state_dir=folder,
        store=Secret(f"sqlite:///{folder / 'demo.sqlite3'}"),
        token_key_file=folder / "token.key",
        port=0,
        console=stage.in_console,
    )
    return Config(gateway=gateway, profiles={"default": profile})


class Show:
    """One run of the script. `auto`: the terminal adapter that presses by itself, `pause_s` after each card."""

    def __init__(
        self, gateway: Gateway, screen: Screen, stage: Stage, *, auto: TerminalAdapter | None = None, pause_s: float = 0
    ) -> None:
        self._gateway = gateway
        self._screen = screen
        self._stage = stage
        self._auto = auto
        self._pause_s = pause_s
        self.asked: list[str] = []
        """Ids of all requests, in order."""

    async def play(self, scenes: Sequence[Scene]) -> None:
        """All scenes, one after the other."""
        declaration = Declaration(session_id=SESSION, kind="chat", destination=self._stage.destination)
        await self._gateway.sessions.declare("default", declaration, AGENT)
        for number, scene in enumerate(scenes, 1):
            heading = Text.assemble((f"{number} of {len(scenes)}", "dim"), " · ", (scene.title, "bold"))
            self._screen.put([Text("─" * self._screen.width, "dim"), heading], gap=True)
            self._say(scene.says)
            self._hint((scene.console_hint if self._stage.in_console else "") or scene.hint)
            denied = await self._act(scene, scene.presses)
            if scene.again is not None and denied:
                self._screen.put([], gap=True)
                self._say(scene.again.says)
                self._hint(scene.again.hint)
                await self._act(scene, scene.again.presses)

    async def ended(self) -> list[Approval]:
        """All that was asked, as the record has it now; the cards say so too when this returns."""
        found = []
        for request_id in self.asked:
            with contextlib.suppress(RequestNotFound):  # the end came before the question was stored
                record = await self._gateway.get(request_id)
                await self._card_shown(record)
                found.append(record)
        return found

    async def _act(self, scene: Scene, presses: Sequence[str]) -> bool:
        """Ask, and react; whether a person denied it."""
        if self._auto is None:
            return await self._ask_all(scene)
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(self._ask_all(scene))
            group.create_task(self._press_all(presses, self._auto))
        return asking.result()

    async def _press_all(self, presses: Sequence[str], adapter: TerminalAdapter) -> None:
        for label in presses:
            await adapter.press(label, pause_s=self._pause_s)

    async def _ask_all(self, scene: Scene) -> bool:
        """Ask as often as the scene says, at once, and react to each ending as it comes; whether it was denied."""
        ids = [new_id("req") for _ in range(scene.times)]
        self.asked += ids
        tasks = [asyncio.create_task(self._ask(scene, request_id)) for request_id in ids]
        try:
            for number, ending in enumerate(asyncio.as_completed(tasks), 1):
                await self._react(scene, await ending, number)
            return any(task.result().outcome == "denied" for task in tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, scene: Scene, request_id: str) -> Approval:
        return await self._gateway.request(
            scene.action, session_id=SESSION, reason=scene.reason, request_id=request_id, host=HOST
        )

    async def _react(self, scene: Scene, record: Approval, number: int) -> None:
        """What the agent reads and does. Nothing is run, and the gateway is told so."""
        await self._card_shown(record)
        which = f" ({number} of {scene.times})" if scene.times > 1 else ""
        read = Text.assemble((f"{AGENT} reads{which}: ", "dim"), (record.message, "italic"))
        self._screen.put([read], gap=True)
        if record.may_run:
            self._say(scene.approved)
            line = str(getattr(scene.action, "command", "")).split("\n", 1)
            self._screen.put([Text(f"    {line[0][:60]}{'…' if len(line) > 1 or len(line[0]) > 60 else ''}", "cyan")])
            self._say("This is a demonstration, so I run nothing and report that.")
            await self._gateway.result(record.request_id, "not_run")
            await self._card_shown(record)
        elif record.outcome == "denied" and record.reason:
            self._say(scene.reasoned.format(reason=record.reason))
        elif record.outcome == "denied":
            self._say(scene.denied)
        else:
            self._say("Nobody said yes, so I run nothing.")

    async def _card_shown(self, record: Approval) -> None:
        """Wait, 3 s at most, until the card says what became of it, so that the agent speaks after it."""
        key = request_key("default", record.leader_id or record.request_id)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CARD_WITHIN_S):
                while True:
                    now = self._gateway.clock.now()
                    copies = await self._gateway.store.find(Copy, "request", key)
                    if not any(c.lease_until is not None or (c.due_at is not None and c.due_at <= now) for c in copies):
                        return
                    await asyncio.sleep(0.01)

    def _hint(self, words: str) -> None:
        if words:
            self._screen.put([Text(words, "dim")])

    def _say(self, words: str) -> None:
        self._screen.put([Text.assemble((f"{AGENT}: ", "bold magenta"), words)])
