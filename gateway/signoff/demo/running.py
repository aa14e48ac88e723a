"""Opening the gateway in a temporary folder, letting the script play, and ending cleanly whenever the person wants."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.text import Text

from signoff.demo.keyboard import typed_lines
from signoff.demo.screen import Screen, Terminal
from signoff.demo.script import AGENT, SCENES
from signoff.demo.show import Show, Stage, stage_config
from signoff.demo.terminal import PLACE, YOU, TerminalAdapter
from signoff.gateway import Gateway
from signoff.record import Approval

AUTO_PAUSE_S = 1.2
"""How long a card stands before it is answered by itself, on a terminal, where somebody looks on."""
UNREACHABLE = 75
"""The exit code when the chat cannot be reached: nobody could be asked."""


async def perform(folder: Path, stage: Stage | None, *, auto: bool) -> int:
    """Run the demonstration; the exit code. Files are written to `folder` alone."""
    # What the adapters log is told here in sentences of its own.
    logging.getLogger("signoff_adapters").addHandler(logging.NullHandler())
    console = Terminal(highlight=False)
    screen = Screen(console, interactive=stage is None and not auto)
    adapter = TerminalAdapter(screen, folder) if stage is None else None
    stage = stage or Stage(destination=PLACE, approver=YOU.user_id)
    _welcome(screen, stage, auto=auto)
    adapters = {("default", PLACE.platform): adapter} if adapter is not None else None
    async with Gateway(stage_config(stage, folder), adapters=adapters) as gateway:
        refused = _refused(gateway)
        if refused:
            screen.put([Text(f"{stage.title} cannot be reached: {refused}", "bold red")])
            return UNREACHABLE
        show = Show(
            gateway,
            screen,
            stage,
            auto=adapter if auto else None,
            pause_s=AUTO_PAUSE_S if console.is_terminal else 0.0,
        )
        playing = asyncio.create_task(show.play(SCENES))
        typing = asyncio.create_task(_typing(adapter, screen)) if adapter is not None and not auto else None
        code = await _until_over(playing, typing)
        screen.close()
        _farewell(screen, await show.ended(), whole=playing.done() and not playing.cancelled(), stage=stage)
    return code


async def _typing(adapter: TerminalAdapter, screen: Screen) -> None:
    """Hand in what is typed, until standard input ends."""
    screen.prompt()
    async for line in typed_lines():
        screen.entered()
        await adapter.typed(line)
        screen.prompt()


async def _until_over(playing: asyncio.Task[None], typing: asyncio.Task[None] | None) -> int:
    """Wait for the last scene, the end of the input, or a signal; what is still asked then is withdrawn."""
    tasks = [task for task in (playing, typing) if task is not None]
    signalled: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    with _signals(signalled.set_result):
        waited: list[asyncio.Future[None] | asyncio.Future[int]] = [*tasks, signalled]
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()
    if signalled.done():
        return 128 + signalled.result()
    signalled.cancel()
    return 0


@contextlib.contextmanager
def _signals(stop: Callable[[int], None]) -> Iterator[None]:
    """Call `stop` for the signals that mean to end; a second one ends as if none were handled."""
    loop = asyncio.get_running_loop()
    added: list[signal.Signals] = []

    def once(number: int) -> None:
        for each in added:
            loop.remove_signal_handler(each)
        stop(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows has its own way
            loop.add_signal_handler(number, once, number)
            added.append(number)
    try:
        yield
    finally:
        for number in added:
            loop.remove_signal_handler(number)


def _refused(gateway: Gateway) -> str | None:
    """Why a real platform cannot be reached, if so."""
    for adapter in gateway.adapters.values():
        health = adapter.health()
        if health.state != "ready":
            return health.detail or health.state
    return None if gateway.adapters else "its library is not installed: pip install 'signoff[telegram]'"


def _welcome(screen: Screen, stage: Stage, *, auto: bool) -> None:
    lines: list[Text | str] = [
        Text.assemble(("Signoff", "bold"), " asks people before an agent acts. You are the person."),
        f"The agent, {AGENT}, follows a script: it runs nothing and says what it would run.",
    ]
    if stage.destination != PLACE:
        lines.append(f"Its cards go to {stage.title}: answer there. Ctrl-C ends.")
    elif auto:
        lines.append("The buttons are pressed by themselves (--auto).")
    else:
        lines.append("Type a button's number and Enter, or /approve, /deny reason, /pending, /help.")
        lines.append("Ctrl-D ends.")
    screen.put(lines)


def _farewell(screen: Screen, records: Sequence[Approval], *, whole: bool, stage: Stage) -> None:
    """What became of all of it, from the record."""
    withdrawn = [record.short_id for record in records if record.outcome == "cancelled"]
    head = "What the record says" if whole else "Ended early"
    head += f". Withdrawn, not run: {', '.join(withdrawn)}" if withdrawn else ""
    screen.put([Text("─" * screen.width, "dim"), Text(head, "bold")], gap=True)
    for record in records:
        room = max(screen.width - 8, 20)
        shown = str(getattr(record.action, "command", "")).split("\n", 1)[0]
        shown = shown if len(shown) <= room else f"{shown[: room - 1]}…"
        named = Text.assemble((record.short_id, "bold"), " ", (shown, "cyan"))
        summary = Text(record.user_summary).wrap(screen.console, room)
        screen.put([named, *(Text.assemble("      ", line) for line in summary)])
    if not records:
        screen.put(["Nothing was asked."])
    screen.put(["Nothing was run. The store and its folder are removed."], gap=True)
    if whole and stage.destination == PLACE:
        screen.put([Text("The same in a real chat: signoff demo --platform telegram --help", "dim")])
